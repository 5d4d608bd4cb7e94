//! Values in PostgreSQL's binary formats
//! (<https://www.postgresql.org/docs/15/protocol-overview.html#PROTOCOL-FORMAT-CODES>).

use crate::tables::heap::values;
use crate::tables::heap::values::Limits;
use crate::types::error::SqlError;
use crate::types::json::jsonb;
use std::str::from_utf8;
use tables::{Column, ColumnType, Datum, Interval, Scalar};

/// Microseconds from 1970 to 2000, from which PostgreSQL counts.
const EPOCH_US: i64 = 946_684_800_000_000;
/// The same in days.
const EPOCH_DAYS: i32 = 10_957;
/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;

/// A value of a column.
///
/// # Errors
/// When it is none.
pub fn read(column: &Column, bytes: &[u8]) -> Result<Datum, SqlError> {
    let scalar = match column.ty {
        ColumnType::One(scalar) => scalar,
        ColumnType::Array(scalar) => return read_array(column, scalar, bytes),
    };
    let value = match scalar {
        // As their texts are looked at, too.
        Scalar::Text => return values::read(column, text(bytes)?),
        Scalar::Jsonb if column.declared == "json" => return values::read(column, text(bytes)?),
        Scalar::Jsonb => {
            let Some((1, rest)) = bytes.split_first().map(|(first, rest)| (*first, rest)) else {
                return Err(SqlError::new("22P03", "unsupported jsonb version number"));
            };
            jsonb::parse(text(rest)?).map(|value| Datum::Jsonb(jsonb::shown(&value)))
        }
        Scalar::Numeric => match numeric_text(bytes) {
            Some(text) => return values::read(column, &text),
            None => None,
        },
        plain => scalar_of(plain, bytes),
    };
    let value = value.map(|value| values::with_precision(&Limits::of(column), value));
    value.ok_or_else(|| SqlError::new("22P03", "incorrect binary data format"))
}

/// Reads an array of one dimension: `[dimensions i32][has NULL i32][element type u32]`, `[elements i32][first index i32]`,
/// and each element as `[size i32][bytes]`, with a size of -1 for NULL.
fn read_array(column: &Column, scalar: Scalar, bytes: &[u8]) -> Result<Datum, SqlError> {
    let wrong = || SqlError::new("22P03", "incorrect binary data format");
    let (dimensions, rest) = split_number(bytes).ok_or_else(wrong)?;
    let (_, rest) = split_number(rest).ok_or_else(wrong)?;
    let (_, rest) = split_number(rest).ok_or_else(wrong)?;
    match dimensions {
        0 => return Ok(Datum::Array(Vec::new())),
        1 => {}
        _ => return Err(SqlError::unsupported("arrays of arrays are not known here")),
    }
    let (count, rest) = split_number(rest).ok_or_else(wrong)?;
    let (_, mut rest) = split_number(rest).ok_or_else(wrong)?;
    let element = Column { ty: ColumnType::One(scalar), ..column.clone() };
    let mut elements = Vec::new();
    for _ in 0..count {
        let (size, behind) = split_number(rest).ok_or_else(wrong)?;
        let Ok(size) = usize::try_from(size) else {
            elements.push(Datum::Null);
            rest = behind;
            continue;
        };
        let (value, behind) = behind.split_at_checked(size).ok_or_else(wrong)?;
        elements.push(read(&element, value)?);
        rest = behind;
    }
    if rest.is_empty() { Ok(Datum::Array(elements)) } else { Err(wrong()) }
}

fn split_number(bytes: &[u8]) -> Option<(i32, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (i32::from_be_bytes(*number), rest))
}

fn text(bytes: &[u8]) -> Result<&str, SqlError> {
    from_utf8(bytes).map_err(|error| SqlError::not_text(error.to_string()))
}

fn scalar_of(scalar: Scalar, bytes: &[u8]) -> Option<Datum> {
    Some(match scalar {
        Scalar::Bool => match bytes {
            [one @ (0 | 1)] => Datum::Bool(*one == 1),
            _ => return None,
        },
        Scalar::Int2 => Datum::Int2(i16::from_be_bytes(bytes.try_into().ok()?)),
        Scalar::Int4 => Datum::Int4(i32::from_be_bytes(bytes.try_into().ok()?)),
        Scalar::Int8 => Datum::Int8(i64::from_be_bytes(bytes.try_into().ok()?)),
        Scalar::Float4 => Datum::Float4(f32::from_be_bytes(bytes.try_into().ok()?)),
        Scalar::Float8 => Datum::Float8(f64::from_be_bytes(bytes.try_into().ok()?)),
        Scalar::Timestamptz => Datum::Timestamptz(micros(bytes)?),
        Scalar::Timestamp => Datum::Timestamp(micros(bytes)?),
        Scalar::Date => {
            let days = i32::from_be_bytes(bytes.try_into().ok()?);
            values::date(days.checked_add(EPOCH_DAYS)?).ok()?
        }
        Scalar::Time => {
            let micros = i64::from_be_bytes(bytes.try_into().ok()?);
            Datum::Time(Some(micros).filter(|micros| (0..=DAY_US).contains(micros))?)
        }
        Scalar::Interval => {
            let (micros, rest) = bytes.split_first_chunk()?;
            let (days, months) = rest.split_first_chunk()?;
            Datum::Interval(Interval {
                months: i32::from_be_bytes(months.try_into().ok()?),
                days: i32::from_be_bytes(*days),
                micros: i64::from_be_bytes(*micros),
            })
        }
        Scalar::Uuid => {
            let number = u128::from_be_bytes(bytes.try_into().ok()?);
            let hex = format!("{number:032x}");
            let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
            Datum::Uuid(parts.join("-"))
        }
        Scalar::Bytea => Datum::Bytea(bytes.to_vec()),
        Scalar::Text | Scalar::Jsonb | Scalar::Numeric => return None,
    })
}

fn micros(bytes: &[u8]) -> Option<i64> {
    match i64::from_be_bytes(bytes.try_into().ok()?) {
        infinite @ (i64::MIN | i64::MAX) => Some(infinite),
        micros => micros.checked_add(EPOCH_US),
    }
}

/// Digits on either side of the point of a number that is written without an exponent.
const PLAIN_DIGITS_MAX: usize = 400;

/// A decimal number with as many digits behind the point as its scale says; the longest ones with an exponent.
pub fn numeric_text(bytes: &[u8]) -> Option<String> {
    plain_numeric_text(bytes).or_else(|| exponent_text(bytes))
}

/// A decimal number with all its digits: `[digits i16][weight i16][sign u16][scale u16]`, then as many
/// digits to the base of 10,000, the first of them worth `10,000 ^ weight`.
fn exponent_text(bytes: &[u8]) -> Option<String> {
    let mut fields = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let (count, weight, sign) = (fields.next()?, fields.next()?.cast_signed(), fields.next()?);
    fields.next()?;
    let negative = match sign {
        0 => "",
        0x4000 => "-",
        0xc000 => return Some("NaN".into()),
        0xd000 => return Some("Infinity".into()),
        0xf000 => return Some("-Infinity".into()),
        _ => return None,
    };
    let digits: Vec<u16> = fields.collect();
    if digits.len() != usize::from(count) || digits.iter().any(|digit| 9999 < *digit) {
        return None;
    }
    let text: String = digits.iter().map(|digit| format!("{digit:04}")).collect();
    let exponent = 4 * (i32::from(weight) + 1 - i32::from(count.cast_signed()));
    Some(format!("{negative}{}e{exponent}", if text.is_empty() { "0" } else { &text }))
}

/// The same without an exponent; none of what is no number, and of the longest ones.
pub fn plain_numeric_text(bytes: &[u8]) -> Option<String> {
    let scale = usize::from(u16::from_be_bytes(bytes.get(6..8)?.try_into().ok()?));
    let text = exponent_text(bytes)?;
    let (mantissa, exponent) = text.split_once('e')?;
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa),
    };
    let exponent: i32 = exponent.parse().ok()?;
    let behind = usize::try_from(-exponent).unwrap_or(0);
    let zeros = usize::try_from(exponent).unwrap_or(0);
    if PLAIN_DIGITS_MAX < zeros.max(behind).max(scale) {
        return None;
    }
    let whole = format!("{:0>width$}{}", digits, "0".repeat(zeros), width = behind + 1);
    let (whole, fraction) = whole.split_at(whole.len() - behind);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(scale).collect();
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

/// A decimal number in binary, of its text, with or without an exponent; the words for what is no number, too.
pub fn numeric_bytes(text: &str) -> Option<Vec<u8>> {
    let special = match text {
        "NaN" => Some(0xc000u16),
        "Infinity" | "inf" => Some(0xd000),
        "-Infinity" | "-inf" => Some(0xf000),
        _ => None,
    };
    let bytes = |fields: Vec<u16>| fields.into_iter().flat_map(u16::to_be_bytes).collect();
    if let Some(sign) = special {
        return Some(bytes(vec![0, 0, sign, 0]));
    }
    let (sign, plain) = match text.strip_prefix('-') {
        Some(plain) => (0x4000u16, plain),
        None => (0, text),
    };
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Digits to the base of 10,000 on both sides of the point.
    let front = whole.len().next_multiple_of(4);
    let back = fraction.len().next_multiple_of(4);
    let padded = format!("{whole:0>front$}{fraction:0<back$}");
    let mut digits: Vec<u16> = padded
        .as_bytes()
        .chunks(4)
        .map(|four| four.iter().fold(0, |all, one| all * 10 + u16::from(one - b'0')))
        .collect();
    let mut weight = i16::try_from(front / 4).ok()? - 1;
    while digits.last() == Some(&0) {
        digits.pop();
    }
    let leading = digits.iter().take_while(|digit| **digit == 0).count();
    digits.drain(..leading);
    weight = if digits.is_empty() { 0 } else { weight - i16::try_from(leading).ok()? };
    let scale = u16::try_from(fraction.len()).ok()?;
    let head = [u16::try_from(digits.len()).ok()?, weight.cast_unsigned(), sign, scale];
    Some(bytes(head.into_iter().chain(digits).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_decimal() {
        // 12345.678 is 1, 2345, 6780 with weight 1.
        let mut bytes = Vec::new();
        for field in [3u16, 1, 0, 3, 1, 2345, 6780] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        assert_eq!(exponent_text(&bytes).as_deref(), Some("000123456780e-4"));
        assert_eq!(numeric_text(&bytes).as_deref(), Some("12345.678"));
        assert_eq!(numeric_text(&bytes[..12]), None);
        assert_eq!(exponent_text(&[0; 8]).as_deref(), Some("0e4"));
    }

    #[test]
    fn texts_in_binary_and_back() {
        for text in
            ["0", "1.19", "-12345.678", "0.00001234", "123456789012345678901234.5", "10000", "0.50"]
        {
            let bytes = numeric_bytes(text).unwrap();
            assert_eq!(plain_numeric_text(&bytes).as_deref(), Some(text), "{text}");
        }
        assert_eq!(numeric_text(&numeric_bytes("NaN").unwrap()).as_deref(), Some("NaN"));
        assert_eq!(plain_numeric_text(&numeric_bytes("-inf").unwrap()), None);
        assert_eq!((numeric_bytes("1e5"), numeric_bytes("x")), (None, None));
        for cut in 0..12 {
            assert_eq!(plain_numeric_text(&numeric_bytes("12345.678").unwrap()[..cut]), None);
        }
    }

    #[test]
    fn values_are_whole() {
        let column = |scalar| Column::new("a", ColumnType::One(scalar));
        let read_as =
            |scalar, bytes: &[u8]| read(&column(scalar), bytes).map_err(|error| error.code);
        assert_eq!(read_as(Scalar::Int4, &[0, 0, 0, 7]), Ok(Datum::Int4(7)));
        assert_eq!(read_as(Scalar::Int4, &[0, 0, 7]), Err("22P03"));
        assert_eq!(read_as(Scalar::Bool, &[2]), Err("22P03"));
        assert_eq!(read_as(Scalar::Date, &0i32.to_be_bytes()), Ok(Datum::Date(EPOCH_DAYS)));
        assert_eq!(
            read_as(Scalar::Timestamptz, &i64::MAX.to_be_bytes()),
            Ok(Datum::Timestamptz(i64::MAX))
        );
        assert_eq!(read_as(Scalar::Timestamptz, &(i64::MAX - 1).to_be_bytes()), Err("22P03"));
        assert_eq!(read_as(Scalar::Text, b"\xff"), Err("22021"));
        assert_eq!(read_as(Scalar::Jsonb, b"\x01{\"a\":1}"), Ok(Datum::Jsonb("{\"a\": 1}".into())));
        assert_eq!(read_as(Scalar::Jsonb, b"{}"), Err("22P03"));
    }
}
