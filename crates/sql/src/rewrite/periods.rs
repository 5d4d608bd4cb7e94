//! `(start, end) OVERLAPS (start, end)`, where an end may be an interval
//! (<https://www.postgresql.org/docs/15/functions-datetime.html>).

use super::expressions::{call, is_named};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType as SqlType, Expr, helpers::attached_token::AttachedToken,
};

/// Writes `OVERLAPS` as comparisons: of two periods the one that begins first ends behind the start of the other.
pub fn write_out_overlaps(expr: &mut Expr) {
    let Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } = expr else { return };
    let (Some(one), Some(other)) = (period(left), period(right)) else { return };
    let compare = |left: &Expr, op, right: &Expr| Expr::BinaryOp {
        left: Box::new(left.clone()),
        op,
        right: Box::new(right.clone()),
    };
    let conditions = vec![
        CaseWhen {
            condition: compare(&one.start, BinaryOperator::Gt, &other.start),
            result: compare(&one.start, BinaryOperator::Lt, &other.end),
        },
        CaseWhen {
            condition: compare(&one.start, BinaryOperator::Lt, &other.start),
            result: compare(&other.start, BinaryOperator::Lt, &one.end),
        },
    ];
    *expr = Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions,
        else_result: Some(Box::new(compare(&one.start, BinaryOperator::Eq, &other.start))),
    };
}

struct Period {
    start: Expr,
    end: Expr,
}

fn period(expr: &Expr) -> Option<Period> {
    let two = match expr {
        Expr::Tuple(two) => two.as_slice(),
        Expr::Nested(inner) => return period(inner),
        _ => return None,
    };
    let [one, other] = two else { return None };
    let other = match is_interval(other) {
        true => Expr::Nested(Box::new(Expr::BinaryOp {
            left: Box::new(one.clone()),
            op: BinaryOperator::Plus,
            right: Box::new(other.clone()),
        })),
        false => other.clone(),
    };
    let both = || vec![one.clone(), other.clone()];
    Some(Period { start: call("least", both()), end: call("greatest", both()) })
}

fn is_interval(expr: &Expr) -> bool {
    match expr {
        Expr::Interval(_) => true,
        Expr::Cast { data_type, .. } => matches!(data_type, SqlType::Interval { .. }),
        Expr::TypedString(typed) => matches!(typed.data_type, SqlType::Interval { .. }),
        Expr::Nested(inner) => is_interval(inner),
        Expr::Function(function) => {
            ["make_interval", "justify_interval"].iter().any(|one| is_named(&function.name, one))
        }
        Expr::BinaryOp { left, op: BinaryOperator::Multiply, right } => {
            is_interval(left) || is_interval(right)
        }
        _ => false,
    }
}
