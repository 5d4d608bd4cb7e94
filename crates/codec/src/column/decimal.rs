//! Floats that are decimals: `value == mantissa / 10^exponent`, to the bit.
//!
//! Powers of ten up to 10^15 are exact, and so is a mantissa below 2^53: the division rounds once,
//! to the float nearest to the decimal, which is the float that reading the decimal's text gives.

use super::format::values::EXPONENT_MAX;

const POWERS: [f64; EXPONENT_MAX as usize + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// 1.5 * 2^52. Added to a float within 2^51 of zero it leaves the nearest integer in the low bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// Values whose mantissas are computed before looking whether any failed.
const GROUP_LEN: usize = 64;

/// The mantissa of `value` at `exponent`, when `value` is such a decimal.
pub fn mantissa(value: f64, exponent: u8) -> Option<i64> {
    if exponent == 0 {
        // The cast cuts fractions off, saturates, and makes NaN zero: what does not come back is
        // not taken.
        let mantissa = value as i64;
        return ((mantissa as f64).to_bits() == value.to_bits()).then_some(mantissa);
    }
    let mut mantissa = [0];
    // With larger mantissas any float is a decimal of some exponent, to no one's gain.
    let failed = group_of_decimals(&[value], POWERS[usize::from(exponent)], &mut mantissa);
    (!failed).then_some(mantissa[0])
}

/// Appends the mantissas of `values` to `mantissas`, and the indexes of those that have none to
/// `misses`; these repeat the mantissa before them, so that differences do not see them.
pub fn mantissas(values: &[f64], exponent: u8, mantissas: &mut Vec<i64>, misses: &mut Vec<u32>) {
    let power = POWERS[usize::from(exponent)];
    let start = mantissas.len();
    mantissas.resize(start + values.len(), 0);
    let out = &mut mantissas[start..];
    for (group, (values, out)) in
        values.chunks(GROUP_LEN).zip(out.chunks_mut(GROUP_LEN)).enumerate()
    {
        let failed = if exponent == 0 {
            group_of_integers(values, out)
        } else {
            group_of_decimals(values, power, out)
        };
        if failed {
            for (i, (&value, out)) in values.iter().zip(out).enumerate() {
                *out = mantissa(value, exponent).unwrap_or_else(|| {
                    misses.push((group * GROUP_LEN + i) as u32);
                    0
                });
            }
        }
    }
    fill_misses(&mut mantissas[start..], misses);
}

/// Mantissas of small integers without a branch; tells whether any value is none.
fn group_of_integers(values: &[f64], out: &mut [i64]) -> bool {
    let mut failures = 0;
    for (&value, out) in values.iter().zip(out) {
        let shifted = value + MAGIC;
        failures |= (shifted - MAGIC).to_bits() ^ value.to_bits();
        failures |= (shifted.to_bits() ^ MAGIC.to_bits()) >> 52;
        *out = shifted.to_bits().wrapping_sub(MAGIC.to_bits()) as i64;
    }
    failures != 0
}

/// The same for decimals.
#[inline]
fn group_of_decimals(values: &[f64], power: f64, out: &mut [i64]) -> bool {
    let mut failures = 0;
    for (&value, out) in values.iter().zip(out) {
        let shifted = value * power + MAGIC;
        failures |= ((shifted - MAGIC) / power).to_bits() ^ value.to_bits();
        failures |= (shifted.to_bits() ^ MAGIC.to_bits()) >> 52;
        *out = shifted.to_bits().wrapping_sub(MAGIC.to_bits()) as i64;
    }
    failures != 0
}

fn fill_misses(mantissas: &mut [i64], misses: &[u32]) {
    // Misses at the very start take the first mantissa that there is.
    let leading = misses.iter().enumerate().take_while(|&(i, &miss)| i == miss as usize).count();
    let mut before = mantissas.get(leading).copied().unwrap_or(0);
    for &miss in misses {
        let miss = miss as usize;
        if leading <= miss {
            before = mantissas[miss - 1];
        }
        mantissas[miss] = before;
    }
}

/// Appends the decimals of `mantissas` to `out`.
pub fn decimals(mantissas: &[i64], exponent: u8, out: &mut Vec<f64>) {
    let power = POWERS[usize::from(exponent)];
    if exponent == 0 {
        out.extend(mantissas.iter().map(|&mantissa| mantissa as f64));
    } else {
        out.extend(mantissas.iter().map(|&mantissa| mantissa as f64 / power));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mantissas_are_exact() {
        let cases = [
            (0.1, 1, Some(1)),
            (0.1, 0, None),
            (-12.345, 3, Some(-12345)),
            (0.3, 1, Some(3)),
            (0.1 + 0.2, 1, None),
            (5.0, 0, Some(5)),
            (5.0, 2, Some(500)),
            (-0.0, 0, None),
            (-0.0, 3, None),
            (f64::NAN, 0, None),
            (f64::INFINITY, 0, None),
            (1e300, 0, None),
            (9_007_199_254_740_994.0, 0, Some(9_007_199_254_740_994)),
            (i64::MIN as f64, 0, Some(i64::MIN)),
            (f64::MIN_POSITIVE / 3.0, 15, None),
        ];
        for (value, exponent, expected) in cases {
            assert_eq!(mantissa(value, exponent), expected, "{value} at {exponent}");
            let (mut all, mut misses) = (Vec::new(), Vec::new());
            mantissas(&[1.0, value, 2.0], exponent, &mut all, &mut misses);
            let missed = if expected.is_some() { vec![] } else { vec![1] };
            assert_eq!(misses, missed, "{value} at {exponent}");
            assert_eq!(all[1], expected.unwrap_or(all[0]));
        }
    }

    #[test]
    fn misses_repeat_what_is_before_them() {
        let (mut all, mut misses) = (Vec::new(), Vec::new());
        let nan = f64::NAN;
        mantissas(&[nan, nan, 4.0, nan, nan, 5.0], 0, &mut all, &mut misses);
        assert_eq!(all, [4, 4, 4, 4, 4, 5]);
        assert_eq!(misses, [0, 1, 3, 4]);
    }
}
