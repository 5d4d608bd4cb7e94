//! Numbers as clients write and read them.

use crate::error::{CommandError, NOT_FLOAT, NOT_INTEGER};

/// A 64-bit integer in its only spelling: no sign `+`, no zeros before it, no spaces.
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, text),
    };
    match digits {
        [] => return None,
        [b'0'] if is_negative => return None,
        [b'0'] => return Some(0),
        [b'0', ..] => return None,
        _ if 19 < digits.len() => return None,
        _ => {}
    }
    let mut magnitude: u64 = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if 9 < digit {
            return None;
        }
        magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    match is_negative {
        false => i64::try_from(magnitude).ok(),
        true if magnitude <= i64::MIN.unsigned_abs() => Some(0i64.wrapping_sub_unsigned(magnitude)),
        true => None,
    }
}

/// An argument that must be an integer.
///
/// # Errors
/// [`NOT_INTEGER`].
pub fn int_arg(text: &[u8]) -> Result<i64, CommandError> {
    parse_i64(text).ok_or(NOT_INTEGER)
}

/// A float as C reads it: decimal or hexadecimal, with an exponent; `inf` in any case with or without
/// a sign. Not a number is refused, and what is too large or too small to be told from zero.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    if text.is_empty() || text.starts_with(|first: char| first.is_whitespace()) {
        return None;
    }
    if let Some(value) = parse_hexadecimal(text) {
        return Some(value);
    }
    let value: f64 = text.parse().ok()?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    if value == 0.0 && mantissa.contains(|digit: char| ('1'..='9').contains(&digit)) {
        return None;
    }
    // `1e400` is out of range, `inf` is said.
    let says_infinite = text.to_ascii_lowercase().contains("inf");
    (!value.is_nan() && (value.is_finite() || says_infinite)).then_some(value)
}

/// `0x1f`, `-0x.8p3`.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    let (mantissa, exponent) = match digits.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(part.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent = exponent.checked_sub(4 * i32::try_from(part.len()).ok()?)?;
    let value = sign * value * f64::from(exponent).exp2();
    value.is_finite().then_some(value)
}

/// An argument that must be a float.
///
/// # Errors
/// [`NOT_FLOAT`].
pub fn float_arg(text: &[u8]) -> Result<f64, CommandError> {
    parse_f64(text).ok_or(NOT_FLOAT)
}

/// Whole floats up to this are written as integers: the half of the largest 64-bit integer.
const WHOLE_MAX: f64 = (1_u64 << 62) as f64;

/// A float as replies have it since Redis 7.2: an integer where it is one, else the fewest digits that
/// read back as the same float.
pub fn double_text(value: f64) -> String {
    if value.is_infinite() {
        return if 0.0 < value { "inf" } else { "-inf" }.to_owned();
    }
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    if value.fract() == 0.0 && value.abs() <= WHOLE_MAX {
        return itoa::Buffer::new().format(value as i64).to_owned();
    }
    shortest_text(value)
}

/// The shortest digits of a float that is no whole number of 63 bits. With an exponent if it is large
/// and has zeros at its end, or if it has seven decimals or more and is not near 1.
fn shortest_text(value: f64) -> String {
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = mantissa.replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let sign = if value < 0.0 { "-" } else { "" };
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    // The power of ten of the last digit.
    let last = exponent + 1 - count;
    if 0 <= last && exponent < count + 7 {
        return format!("{sign}{digits}{}", zeros(last));
    }
    if last < 0 && (-7 < last || exponent.abs() < 4) {
        return match usize::try_from(exponent) {
            Ok(exponent) => {
                let (whole, decimals) = digits.split_at(exponent + 1);
                format!("{sign}{whole}.{decimals}")
            }
            Err(_) => format!("{sign}0.{}{digits}", zeros(-1 - exponent)),
        };
    }
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{mantissa}e{exponent_sign}{}", exponent.abs())
}

/// A number's text without the zeros that say nothing.
pub fn trim_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_spelling() {
        for text in ["0", "1", "-1", "9223372036854775807", "-9223372036854775808"] {
            assert_eq!(parse_i64(text.as_bytes()), text.parse().ok(), "{text}");
        }
        for text in ["", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "9223372036854775808", "-01"] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn floats_have_the_fewest_digits() {
        for (value, text) in [
            (3.3, "3.3"),
            (1.0, "1"),
            (-0.0, "-0"),
            (1e17, "100000000000000000"),
            (-4_611_686_018_427_387_904.0, "-4611686018427387904"),
            (1e19, "1e+19"),
            (1.2345678901234567e20, "123456789012345670000"),
            (1e100, "1e+100"),
            (-1.5e-7, "-1.5e-7"),
            (0.000_001, "0.000001"),
            (0.000_123_4, "1.234e-4"),
            (0.012_345_678_9, "0.0123456789"),
            (1_234.567_891_234, "1234.567891234"),
            (12_345.678_912_345, "1.2345678912345e+4"),
            (1_710_623_637.206_349, "1710623637.206349"),
            (1_700_000_000.123_456_7, "1.7000000001234567e+9"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (0.1, "0.1"),
        ] {
            assert_eq!(double_text(value), text);
        }
        for number in 0..10_000u64 {
            let value = f64::from_bits(rng::mix(number));
            let text = double_text(value);
            let is_same = text.parse() == Ok(value);
            assert!(is_same || !value.is_finite(), "{text} of {value:e}");
        }
    }

    #[test]
    fn floats_are_read_as_c_reads_them() {
        assert_eq!(parse_f64(b"1e400"), None);
        assert_eq!(parse_f64(b"1e-400"), None);
        assert_eq!(parse_f64(b"0e-400"), Some(0.0));
        assert_eq!(parse_f64(b"0x10"), Some(16.0));
        assert_eq!(parse_f64(b"-0x1.8p1"), Some(-3.0));
        for text in ["0x", "0xg", "0x1p", "0x-1", "x1"] {
            assert_eq!(parse_f64(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_f64(b"-inf"), Some(f64::NEG_INFINITY));
        assert_eq!(parse_f64(b"nan"), None);
    }
}
