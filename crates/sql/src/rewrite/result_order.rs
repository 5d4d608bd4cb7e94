//! `SELECT id::text FROM t ORDER BY id`: the name of a result goes before that of a column
//! (<https://www.postgresql.org/docs/15/queries-order.html>). A cast has the name of its column.

use crate::names::{folded, given};
use datafusion::sql::sqlparser::ast::{Expr, OrderBy, OrderByKind, SelectItem, Value};

/// Replaces names of casts, and aggregates that are selected, in ORDER BY by the places of the results.
pub fn order_by_results(items: &[SelectItem], order: &mut OrderBy) {
    let OrderByKind::Expressions(sorts) = &mut order.kind else { return };
    for sort in sorts {
        let place = match &sort.expr {
            Expr::Identifier(name) => place_of_cast(items, &folded(name)),
            Expr::Function(function) if super::is_aggregate(function) => {
                place_of(items, &sort.expr)
            }
            _ => continue,
        };
        if let Some(place) = place {
            sort.expr = Expr::Value(Value::Number(place.to_string(), false).into());
        }
    }
}

/// The place of the result that is an expression.
fn place_of(items: &[SelectItem], wanted: &Expr) -> Option<usize> {
    let mut place = None;
    for (at, item) in items.iter().enumerate() {
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                if expr == wanted {
                    place.get_or_insert(at + 1);
                }
            }
            // Any number of columns.
            _ => return None,
        }
    }
    place
}

/// The place of the only result of a name, if it is a cast.
fn place_of_cast(items: &[SelectItem], name: &str) -> Option<usize> {
    let mut found = None;
    for (at, item) in items.iter().enumerate() {
        let (is_named, is_cast) = match item {
            SelectItem::UnnamedExpr(expr) => (given(expr) == name, is_cast(expr)),
            SelectItem::ExprWithAlias { expr, alias } => (folded(alias) == name, is_cast(expr)),
            // Any number of columns of any name.
            _ => return None,
        };
        match (is_named, is_cast, found) {
            (true, true, None) => found = Some(at + 1),
            (true, _, _) => return None,
            _ => {}
        }
    }
    found
}

fn is_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { .. } => true,
        Expr::Nested(inner) => is_cast(inner),
        _ => false,
    }
}
