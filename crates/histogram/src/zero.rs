//! Two histograms get zero buckets of the same width before they are added.
//!
//! The narrower zero bucket takes in the buckets that lie within the wider one. If the wider one
//! ends inside of a bucket with observations, both grow up to that bucket's far bound.

use crate::kahan;
use crate::native::{Bucket, Histogram};
use crate::schema::{lower_bound, upper_bound};

/// A zero bucket, apart from its histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Zero {
    pub threshold: f64,
    pub count: f64,
    /// What rounding took from the count.
    pub lost: f64,
}

/// A bucket, with what rounding took from its count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Term {
    pub index: i32,
    pub count: f64,
    pub lost: f64,
}

impl From<&Bucket> for Term {
    fn from(bucket: &Bucket) -> Term {
        Term { index: bucket.index, count: bucket.count, lost: 0.0 }
    }
}

impl Histogram {
    pub(crate) fn zero(&self) -> Zero {
        Zero { threshold: self.zero_threshold, count: self.zero_count, lost: 0.0 }
    }

    /// The zero bucket with the buckets below `threshold`, which is not narrower than its own.
    pub(crate) fn widened_zero(&self, threshold: f64) -> Zero {
        let positive = self.positive.iter().map(Term::from);
        let negative = self.negative.iter().map(Term::from);
        widened(self.zero(), threshold, self.schema, positive, negative)
    }

    /// Makes the zero bucket as wide as that of `other`, or both wider. Gives the other's zero
    /// bucket as it has to be then.
    pub(crate) fn reconcile_zero(&mut self, other: &Histogram) -> Zero {
        let mut theirs = other.zero();
        loop {
            if theirs.threshold < self.zero_threshold {
                theirs = other.widened_zero(self.zero_threshold);
            }
            if self.zero_threshold < theirs.threshold {
                let own = self.widened_zero(theirs.threshold);
                (self.zero_threshold, self.zero_count) = (own.threshold, own.count);
                let (schema, threshold) = (self.schema, own.threshold);
                let outside = |b: &Bucket| threshold <= lower_bound(schema, b.index);
                self.positive.retain(|b| outside(b) && b.count != 0.0);
                self.negative.retain(|b| outside(b) && b.count != 0.0);
            } else {
                return theirs;
            }
        }
    }
}

/// The zero bucket `zero` after it has taken in the buckets below `threshold`. The threshold comes
/// out larger if it was inside of a bucket with observations.
pub(crate) fn widened(
    zero: Zero,
    threshold: f64,
    schema: i8,
    positive: impl Iterator<Item = Term> + Clone,
    negative: impl Iterator<Item = Term> + Clone,
) -> Zero {
    let mut wide = Zero { threshold, ..zero };
    if threshold == zero.threshold {
        return zero;
    }
    loop {
        // What was lost in an attempt that fails stays, as elsewhere.
        wide.count = zero.count;
        take_in(&mut wide, schema, positive.clone());
        let reached = wide.threshold;
        take_in(&mut wide, schema, negative.clone());
        // The positive side has to go further, too, where the negative side did.
        if wide.threshold <= reached {
            return wide;
        }
    }
}

/// Takes in the buckets of one side, which come from zero outwards.
fn take_in(wide: &mut Zero, schema: i8, buckets: impl Iterator<Item = Term>) {
    for bucket in buckets {
        if wide.threshold <= lower_bound(schema, bucket.index) {
            break;
        }
        (wide.count, wide.lost) = kahan::add(bucket.count, wide.count, wide.lost);
        if bucket.lost != 0.0 {
            (wide.count, wide.lost) = kahan::add(bucket.lost, wide.count, wide.lost);
        }
        let upper = upper_bound(schema, bucket.index);
        if wide.threshold < upper {
            if bucket.count != 0.0 {
                wide.threshold = upper;
            }
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::buckets;

    #[test]
    fn narrower_zero_buckets_widen() {
        let histogram = Histogram {
            zero_threshold: 0.01,
            zero_count: 1.0,
            positive: buckets(&[(0, 2.0), (1, 3.0), (2, 0.0), (4, 4.0)]),
            negative: buckets(&[(1, 5.0), (3, 6.0)]),
            ..Histogram::default()
        };
        let check = |threshold: f64, expected: (f64, f64)| {
            let found = histogram.widened_zero(threshold);
            assert_eq!((found.threshold, found.count), expected, "{threshold}");
        };
        check(0.01, (0.01, 1.0));
        check(0.5, (0.5, 1.0));
        check(0.7, (1.0, 3.0));
        check(1.0, (1.0, 3.0));
        check(1.5, (2.0, 11.0));
        check(3.0, (3.0, 11.0));
        check(4.5, (8.0, 17.0));
        check(9.0, (16.0, 21.0));
    }

    #[test]
    fn the_wider_zero_bucket_wins_and_both_may_grow() {
        let narrow = Histogram {
            zero_threshold: 0.5,
            zero_count: 1.0,
            positive: buckets(&[(0, 2.0), (2, 0.0), (3, 3.0)]),
            ..Histogram::default()
        };
        let wide = Histogram {
            zero_threshold: 0.75,
            zero_count: 10.0,
            positive: buckets(&[(1, 1.0)]),
            ..Histogram::default()
        };
        let mut left = narrow.clone();
        let zero = left.reconcile_zero(&wide);
        assert_eq!((left.zero_threshold, left.zero_count), (1.0, 3.0));
        assert_eq!(left.positive, buckets(&[(3, 3.0)]));
        assert_eq!((zero.threshold, zero.count), (1.0, 10.0));
        let mut right = wide;
        let zero = right.reconcile_zero(&narrow);
        assert_eq!((right.zero_threshold, right.zero_count), (1.0, 10.0));
        assert_eq!((zero.threshold, zero.count), (1.0, 3.0));
    }

    #[test]
    fn a_threshold_that_is_no_number_ends() {
        let mut broken = Histogram { zero_threshold: f64::NAN, ..Histogram::default() };
        broken.reconcile_zero(&Histogram { zero_threshold: 1.0, ..Histogram::default() });
    }
}
