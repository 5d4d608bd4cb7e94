//! Operations on constants, done once before the query runs.

use crate::metricsql::ast::{Binary, BinaryOp, Expr, Number, Text};

/// The operation, or what it gives if both operands are numbers or both are strings.
///
/// Modifiers other than `bool` mean nothing for constants.
pub(crate) fn binary(binary: Binary) -> Expr {
    let span = binary.span;
    let value = match (&binary.left, &binary.right) {
        (Expr::Number(left), Expr::Number(right)) => {
            numbers(binary.op, left.value, right.value, binary.returns_bool)
        }
        (Expr::String(left), Expr::String(right)) if binary.op == BinaryOp::Add => {
            let value = format!("{}{}", left.value, right.value);
            return Expr::String(Text { value, span });
        }
        (Expr::String(left), Expr::String(right)) if binary.op.is_comparison() => {
            let holds = compare(binary.op, left.value.partial_cmp(&right.value));
            match (holds, binary.returns_bool) {
                (true, _) => 1.0,
                (false, true) => 0.0,
                (false, false) => f64::NAN,
            }
        }
        _ => return Expr::Binary(Box::new(binary)),
    };
    Expr::Number(Number { value, span })
}

/// What an operator makes of two numbers, of which NaN is none.
pub fn numbers(op: BinaryOp, left: f64, right: f64, returns_bool: bool) -> f64 {
    let keep = |is_kept: bool| if is_kept { left } else { f64::NAN };
    match op {
        BinaryOp::Add => left + right,
        BinaryOp::Sub => left - right,
        BinaryOp::Mul => left * right,
        BinaryOp::Div => left / right,
        BinaryOp::Mod => left % right,
        // Of nothing there is no power, not even the zeroth.
        BinaryOp::Pow if left.is_nan() => f64::NAN,
        // Libraries treat a stale marker, which is a signaling NaN, otherwise.
        BinaryOp::Pow if left == 1.0 => 1.0,
        BinaryOp::Pow => left.powf(right),
        BinaryOp::Atan2 => left.atan2(right),
        BinaryOp::And | BinaryOp::If => keep(!right.is_nan()),
        BinaryOp::IfNot => keep(right.is_nan()),
        BinaryOp::Or | BinaryOp::Default if left.is_nan() => right,
        BinaryOp::Or | BinaryOp::Default => left,
        BinaryOp::Unless => f64::NAN,
        _ => {
            let holds = compare_numbers(op, left, right);
            if returns_bool { f64::from(u8::from(holds)) } else { keep(holds) }
        }
    }
}

/// Two NaN are equal here.
fn compare_numbers(op: BinaryOp, left: f64, right: f64) -> bool {
    if left.is_nan() && right.is_nan() {
        return op == BinaryOp::Equal;
    }
    compare(op, left.partial_cmp(&right))
}

/// Whether a comparison holds; what has no order is only unequal.
fn compare(op: BinaryOp, order: Option<std::cmp::Ordering>) -> bool {
    match op {
        BinaryOp::Equal => order.is_some_and(|order| order.is_eq()),
        BinaryOp::NotEqual => order.is_none_or(|order| order.is_ne()),
        BinaryOp::Less => order.is_some_and(|order| order.is_lt()),
        BinaryOp::LessEqual => order.is_some_and(|order| order.is_le()),
        BinaryOp::Greater => order.is_some_and(|order| order.is_gt()),
        BinaryOp::GreaterEqual => order.is_some_and(|order| order.is_ge()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_operators() {
        let nan = f64::NAN;
        for (op, left, right, result) in [
            (BinaryOp::Mod, 7.0, -4.0, 3.0),
            (BinaryOp::Pow, 2.0, 10.0, 1024.0),
            (BinaryOp::Pow, nan, 0.0, nan),
            (BinaryOp::Pow, 1.0, nan, 1.0),
            (BinaryOp::Pow, 1.0, f64::from_bits(0x7ff0_0000_0000_0002), 1.0),
            (BinaryOp::Equal, nan, nan, nan),
            (BinaryOp::NotEqual, 1.0, nan, 1.0),
            (BinaryOp::Less, 1.0, 2.0, 1.0),
            (BinaryOp::Less, 2.0, 1.0, nan),
            (BinaryOp::And, 1.0, nan, nan),
            (BinaryOp::Or, nan, 2.0, 2.0),
            (BinaryOp::Unless, 1.0, nan, nan),
            (BinaryOp::If, 1.0, 0.0, 1.0),
            (BinaryOp::IfNot, 1.0, nan, 1.0),
            (BinaryOp::Default, nan, 3.0, 3.0),
        ] {
            let found = numbers(op, left, right, false);
            assert!(found == result || (found.is_nan() && result.is_nan()), "{op:?}: {found}");
        }
        assert_eq!(numbers(BinaryOp::Equal, nan, nan, true), 1.0);
        assert_eq!(numbers(BinaryOp::Greater, 1.0, 2.0, true), 0.0);
    }
}
