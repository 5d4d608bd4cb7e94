//! PostgreSQL's own tables that have no rows here, and those that are asked for one row.

use crate::catalog::system_catalog;
use crate::parse::rewrite::expressions::{aggregates, cast, is_named, literal, text_array};
use crate::parse::rewrite::values::numerals::with_type;
use crate::types::names;
use crate::types::names::CATALOG_SCHEMA;
use crate::types::traversal::walk_relations;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Distinct, Expr, FunctionArg, FunctionArgExpr, GroupByExpr,
    Ident, JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr,
    SetOperator, SetQuantifier, TableFactor, Value,
};
use std::ops::ControlFlow;

/// A query of one of PostgreSQL's tables that have no rows here has none either, and its columns need
/// not be worked out: clients ask for them in ways that DataFusion does not know.
pub fn ask_nothing_of_nothing(select: &mut Select) {
    if !gives_nothing(select) {
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

/// Leaves out the recursive part of `WITH RECURSIVE` where it reads a table that has no rows here: the recursion ends
/// at once.
pub fn end_recursion_without_rows(query: &mut Query) {
    let Some(with) = query.with.as_mut().filter(|with| with.recursive) else { return };
    for cte in &mut with.cte_tables {
        let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } =
            &mut *cte.query.body
        else {
            continue;
        };
        let (SetExpr::Select(first), SetExpr::Select(step)) = (&mut **left, &**right) else {
            continue;
        };
        if !gives_nothing(step) {
            continue;
        }
        if !matches!(set_quantifier, SetQuantifier::All) {
            first.distinct.get_or_insert(Distinct::Distinct);
        }
        *cte.query.body = (**left).clone();
    }
}

/// Whether a query has no rows, since what it asks has none. An aggregate has one even of nothing,
/// unless it is one of groups.
pub fn gives_nothing(select: &Select) -> bool {
    let is_grouped = match &select.group_by {
        GroupByExpr::Expressions(by, modifiers) => {
            let is_plain = |expr: &Expr| {
                !matches!(expr, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_))
            };
            !by.is_empty() && modifiers.is_empty() && by.iter().all(is_plain)
        }
        GroupByExpr::All(_) => false,
    };
    let is_one_row = || {
        let of_item = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                aggregates(expr)
            }
            _ => false,
        };
        select.having.is_some() || select.projection.iter().any(of_item)
    };
    asks_nothing(select) && (is_grouped || !is_one_row())
}

/// What a subquery says that counts, or gathers, the rows of a table that has none; nothing where that
/// is not known, or the subquery is another.
pub fn answer_of_nothing(select: &Select) -> Option<Expr> {
    let nothing = || Expr::Value(Value::Null.into());
    if gives_nothing(select) {
        return Some(nothing());
    }
    let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] =
        select.projection.as_slice()
    else {
        return None;
    };
    let Expr::Function(function) = expr else { return None };
    if !asks_nothing(select) || select.having.is_some() || !aggregates(expr) {
        return None;
    }
    Some(match () {
        () if is_named(&function.name, "count") => {
            Expr::Value(Value::Number("0".into(), false).into())
        }
        () if is_named(&function.name, "array_agg") => cast(nothing(), text_array()),
        () if is_named(&function.name, "string_agg") => cast(nothing(), SqlType::Text),
        () => nothing(),
    })
}

/// Whether what a query reads has no rows.
fn asks_nothing(select: &Select) -> bool {
    select.from.iter().any(|from| {
        let first = is_nothing(&from.relation);
        from.joins.iter().fold(first, |left, join| {
            let right = is_nothing(&join.relation);
            match join.join_operator {
                JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => {
                    left || right
                }
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => left,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => right,
                JoinOperator::FullOuter(_) => left && right,
                _ => false,
            }
        })
    })
}

fn is_nothing(table: &TableFactor) -> bool {
    match table {
        TableFactor::Table { name, args: None, .. } => {
            let parts: Vec<&str> =
                name.0.iter().filter_map(|one| one.as_ident()).map(|one| &*one.value).collect();
            match parts.as_slice() {
                [name] | [CATALOG_SCHEMA, name] => system_catalog::has_no_rows(name),
                _ => false,
            }
        }
        TableFactor::Derived { subquery, .. } => {
            matches!(&*subquery.body, SetExpr::Select(select) if gives_nothing(select))
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

/// `CASE WHEN typtype = 'c' THEN (query) ..`: all types here are of the kind `b`, and what clients ask of
/// those of other kinds are queries that DataFusion does not know.
pub fn without_other_types(expr: &mut Expr) {
    let Expr::Case { operand: None, conditions, else_result, .. } = expr else { return };
    conditions.retain(|when| !(is_other_kind(&when.condition) && asks_own(&when.result)));
    if conditions.is_empty() {
        let nothing = || Expr::Value(Value::Null.into());
        *expr = else_result.take().map_or_else(nothing, |other| *other);
        with_type(expr);
    }
}

fn is_other_kind(condition: &Expr) -> bool {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return false };
    names::given(left) == "typtype" && literal(right).is_some_and(|kind| kind != "b")
}

/// Whether an expression is a query of PostgreSQL's own tables.
fn asks_own(expr: &Expr) -> bool {
    let Expr::Subquery(query) = expr else { return false };
    let asks = walk_relations(&**query, |name: &ObjectName| {
        let first = name.0.last().and_then(ObjectNamePart::as_ident);
        match first.is_some_and(|ident| ["pg_type", "pg_attribute"].contains(&&*ident.value)) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    asks.is_break()
}
