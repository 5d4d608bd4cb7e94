//! Whether counters were reset between two samples.

use crate::custom::{remapped, shared_bounds};
use crate::native::{Bucket, Histogram, ResetHint};
use crate::resolution::Resolution;
use crate::schema::upper_bound;

impl Histogram {
    /// Whether this cannot be `previous` after more observations: a count (not the sum) is smaller,
    /// or a bucket is gone, or the buckets or the zero bucket got finer. A reset hint decides alone;
    /// a gauge is looked at as if it were a counter.
    pub fn is_reset_after(&self, previous: &Histogram) -> bool {
        match self.reset_hint {
            ResetHint::Reset => return true,
            ResetHint::NoReset => return false,
            ResetHint::Unknown | ResetHint::Gauge => {}
        }
        if self.count < previous.count {
            return true;
        }
        if self.has_custom_bounds() {
            if !previous.has_custom_bounds() {
                return true;
            }
            if self.custom_bounds != previous.custom_bounds {
                return self.is_less_under_shared_bounds(previous);
            }
            return is_less(&self.positive, &previous.positive);
        }
        self.is_reset_of_exponential(previous)
    }

    fn is_reset_of_exponential(&self, previous: &Histogram) -> bool {
        // A decrease of the zero threshold or an increase of the schema needs a reset.
        if previous.schema < self.schema || self.zero_threshold < previous.zero_threshold {
            return true;
        }
        let zero = previous.widened_zero(self.zero_threshold);
        // A larger threshold means that ours is inside of a bucket that had observations.
        if zero.threshold != self.zero_threshold || self.zero_count < zero.count {
            return true;
        }
        let resolution = Resolution::between(previous.schema, self.schema);
        [(&self.positive, &previous.positive), (&self.negative, &previous.negative)]
            .into_iter()
            .any(|(own, theirs)| match resolution {
                None => is_less(self.outside_zero(own), self.outside_zero(theirs)),
                Some(resolution) => {
                    let theirs = crate::merge::coarsened(theirs, resolution);
                    is_less(self.outside_zero(own), self.outside_zero(&theirs))
                }
            })
    }

    /// The buckets, in our schema, that are not all inside of our zero bucket.
    fn outside_zero<'b>(&self, buckets: &'b [Bucket]) -> &'b [Bucket] {
        let inside = |b: &Bucket| upper_bound(self.schema, b.index) <= self.zero_threshold;
        match self.zero_threshold == 0.0 {
            true => buckets,
            false => &buckets[buckets.partition_point(inside)..],
        }
    }

    fn is_less_under_shared_bounds(&self, previous: &Histogram) -> bool {
        let bounds = shared_bounds(&self.custom_bounds, &previous.custom_bounds);
        let counts = |histogram: &Histogram| {
            let mut counts = vec![0.0; bounds.len() + 1];
            for bucket in &histogram.positive {
                counts[remapped(bucket.index, &histogram.custom_bounds, &bounds)] += bucket.count;
            }
            counts
        };
        counts(self).iter().zip(counts(previous)).any(|(own, theirs)| *own < theirs)
    }
}

/// Whether a bucket of `previous` has observations that are gone.
fn is_less(current: &[Bucket], previous: &[Bucket]) -> bool {
    let mut current = current.iter().peekable();
    previous.iter().any(|before| {
        while current.next_if(|now| now.index < before.index).is_some() {}
        match current.peek() {
            Some(now) if now.index == before.index => now.count < before.count,
            _ => before.count != 0.0,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::CUSTOM_SCHEMA;
    use crate::testing::buckets;

    fn sample() -> Histogram {
        Histogram {
            schema: 1,
            zero_threshold: 0.25,
            zero_count: 2.0,
            count: 14.0,
            sum: 33.0,
            positive: buckets(&[(-2, 2.0), (-1, 0.0), (3, 4.0)]),
            negative: buckets(&[(1, 5.0), (2, 1.0)]),
            ..Histogram::default()
        }
    }

    #[test]
    fn counts_that_fall_and_buckets_that_are_gone() {
        let check = |change: &dyn Fn(&mut Histogram), is_reset: bool| {
            let mut current = sample();
            change(&mut current);
            assert_eq!(current.is_reset_after(&sample()), is_reset, "{current:?}");
        };
        check(&|_| (), false);
        check(&|h| h.sum = 0.0, false);
        check(&|h| h.count = 13.0, true);
        check(&|h| h.zero_count = 1.0, true);
        check(&|h| h.positive[2].count = 3.0, true);
        check(&|h| h.positive.truncate(2), true);
        check(&|h| h.negative[0].index = 0, true);
        check(&|h| h.positive[1].index = 1, false);
        check(&|h| h.positive.push(Bucket { index: 9, count: 1.0 }), false);
        check(&|h| h.schema = 2, true);
        check(&|h| h.zero_threshold = 0.1, true);
        check(&|h| h.reset_hint = ResetHint::Reset, true);
        check(&|h| (h.reset_hint, h.count) = (ResetHint::NoReset, 0.0), false);
        check(&|h| (h.reset_hint, h.count) = (ResetHint::Gauge, 0.0), true);
    }

    #[test]
    fn wider_zero_buckets_and_coarser_schemas() {
        let check = |change: &dyn Fn(&mut Histogram), is_reset: bool| {
            let mut current = sample().reduced_to(0);
            change(&mut current);
            assert_eq!(current.is_reset_after(&sample()), is_reset, "{current:?}");
        };
        check(&|_| (), false);
        check(&|h| h.negative[0].count = 5.5, true);
        // The first bucket is (0.354 .. 0.5]: at 0.4 it would be cut, at 0.5 its counts move.
        check(&|h| h.zero_threshold = 0.4, true);
        check(&|h| h.zero_threshold = 0.5, true);
        check(&|h| (h.zero_threshold, h.zero_count) = (0.5, 4.0), false);
        check(&|h| (h.zero_threshold, h.zero_count) = (0.5, 3.9), true);
    }

    #[test]
    fn custom_bounds_that_change() {
        let custom = |bounds: &[f64], counts: &[(i32, f64)]| Histogram {
            schema: CUSTOM_SCHEMA,
            custom_bounds: bounds.to_vec(),
            positive: buckets(counts),
            ..Histogram::default()
        };
        let before = custom(&[1.0, 2.0, 3.0], &[(0, 1.0), (1, 2.0), (3, 3.0)]);
        assert!(!custom(&[2.0, 3.0], &[(0, 3.0), (2, 3.0)]).is_reset_after(&before));
        assert!(!custom(&[2.0, 9.0], &[(0, 3.0), (1, 2.0), (2, 1.0)]).is_reset_after(&before));
        assert!(custom(&[2.0, 3.0], &[(0, 2.0), (2, 9.0)]).is_reset_after(&before));
        assert!(custom(&[5.0], &[(0, 1.0), (1, 4.0)]).is_reset_after(&before));
        assert!(custom(&[1.0, 2.0, 3.0], &[(0, 1.0), (3, 3.0)]).is_reset_after(&before));
        assert!(before.is_reset_after(&Histogram::default()));
        assert!(Histogram::default().is_reset_after(&Histogram { count: -1.0, ..before }));
    }
}
