//! Values as bytes that are equal where PostgreSQL calls values equal, and whose order is theirs: what
//! constraints look rows up by. Texts are in the order of their bytes.

use crate::datum::{ColumnType, Datum};
use crate::error::{Result, check_limit};
use crate::limits::KEY_SIZE_MAX;
use crate::numeric;
use crate::row::{Wrong, parse_uuid};
use crate::schema::{Constraint, Schema};

/// What stands before an element of an array, and behind the last one.
const END: u8 = 0;
const ELEMENT: u8 = 1;
/// Greater than all that is not null.
const NULL: u8 = 2;

/// The key of a row's values in the columns of a constraint; none if one of them is null.
///
/// # Errors
/// [`crate::Error::TooLarge`], and when a value is not of its column's type.
pub(crate) fn encode(
    table: &str,
    schema: &Schema,
    constraint: &Constraint,
    values: &[Datum],
) -> Result<Option<Vec<u8>>> {
    assert_eq!(values.len(), constraint.columns.len());
    if values.contains(&Datum::Null) {
        return Ok(None);
    }
    let mut out = Vec::new();
    for (at, value) in constraint.columns.iter().zip(values) {
        let column = &schema.columns[*at];
        let is_put = put(&mut out, column.ty, value);
        if !is_put {
            return Err(Wrong::Type(value.kind()).in_column(table, column));
        }
    }
    check_limit("bytes of a key", out.len(), KEY_SIZE_MAX)?;
    Ok(Some(out))
}

/// As a message shows it: `(id, day)=(7, 2024-02-29)`.
pub(crate) fn show(schema: &Schema, constraint: &Constraint, values: &[Datum]) -> String {
    let names: Vec<&str> =
        constraint.columns.iter().map(|at| schema.columns[*at].name.as_str()).collect();
    let values: Vec<String> = values.iter().map(Datum::to_string).collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

/// Appends a value that is not null; false when it is of another type.
fn put(out: &mut Vec<u8>, ty: ColumnType, value: &Datum) -> bool {
    match (ty, value) {
        (ColumnType::One(scalar), value) => {
            value.scalar() == Some(scalar) && put_scalar(out, value)
        }
        (ColumnType::Array(scalar), Datum::Array(elements)) => {
            for element in elements {
                if *element == Datum::Null {
                    out.push(NULL);
                    continue;
                }
                out.push(ELEMENT);
                if element.scalar() != Some(scalar) || !put_scalar(out, element) {
                    return false;
                }
            }
            out.push(END);
            true
        }
        _ => false,
    }
}

fn put_scalar(out: &mut Vec<u8>, value: &Datum) -> bool {
    match value {
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int2(value) => put_i64(out, i64::from(*value)),
        Datum::Int4(value) | Datum::Date(value) => put_i64(out, i64::from(*value)),
        Datum::Int8(value)
        | Datum::Timestamptz(value)
        | Datum::Timestamp(value)
        | Datum::Time(value) => put_i64(out, *value),
        Datum::Float4(value) => put_f64(out, f64::from(*value)),
        Datum::Float8(value) => put_f64(out, *value),
        Datum::Numeric(text) => return numeric::put_key(out, text),
        Datum::Text(text) => put_bytes(out, text.as_bytes()),
        Datum::Interval(interval) => {
            let shifted = (interval.comparable() as u128) ^ (1 << 127);
            out.extend_from_slice(&shifted.to_be_bytes());
        }
        Datum::Uuid(text) => match parse_uuid(text) {
            Some(bytes) => out.extend_from_slice(&bytes),
            None => return false,
        },
        Datum::Bytea(bytes) => put_bytes(out, bytes),
        Datum::Null | Datum::Jsonb(_) | Datum::Array(_) => return false,
    }
    true
}

fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&((value as u64) ^ (1 << 63)).to_be_bytes());
}

/// All zeros are equal, and all that are no number, above the others.
fn put_f64(out: &mut Vec<u8>, value: f64) {
    let bits = match value {
        _ if value.is_nan() => u64::MAX,
        _ if value == 0.0 => 1 << 63,
        _ if value.is_sign_negative() => !value.to_bits(),
        _ => value.to_bits() ^ (1 << 63),
    };
    out.extend_from_slice(&bits.to_be_bytes());
}

/// Bytes that no other bytes begin with: a zero has one behind it, and the end is two of them.
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(1);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::{Interval, Scalar};

    fn key(value: &Datum) -> Vec<u8> {
        let ty = match value {
            Datum::Array(elements) => {
                let scalar = elements.iter().find_map(Datum::scalar);
                ColumnType::Array(scalar.unwrap_or(Scalar::Int4))
            }
            one => ColumnType::One(one.scalar().unwrap()),
        };
        let mut out = Vec::new();
        assert!(put(&mut out, ty, value), "{value}");
        out
    }

    #[track_caller]
    fn ascending(values: &[Datum]) {
        assert!(values.is_sorted_by(|a, b| key(a) < key(b)));
    }

    #[test]
    fn keys_have_the_order_of_values() {
        ascending(&[Datum::Bool(false), Datum::Bool(true)]);
        ascending(&[i64::MIN, -1, 0, 1, i64::MAX].map(Datum::Int8));
        ascending(&[i32::MIN, -1, 0, 1, i32::MAX].map(Datum::Date));
        ascending(
            &[f64::NEG_INFINITY, -1.5, -1e-300, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN]
                .map(Datum::Float8),
        );
        ascending(&["", "\0", "\0\0", "\0a", "a", "a\0", "aa", "b"].map(|t| Datum::Text(t.into())));
        let array = |values: &[i32]| Datum::Array(values.iter().map(|n| Datum::Int4(*n)).collect());
        ascending(&[array(&[]), array(&[1]), array(&[1, -5]), array(&[1, 2]), array(&[2])]);
        let days = |days| Datum::Interval(Interval { days, ..Interval::default() });
        ascending(&[days(-1), days(0), days(29)]);
    }

    #[test]
    fn what_is_equal_has_one_key() {
        let month = Interval { months: 1, ..Interval::default() };
        let days = Interval { days: 29, micros: 86_400_000_000, ..Interval::default() };
        let same = [
            [Datum::Interval(month), Datum::Interval(days)],
            [Datum::Float8(0.0), Datum::Float8(-0.0)],
            [Datum::Float4(f32::NAN), Datum::Float4(-f32::NAN)],
            [Datum::Numeric("1.0".into()), Datum::Numeric("1".into())],
        ];
        same.iter().for_each(|[a, b]| assert_eq!(key(a), key(b)));
    }
}
