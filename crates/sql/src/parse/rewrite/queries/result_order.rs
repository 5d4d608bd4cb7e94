//! `SELECT id::text FROM t ORDER BY id`: the name of a result goes before that of a column
//! (<https://www.postgresql.org/docs/15/queries-order.html>). A cast has the name of its column.

use crate::types::names::{folded, given, unlike_others};
use crate::types::traversal::walk;
use datafusion::sql::sqlparser::ast::{Expr, OrderBy, OrderByKind, SelectItem, Value, Visitor};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Replaces names of casts, and aggregates that are selected, in ORDER BY by the places of the results.
pub fn order_by_results(items: &[SelectItem], order: &mut OrderBy) {
    let OrderByKind::Expressions(sorts) = &mut order.kind else { return };
    for sort in sorts {
        let place = match &sort.expr {
            Expr::Identifier(name) => place_of_cast(items, &folded(name)),
            Expr::Function(function)
                if crate::parse::rewrite::expressions::is_aggregate(function) =>
            {
                place_of(items, &sort.expr)
            }
            _ => continue,
        };
        if let Some(place) = place {
            sort.expr = Expr::Value(Value::Number(place.to_string(), false).into());
        }
    }
}

/// Leaves out expressions that the rows are in the order of already.
pub fn order_once(order: &mut OrderBy) {
    let OrderByKind::Expressions(sorts) = &mut order.kind else { return };
    let mut seen: Vec<Expr> = Vec::with_capacity(sorts.len());
    sorts.retain(|sort| {
        let is_new = !seen.contains(&sort.expr);
        seen.push(sort.expr.clone());
        is_new
    });
}

/// Hides results whose names stand within expressions of ORDER BY, where a name is that of a column: only a name that
/// stands alone is a result's.
pub fn hide_results(items: &mut [SelectItem], order: &mut OrderBy) {
    let OrderByKind::Expressions(sorts) = &mut order.kind else { return };
    let is_alone = |expr: &Expr| matches!(expr, Expr::Identifier(_) | Expr::Value(_));
    let mut used = Names(BTreeSet::new());
    for sort in sorts.iter().filter(|sort| !is_alone(&sort.expr)) {
        let _: ControlFlow<()> = walk(&sort.expr, &mut used);
    }
    let has_wildcard = items
        .iter()
        .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    for (at, item) in items.iter_mut().enumerate() {
        let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
        let name = folded(alias);
        let is_column = match &*expr {
            Expr::Identifier(column) => folded(column) == name,
            Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|one| folded(one) == name),
            _ => false,
        };
        if is_column || has_wildcard || !used.0.contains(&name) {
            continue;
        }
        for sort in sorts.iter_mut() {
            if matches!(&sort.expr, Expr::Identifier(one) if folded(one) == name) {
                sort.expr = Expr::Value(Value::Number((at + 1).to_string(), false).into());
            }
        }
        *alias = unlike_others(&name, at);
    }
}

/// Names of columns in expressions, but not in queries.
struct Names(BTreeSet<String>);

impl Visitor for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => {
                self.0.insert(folded(name));
            }
            Expr::CompoundIdentifier(parts) => {
                self.0.extend(parts.last().map(folded));
            }
            _ => {}
        }
        ControlFlow::Continue(())
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
