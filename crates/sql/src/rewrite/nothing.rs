//! PostgreSQL's own tables that have no rows here, and those that are asked for one row.

use super::CATALOG_SCHEMA;
use super::expressions::{call, is_aggregate, is_named, only_column};
use crate::{catalog, names};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, JoinOperator, ObjectName, ObjectNamePart, Query,
    Select, SelectItem, SetExpr, TableFactor, Value,
};

/// A query of one of PostgreSQL's tables that have no rows here has none either, and its columns need
/// not be worked out: clients ask for them in ways that DataFusion does not know.
pub fn ask_nothing_of_nothing(select: &mut Select) {
    let has_rows = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            is_aggregate(expr)
        }
        _ => false,
    };
    if !is_of_nothing(select) || select.projection.iter().any(has_rows) {
        return;
    }
    for item in &mut select.projection {
        let alias = match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.clone(),
            SelectItem::UnnamedExpr(expr) => Ident::with_quote('"', names::given(expr)),
            _ => continue,
        };
        *item = SelectItem::ExprWithAlias { expr: Expr::Value(Value::Null.into()), alias };
    }
    select.selection = Some(Expr::Value(Value::Boolean(false).into()));
}

/// Whether a query is of one of PostgreSQL's tables that have no rows here.
pub fn is_of_nothing(select: &Select) -> bool {
    select.from.iter().any(|from| {
        let joined = from.joins.iter().filter(|join| {
            matches!(join.join_operator, JoinOperator::Join(_) | JoinOperator::Inner(_))
        });
        let mut all = std::iter::once(&from.relation).chain(joined.map(|join| &join.relation));
        all.any(is_nothing)
    })
}

pub fn is_nothing(table: &TableFactor) -> bool {
    match table {
        TableFactor::Table { name, args: None, .. } => {
            let parts: Vec<&str> =
                name.0.iter().filter_map(|one| one.as_ident()).map(|one| &*one.value).collect();
            match parts.as_slice() {
                [name] | [CATALOG_SCHEMA, name] => catalog::has_no_rows(name),
                _ => false,
            }
        }
        TableFactor::Derived { subquery, .. } => {
            matches!(&*subquery.body, SetExpr::Select(select) if is_of_nothing(select))
        }
        // No relation has options.
        TableFactor::Table { name, args: Some(called), .. } if is_named(name, "unnest") => {
            matches!(
                called.args.as_slice(),
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))]
                    if names::given(expr) == "reloptions"
            )
        }
        _ => false,
    }
}

/// DataFusion wants to know that a subquery has one row at most, and believes it of an aggregate. Of
/// PostgreSQL's own tables clients ask by keys.
pub fn one_row(query: &mut Query) {
    let SetExpr::Select(select) = &mut *query.body else { return };
    let is_own = |name: &ObjectName| match name.0.first().and_then(ObjectNamePart::as_ident) {
        Some(first) => first.value == CATALOG_SCHEMA,
        None => false,
    };
    let asks_own = select.from.first().is_some_and(
        |from| matches!(&from.relation, TableFactor::Table { name, .. } if is_own(name)),
    );
    if let Some(expr) = only_column(select)
        && asks_own
        && !is_aggregate(expr)
    {
        *expr = call("max", vec![expr.clone()]);
    }
}
