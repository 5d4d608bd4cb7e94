//! Whole numbers that float64 has no room for: a sample is the nearest float64, and the low bits stand
//! in a metric beside it, from which both together the number comes back.
//!
//! ```text
//! number        9007199254740993 = 2^53 + 1
//! sample        9007199254740992    m_f           what every language sees
//! low bits                     1    m_f:low53     the number modulo 2^53
//! ```
//!
//! The low bits are written with each number from 2^53 on, whether or not its float64 is exact, and
//! looked at for no smaller sample. So what replaces a sample replaces its low bits, or needs none; and
//! low bits that do not belong to a sample, whatever became of theirs, are told but for a chance in
//! thousands: they make no number that is nearest to it.

/// What the names of metrics of low bits end with.
pub const LONG_SUFFIX: &str = ":low53";

/// From here on, up and down, float64 does not hold every whole number; the first that it misses is
/// nearest to this one.
pub const LONG_MIN: u64 = 1 << 53;

/// The modulus of the low bits.
const MODULUS: i128 = 1 << 53;

/// Whether a sample may stand for several whole numbers.
pub fn is_long(sample: f64) -> bool {
    LONG_MIN as f64 <= sample.abs()
}

/// The low bits of a number of 64 bits, with or without a sign: from 0 to 2^53 - 1.
pub fn low_bits(number: i128) -> f64 {
    number.rem_euclid(MODULUS) as f64
}

/// The number with these low bits to which the sample is the nearest float64; `None` where there is
/// none of 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "both are whole, and checked to be small")]
pub fn exact(sample: f64, low: f64) -> Option<i128> {
    let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
    let is_low = low.fract() == 0.0 && (0.0..MODULUS as f64).contains(&low);
    // The nearest float64 of the greatest numbers is just beyond them.
    if !is_low || !is_long(sample) || (u64::MAX as f64) < sample.abs() {
        return None;
    }
    let near = sample as i128;
    let up = (low as i128 - near).rem_euclid(MODULUS);
    let step = if up <= MODULUS / 2 { up } else { up - MODULUS };
    let number = near + step;
    (range.contains(&number) && number as f64 == sample).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rng::Random;

    #[track_caller]
    fn check(number: i128) {
        assert_eq!(exact(number as f64, low_bits(number)), Some(number), "{number}");
    }

    #[test]
    fn every_number_of_64_bits_comes_back() {
        let border = i128::from(LONG_MIN);
        for offset in -5..=5 {
            for number in [i128::from(i64::MAX) - 5, i128::from(i64::MIN) + 5, border + 5] {
                check(number + offset);
            }
            check(i128::from(u64::MAX) - 5 + offset);
            check(-border - 5 + offset);
        }
        let mut random = Random::seeded(7);
        for _ in 0..100_000 {
            let bits = random.next();
            let number = i128::from(bits >> (bits % 11));
            check(number.max(border));
            check(-(number.clamp(border, i128::from(i64::MAX))));
        }
    }

    #[test]
    fn low_bits_of_another_number_are_told() {
        let number = (1 << 60) + 1;
        let (sample, low) = (number as f64, low_bits(number));
        for other in [
            1.5 * sample + 2048.0,
            sample + 4096.0,
            -sample - 4096.0,
            5.0,
            0.5,
            f64::NAN,
            f64::INFINITY,
        ] {
            assert_eq!(exact(other, low), None, "{other}");
        }
        for other in [-1.0, 0.5, 9e15 + 1e15, f64::NAN] {
            assert_eq!(exact(sample, other), None, "{other}");
        }
        assert_eq!(exact(u64::MAX as f64, 0.0), None, "2^64 has 65 bits");
    }
}
