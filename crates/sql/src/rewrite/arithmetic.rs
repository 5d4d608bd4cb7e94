//! Functions on numbers that are said by operators here, or are of a literal's digits.

use super::expressions::{call, cast, digits_of, is_named, text_literal};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, ExactNumberInfo, Expr, Function, UnaryOperator,
};

/// Such a call in other words, if it is one.
pub fn calculated(function: &Function, args: &[&Expr]) -> Option<Expr> {
    let is = |name: &str| is_named(&function.name, name);
    let nested = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    let of = |left, op, right| Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }));
    match args {
        [left, right] if is("mod") => Some(of(nested(left), BinaryOperator::Modulo, nested(right))),
        // Exact of whole numbers and of `numeric`.
        [left, right] if is("div") => {
            let rest = of(nested(left), BinaryOperator::Modulo, nested(right));
            let whole = of(nested(left), BinaryOperator::Minus, Box::new(rest));
            Some(of(Box::new(whole), BinaryOperator::Divide, nested(right)))
        }
        // A number with a point is a `numeric`, whose halves are rounded away from zero.
        [value] if is("round") && digits_of(unsigned(value)).is_some() => {
            let numeric = SqlType::Numeric(ExactNumberInfo::None);
            Some(call("round", vec![cast(as_text(value), numeric)]))
        }
        _ => None,
    }
}

/// A number without its sign.
fn unsigned(expr: &Expr) -> &Expr {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } | Expr::Nested(expr) => unsigned(expr),
        other => other,
    }
}

/// A number that is written down, as a text.
fn as_text(expr: &Expr) -> Expr {
    let digits = digits_of(unsigned(expr)).unwrap_or_default();
    let minus = expr.to_string().matches('-').count();
    text_literal(format!("{}{digits}", if minus % 2 == 1 { "-" } else { "" }))
}
