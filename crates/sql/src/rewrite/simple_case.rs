//! `CASE x WHEN a THEN ..` as `CASE WHEN x = a THEN ..`: the operator `=` compares as PostgreSQL does, with numbers of other
//! digits, literals of `uuid` and spaces of `char(n)` (<https://www.postgresql.org/docs/15/functions-conditional.html>).

use super::expressions::is_named;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Visit, Visitor};
use std::ops::ControlFlow;

/// Functions that have another value each time, and so may not be evaluated for each WHEN.
const VOLATILE: &[&str] = &["clock_timestamp", "gen_random_uuid", "nextval", "random", "timeofday"];

/// Writes the comparisons of a CASE out, unless its operand would be evaluated several times with other values.
pub fn write_comparisons(expr: &mut Expr) {
    let Expr::Case { operand, conditions, .. } = expr else { return };
    // A literal in quotes is a text to CASE, whatever it is compared with.
    let is_written_out = |operand: &mut Box<Expr>| {
        !matches!(**operand, Expr::Value(_)) && Visit::visit(operand, &mut Once).is_continue()
    };
    let Some(value) = operand.take_if(is_written_out) else {
        return;
    };
    for when in conditions {
        let condition = std::mem::replace(&mut when.condition, (*value).clone());
        let left = Box::new(Expr::Nested(Box::new(when.condition.clone())));
        let right = Box::new(Expr::Nested(Box::new(condition)));
        when.condition = Expr::BinaryOp { left, op: BinaryOperator::Eq, right };
    }
}

/// Finds what may be evaluated only once: queries, for their cost, and volatile functions.
struct Once;

impl Visitor for Once {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_once = match expr {
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => true,
            Expr::Function(function) => VOLATILE.iter().any(|name| is_named(&function.name, name)),
            _ => false,
        };
        if is_once { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
