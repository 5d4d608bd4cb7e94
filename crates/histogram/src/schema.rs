//! Which values a bucket stands for.
//!
//! ```text
//! schema 0:   index -1: (1/4 .. 1/2]   index 0: (1/2 .. 1]   index 1: (1 .. 2]   index 2: (2 .. 4]
//! schema s:   index i: (2^((i-1) * 2^-s) .. 2^(i * 2^-s)]
//! custom:     index i: (bounds[i-1] .. bounds[i]], the first from -inf, the last to +inf
//! ```
//!
//! Bounds have the very bits that Prometheus' tables have: whoever compares a bound with a number
//! (a quantile, a fraction, a zero threshold) gets its answers.

use std::f64::consts::SQRT_2;

/// The coarsest schema: each bound is 2^16 times the one before.
pub const SCHEMA_MIN: i8 = -4;
/// The finest schema: each bound is 2^(1/256) times the one before.
pub const SCHEMA_MAX: i8 = 8;
/// Says that the bounds are given one by one.
pub const CUSTOM_SCHEMA: i8 = -53;

/// The coarsest schema that clients may send; coarser than [`SCHEMA_MIN`] there is nothing to keep.
pub const SCHEMA_KNOWN_MIN: i8 = -9;
/// The finest schema that clients may send; it is reduced to [`SCHEMA_MAX`].
pub const SCHEMA_KNOWN_MAX: i8 = 52;

/// Positive or negative values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Values above zero, and all values with custom bounds.
    Positive,
    /// Values below zero.
    Negative,
}

/// How much a bound is above the one before in schemas 1 to 8: 2^(2^-schema). The first is a bit
/// below the nearest float64 of it; the published tables begin with that.
const STEPS: [f64; SCHEMA_MAX as usize] = [
    f64::from_bits(SQRT_2.to_bits() - 1),
    1.189207115002721,
    1.0905077326652577,
    1.0442737824274138,
    1.0218971486541166,
    1.0108892860517005,
    1.0054299011128027,
    1.0027112750502025,
];

/// The bounds from 1/2 up to 1 in the finest schema; a coarser one has every 2nd, 4th, ... of them.
const FRACTIONS: [f64; 1 << SCHEMA_MAX as usize] = fractions();

/// Each schema puts a bound between any two of the schema before: the lower one times its step.
const fn fractions() -> [f64; 1 << SCHEMA_MAX as usize] {
    let mut bounds = [0.5; 1 << SCHEMA_MAX as usize];
    let mut schema = 0;
    while schema < SCHEMA_MAX as usize {
        let coarser = bounds;
        let mut idx = 0;
        while idx < 1 << schema {
            bounds[2 * idx] = coarser[idx];
            bounds[2 * idx + 1] = coarser[idx] * STEPS[schema];
            idx += 1;
        }
        schema += 1;
    }
    bounds
}

/// Whether bounds follow from the schema.
pub fn is_exponential(schema: i8) -> bool {
    (SCHEMA_MIN..=SCHEMA_MAX).contains(&schema)
}

/// The upper bound of a bucket of positive values. The last one before infinity ends at the
/// largest float64. The schema is an exponential one: a finer one is taken as [`SCHEMA_MAX`].
pub fn upper_bound(schema: i8, index: i32) -> f64 {
    exponential_bound(schema, i64::from(index))
}

/// The lower bound of a bucket of positive values: see [`upper_bound`].
pub fn lower_bound(schema: i8, index: i32) -> f64 {
    exponential_bound(schema, i64::from(index) - 1)
}

fn exponential_bound(schema: i8, index: i64) -> f64 {
    let schema = schema.clamp(SCHEMA_KNOWN_MIN, SCHEMA_MAX);
    let (fraction, exponent) = if schema < 0 {
        (0.5, (index << -schema) + 1)
    } else {
        let within = (index & ((1 << schema) - 1)) as usize;
        (FRACTIONS[within << (SCHEMA_MAX - schema)], (index >> schema) + 1)
    };
    if fraction == 0.5 && exponent == 1025 {
        return f64::MAX;
    }
    scale(fraction, exponent)
}

/// `fraction * 2^exponent`, rounded once; the fraction is in 0.5 .. 1.
fn scale(fraction: f64, exponent: i64) -> f64 {
    if 1024 < exponent {
        return f64::INFINITY;
    }
    if exponent < -1075 {
        return 0.0;
    }
    // Below the normal numbers the first product is exact and the second one rounds.
    let shift = if exponent < -1000 { 100 } else { 0 };
    let scaled = fraction * 2.0 * power_of_two(exponent - 1 + shift);
    scaled * power_of_two(-shift)
}

/// 2 to a power between -1022 and 1023.
fn power_of_two(exponent: i64) -> f64 {
    debug_assert!((-1022..=1023).contains(&exponent));
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The bound below which the custom bucket `index` lies; infinite above the last.
pub fn custom_bound(bounds: &[f64], index: i64) -> f64 {
    match usize::try_from(index) {
        Ok(index) => bounds.get(index).copied().unwrap_or(f64::INFINITY),
        Err(_) => f64::NEG_INFINITY,
    }
}

/// The index in schema `to` of the bucket that has index `index` in the finer schema `from`.
pub fn coarser_index(index: i32, from: i8, to: i8) -> i32 {
    debug_assert!(to <= from);
    let shift = i32::from(from) - i32::from(to);
    // It only gets nearer to 1, so it fits.
    (((i64::from(index) - 1) >> shift.clamp(0, 63)) + 1) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_schemas() {
        let check = |schema: i8, index: i32, lower: f64, upper: f64| {
            assert_eq!(lower_bound(schema, index).to_bits(), lower.to_bits(), "{schema} {index}");
            assert_eq!(upper_bound(schema, index).to_bits(), upper.to_bits(), "{schema} {index}");
        };
        check(0, 0, 0.5, 1.0);
        check(0, 3, 4.0, 8.0);
        check(0, -1073, f64::from_bits(1), f64::from_bits(2));
        check(0, -1075, 0.0, 0.0);
        check(-1, 1, 1.0, 4.0);
        check(-4, 0, 2.0_f64.powi(-16), 1.0);
        check(-4, 64, 2.0_f64.powi(1008), f64::MAX);
        check(-4, 65, f64::MAX, f64::INFINITY);
        check(0, 1024, 2.0_f64.powi(1023), f64::MAX);
        check(8, 1024 * 256, 1.9945921121709396 * 2.0_f64.powi(1023), f64::MAX);
        check(8, 1024 * 256 + 1, f64::MAX, f64::INFINITY);
        check(1, 1, 1.0, SQRT_2.next_down());
        check(3, 2, 1.0905077326652577, 1.189207115002721);
        check(0, i32::MAX, f64::INFINITY, f64::INFINITY);
        check(8, i32::MIN, 0.0, 0.0);
        check(-4, i32::MIN, 0.0, 0.0);
    }

    #[test]
    fn fractions_rise_and_those_of_coarser_schemas_are_among_them() {
        assert!(FRACTIONS.is_sorted_by(|a, b| a < b));
        assert_eq!(FRACTIONS[0], 0.5);
        assert_eq!(FRACTIONS[128] * 2.0, SQRT_2.next_down());
        assert_eq!(FRACTIONS[255], 0.9972960560854698);
        for schema in 0..8 {
            for index in -20..20 {
                let finer = upper_bound(schema + 1, 2 * index);
                assert_eq!(upper_bound(schema, index).to_bits(), finer.to_bits());
            }
        }
    }

    #[test]
    fn coarser_buckets_hold_the_finer_ones() {
        for index in [-1000, -3, -2, -1, 0, 1, 2, 3, 4, 5, 1000] {
            for from in -3..=8 {
                for to in SCHEMA_MIN..=from {
                    let coarse = coarser_index(index, from, to);
                    assert!(lower_bound(to, coarse) <= lower_bound(from, index));
                    assert!(upper_bound(from, index) <= upper_bound(to, coarse));
                }
            }
        }
        assert_eq!(coarser_index(i32::MIN, 8, -4), -524288);
        assert_eq!(coarser_index(i32::MAX, 52, 8), 1);
    }

    #[test]
    fn custom_bounds() {
        let bounds = [1.0, 2.5];
        let found: Vec<f64> = (-1..=3).map(|idx| custom_bound(&bounds, idx)).collect();
        assert_eq!(found, [f64::NEG_INFINITY, 1.0, 2.5, f64::INFINITY, f64::INFINITY]);
    }
}
