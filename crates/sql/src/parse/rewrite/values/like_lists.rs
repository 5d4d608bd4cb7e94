//! `LIKE ANY` and `LIKE ALL` of written patterns: comparisons with each, joined by OR and AND
//! (<https://www.postgresql.org/docs/15/functions-comparisons.html>).

use crate::parse::rewrite::expressions::{arguments, is_named};
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::{Array, BinaryOperator, Expr};

/// Writes the comparisons with each pattern of a list, which `change` rewrites; returns whether there is such a list.
///
/// # Errors
/// As `change`.
pub fn compare_with_each(
    expr: &mut Expr,
    change: &mut dyn FnMut(&mut Expr) -> Result<(), SqlError>,
) -> Result<bool, SqlError> {
    let Some((mut all, operator)) = comparisons(expr) else { return Ok(false) };
    all.iter_mut().try_for_each(change)?;
    if let Some(joined) = join(all, &operator) {
        *expr = joined;
    }
    Ok(true)
}

/// Comparisons with the patterns of a list, and the operator between them; none where there is no written list.
fn comparisons(expr: &Expr) -> Option<(Vec<Expr>, BinaryOperator)> {
    let (any, pattern) = match expr {
        Expr::Like { any, pattern, escape_char: None, .. }
        | Expr::ILike { any, pattern, escape_char: None, .. } => (*any, pattern),
        _ => return None,
    };
    let (list, operator) = match (any, &**pattern) {
        (true, list) => (list, BinaryOperator::Or),
        (false, Expr::Function(all)) if is_named(&all.name, "all") => {
            let args: [&Expr; 1] = arguments(all)?.try_into().ok()?;
            (args[0], BinaryOperator::And)
        }
        _ => return None,
    };
    let patterns = written(list)?;
    let one = |pattern: &Expr| {
        let mut one = expr.clone();
        if let Expr::Like { any, pattern: of, .. } | Expr::ILike { any, pattern: of, .. } = &mut one
        {
            *any = false;
            **of = pattern.clone();
        }
        one
    };
    let all: Vec<Expr> = patterns.iter().map(one).collect();
    (!all.is_empty()).then_some((all, operator))
}

/// Joins comparisons by an operator.
fn join(all: Vec<Expr>, operator: &BinaryOperator) -> Option<Expr> {
    let both = |left: Expr, right: Expr| Expr::BinaryOp {
        left: Box::new(left),
        op: operator.clone(),
        right: Box::new(right),
    };
    let joined = all.into_iter().map(|one| Expr::Nested(Box::new(one))).reduce(both)?;
    Some(Expr::Nested(Box::new(joined)))
}

fn written(list: &Expr) -> Option<&[Expr]> {
    match list {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => written(inner),
        Expr::Array(Array { elem, .. }) => Some(elem),
        _ => None,
    }
}
