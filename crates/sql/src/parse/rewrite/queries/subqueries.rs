//! Subqueries within expressions, said so that DataFusion sees one value of each.

use crate::functions::json::jsonb_parts::IS_JSONB;
use crate::parse::rewrite::expressions::{
    aggregates, arguments, call, is_named, only_column, query,
};
use crate::types::casts::cast_functions::JSONB_IN;
use crate::types::names::{CATALOG_SCHEMA, folded};
use crate::types::traversal::{walk, walk_mut};
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, GroupByExpr, LimitClause, ObjectName, ObjectNamePart,
    Query, Select, SelectItem, SetExpr, TableFactor, Value, Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Functions whose value is a `jsonb`.
const MAKERS: &[&str] =
    &[IS_JSONB, JSONB_IN, "jsonb_build_object", "jsonb_build_array", "to_jsonb"];

/// DataFusion wants to know that a subquery has one row at most, and believes it of an aggregate. Of
/// PostgreSQL's own tables clients ask by keys.
///
/// Conditions about the row outside alone, which it does not know within, stand before the subquery: the
/// answer is the expression that the subquery becomes, if it becomes another.
pub fn one_row(query: &mut Query) -> Option<Expr> {
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let is_own = |name: &ObjectName| match name.0.first().and_then(ObjectNamePart::as_ident) {
        Some(first) => first.value == CATALOG_SCHEMA,
        None => false,
    };
    let asks_own = select.from.first().is_some_and(
        |from| matches!(&from.relation, TableFactor::Table { name, .. } if is_own(name)),
    );
    let value = only_column(select)?.clone();
    if !asks_own || aggregates(&value) {
        return None;
    }
    let own = own_tables(select).unwrap_or_default();
    let outside = if own.is_empty() { None } else { take_outside(select, &own) };
    // A value that is made of those of the row outside, too, is made out there, if there is a row.
    let (condition, result) = match &value {
        Expr::Function(function) if is_mixed(function, &own) => {
            let found = counted(query, false)?;
            let made = made_outside(function, query, &own)?;
            (outside.into_iter().fold(found, |found, one| both(one, found)), made)
        }
        _ => {
            *only_column(select)? = call("first_value", vec![value]);
            (outside?, Expr::Subquery(Box::new(query.clone())))
        }
    };
    let when = CaseWhen { condition, result };
    let mut made = Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![when],
        else_result: None,
    };
    case_of_jsonb(&mut made);
    Some(made)
}

/// What a `CASE` says is a `jsonb` where all that it may say is: DataFusion knows a text.
pub fn case_of_jsonb(expr: &mut Expr) {
    let Expr::Case { conditions, else_result, .. } = expr else { return };
    let mut results = conditions.iter().map(|when| &when.result).chain(else_result.as_deref());
    let is_null = |one: &Expr| matches!(one, Expr::Value(value) if value.value == Value::Null);
    let is_jsonb = |one: &Expr| match one {
        Expr::Function(function) => MAKERS.iter().any(|maker| is_named(&function.name, maker)),
        other => is_null(other),
    };
    if results.clone().all(is_jsonb) && !results.all(is_null) {
        *expr = call(IS_JSONB, vec![expr.clone()]);
    }
}

/// What a query's own tables are called, if all have a name.
fn own_tables(select: &Select) -> Option<Vec<String>> {
    let tables = select.from.iter().flat_map(|from| {
        std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
    });
    tables.map(table_name).collect()
}

/// Whether some arguments of a call, and not all, are about the row outside.
fn is_mixed(function: &Function, own: &[String]) -> bool {
    let args = arguments(function).unwrap_or_default();
    let outside = args.iter().filter(|arg| is_outside(arg, own)).count();
    0 < outside && outside < args.len()
}

/// The same call, where each argument that is about tables within is a query of its own.
fn made_outside(function: &Function, query: &Query, own: &[String]) -> Option<Expr> {
    let name = function.name.0.last()?.as_ident()?.value.clone();
    let asked = |arg: &Expr| {
        if columns_outside(arg, own).is_some() {
            return Some(arg.clone());
        }
        let mut query = query.clone();
        let SetExpr::Select(select) = &mut *query.body else { return None };
        *only_column(select)? = call("first_value", vec![arg.clone()]);
        Some(Expr::Subquery(Box::new(query)))
    };
    let args: Option<Vec<Expr>> = arguments(function)?.into_iter().map(asked).collect();
    Some(call(&name, args?))
}

/// Takes conditions out that are about no table of a query's own.
fn take_outside(select: &mut Select, own: &[String]) -> Option<Expr> {
    let mut all = Vec::new();
    split(select.selection.take()?, &mut all);
    let (outside, inside): (Vec<Expr>, Vec<Expr>) =
        all.into_iter().partition(|condition| is_outside(condition, own));
    select.selection = inside.into_iter().reduce(both);
    outside.into_iter().reduce(both)
}

/// What the columns of a table are called by.
fn table_name(table: &TableFactor) -> Option<String> {
    match table {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => Some(folded(&alias.name)),
            None => name.0.last().and_then(ObjectNamePart::as_ident).map(folded),
        },
        TableFactor::Derived { alias, .. } => alias.as_ref().map(|alias| folded(&alias.name)),
        _ => None,
    }
}

fn split(condition: Expr, all: &mut Vec<Expr>) {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            split(*left, all);
            split(*right, all);
        }
        other => all.push(other),
    }
}

/// Both conditions.
pub fn both(left: Expr, right: Expr) -> Expr {
    let nested = |expr| Box::new(Expr::Nested(Box::new(expr)));
    Expr::BinaryOp { left: nested(left), op: BinaryOperator::And, right: nested(right) }
}

/// One of them, or both.
pub fn either(left: Expr, right: Expr) -> Expr {
    let nested = |expr| Box::new(Expr::Nested(Box::new(expr)));
    Expr::BinaryOp { left: nested(left), op: BinaryOperator::Or, right: nested(right) }
}

/// Whether a condition names columns, and all of them by other tables than these.
fn is_outside(condition: &Expr, own: &[String]) -> bool {
    columns_outside(condition, own).is_some_and(|count| 0 < count)
}

/// How many columns an expression names, all of them of other tables; none if one may be of these.
fn columns_outside(expr: &Expr, own: &[String]) -> Option<usize> {
    struct Columns<'a>(&'a [String], usize);
    impl Visitor for Columns<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(_) => return ControlFlow::Break(()),
                Expr::CompoundIdentifier(parts) => {
                    let at = parts.len().saturating_sub(2);
                    if parts.get(at).is_some_and(|table| self.0.contains(&folded(table))) {
                        return ControlFlow::Break(());
                    }
                    self.1 += 1;
                }
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let mut columns = Columns(own, 0);
    walk(expr, &mut columns).is_continue().then_some(columns.1)
}

/// `SELECT EXISTS (query)` as `SELECT (SELECT count(*) <> 0 FROM (query LIMIT 1))`: DataFusion knows
/// the first in conditions alone. Within another expression the query may be about the row outside, which
/// is not known behind a limit: there all its rows are counted.
pub fn exists_as_count(select: &mut Select) {
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        let Expr::Exists { subquery, negated } = expr else {
            let _: ControlFlow<()> = walk_mut(expr, &mut Within(0));
            continue;
        };
        if is_one_row_always(subquery) {
            *expr = Expr::Value(Value::Boolean(!*negated).into());
            continue;
        }
        if (asks_catalog(subquery) || is_about_outside(subquery))
            && let Some(made) = counted(subquery, *negated)
        {
            *expr = made;
            continue;
        }
        let mut inner = subquery.clone();
        if inner.limit_clause.is_none() {
            let limit = Some(Expr::Value(Value::Number("1".into(), false).into()));
            let limit = LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() };
            inner.limit_clause = Some(limit);
        }
        let sign = if *negated { "=" } else { "<>" };
        let text = format!("SELECT (SELECT count(*) {sign} 0 FROM ({inner}) AS found)");
        let Some(made) = query(&text) else { continue };
        if let SetExpr::Select(made) = *made.body
            && let Some(SelectItem::UnnamedExpr(made)) = made.projection.into_iter().next()
        {
            *expr = made;
        }
    }
}

/// Finds `EXISTS` that stand in other expressions, but not in queries among these.
struct Within(usize);

impl VisitorMut for Within {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.0 -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.0 == 0
            && let Expr::Exists { subquery, negated } = expr
        {
            if is_one_row_always(subquery) {
                *expr = Expr::Value(Value::Boolean(!*negated).into());
            } else if let Some(made) = counted(subquery, *negated) {
                *expr = made;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether a query begins with one of PostgreSQL's own tables.
fn asks_catalog(query: &Query) -> bool {
    let SetExpr::Select(select) = &*query.body else { return false };
    let first = select.from.first().map(|from| &from.relation);
    let Some(TableFactor::Table { name, .. }) = first else { return false };
    let parts: Vec<String> =
        name.0.iter().filter_map(ObjectNamePart::as_ident).map(folded).collect();
    parts.first().is_some_and(|first| first.starts_with("pg_"))
}

/// Whether a query names columns of tables that are not its own.
fn is_about_outside(query: &Query) -> bool {
    struct Foreign(Vec<String>);
    impl Visitor for Foreign {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let Expr::CompoundIdentifier(parts) = expr else { return ControlFlow::Continue(()) };
            let table = parts.len().checked_sub(2).and_then(|at| parts.get(at)).map(folded);
            match table {
                Some(table) if !self.0.contains(&table) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    let SetExpr::Select(select) = &*query.body else { return false };
    let Some(own) = own_tables(select) else { return false };
    select.selection.as_ref().is_some_and(|one| walk(one, &mut Foreign(own)).is_break())
}

/// Whether a query is an aggregate of all its rows, of which there is always one.
fn is_one_row_always(query: &Query) -> bool {
    let SetExpr::Select(select) = &*query.body else { return false };
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    let is_aggregate = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => aggregates(expr),
        _ => false,
    };
    let is_limited = query.limit_clause.is_some() || query.fetch.is_some();
    !is_grouped
        && !is_limited
        && select.having.is_none()
        && select.projection.iter().any(is_aggregate)
}

/// `(SELECT count(*) <> 0 FROM ..)` of a plain query.
fn counted(query: &Query, negated: bool) -> Option<Expr> {
    let mut query = query.clone();
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    let is_aggregate = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => aggregates(expr),
        _ => false,
    };
    if is_grouped
        || select.having.is_some()
        || select.projection.iter().any(is_aggregate)
        || query.limit_clause.is_some()
        || query.fetch.is_some()
    {
        return None;
    }
    let sign = if negated { "=" } else { "<>" };
    let count = crate::parse::rewrite::expressions::query(&format!("SELECT count(*) {sign} 0"))?;
    let SetExpr::Select(count) = *count.body else { return None };
    select.projection = count.projection;
    select.distinct = None;
    query.order_by = None;
    Some(Expr::Subquery(Box::new(query)))
}
