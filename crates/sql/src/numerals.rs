//! Numbers that are written down beside a `numeric`: they are taken with the digits that they have, where
//! DataFusion would make floats of both sides.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{Expr, ExprSchemable as _};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Digits of a `numeric` in arrow's 128 bits.
const DIGITS_MAX: usize = 38;

/// The same operation, with a literal as a `numeric` where the other side is one. Quotients stay floats: those
/// that arrow makes of decimals have too few digits.
pub fn with_digits(mut expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let is_compared = matches!(
        expr.op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    );
    let is_known = is_compared
        || matches!(
            expr.op,
            BinaryOperator::Plus
                | BinaryOperator::Minus
                | BinaryOperator::Multiply
                | BinaryOperator::Modulo
        );
    if !is_known {
        return expr;
    }
    let scale_of = |side: &Expr| match side.get_type(schema) {
        Ok(DataType::Decimal128(_, scale)) => Some(scale),
        _ => None,
    };
    // What has more digits behind its point than a column is compared with in floats, as are those of more
    // digits than there is room for.
    let fits = |literal: &ScalarValue, scale: i8| match literal {
        ScalarValue::Decimal128(_, _, own) => !is_compared || *own <= scale,
        _ => false,
    };
    if let Some(scale) = scale_of(&expr.left)
        && let Some(digits) = digits(&expr.right).filter(|digits| fits(digits, scale))
    {
        expr.right = Expr::Literal(digits, None);
    } else if let Some(scale) = scale_of(&expr.right)
        && let Some(digits) = digits(&expr.left).filter(|digits| fits(digits, scale))
    {
        expr.left = Expr::Literal(digits, None);
    }
    expr
}

/// A literal that is a float, with the digits that it was written with.
fn digits(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => decimal(*value),
        Expr::Negative(inner) => match digits(inner)? {
            ScalarValue::Decimal128(Some(value), precision, scale) => {
                Some(ScalarValue::Decimal128(Some(-value), precision, scale))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The fewest digits that tell a float from all others, which are those it was written with if they were
/// not more than 15.
fn decimal(value: f64) -> Option<ScalarValue> {
    if !value.is_finite() {
        return None;
    }
    let text = value.to_string();
    let (sign, plain) = match text.strip_prefix('-') {
        Some(plain) => (-1, plain),
        None => (1, text.as_str()),
    };
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let digits = format!("{whole}{fraction}");
    if DIGITS_MAX < digits.len() {
        return None;
    }
    let value: i128 = digits.parse().ok()?;
    let (precision, scale) = (u8::try_from(digits.len()), i8::try_from(fraction.len()));
    Some(ScalarValue::Decimal128(Some(sign * value), precision.ok()?, scale.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_the_digits_that_were_written() {
        let of = |value| decimal(value).map(|made| made.to_string());
        assert_eq!(decimal(1.19), Some(ScalarValue::Decimal128(Some(119), 3, 2)));
        assert_eq!(decimal(-0.5), Some(ScalarValue::Decimal128(Some(-5), 2, 1)));
        assert_eq!(decimal(300.0), Some(ScalarValue::Decimal128(Some(300), 3, 0)));
        assert_eq!(
            (of(f64::NAN), of(f64::INFINITY), of(1e300), of(1e-300)),
            (None, None, None, None)
        );
    }
}
