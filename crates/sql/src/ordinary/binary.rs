//! Values in PostgreSQL's binary formats
//! (<https://www.postgresql.org/docs/15/protocol-overview.html#PROTOCOL-FORMAT-CODES>).

use super::values;
use crate::error::SqlError;
use crate::jsonb;
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
    let ColumnType::One(scalar) = column.ty else {
        return Err(SqlError::unsupported(
            "arrays in binary are not known here: copy them as text",
        ));
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
    value.ok_or_else(|| SqlError::new("22P03", "incorrect binary data format"))
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

/// A decimal number with all its digits: `[digits i16][weight i16][sign u16][scale u16]`, then as many
/// digits to the base of 10,000, the first of them worth `10,000 ^ weight`.
pub fn numeric_text(bytes: &[u8]) -> Option<String> {
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
        assert_eq!(numeric_text(&bytes).as_deref(), Some("000123456780e-4"));
        assert_eq!(numeric_text(&bytes[..12]), None);
        assert_eq!(numeric_text(&[0; 8]).as_deref(), Some("0e4"));
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
