//! `(start, end) OVERLAPS (start, end)`, where an end may be an interval
//! (<https://www.postgresql.org/docs/15/functions-datetime.html>).

use crate::parse::rewrite::expressions::{call, is_named};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType as SqlType, Expr, Value,
    helpers::attached_token::AttachedToken,
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
    let truth = |is_true: bool| Expr::value(Value::Boolean(is_true));
    // Where an end is unknown, so is an answer that is not true.
    let unless_unknown = |ends: &[&Expr], otherwise: bool| {
        let unknown = ends.iter().map(|end| Expr::IsNull(Box::new((*end).clone())));
        case(unknown.map(|is_null| (is_null, Expr::value(Value::Null))), truth(otherwise))
    };
    let meets = |start: &Expr, end: &Expr, other_end: &Expr| {
        let is_within = Expr::Nested(Box::new(compare(start, BinaryOperator::Lt, end)));
        compare(&is_within, BinaryOperator::Or, &unless_unknown(&[other_end], false))
    };
    let branches = [
        (
            compare(&one.start, BinaryOperator::Gt, &other.start),
            meets(&one.start, &other.end, &one.end),
        ),
        (
            compare(&one.start, BinaryOperator::Lt, &other.start),
            meets(&other.start, &one.end, &other.end),
        ),
        (
            compare(&one.start, BinaryOperator::Eq, &other.start),
            unless_unknown(&[&one.end, &other.end], true),
        ),
    ];
    *expr = case(branches, Expr::value(Value::Null));
}

fn case(branches: impl IntoIterator<Item = (Expr, Expr)>, otherwise: Expr) -> Expr {
    let branch = |(condition, result)| CaseWhen { condition, result };
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: branches.into_iter().map(branch).collect(),
        else_result: Some(Box::new(otherwise)),
    }
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
    let is_null = |expr: &Expr| (Expr::IsNull(Box::new(expr.clone())), Expr::value(Value::Null));
    let end = case([is_null(one), is_null(&other)], call("greatest", both()));
    Some(Period { start: call("least", both()), end })
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
