//! Pieces of lines: keys, words, values and timestamps, and what may be wrong with them.

use super::KEY_SIZE_MAX;
use super::keys::closing_quote;
use crate::narrow::{self, body_offset};
use crate::number;
use model::Timestamp;
use model::limits::LINE_SIZE_MAX;
use model::sample::NANOS_PER_MILLI;

/// Why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("missing metric name")]
    MissingName,
    #[error("labels without a closing brace")]
    OpenBraces,
    #[error("missing value")]
    MissingValue,
    #[error("invalid value")]
    InvalidValue,
    #[error("invalid timestamp")]
    InvalidTimestamp,
    #[error("timestamp outside the years 1677 to 2262")]
    TimeOutOfRange,
    #[error("unexpected text behind the sample")]
    Trailing,
    #[error("text behind # EOF")]
    BehindEof,
    #[error("name and labels of {0} bytes, the limit is {KEY_SIZE_MAX}")]
    KeyTooLong(usize),
    #[error("line of {0} bytes, the limit is {LINE_SIZE_MAX} (max-line-size)")]
    LineTooLong(usize),
}

/// Where name and labels end.
pub(super) fn key_end(text: &[u8]) -> Result<usize, Fault> {
    let name_end = text.iter().position(|byte| matches!(byte, b'{' | b' ' | b'\t'));
    let Some(name_end) = name_end else { return Err(Fault::MissingValue) };
    // White space may stand between the name and its braces.
    let gap = text.get(name_end..).unwrap_or_default();
    let mut at = text.len() - gap.trim_ascii_start().len();
    if text.get(at) != Some(&b'{') {
        return if name_end == 0 { Err(Fault::MissingName) } else { Ok(name_end) };
    }
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(found) = memchr::memchr2(b'}', b'"', rest) else {
            return Err(Fault::OpenBraces);
        };
        at += found + 1;
        if text.get(at - 1) == Some(&b'}') {
            return Ok(at);
        }
        let Some(close) = closing_quote(text.get(at..).unwrap_or_default()) else {
            return Err(Fault::OpenBraces);
        };
        at += close + 1;
    }
}

pub(super) fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_ascii_start())
}

/// The NaN that Go's parser returns and Prometheus stores for a scraped NaN.
const NORMAL_NAN_BITS: u64 = 0x7ff8_0000_0000_0001;

/// A value as Go's `ParseFloat` takes it, without hexadecimal numbers.
pub(super) fn value(text: &[u8]) -> Option<f64> {
    let unsigned = text.strip_prefix(b"+").unwrap_or(text);
    if let Some(number) = number::decimal(unsigned, 0)
        && number.end == unsigned.len()
        && (unsigned.len() == text.len() || !number.is_negative)
    {
        return Some(number.value);
    }
    let (is_negative, word) = match text.strip_prefix(b"-") {
        Some(word) => (true, word),
        None => (false, unsigned),
    };
    if word.eq_ignore_ascii_case(b"nan") {
        return Some(f64::from_bits(NORMAL_NAN_BITS));
    }
    let is_infinite = word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"infinity");
    let infinity = if is_negative { f64::NEG_INFINITY } else { f64::INFINITY };
    is_infinite.then_some(infinity)
}

pub(super) fn millis(text: &[u8]) -> Result<Timestamp, Fault> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Fault::InvalidTimestamp);
    }
    let millis = number::signed(text).ok_or(Fault::TimeOutOfRange)?;
    millis.checked_mul(NANOS_PER_MILLI).ok_or(Fault::TimeOutOfRange)
}

/// Seconds with decimals, exact to the nanosecond; exponents go through float64.
pub(super) fn seconds(text: &[u8]) -> Result<Timestamp, Fault> {
    let number = number::decimal(text, 0).filter(|number| number.end == text.len());
    let number = number.ok_or(Fault::InvalidTimestamp)?;
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let whole = text.get(..point).unwrap_or_default();
    let fraction = text.get(point + 1..).unwrap_or_default();
    let has_exponent = text.iter().any(|byte| matches!(byte, b'e' | b'E'));
    if has_exponent || 9 < fraction.len() {
        let nanos = (number.value * 1e9).round();
        let is_inside = -9.2e18 < nanos && nanos < 9.2e18;
        return if is_inside { Ok(narrow::whole(nanos)) } else { Err(Fault::TimeOutOfRange) };
    }
    let seconds = match whole {
        b"" | b"-" => 0,
        whole => number::signed(whole).ok_or(Fault::TimeOutOfRange)?,
    };
    let nanos =
        number::digits(fraction, 0).value as i64 * 10i64.pow(9 - body_offset(fraction.len()));
    let nanos = if number.is_negative { -nanos } else { nanos };
    let whole = seconds.checked_mul(1_000_000_000).ok_or(Fault::TimeOutOfRange)?;
    whole.checked_add(nanos).ok_or(Fault::TimeOutOfRange)
}
