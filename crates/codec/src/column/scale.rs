//! Integers that are all `base + multiplier * k`: the stream then holds the small `k`.
//!
//! Timestamps in nanoseconds that came as milliseconds are multiples of 1,000,000; sizes are often
//! multiples of 4,096. The multiplier is the greatest common divisor of the distances to the first.

use crate::bytes::{Reader, put_i64_zigzag, put_varint};
use crate::error::Error;

/// A base and a multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The first integer.
    pub base: i64,
    /// 1 when the integers share no larger multiplier.
    pub multiplier: i64,
}

/// Multiplier that marks a stream whose integers were never divided.
///
/// Earlier encoders chose this multiplier for integers that are equal modulo `i64::MAX`, wrote it,
/// and left the integers as they were. Decoders therefore return the integers of such a stream
/// unchanged, without base and multiplier. No encoder writes it any more.
const UNDIVIDED: i64 = i64::MAX;

impl Scale {
    /// The largest multiplier that all of `ints` share, relative to the first of them.
    /// 1 when there is none; 1 too when they are all the same.
    pub fn find(ints: &[i64]) -> Scale {
        let base = ints.first().copied().unwrap_or(0);
        let mut multiplier = 0u64;
        let mut divisor = None;
        for &int in ints {
            let distance = int.wrapping_sub(base);
            // Once a divisor is known, all but a few distances are its multiples: no division.
            if divisor.is_some_and(|divisor: Divisor| divisor.divides(distance)) || distance == 0 {
                continue;
            }
            if int.checked_sub(base).is_none() {
                return Scale { base: 0, multiplier: 1 };
            }
            multiplier = greatest_common_divisor(multiplier, distance.unsigned_abs());
            if multiplier == 1 {
                break;
            }
            divisor = Divisor::new(multiplier);
        }
        match i64::try_from(multiplier) {
            Ok(multiplier) if 1 < multiplier && multiplier != UNDIVIDED => {
                Scale { base, multiplier }
            }
            _ => Scale { base, multiplier: 1 },
        }
    }

    /// Replaces each integer by its `k`.
    ///
    /// # Panics
    /// When [`Scale::find`] cannot have chosen the multiplier.
    pub fn divide(&self, ints: &mut [i64]) {
        assert!(self.multiplier != UNDIVIDED, "the encoder never chooses this multiplier");
        let divisor = Divisor::new(self.multiplier as u64).expect("multiplier of at least 1");
        for int in ints {
            *int = divisor.quotient(int.wrapping_sub(self.base));
        }
    }

    /// Replaces each `k` by its integer.
    pub fn multiply(&self, ints: &mut [i64]) {
        if self.multiplier == UNDIVIDED {
            return;
        }
        for int in ints {
            *int = int.wrapping_mul(self.multiplier).wrapping_add(self.base);
        }
    }

    /// Appends base and multiplier.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_i64_zigzag(out, self.base);
        put_varint(out, self.multiplier as u64);
    }

    /// Reads what [`Scale::put`] wrote.
    pub fn read(reader: &mut Reader) -> Result<Scale, Error> {
        let base = reader.i64_zigzag()?;
        let multiplier = i64::try_from(reader.varint()?)
            .map_err(|_| reader.corrupt("multiplier over 63 bits"))?;
        Ok(Scale { base, multiplier })
    }
}

/// Exact division by a constant, with a multiplication instead of the machine's slow division:
/// an odd number has an inverse modulo 2^64, and the product with it is the quotient.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    shift: u32,
    inverse: u64,
    /// The quotients of what is divisible are within this of zero; those of others, if their low
    /// bits are zero, are not, since multiplication by the inverse permutes the integers.
    quotient_max: u64,
}

impl Divisor {
    fn new(divisor: u64) -> Option<Divisor> {
        if divisor == 0 || i64::MAX as u64 <= divisor {
            return None;
        }
        let shift = divisor.trailing_zeros();
        let odd = divisor >> shift;
        // Newton's iteration doubles the correct low bits: 5, 10, 20, 40, 80.
        let mut inverse = odd.wrapping_mul(3) ^ 2;
        for _ in 0..4 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        }
        Some(Divisor { shift, inverse, quotient_max: i64::MAX as u64 / divisor })
    }

    #[inline]
    fn quotient(self, dividend: i64) -> i64 {
        (dividend >> self.shift).wrapping_mul(self.inverse as i64)
    }

    #[inline]
    fn divides(self, dividend: i64) -> bool {
        let quotient = self.quotient(dividend);
        let low_bits = (1u64 << self.shift) - 1;
        let is_small = (quotient as u64).wrapping_add(self.quotient_max) <= 2 * self.quotient_max;
        (dividend as u64) & low_bits == 0 && is_small
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ints: &[i64], multiplier: i64) {
        let scale = Scale::find(ints);
        assert_eq!(scale.multiplier, multiplier);
        if multiplier == 1 {
            return;
        }
        let mut scaled = ints.to_vec();
        scale.divide(&mut scaled);
        assert_eq!(scaled[0], 0);
        for (&int, &k) in ints.iter().zip(&scaled) {
            assert_eq!((int - scale.base) / multiplier, k);
        }
        scale.multiply(&mut scaled);
        assert_eq!(scaled, ints);
    }

    #[test]
    fn multipliers_are_found() {
        check(&[], 1);
        check(&[5], 1);
        check(&[5, 5, 5], 1);
        check(&[5, 8, 11, 2], 3);
        check(&[1_000_000, 3_000_000, 5_000_000, -7_000_000], 2_000_000);
        check(&[7, 7 + 4096, 7 + 3 * 4096, 7 - 4096 * 1000], 4096);
        check(&[0, 12, 8], 4);
        check(&[i64::MIN, 0, i64::MAX], 1);
        check(&[0, 6, 9, 10], 1);
    }

    /// Distances of `i64::MAX` and of 2^63 have no multiplier that decoders accept.
    #[test]
    fn distances_at_the_ends_of_the_range_are_not_divided() {
        check(&[0, i64::MAX], 1);
        check(&[0, -i64::MAX], 1);
        check(&[-1, i64::MIN], 1);
        check(&[i64::MIN, -1, i64::MIN], 1);
        check(&[0, i64::MIN], 1);
        check(&[i64::MIN, 0], 1);
        check(&[0, i64::MAX - 1, -(i64::MAX - 1)], i64::MAX - 1);
        check(&[1, i64::MAX], i64::MAX - 1);
        check(&[0, 1 << 62, -(1 << 62)], 1 << 62);
    }

    /// Streams of earlier encoders: the header names the multiplier, the integers are undivided.
    #[test]
    fn undivided_integers_of_earlier_encoders_are_returned_unchanged() {
        let mut ints = [-1, i64::MIN, -1];
        Scale { base: -1, multiplier: UNDIVIDED }.multiply(&mut ints);
        assert_eq!(ints, [-1, i64::MIN, -1]);
    }

    #[test]
    fn divisibility_is_exact() {
        for divisor in [1u64, 2, 3, 6, 7, 10, 4096, 1_000_000, 999_999_937] {
            let fast = Divisor::new(divisor).unwrap();
            for dividend in -3000..3000i64 {
                let far = dividend.wrapping_mul(3_074_457_345_618_258);
                for dividend in [dividend, far, far.wrapping_add(dividend)] {
                    assert_eq!(fast.divides(dividend), dividend % divisor as i64 == 0);
                }
            }
        }
    }
}
