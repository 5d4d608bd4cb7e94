//! Binary operators on numbers, and on rows of them.

use crate::gap::{ABSENT, is_absent};
use promql::{Binary, BinaryOp};

/// An operator on two numbers; comparisons give 1 or 0.
pub(crate) fn scalar_op(op: BinaryOp, a: f64, b: f64) -> f64 {
    match compare(op, a, b) {
        Some(holds) => f64::from(u8::from(holds)),
        None => arithmetic(op, a, b),
    }
}

/// Whether a comparison holds; `None` for other operators.
pub(crate) fn compare(op: BinaryOp, a: f64, b: f64) -> Option<bool> {
    Some(match op {
        BinaryOp::Equal => a == b,
        BinaryOp::NotEqual => a != b,
        BinaryOp::Less => a < b,
        BinaryOp::LessEqual => a <= b,
        BinaryOp::Greater => a > b,
        BinaryOp::GreaterEqual => a >= b,
        _ => return None,
    })
}

#[inline(always)]
pub(crate) fn arithmetic(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Mod => a % b,
        BinaryOp::Pow => a.powf(b),
        BinaryOp::Atan2 => a.atan2(b),
        _ => ABSENT,
    }
}

/// Whether what comes out is no longer what the metric's name says.
pub(crate) fn changes_scale(op: BinaryOp) -> bool {
    !op.is_comparison() && !op.is_trim()
}

/// What a comparison leaves where it holds and where it does not.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Outcome {
    /// The value at hand, or a gap.
    Filter,
    /// 1 or 0.
    Bool,
}

impl Outcome {
    pub fn of(binary: &Binary) -> Outcome {
        if binary.returns_bool { Outcome::Bool } else { Outcome::Filter }
    }
}

/// Combines two rows step by step.
pub(crate) fn combine(op: BinaryOp, outcome: Outcome, a: &[f64], b: &[f64], row: &mut [f64]) {
    let each = |row: &mut [f64], f: &dyn Fn(f64, f64) -> f64| {
        for ((out, a), b) in row.iter_mut().zip(a).zip(b) {
            *out = if is_absent(*a) || is_absent(*b) { ABSENT } else { f(*a, *b) };
        }
    };
    match op {
        BinaryOp::Add => each(row, &|a, b| a + b),
        BinaryOp::Sub => each(row, &|a, b| a - b),
        BinaryOp::Mul => each(row, &|a, b| a * b),
        BinaryOp::Div => each(row, &|a, b| a / b),
        _ if !op.is_comparison() => each(row, &|a, b| arithmetic(op, a, b)),
        _ if outcome == Outcome::Bool => each(row, &|a, b| scalar_op(op, a, b)),
        _ => each(row, &|a, b| if compare(op, a, b) == Some(true) { a } else { ABSENT }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_on_numbers() {
        assert_eq!(scalar_op(BinaryOp::Mod, -5.0, 3.0), -2.0);
        assert_eq!(scalar_op(BinaryOp::Pow, 2.0, 10.0), 1024.0);
        assert_eq!(scalar_op(BinaryOp::LessEqual, 1.0, 1.0), 1.0);
        assert_eq!(scalar_op(BinaryOp::Equal, f64::NAN, f64::NAN), 0.0);
        assert_eq!(scalar_op(BinaryOp::Div, 1.0, 0.0), f64::INFINITY);
    }
}
