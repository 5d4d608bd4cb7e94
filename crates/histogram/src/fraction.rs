//! The part of the observations that lies between two values.

use crate::buckets::{BucketRange, Scale};
use crate::native::Histogram;

/// A part of the observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fraction {
    /// From 0 to 1; not a number if there are no observations.
    pub value: f64,
    /// Whether some observations are not a number: they are between no values.
    pub has_nans: bool,
}

impl Histogram {
    /// The part of all observations between `lower` and `upper`, spread within buckets as
    /// [`Histogram::quantile`] has it.
    pub fn fraction(&self, lower: f64, upper: f64) -> Fraction {
        if self.count == 0.0 || lower.is_nan() || upper.is_nan() {
            return Fraction { value: f64::NAN, has_nans: false };
        }
        if upper <= lower {
            return Fraction { value: 0.0, has_nans: false };
        }
        let mut ranks = [Rank::of(lower), Rank::of(upper)];
        let mut passed = 0.0;
        for bucket in self.ascending() {
            for rank in &mut ranks {
                rank.look_at(self, bucket, passed);
            }
            passed += bucket.count;
        }
        let (count, has_nans) = match self.sum.is_nan() {
            true => (passed, passed < self.count),
            false => (self.count, false),
        };
        let [low, high] = ranks.map(|rank| match rank.found {
            Some(rank) if count < rank => count,
            Some(rank) => rank,
            None => count,
        });
        Fraction { value: (high - low) / self.count, has_nans }
    }
}

/// How many observations lie below a value.
struct Rank {
    value: f64,
    found: Option<f64>,
}

impl Rank {
    fn of(value: f64) -> Rank {
        Rank { value, found: None }
    }

    /// `passed` is the count of all buckets before.
    fn look_at(&mut self, histogram: &Histogram, mut bucket: BucketRange, passed: f64) {
        if self.found.is_some() {
            return;
        }
        let is_zero = bucket.lower <= 0.0 && 0.0 <= bucket.upper;
        if is_zero {
            histogram.restrict_zero(&mut bucket);
        }
        if self.value <= bucket.lower {
            self.found = Some(passed);
        } else if self.value < bucket.upper {
            let scale = match histogram.has_custom_bounds() || is_zero {
                true => Scale::Linear,
                false => Scale::Exponential,
            };
            // Nothing is known about where values of an infinitely wide bucket lie.
            self.found = Some(match bucket.lower == f64::NEG_INFINITY && scale == Scale::Linear {
                true => bucket.count,
                false => passed + bucket.count * bucket.part_below(self.value, scale),
            });
        }
    }
}
