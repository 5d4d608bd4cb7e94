//! Functions on numbers that are operators here.

use crate::parse::rewrite::expressions::is_named;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Function};

/// Such a call in other words, if it is one.
pub fn calculated(function: &Function, args: &[&Expr]) -> Option<Expr> {
    let is = |name: &str| is_named(&function.name, name);
    let nested = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    let of = |left, op, right| Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }));
    match args {
        [left, right] if is("mod") => Some(of(nested(left), BinaryOperator::Modulo, nested(right))),
        _ => None,
    }
}
