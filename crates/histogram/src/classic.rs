//! Classic histograms, whose buckets are series of their own, as histograms with custom bounds.

use crate::native::{Bucket, Histogram};
use crate::schema::CUSTOM_SCHEMA;
use model::go_number::format_shortest;

/// Buckets that one classic histogram may have.
pub const CLASSIC_BUCKETS_MAX: usize = 1 << 16;

/// What has been read of one classic histogram at one time.
#[derive(Clone, Debug, Default)]
pub struct ClassicHistogram {
    /// Upper bounds and the observations up to them, ascending.
    buckets: Vec<(f64, f64)>,
    count: Option<f64>,
    sum: f64,
    /// What was wrong first.
    error: Option<ClassicError>,
}

/// Why classic buckets are no histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassicError {
    /// A label `le` that is not a number.
    #[error("the upper bound of a bucket is not a number")]
    BoundIsNan,
    /// Less than nothing.
    #[error("a negative count: {0}")]
    NegativeCount(String),
    /// Buckets count all smaller observations too, so a further bucket never has fewer.
    #[error("the count {later} up to {bound} is below {earlier}, the count up to a smaller bound")]
    NotCumulative {
        /// The larger bound.
        bound: String,
        /// Its count.
        later: String,
        /// The count of a smaller bound.
        earlier: String,
    },
    /// The last bucket counts everything.
    #[error("the count {count} is not the count of the bucket up to +Inf, {last}")]
    CountDiffers {
        /// The series `_count`.
        count: String,
        /// The bucket up to infinity.
        last: String,
    },
    /// More buckets than [`CLASSIC_BUCKETS_MAX`].
    #[error("more than {CLASSIC_BUCKETS_MAX} buckets")]
    TooManyBuckets,
}

impl ClassicHistogram {
    /// Takes a sample of the series `_bucket`: the label `le` and the value. The first of several
    /// with the same bound counts. What is wrong is told by [`ClassicHistogram::convert`].
    pub fn set_bucket(&mut self, bound: f64, count: f64) {
        if self.error.is_none() {
            self.error = self.put_bucket(bound, count).err();
        }
    }

    /// Takes a sample of the series `_count`.
    pub fn set_count(&mut self, count: f64) {
        if count < 0.0 && self.error.is_none() {
            self.error = Some(ClassicError::NegativeCount(format_shortest(count)));
        }
        self.count = Some(count);
    }

    /// Takes a sample of the series `_sum`.
    pub fn set_sum(&mut self, sum: f64) {
        self.sum = sum;
    }

    fn put_bucket(&mut self, bound: f64, count: f64) -> Result<(), ClassicError> {
        if bound.is_nan() {
            return Err(ClassicError::BoundIsNan);
        }
        if count < 0.0 {
            return Err(ClassicError::NegativeCount(format_shortest(count)));
        }
        if CLASSIC_BUCKETS_MAX <= self.buckets.len() {
            return Err(ClassicError::TooManyBuckets);
        }
        let at = self.buckets.partition_point(|bucket| bucket.0 < bound);
        if self.buckets.get(at).is_some_and(|bucket| bucket.0 == bound) {
            return Ok(());
        }
        if let Some(before) = at.checked_sub(1).and_then(|at| self.buckets.get(at)) {
            check_order(*before, (bound, count))?;
        }
        if let Some(after) = self.buckets.get(at) {
            check_order((bound, count), *after)?;
        }
        self.buckets.insert(at, (bound, count));
        Ok(())
    }

    /// The histogram. Without `_count` the last bucket counts all; without a bucket up to infinity
    /// the count is that bucket's.
    pub fn convert(mut self) -> Result<Histogram, ClassicError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let last = self.buckets.last().copied();
        let count = self.count.or(last.map(|last| last.1)).unwrap_or(0.0);
        if last.is_none_or(|last| last.0 != f64::INFINITY) {
            self.buckets.push((f64::INFINITY, count));
        }
        let all = self.buckets.last().map_or(count, |last| last.1);
        if all != count {
            let (count, last) = (format_shortest(count), format_shortest(all));
            return Err(ClassicError::CountDiffers { count, last });
        }
        let mut below = 0.0;
        let mut positive = Vec::with_capacity(self.buckets.len());
        for (index, (_, count)) in (0..).zip(&self.buckets) {
            positive.push(Bucket { index, count: count - below });
            below = *count;
        }
        let mut histogram = Histogram {
            schema: CUSTOM_SCHEMA,
            count,
            sum: self.sum,
            positive,
            custom_bounds: self.buckets.iter().map(|bucket| bucket.0).collect(),
            ..Histogram::default()
        };
        // The bucket up to infinity has no bound.
        histogram.custom_bounds.pop();
        histogram.compact();
        Ok(histogram)
    }
}

fn check_order(before: (f64, f64), after: (f64, f64)) -> Result<(), ClassicError> {
    if after.1 < before.1 {
        return Err(ClassicError::NotCumulative {
            bound: format_shortest(after.0),
            later: format_shortest(after.1),
            earlier: format_shortest(before.1),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::parse_notation;

    fn classic(buckets: &[(f64, f64)], count: Option<f64>) -> Result<Histogram, ClassicError> {
        let mut classic = ClassicHistogram::default();
        classic.set_sum(7.5);
        for (bound, count) in buckets {
            classic.set_bucket(*bound, *count);
        }
        if let Some(count) = count {
            classic.set_count(count);
        }
        classic.convert()
    }

    #[test]
    fn converted() {
        let check = |buckets: &[(f64, f64)], count: Option<f64>, expected: &str| {
            let expected = parse_notation(expected).unwrap().0.histogram;
            assert_eq!(classic(buckets, count), Ok(expected));
        };
        let infinity = f64::INFINITY;
        let shared = "{{schema:-53 sum:7.5 count:5 custom_values:[1 2] buckets:[1 3 1]}}";
        check(&[(1.0, 1.0), (2.0, 4.0), (infinity, 5.0)], Some(5.0), shared);
        check(&[(infinity, 5.0), (2.0, 4.0), (2.0, 9.0), (1.0, 1.0)], None, shared);
        check(&[(1.0, 1.0), (2.0, 4.0)], Some(5.0), shared);
        let without_count = "{{schema:-53 sum:7.5 count:4.5 custom_values:[1] buckets:[4.5]}}";
        check(&[(1.0, 4.5)], None, without_count);
    }

    #[test]
    fn what_is_no_histogram() {
        let check = |buckets: &[(f64, f64)], count: Option<f64>, expected: &str| {
            assert_eq!(classic(buckets, count).unwrap_err().to_string(), expected);
        };
        check(&[(f64::NAN, 1.0)], None, "the upper bound of a bucket is not a number");
        check(&[(1.0, -1.0)], None, "a negative count: -1");
        check(&[], Some(-2.0), "a negative count: -2");
        let order = "the count 1 up to 2 is below 3, the count up to a smaller bound";
        check(&[(1.0, 3.0), (2.0, 1.0)], None, order);
        check(&[(2.0, 1.0), (1.0, 3.0)], None, order);
        check(
            &[(f64::INFINITY, 3.0)],
            Some(4.0),
            "the count 4 is not the count of the bucket up to +Inf, 3",
        );
    }
}
