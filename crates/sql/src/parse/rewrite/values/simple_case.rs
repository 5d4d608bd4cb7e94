//! `CASE x WHEN a THEN ..` as `CASE WHEN x = a THEN ..`: the operator `=` compares as PostgreSQL does, with numbers of other
//! digits, literals of `uuid` and spaces of `char(n)` (<https://www.postgresql.org/docs/15/functions-conditional.html>).

use crate::parse::rewrite::expressions::is_named;
use crate::types::traversal::walk;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Visitor};
use std::ops::ControlFlow;

/// Functions that have another value each time, and so may not be evaluated for each WHEN.
const VOLATILE: &[&str] = &["clock_timestamp", "gen_random_uuid", "nextval", "random", "timeofday"];

/// Steps of an operand that is copied for each WHEN.
const OPERAND_STEPS_MAX: usize = 16;

/// Writes the comparisons of a CASE out, unless its operand is long or has another value each time that it is evaluated.
pub fn write_comparisons(expr: &mut Expr) {
    let Expr::Case { operand, conditions, .. } = expr else { return };
    // A literal in quotes is a text to CASE, whatever it is compared with.
    let is_written_out = |operand: &mut Box<Expr>| {
        !matches!(**operand, Expr::Value(_)) && walk(operand, &mut Once(0)).is_continue()
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

/// Finds operands that are evaluated only once: queries, volatile functions, and long ones, which it counts the steps of.
/// A CASE within is not copied either: each level would multiply the copies.
struct Once(usize);

impl Visitor for Once {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_once = match expr {
            Expr::Subquery(_)
            | Expr::Exists { .. }
            | Expr::InSubquery { .. }
            | Expr::Case { .. } => true,
            Expr::Function(function) => VOLATILE.iter().any(|name| is_named(&function.name, name)),
            _ => false,
        };
        self.0 += 1;
        if is_once || OPERAND_STEPS_MAX < self.0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::dialect::Postgres;
    use datafusion::sql::sqlparser::parser::Parser;

    #[test]
    fn operands_that_would_multiply_are_not_copied() {
        let long = format!("a{}", " + a".repeat(OPERAND_STEPS_MAX));
        for (operand, is_written_out) in [
            ("a", true),
            ("a + 1", true),
            ("CASE b WHEN 1 THEN 2 WHEN 3 THEN 4 END", false),
            ("(SELECT 1)", false),
            ("random()", false),
            (long.as_str(), false),
        ] {
            let text = format!("CASE {operand} WHEN 1 THEN 'x' WHEN 2 THEN 'y' END");
            let dialect = Postgres::new(1000);
            let parsed = Parser::new(&dialect).try_with_sql(&text).unwrap().parse_expr();
            let mut expr = parsed.unwrap();
            write_comparisons(&mut expr);
            let Expr::Case { operand: left, .. } = &expr else { panic!("{text}") };
            assert_eq!(left.is_none(), is_written_out, "{text}");
        }
    }
}
