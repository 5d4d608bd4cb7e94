//! Leaf functions over a body: where keys, names, strings and lines end, and what values are.
//!
//! All take a position and never look before it, but for the backslash that escapes a separator.

use super::fault::Fault;
use super::shapes::RawShape;
use super::{KEY_SIZE_MAX, STRING_SIZE_MAX};
use crate::narrow::body_offset;
use crate::number;

/// Reads the fields behind the space at `at` if they are exactly those of `shape`, in its order,
/// with small integers or short decimals: nearly all lines of nearly all senders.
///
/// Returns where they end; on `None` some values may have been pushed.
#[inline]
pub(super) fn usual_fields(
    body: &[u8],
    at: usize,
    shape: &RawShape,
    values: &mut Vec<f64>,
) -> Option<usize> {
    let (mut at, mut name_start) = (at, 0);
    values.reserve(shape.ends.len());
    for &name_end in &shape.ends {
        let name = shape.raw.get(name_start..name_end as usize)?;
        name_start = name_end as usize;
        // A space before the first field, a comma before the others.
        let rest = body.get(at + 1..)?.strip_prefix(name)?;
        let (value, size) = usual_value(rest)?;
        values.push(value);
        at += 1 + name.len() + size;
        if rest.get(size) != Some(&b',') {
            break;
        }
    }
    let is_all = name_start == shape.raw.len() && body.get(at) == Some(&b' ');
    is_all.then_some(at)
}

/// A number of at most 15 digits, exact whatever its type, and how many bytes it has.
#[inline(always)]
fn usual_value(text: &[u8]) -> Option<(f64, usize)> {
    let number = number::short(text)?;
    let is_integer = text.get(number.end) == Some(&b'i') && number.integer.is_some();
    let end = number.end + usize::from(is_integer);
    if !matches!(text.get(end), Some(b',' | b' ')) {
        return None;
    }
    let is_zero = is_integer && number.integer == Some(0);
    Some((if is_zero { 0.0 } else { number.value }, end))
}

/// Where the key at `start` ends: at the first space that has no backslash before it.
#[inline(always)]
pub(super) fn key_end(body: &[u8], start: usize) -> Result<usize, Fault> {
    if body.get(start) == Some(&b',') {
        return Err(Fault::MissingMeasurement);
    }
    let mut at = start;
    loop {
        let rest = body.get(at..).unwrap_or_default();
        let Some(found) = memchr::memchr2(b' ', b'\n', rest) else {
            return Err(Fault::MissingFields);
        };
        let end = at + found;
        if start < end && body.get(end - 1) == Some(&b'\\') {
            at = end + 1;
            continue;
        }
        if body.get(end) == Some(&b'\n') {
            return Err(Fault::MissingFields);
        }
        if KEY_SIZE_MAX < end - start {
            return Err(Fault::KeyTooLong(end - start));
        }
        return Ok(end);
    }
}

/// Where the field name at `start` ends: behind its `=`.
pub(super) fn name_end(body: &[u8], start: usize) -> Result<usize, Fault> {
    let rest = body.get(start..).unwrap_or_default();
    let mut previous = 0;
    for (idx, &byte) in rest.iter().enumerate().take(KEY_SIZE_MAX + 1) {
        let is_plain = previous == b'\\';
        previous = byte;
        match byte {
            b'\n' => return Err(Fault::InvalidFieldFormat),
            _ if is_plain => {}
            b'=' if idx == 0 => return Err(Fault::MissingFieldKey),
            b'=' => return Ok(start + idx + 1),
            b',' | b' ' => return Err(Fault::InvalidFieldFormat),
            _ => {}
        }
    }
    if KEY_SIZE_MAX < rest.len() {
        return Err(Fault::KeyTooLong(KEY_SIZE_MAX + 1));
    }
    Err(Fault::InvalidFieldFormat)
}

/// Where the string that opens at `start` ends: behind its closing quote.
pub(super) fn string_end(body: &[u8], start: usize) -> Result<usize, Fault> {
    let rest = body.get(start + 1..).unwrap_or_default();
    let rest = rest.get(..rest.len().min(2 * STRING_SIZE_MAX)).unwrap_or_default();
    let mut at = 0;
    while let Some(found) = rest.get(at..).and_then(|tail| memchr::memchr2(b'"', b'\\', tail)) {
        at += found;
        if rest.get(at) == Some(&b'"') {
            let end = start + 1 + at + 1;
            if STRING_SIZE_MAX < at {
                return Err(Fault::StringTooLong);
            }
            return if is_value_end(body, end) { Ok(end) } else { Err(Fault::InvalidFieldFormat) };
        }
        at += 2;
    }
    let is_cut = 2 * STRING_SIZE_MAX <= rest.len();
    Err(if is_cut { Fault::StringTooLong } else { Fault::UnbalancedQuotes })
}

/// The boolean at `start` and where it ends.
pub(super) fn boolean(body: &[u8], start: usize) -> Result<(f64, usize), Fault> {
    const WORDS: [(&[u8], f64); 10] = [
        (b"true", 1.0),
        (b"True", 1.0),
        (b"TRUE", 1.0),
        (b"false", 0.0),
        (b"False", 0.0),
        (b"FALSE", 0.0),
        (b"t", 1.0),
        (b"T", 1.0),
        (b"f", 0.0),
        (b"F", 0.0),
    ];
    let rest = body.get(start..).unwrap_or_default();
    for (word, value) in WORDS {
        if rest.starts_with(word) && is_value_end(body, start + word.len()) {
            return Ok((value, start + word.len()));
        }
    }
    Err(Fault::InvalidBoolean)
}

/// The magnitude of an integer of more than 19 digits, which leading zeros may make.
#[cold]
pub(super) fn long_integer(body: &[u8], start: usize, end: usize) -> Result<u64, Fault> {
    let text = body.get(start..end).unwrap_or_default();
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(Fault::InvalidNumber);
    }
    let text = std::str::from_utf8(digits).map_err(|_| Fault::InvalidNumber)?;
    text.parse().map_err(|_| Fault::IntegerOutOfRange)
}

/// Whether a value may end before `at`.
#[inline(always)]
pub(super) fn is_value_end(body: &[u8], at: usize) -> bool {
    match body.get(at) {
        None | Some(b',' | b' ' | b'\n') => true,
        Some(b'\r') => matches!(body.get(at + 1), None | Some(b'\n')),
        Some(_) => false,
    }
}

/// Whether nothing but a line's end is at `at`.
#[inline(always)]
pub(super) fn is_line_end(body: &[u8], at: usize) -> bool {
    match body.get(at) {
        None | Some(b'\n') => true,
        Some(b'\r') => matches!(body.get(at + 1), None | Some(b'\n')),
        Some(_) => false,
    }
}

/// Where the newline of a line end at `at` is.
#[inline(always)]
pub(super) fn newline_at(body: &[u8], at: usize) -> usize {
    at + usize::from(body.get(at) == Some(&b'\r'))
}

/// How many newlines the text has.
pub(super) fn newline_count(text: Option<&[u8]>) -> u32 {
    body_offset(memchr::memchr_iter(b'\n', text.unwrap_or_default()).count())
}

/// Where the next newline is, or the body's end.
pub(super) fn newline(body: &[u8], at: usize) -> usize {
    let rest = body.get(at..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(body.len(), |found| at + found)
}

/// The first byte from `at` on that is not one of `bytes`.
#[inline(always)]
pub(super) fn skip(body: &[u8], mut at: usize, bytes: &[u8]) -> usize {
    while body.get(at).is_some_and(|byte| bytes.contains(byte)) {
        at += 1;
    }
    at
}
