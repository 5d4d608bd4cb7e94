//! Bit strings, `X'1F'` and `B'101'`, as the integers that casts make of them
//! (<https://www.postgresql.org/docs/15/sql-syntax-lexical.html#SQL-SYNTAX-BIT-STRINGS>).

use crate::parse::rewrite::expressions::cast;
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::{DataType as SqlType, Expr, UnaryOperator, Value};

/// Replaces the cast of a bit string to an integer type by that integer.
///
/// # Errors
/// Digits of another base, more bits than the type has, and bit strings anywhere else.
pub fn read_bit_string(expr: &mut Expr) -> Result<(), SqlError> {
    if let Expr::Cast { expr: inner, data_type, .. } = expr
        && let Some((digits, base)) = digits_of(inner)
        && let Some(bits) = bits_of(data_type)
    {
        let number = signed(&digits, base, bits)?;
        let literal = Expr::value(Value::Number(number.unsigned_abs().to_string(), false));
        let number = match number < 0 {
            true => Expr::Nested(Box::new(Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr: Box::new(literal),
            })),
            false => literal,
        };
        *expr = cast(number, data_type.clone());
    }
    match digits_of(expr) {
        Some(_) => Err(SqlError::unsupported("bit strings are not supported as values")
            .with_hint("Cast the bit string to an integer: X'1F'::int.")),
        None => Ok(()),
    }
}

fn digits_of(expr: &Expr) -> Option<(String, u32)> {
    match expr {
        Expr::Nested(inner) => digits_of(inner),
        Expr::Value(value) => match &value.value {
            Value::HexStringLiteral(digits) => Some((digits.clone(), 16)),
            Value::SingleQuotedByteStringLiteral(digits) => Some((digits.clone(), 2)),
            _ => None,
        },
        _ => None,
    }
}

/// The bits of an integer type that bit strings are cast to.
fn bits_of(data_type: &SqlType) -> Option<usize> {
    match data_type {
        SqlType::Int(_) | SqlType::Integer(_) | SqlType::Int4(_) => Some(32),
        SqlType::BigInt(_) | SqlType::Int8(_) => Some(64),
        _ => None,
    }
}

fn signed(digits: &str, base: u32, bits: usize) -> Result<i64, SqlError> {
    if let Some(wrong) = digits.chars().find(|one| !one.is_digit(base)) {
        let kind = if base == 2 { "binary" } else { "hexadecimal" };
        return Err(SqlError::new("22P02", format!("\"{wrong}\" is not a valid {kind} digit")));
    }
    let size = if base == 2 { digits.len() } else { 4 * digits.len() };
    if bits < size {
        let name = if bits == 32 { "integer" } else { "bigint" };
        return Err(SqlError::new("22003", format!("{name} out of range")));
    }
    let number = match digits.is_empty() {
        true => 0,
        false => u64::from_str_radix(digits, base).unwrap_or_default(),
    };
    Ok(match bits {
        32 => i64::from((number as u32).cast_signed()),
        _ => number.cast_signed(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_as_postgresql_does() {
        assert_eq!(signed("1F", 16, 32), Ok(31));
        assert_eq!(signed("ffffffff", 16, 32), Ok(-1));
        assert_eq!(signed("FFFFFFFFFFFFFFFF", 16, 64), Ok(-1));
        assert_eq!(signed("101", 2, 32), Ok(5));
        assert_eq!(signed("", 2, 64), Ok(0));
        for (digits, base, bits, code) in
            [("12", 2, 32, "22P02"), ("0g", 16, 32, "22P02"), ("100000000", 16, 32, "22003")]
        {
            assert_eq!(signed(digits, base, bits).unwrap_err().code, code, "{digits}");
        }
    }
}
