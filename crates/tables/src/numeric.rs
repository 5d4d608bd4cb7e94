//! Decimal numbers that are kept as text: whether a text is one, and bytes whose order is theirs.

use crate::limits::DIGITS_MAX;

/// A number, taken apart: `0.digits * 10^exponent`.
struct Decimal {
    is_negative: bool,
    /// Without zeros at either end; none for zero.
    digits: Vec<u8>,
    exponent: i64,
}

/// What stands before the bytes of a number, by what it is.
const MINUS_INFINITY: u8 = 1;
const NEGATIVE: u8 = 2;
const ZERO: u8 = 3;
const POSITIVE: u8 = 4;
const INFINITY: u8 = 5;
const NAN: u8 = 6;

fn special(text: &str) -> Option<u8> {
    match text {
        "NaN" => Some(NAN),
        "Infinity" => Some(INFINITY),
        "-Infinity" => Some(MINUS_INFINITY),
        _ => None,
    }
}

/// Whether a text is a number: digits with at most one point and one sign, and an exponent of at most six
/// digits; or `NaN`, `Infinity`, `-Infinity`.
pub(crate) fn is_numeric(text: &str) -> bool {
    special(text).is_some() || parse(text).is_some()
}

fn parse(text: &str) -> Option<Decimal> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (text, 0),
    };
    let is_negative = mantissa.starts_with('-');
    let unsigned = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let (whole, rest) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let count = whole.len() + rest.len();
    let is_digits = whole.bytes().chain(rest.bytes()).all(|byte| byte.is_ascii_digit());
    if count == 0 || DIGITS_MAX < count || !is_digits {
        return None;
    }
    let mut digits: Vec<u8> = whole.bytes().chain(rest.bytes()).collect();
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.drain(..zeros);
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    // Both are below 2^18.
    let exponent = exponent + whole.len() as i64 - zeros as i64;
    Some(Decimal { is_negative, digits, exponent })
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_short = (1..=6).contains(&digits.len());
    let is_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_short && is_digits { text.parse().ok() } else { None }
}

/// Appends bytes that are equal for equal numbers and whose order is that of numbers; `NaN` is above all,
/// as in PostgreSQL. False when the text is no number.
pub(crate) fn put_key(out: &mut Vec<u8>, text: &str) -> bool {
    if let Some(special) = special(text) {
        out.push(special);
        return true;
    }
    let Some(decimal) = parse(text) else { return false };
    if decimal.digits.is_empty() {
        out.push(ZERO);
        return true;
    }
    out.push(if decimal.is_negative { NEGATIVE } else { POSITIVE });
    let start = out.len();
    out.extend_from_slice(&((decimal.exponent as u64) ^ (1 << 63)).to_be_bytes());
    out.extend_from_slice(&decimal.digits);
    // Below every digit: a number is below those that go on from it.
    out.push(0);
    if decimal.is_negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        assert!(put_key(&mut out, text), "{text}");
        out
    }

    #[test]
    fn keys_have_the_order_of_numbers() {
        let ascending = [
            "-Infinity",
            "-1e100",
            "-100",
            "-99.5",
            "-1.5",
            "-1.25",
            "-1",
            "-0.001",
            "0",
            "1e-9",
            "0.5",
            "0.51",
            "1",
            "1.0001",
            "9",
            "10",
            "11",
            "100.5",
            "1e300",
            "Infinity",
            "NaN",
        ];
        assert!(ascending.is_sorted_by(|a, b| key(a) < key(b)));
        for same in
            [["1", "1.00"], ["100", "1e2"], ["0", "-0.0"], ["+0012.50", "12.5"], [".5", "5E-1"]]
        {
            assert_eq!(key(same[0]), key(same[1]));
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in
            ["", ".", "-", "1.2.3", "1e", "e5", "1e1234567", "nan", " 1", "1 ", "--1", "0x1", "1_0"]
        {
            assert!(!is_numeric(text), "{text}");
        }
        for text in ["5.", ".5", "+1", "-0", "1e+5", "NaN"] {
            assert!(is_numeric(text), "{text}");
        }
    }
}
