//! Histogram buckets that nobody has to configure: 18 of equal ratio in each power of ten.
//!
//! ```text
//! 0...1.000e-09 │ 1.000e-09...1.136e-09 │ 1.136e-09...1.292e-09 │ … │ 1.000e+18...+Inf
//! ```
//!
//! A bucket is open below and closed above. Its name is the value of the label `vmrange`.

use std::f64::consts::{LOG2_E, LOG10_2};

/// The lowest power of ten with buckets of its own.
const POWER_MIN: i32 = -9;
/// Where the buckets end.
const POWER_MAX: i32 = 18;
const BUCKETS_PER_POWER: usize = 18;
const BUCKETS: usize = (POWER_MAX - POWER_MIN) as usize * BUCKETS_PER_POWER;

/// One of the buckets, in order of size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bucket {
    /// Zero, and what is too small for the others.
    Lowest,
    /// The bucket of this index.
    Inner(usize),
    /// What is too large for the others.
    Highest,
}

impl Bucket {
    /// The bucket that a value is in; negative numbers and NaN are in none.
    pub fn of(value: f64) -> Option<Bucket> {
        if value.is_nan() || value < 0.0 {
            return None;
        }
        let position = (log10(value) - f64::from(POWER_MIN)) * BUCKETS_PER_POWER as f64;
        if position < 0.0 {
            return Some(Bucket::Lowest);
        }
        if BUCKETS as f64 <= position {
            return Some(Bucket::Highest);
        }
        let idx = position as usize;
        let is_bound = position == idx as f64 && 0 < idx;
        Some(Bucket::Inner(if is_bound { idx - 1 } else { idx }))
    }

    /// A number of its own, in order of size.
    pub fn key(self) -> u64 {
        match self {
            Bucket::Lowest => 0,
            Bucket::Inner(idx) => idx as u64 + 1,
            Bucket::Highest => BUCKETS as u64 + 1,
        }
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Bucket::Lowest => format!("0...{}", bound(0)),
            Bucket::Inner(idx) => format!("{}...{}", bound(idx), bound(idx + 1)),
            Bucket::Highest => format!("{}...+Inf", scientific(10f64.powi(POWER_MAX))),
        }
    }
}

/// The lower bound of a bucket as text.
fn bound(idx: usize) -> String {
    let ratio = 10f64.powf(1.0 / BUCKETS_PER_POWER as f64);
    scientific((0..idx).fold(10f64.powi(POWER_MIN), |bound, _| bound * ratio))
}

/// A number as Go's `%.3e` prints it.
fn scientific(value: f64) -> String {
    model::go_number::padded_exponent(&format!("{value:.3e}"))
}

/// The decimal logarithm by way of the binary one, as Go takes it: its rounding decides on which
/// side of a bound the bound itself is.
fn log10(value: f64) -> f64 {
    if value == 0.0 || value.is_infinite() {
        return value.log10();
    }
    let (fraction, exponent) = split(value);
    let log2 = if fraction == 0.5 {
        f64::from(exponent - 1)
    } else {
        fraction.ln() * LOG2_E + f64::from(exponent)
    };
    log2 * LOG10_2
}

/// A positive number as `fraction * 2^exponent` with a fraction from a half to one.
fn split(value: f64) -> (f64, i32) {
    const EXPONENT_BITS: u64 = 0x7ff << 52;
    if value < f64::MIN_POSITIVE {
        let (fraction, exponent) = split(value * 2f64.powi(64));
        return (fraction, exponent - 64);
    }
    let bits = value.to_bits();
    let exponent = ((bits & EXPONENT_BITS) >> 52) as i32 - 1022;
    (f64::from_bits((bits & !EXPONENT_BITS) | (1022 << 52)), exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: f64, name: &str) {
        assert_eq!(Bucket::of(value).unwrap().name(), name);
    }

    #[test]
    fn buckets() {
        check(0.0, "0...1.000e-09");
        check(1e-300, "0...1.000e-09");
        check(5e-324, "0...1.000e-09");
        check(1.0, "8.799e-01...1.000e+00");
        check(1.5, "1.468e+00...1.668e+00");
        check(1e18, "1.000e+18...+Inf");
        check(f64::INFINITY, "1.000e+18...+Inf");
        assert_eq!(Bucket::of(-1.0), None);
        assert_eq!(Bucket::of(f64::NAN), None);
    }
}
