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

#[cfg(test)]
mod tests {
    use crate::notation::parse_notation;

    #[test]
    fn fractions() {
        let check = |text: &str, (lower, upper): (f64, f64), expected: f64| {
            let found = parse_notation(text).unwrap().0.histogram.fraction(lower, upper);
            assert!((found.value - expected).abs() < 1e-12, "{lower} {upper} {found:?}");
            assert_eq!(found.has_nans, text.contains("NaN"));
        };
        let infinity = f64::INFINITY;
        let both = "{{count:8 sum:1 offset:1 buckets:[4] n_offset:1 n_buckets:[4]}}";
        check(both, (-infinity, infinity), 1.0);
        check(both, (0.0, infinity), 0.5);
        check(both, (1.0, std::f64::consts::SQRT_2), 0.25);
        check(both, (-std::f64::consts::SQRT_2, 1.0), 0.25);
        check(both, (2.0, 1.0), 0.0);
        let custom = "{{schema:-53 count:6 custom_values:[0 10] buckets:[2 2 2]}}";
        check(custom, (-infinity, 5.0), 0.5);
        // A bucket around zero is taken to hold no negative values if there is no other of them.
        check(custom, (-3.0, 5.0), 0.5);
        let wide = "{{schema:-53 count:6 custom_values:[-1 10] buckets:[2 2 2]}}";
        check(wide, (-3.0, 5.0), 1.0 / 6.0);
        check(custom, (5.0, 100.0), 1.0 / 6.0);
        check("{{count:2 z_bucket:2 z_bucket_w:1}}", (0.5, 7.0), 0.25);
        check("{{count:4 sum:NaN offset:1 buckets:[2]}}", (-infinity, infinity), 0.5);
        for text in ["{{}}", "{{count:1}}"] {
            let upper = if text == "{{}}" { 1.0 } else { f64::NAN };
            assert!(parse_notation(text).unwrap().0.histogram.fraction(0.0, upper).value.is_nan());
        }
    }
}
