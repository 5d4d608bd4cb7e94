//! The value below which a part of the observations lies.

use crate::buckets::{BucketRange, log2};
use crate::native::Histogram;

/// A quantile, and what a person has to know about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// The value; not a number if there is none.
    pub value: f64,
    /// Set if observations that are not a number had a part in it.
    pub note: Option<QuantileNote>,
}

/// What observations that are not a number did to a quantile: they count as larger than all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantileNote {
    /// The quantile fell among them: it is not a number.
    IsNan,
    /// The quantile is higher than it would be without them.
    IsSkewed,
}

impl From<f64> for Quantile {
    fn from(value: f64) -> Quantile {
        Quantile { value, note: None }
    }
}

impl Histogram {
    /// The value below which the part `q` (0 to 1) of the observations lies. Observations are
    /// thought to be spread evenly within a custom bucket and the zero bucket, and evenly over
    /// finer buckets within any other. Below 0 it is -inf, above 1 it is +inf, without
    /// observations it is not a number.
    pub fn quantile(&self, q: f64) -> Quantile {
        if q < 0.0 {
            return f64::NEG_INFINITY.into();
        }
        if 1.0 < q {
            return f64::INFINITY.into();
        }
        if self.count == 0.0 || q.is_nan() {
            return f64::NAN.into();
        }
        // From the nearer end. Observations that are not a number are in no bucket, as if they
        // lay beyond the last one, so with them it is always from below.
        if self.sum.is_nan() || q < 0.5 {
            self.quantile_by_rank(self.ascending(), q * self.count, End::Low)
        } else {
            self.quantile_by_rank(self.ascending().rev(), (1.0 - q) * self.count, End::High)
        }
    }

    fn quantile_by_rank(
        &self,
        mut buckets: impl Iterator<Item = BucketRange>,
        rank: f64,
        end: End,
    ) -> Quantile {
        let (mut bucket, passed) = reach(&mut buckets, rank);
        if let Some(value) = self.restrict(&mut bucket) {
            return value.into();
        }
        let count = passed.min(self.count);
        if count < rank {
            return match self.sum.is_nan() {
                true => Quantile { value: f64::NAN, note: Some(QuantileNote::IsNan) },
                // Rounding only: the histogram counts more than its buckets.
                false => bucket.upper.into(),
            };
        }
        let within = match end {
            End::Low => rank - (count - bucket.count),
            End::High => count - rank,
        };
        let mut note = None;
        if self.sum.is_nan() {
            let mut total = count;
            for further in buckets {
                bucket = further;
                total += further.count;
            }
            note = (total < self.count).then_some(QuantileNote::IsSkewed);
        }
        Quantile { value: self.interpolate(&bucket, within / bucket.count), note }
    }

    /// Takes zero as bound of the zero bucket on a side without buckets, and of the first custom
    /// bucket if that is positive. Gives the quantile where a custom bucket has no other bound.
    fn restrict(&self, bucket: &mut BucketRange) -> Option<f64> {
        if !self.has_custom_bounds() {
            if bucket.lower < 0.0 && 0.0 < bucket.upper {
                self.restrict_zero(bucket);
            }
        } else if bucket.lower == f64::NEG_INFINITY {
            if bucket.upper <= 0.0 {
                return Some(bucket.upper);
            }
            bucket.lower = 0.0;
        } else if bucket.upper == f64::INFINITY {
            return Some(bucket.lower);
        }
        None
    }

    /// The zero bucket of a histogram with buckets on one side only ends at zero.
    pub(crate) fn restrict_zero(&self, zero: &mut BucketRange) {
        match (self.negative.is_empty(), self.positive.is_empty()) {
            (true, false) => zero.lower = 0.0,
            (false, true) => zero.upper = 0.0,
            _ => {}
        }
    }

    fn interpolate(&self, bucket: &BucketRange, part: f64) -> f64 {
        let (lower, upper) = (bucket.lower, bucket.upper);
        if self.has_custom_bounds() || (lower <= 0.0 && 0.0 <= upper) {
            return lower + (upper - lower) * part;
        }
        let (log_lower, log_upper) = (log2(lower.abs()), log2(upper.abs()));
        match 0.0 < lower {
            true => (log_lower + (log_upper - log_lower) * part).exp2(),
            false => -(log_upper + (log_lower - log_upper) * (1.0 - part)).exp2(),
        }
    }
}

/// Where the buckets begin.
#[derive(Clone, Copy)]
enum End {
    Low,
    High,
}

/// The bucket with observations where their count reaches `rank`, else the last; also the count.
fn reach(buckets: &mut impl Iterator<Item = BucketRange>, rank: f64) -> (BucketRange, f64) {
    let mut reached =
        BucketRange { lower: 0.0, upper: 0.0, has_lower: false, has_upper: false, count: 0.0 };
    let mut count = 0.0;
    for bucket in buckets {
        reached = bucket;
        if bucket.count == 0.0 {
            continue;
        }
        count += bucket.count;
        if rank <= count {
            break;
        }
    }
    (reached, count)
}
