//! Texts between quotes where a condition stands: `WHERE 'yes'`. PostgreSQL reads them as booleans.

use crate::parse::rewrite::expressions::literal;
use crate::types::error::SqlError;
use crate::types::text::literals::boolean_of;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, Select, UnaryOperator, Value, ValueWithSpan,
};

/// Reads a text in the place of a condition; leaves all else.
fn as_boolean(expr: &mut Expr) -> Result<(), SqlError> {
    if let Expr::Nested(inner) = expr {
        return as_boolean(inner);
    }
    let Some(text) = literal(expr) else { return Ok(()) };
    let Some(read) = boolean_of(&text) else {
        let words = format!("invalid input syntax for type boolean: \"{text}\"");
        return Err(SqlError::new("22P02", words));
    };
    *expr = Expr::Value(Value::Boolean(read).into());
    Ok(())
}

fn is_boolean(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_boolean(inner),
        Expr::Value(ValueWithSpan { value: Value::Boolean(_), .. }) => true,
        _ => false,
    }
}

fn compares(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Reads texts within an expression whose parts are conditions.
///
/// # Errors
/// `22P02` for a text that is no boolean.
pub fn read_parts(expr: &mut Expr) -> Result<(), SqlError> {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Not, expr }
        | Expr::IsTrue(expr)
        | Expr::IsNotTrue(expr)
        | Expr::IsFalse(expr)
        | Expr::IsNotFalse(expr) => as_boolean(expr),
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            as_boolean(left)?;
            as_boolean(right)
        }
        Expr::BinaryOp { left, op, right } if compares(op) => {
            if is_boolean(left) {
                as_boolean(right)?;
            }
            if is_boolean(right) {
                as_boolean(left)?;
            }
            Ok(())
        }
        Expr::Between { expr, low, high, .. } => {
            let is_one = is_boolean(expr) || is_boolean(low) || is_boolean(high);
            [expr, low, high].into_iter().filter(|_| is_one).try_for_each(|one| as_boolean(one))
        }
        Expr::Case { operand: None, conditions, .. } => {
            conditions.iter_mut().try_for_each(|when| as_boolean(&mut when.condition))
        }
        Expr::Function(function) => match &mut function.filter {
            Some(filter) => as_boolean(filter),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn condition_of(operator: &mut JoinOperator) -> Option<&mut Expr> {
    match operator {
        JoinOperator::Join(JoinConstraint::On(on))
        | JoinOperator::Inner(JoinConstraint::On(on))
        | JoinOperator::Left(JoinConstraint::On(on))
        | JoinOperator::LeftOuter(JoinConstraint::On(on))
        | JoinOperator::Right(JoinConstraint::On(on))
        | JoinOperator::RightOuter(JoinConstraint::On(on))
        | JoinOperator::FullOuter(JoinConstraint::On(on)) => Some(on),
        _ => None,
    }
}

/// Reads texts that are the whole of `ON`, `WHERE` or `HAVING`.
///
/// # Errors
/// `22P02` for a text that is no boolean.
pub fn read_conditions(select: &mut Select) -> Result<(), SqlError> {
    for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
        if let Some(on) = condition_of(&mut join.join_operator) {
            as_boolean(on)?;
        }
    }
    let rest = select.selection.iter_mut().chain(select.having.iter_mut());
    rest.into_iter().try_for_each(as_boolean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_words_and_their_beginnings() {
        for text in ["t", "TRUE", " tr ", "y", "yes", "on", "1"] {
            assert_eq!(boolean_of(text), Some(true), "{text}");
        }
        for text in ["f", "False", "n", "no", "of", "off", "0"] {
            assert_eq!(boolean_of(text), Some(false), "{text}");
        }
        for text in ["", "o", "yess", "truth", "2", "y es"] {
            assert_eq!(boolean_of(text), None, "{text}");
        }
    }
}
