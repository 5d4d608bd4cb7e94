//! Decimal text to numbers: the few forms that make up nearly all traffic fast, the rest exactly.
//!
//! A decimal `m / 10^e` with `m <= 2^53` and `e <= 22` is exact in float64 arithmetic, as both
//! numbers are (Clinger, "How to read floating point numbers accurately", 1990).
//! Everything else goes to the standard library, which rounds correctly.

use crate::narrow::body_offset;

/// Powers of ten that float64 holds exactly.
const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];
/// The largest integer up to which all are float64.
const EXACT_MAX: u64 = 1 << 53;
/// Digits that always fit a u64.
const DIGITS_MAX: usize = 19;
/// Longest text of a number that is handed to the standard library.
const TEXT_SIZE_MAX: usize = 1100;

/// A run of digits, as read from the front of a text.
#[derive(Clone, Copy)]
pub(crate) struct Digits {
    /// Their value, meaningful while `count` is at most 19.
    pub value: u64,
    /// How many there are.
    pub count: usize,
}

/// Reads digits from `at` on.
#[inline(always)]
pub(crate) fn digits(text: &[u8], at: usize) -> Digits {
    let (mut value, mut end) = (0u64, at);
    while let Some(&byte) = text.get(end) {
        let digit = byte.wrapping_sub(b'0');
        if 9 < digit {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    Digits { value, count: end - at }
}

/// As [`digits`], faster for long runs such as timestamps: eight digits at a time.
#[inline(always)]
pub(crate) fn long_digits(text: &[u8], at: usize) -> Digits {
    let (mut value, mut end) = (0u64, at);
    while let Some(eight) = text.get(end..end + 8).and_then(|b| <[u8; 8]>::try_from(b).ok()) {
        let word = u64::from_le_bytes(eight);
        if !is_eight_digits(word) || 8 < end - at {
            break;
        }
        value = value * 100_000_000 + eight_digits(word);
        end += 8;
    }
    let tail = digits(text, end);
    let scale = 10u64.wrapping_pow(body_offset(tail.count.min(64)));
    Digits {
        value: value.wrapping_mul(scale).wrapping_add(tail.value),
        count: end - at + tail.count,
    }
}

/// Whether all eight bytes are ASCII digits.
#[inline(always)]
fn is_eight_digits(word: u64) -> bool {
    let high = word & 0xf0f0_f0f0_f0f0_f0f0;
    let carry = word.wrapping_add(0x0606_0606_0606_0606) & 0xf0f0_f0f0_f0f0_f0f0;
    high == 0x3030_3030_3030_3030 && carry == 0x3030_3030_3030_3030
}

/// The number that eight ASCII digits mean, the first being in the lowest byte.
#[inline(always)]
fn eight_digits(word: u64) -> u64 {
    let pairs = (word & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2561) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    (fours & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32
}

/// A decimal number at the front of a text.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    /// Its value.
    pub value: f64,
    /// Where it ends.
    pub end: usize,
    /// The digits when it was written as a plain integer of at most 19 digits.
    pub integer: Option<u64>,
    /// Whether it starts with `-`.
    pub is_negative: bool,
}

/// Reads `-? digits (. digits)? ([eE] [+-]? digits)?` from `at` on; digits may be missing on one
/// side of the point. `None` when there is no number or it is beyond float64.
#[inline(always)]
pub(crate) fn decimal(text: &[u8], at: usize) -> Option<Decimal> {
    let is_negative = text.get(at) == Some(&b'-');
    let start = at + usize::from(is_negative);
    let whole = digits(text, start);
    let end = start + whole.count;
    if 0 < whole.count
        && whole.count <= DIGITS_MAX
        && !matches!(text.get(end), Some(b'.' | b'e' | b'E'))
    {
        let value = sign(whole.value as f64, is_negative);
        return Some(Decimal { value, end, integer: Some(whole.value), is_negative });
    }
    fraction(text, at, start, whole)
}

/// Digits that float64 always holds exactly.
const SHORT_DIGITS_MAX: usize = 15;

/// As [`decimal`] at the front of a text, but `None` for more than 15 digits and for exponents.
#[inline(always)]
pub(crate) fn short(text: &[u8]) -> Option<Decimal> {
    let is_negative = text.first() == Some(&b'-');
    let start = usize::from(is_negative);
    let whole = digits(text, start);
    let mut end = start + whole.count;
    let is_integer = text.get(end) != Some(&b'.');
    if is_integer {
        let is_short = 0 < whole.count && whole.count <= SHORT_DIGITS_MAX;
        let value = sign(whole.value as i64 as f64, is_negative);
        let integer = Some(whole.value);
        return is_short.then_some(Decimal { value, end, integer, is_negative });
    }
    let part = digits(text, end + 1);
    end += 1 + part.count;
    let digit_count = whole.count + part.count;
    if digit_count == 0 || SHORT_DIGITS_MAX < digit_count {
        return None;
    }
    let mantissa = whole.value * 10u64.pow(body_offset(part.count)) + part.value;
    let value = sign(mantissa as i64 as f64 / POWERS_OF_TEN.get(part.count)?, is_negative);
    Some(Decimal { value, end, integer: None, is_negative })
}

/// The rest of [`decimal`]: a point, an exponent or very many digits.
fn fraction(text: &[u8], at: usize, start: usize, whole: Digits) -> Option<Decimal> {
    let is_negative = at < start;
    let mut end = start + whole.count;
    let mut part = Digits { value: 0, count: 0 };
    if text.get(end) == Some(&b'.') {
        part = digits(text, end + 1);
        end += 1 + part.count;
    }
    let digit_count = whole.count + part.count;
    if digit_count == 0 {
        return None;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let signed = matches!(text.get(end + 1), Some(b'+' | b'-'));
        let exponent = digits(text, end + 1 + usize::from(signed));
        if exponent.count == 0 {
            return None;
        }
        end += 1 + usize::from(signed) + exponent.count;
    } else if digit_count <= DIGITS_MAX
        && let Some(power) = POWERS_OF_TEN.get(part.count)
    {
        let mantissa = whole.value * 10u64.pow(body_offset(part.count)) + part.value;
        if mantissa <= EXACT_MAX {
            let value = sign(mantissa as f64 / power, is_negative);
            return Some(Decimal { value, end, integer: None, is_negative });
        }
    }
    let digits_text = text.get(at..end).filter(|t| t.len() <= TEXT_SIZE_MAX)?;
    let value: f64 = std::str::from_utf8(digits_text).ok()?.parse().ok()?;
    value.is_finite().then_some(Decimal { value, end, integer: None, is_negative })
}

#[inline(always)]
fn sign(value: f64, is_negative: bool) -> f64 {
    if is_negative { -value } else { value }
}

/// A whole text as a signed integer; `None` when it is none or out of range.
pub(crate) fn signed(text: &[u8]) -> Option<i64> {
    let is_negative = text.first() == Some(&b'-');
    let start = usize::from(is_negative);
    let run = long_digits(text, start);
    if run.count == 0 || start + run.count != text.len() {
        return None;
    }
    if DIGITS_MAX < run.count {
        return std::str::from_utf8(text).ok()?.parse().ok();
    }
    signed_of(run.value, is_negative)
}

/// The integer of a magnitude and a sign.
#[inline(always)]
pub(crate) fn signed_of(magnitude: u64, is_negative: bool) -> Option<i64> {
    if is_negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Whether float64 holds the integer exactly.
#[expect(clippy::cast_possible_truncation, reason = "a float of an integer has no fraction")]
pub(crate) fn is_exact_integer(magnitude: u64) -> bool {
    magnitude <= EXACT_MAX || (magnitude as f64) as u128 == u128::from(magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str) {
        let got = decimal(text.as_bytes(), 0).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(got.end, text.len(), "{text}");
        let want: f64 = text.parse().unwrap();
        assert_eq!(got.value.to_bits(), want.to_bits(), "{text}");
    }

    #[test]
    fn decimals_are_exact() {
        for text in [
            "0",
            "-0",
            "1",
            "1.",
            ".5",
            "-1.5",
            "0.1",
            "0.30000000000000004",
            "1e5",
            "1.e+78",
            "-1.2E-7",
            "9007199254740993",
            "18446744073709551615",
            "123456789012345678901234567890",
            "2.2250738585072011e-308",
            "5e-324",
            "0.000001",
            "1234567.891",
            "100000000.00000001",
            "9999999999999999999",
            "0.0000000000000000000000000000001",
        ] {
            check(text);
        }
        for text in ["", "-", ".", "-.", "e5", "1e", "1e+", "1e999", "x"] {
            assert!(decimal(text.as_bytes(), 0).is_none(), "{text}");
        }
    }

    #[test]
    fn random_decimals_agree_with_the_standard_library() {
        let mut random = rng::Random::seeded(0x5eed);
        for _ in 0..20_000 {
            let bits = random.next();
            let text = match bits % 4 {
                0 => format!("{}", f64::from_bits(random.next() & 0x7fef_ffff_ffff_ffff)),
                1 => format!("{}.{}", random.below(100_000), random.next() >> (bits & 63)),
                2 => format!("-{}", random.next() >> (bits & 63)),
                _ => format!("{}e-{}", random.next() >> (bits & 63), random.below(30)),
            };
            check(&text);
        }
    }

    #[test]
    fn integers_keep_their_range() {
        for value in [0, 1, -1, 12_345_678, 1_451_606_400_000_000_000, i64::MAX, i64::MIN] {
            assert_eq!(signed(value.to_string().as_bytes()), Some(value));
        }
        assert_eq!(signed(b"000000000000000000000000000000012"), Some(12));
        for text in ["", "-", "1x", "9223372036854775808", "-9223372036854775809", "+1", "1.0"] {
            assert_eq!(signed(text.as_bytes()), None, "{text}");
        }
    }
}
