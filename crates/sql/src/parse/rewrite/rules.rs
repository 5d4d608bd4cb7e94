//! Rules of PostgreSQL about where aggregates and window functions may stand, and what numbers of columns mean. They are
//! checked before anything is rewritten.

use crate::parse::rewrite::argument_rules::check_arguments;
use crate::parse::rewrite::expressions::{is_aggregate, literal};
use crate::parse::rewrite::open_arguments::not_unique;
use crate::types::error::SqlError;
use crate::types::names::{folded, name_of_last};
use crate::types::traversal::{walk, walk_relations};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, DuplicateTreatment, Expr, Function, FunctionArguments,
    GroupByExpr, Join, JoinConstraint, JoinOperator, LimitClause, OrderBy, OrderByKind, Query,
    Select, SelectItem, SetExpr, Statement, TableFactor, Value, ValueWithSpan, Visit, Visitor,
    With,
};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Functions that are of a window alone.
const OF_WINDOWS: &[&str] = &[
    "cume_dist",
    "dense_rank",
    "lag",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// Checks all queries of a statement.
///
/// # Errors
/// `42803`, `42P20`, `42809`, `42P10`, `42712`, as PostgreSQL has them.
pub fn check(statement: &Statement) -> Result<(), SqlError> {
    match walk(statement, &mut Checker) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Checker;

impl Visitor for Checker {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        match check_query(query) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        match check_select(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Self::Break> {
        match table {
            TableFactor::UNNEST { array_exprs, .. }
                if array_exprs.iter().any(|one| literal(one).is_some()) =>
            {
                ControlFlow::Break(Box::new(not_unique("unnest", array_exprs.len())))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        let checked = match expr {
            Expr::Function(function) => check_call(function),
            Expr::BinaryOp { left, op, right } => check_json(left, op, right),
            _ => Ok(()),
        };
        match checked {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

/// Checks that no `json` is compared: only `jsonb` has comparison operators.
fn check_json(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<(), SqlError> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    fn is_json(expr: &Expr) -> bool {
        match expr {
            Expr::Nested(inner) => is_json(inner),
            Expr::Cast { data_type, .. } => *data_type == SqlType::JSON,
            Expr::TypedString(typed) => typed.data_type == SqlType::JSON,
            _ => false,
        }
    }
    let compares = matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq);
    match compares && (is_json(left) || is_json(right)) {
        true => {
            let words = format!("operator does not exist: json {op} json");
            Err(SqlError::new("42883", words).with_hint("Cast to jsonb."))
        }
        false => Ok(()),
    }
}

/// A kind of call.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Aggregate,
    Window,
}

fn kind_of(function: &Function) -> Option<Kind> {
    match function.over {
        Some(_) => Some(Kind::Window),
        None => is_aggregate(function).then_some(Kind::Aggregate),
    }
}

/// Whether an expression has a call of a kind, not counting those in queries within.
fn has(expr: &impl Visit, kind: Kind) -> bool {
    struct Finder(Kind, usize);
    impl Visitor for Finder {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.1 += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.1 -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(function) if self.1 == 0 && kind_of(function) == Some(self.0) => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk(expr, &mut Finder(kind, 0)).is_break()
}

fn refuse_aggregates(expr: &impl Visit, place: &str) -> Result<(), SqlError> {
    match has(expr, Kind::Aggregate) {
        true => {
            let words = format!("aggregate functions are not allowed in {place}");
            Err(SqlError::new("42803", words))
        }
        false => Ok(()),
    }
}

fn refuse_windows(expr: &impl Visit, place: &str) -> Result<(), SqlError> {
    match has(expr, Kind::Window) {
        true => {
            let words = format!("window functions are not allowed in {place}");
            Err(SqlError::new("42P20", words))
        }
        false => Ok(()),
    }
}

fn refuse_both(expr: &impl Visit, place: &str) -> Result<(), SqlError> {
    refuse_aggregates(expr, place)?;
    refuse_windows(expr, place)
}

fn check_query(query: &Query) -> Result<(), SqlError> {
    let mut seen = HashSet::new();
    for one in query.with.iter().flat_map(|with| &with.cte_tables) {
        let name = folded(&one.alias.name);
        if !seen.insert(name.clone()) {
            let words = format!("WITH query name \"{name}\" specified more than once");
            return Err(SqlError::new("42712", words));
        }
    }
    query.with.iter().filter(|with| with.recursive).try_for_each(check_recursion)?;
    if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
        for (expr, place, code) in [
            (limit.as_ref(), "LIMIT", "2201W"),
            (offset.as_ref().map(|offset| &offset.value), "OFFSET", "2201X"),
        ] {
            let Some(expr) = expr else { continue };
            refuse_both(expr, place)?;
            check_count(expr, place, code)?;
        }
    }
    if let (SetExpr::Select(select), Some(order)) = (&*query.body, &query.order_by) {
        check_order(order, select)?;
    }
    Ok(())
}

/// Checks that no recursive query reads itself within a subquery of an expression.
fn check_recursion(with: &With) -> Result<(), SqlError> {
    for one in &with.cte_tables {
        let name = folded(&one.alias.name);
        let SetExpr::SetOperation { right, .. } = &*one.query.body else { continue };
        if walk(right, &mut SelfReference { name: &name }).is_break() {
            let words = format!(
                "recursive reference to query \"{name}\" must not appear within a subquery"
            );
            return Err(SqlError::new("42P19", words));
        }
    }
    Ok(())
}

/// Finds a subquery of an expression that reads a relation.
struct SelfReference<'a> {
    name: &'a str,
}

impl Visitor for SelfReference<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let query = match expr {
            Expr::Subquery(query)
            | Expr::InSubquery { subquery: query, .. }
            | Expr::Exists { subquery: query, .. } => query,
            _ => return ControlFlow::Continue(()),
        };
        walk_relations(query, |relation| match name_of_last(relation) == self.name {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }
}

/// Checks that LIMIT or OFFSET names no column and is not negative.
fn check_count(expr: &Expr, place: &str, code: &'static str) -> Result<(), SqlError> {
    match expr {
        Expr::Identifier(name) if name.quote_style.is_none() => {
            let words = format!("argument of {place} must not contain variables");
            Err(SqlError::new("42P10", words))
        }
        Expr::UnaryOp { op: datafusion::sql::sqlparser::ast::UnaryOperator::Minus, expr } => {
            match &**expr {
                Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. })
                    if digits.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) =>
                {
                    Err(SqlError::new(code, format!("{place} must not be negative")))
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// The columns of a select list; none where `*` makes their number unknown.
fn items(select: &Select) -> Option<Vec<&Expr>> {
    let plain = |item| match item {
        &SelectItem::UnnamedExpr(ref expr) | &SelectItem::ExprWithAlias { ref expr, .. } => {
            Some(expr)
        }
        _ => None,
    };
    select.projection.iter().map(plain).collect()
}

/// The column that a number means; none of other expressions.
fn column_by_number<'a>(
    expr: &Expr,
    select: &'a Select,
    place: &str,
) -> Result<Option<&'a Expr>, SqlError> {
    let Expr::Value(ValueWithSpan { value, .. }) = expr else { return Ok(None) };
    let Value::Number(digits, _) = value else {
        return match value {
            Value::Placeholder(_) | Value::Null => Ok(None),
            _ => Err(SqlError::invalid(format!("non-integer constant in {place}"))),
        };
    };
    let Ok(at) = digits.parse::<usize>() else {
        return Err(SqlError::invalid(format!("non-integer constant in {place}")));
    };
    let Some(items) = items(select) else { return Ok(None) };
    match at.checked_sub(1).and_then(|at| items.get(at)) {
        Some(expr) => Ok(Some(expr)),
        None => {
            let words = format!("{place} position {at} is not in select list");
            Err(SqlError::new("42P10", words))
        }
    }
}

fn check_order(order: &OrderBy, select: &Select) -> Result<(), SqlError> {
    let OrderByKind::Expressions(by) = &order.kind else { return Ok(()) };
    for by in by {
        column_by_number(&by.expr, select, "ORDER BY")?;
    }
    Ok(())
}

fn check_select(select: &Select) -> Result<(), SqlError> {
    for join in select.from.iter().flat_map(|from| &from.joins) {
        check_join(join)?;
        if let Some(condition) = condition_of(join) {
            refuse_both(condition, "JOIN conditions")?;
        }
    }
    if let Some(condition) = &select.selection {
        refuse_both(condition, "WHERE")?;
    }
    if let GroupByExpr::Expressions(by, _) = &select.group_by {
        for expr in by {
            let meant = column_by_number(expr, select, "GROUP BY")?.unwrap_or(expr);
            refuse_both(meant, "GROUP BY")?;
        }
    }
    if let Some(condition) = &select.having {
        refuse_windows(condition, "HAVING")?;
    }
    Ok(())
}

/// Checks that a join has a condition, and CROSS JOIN has none.
fn check_join(join: &Join) -> Result<(), SqlError> {
    let is_wrong = match &join.join_operator {
        JoinOperator::Join(JoinConstraint::None)
        | JoinOperator::Inner(JoinConstraint::None)
        | JoinOperator::Left(JoinConstraint::None)
        | JoinOperator::LeftOuter(JoinConstraint::None)
        | JoinOperator::Right(JoinConstraint::None)
        | JoinOperator::RightOuter(JoinConstraint::None)
        | JoinOperator::FullOuter(JoinConstraint::None) => true,
        JoinOperator::CrossJoin(constraint) => !matches!(constraint, JoinConstraint::None),
        _ => false,
    };
    match is_wrong {
        true => {
            Err(SqlError::invalid("syntax error: a join takes ON or USING, CROSS JOIN neither"))
        }
        false => Ok(()),
    }
}

fn condition_of(join: &Join) -> Option<&Expr> {
    match &join.join_operator {
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

/// Checks the arguments of an aggregate or a window function.
fn check_call(function: &Function) -> Result<(), SqlError> {
    check_arguments(function)?;
    let name = name_of_last(&function.name);
    if function.over.is_none()
        && function.within_group.is_empty()
        && OF_WINDOWS.contains(&name.as_str())
    {
        let words = format!("window function {name} requires an OVER clause");
        return Err(SqlError::new("42809", words));
    }
    if is_scalar(&name) && (is_distinct(function) || function.filter.is_some()) {
        let what = if is_distinct(function) { "DISTINCT" } else { "FILTER" };
        let words = format!("{what} specified, but {name} is not an aggregate function");
        return Err(SqlError::new("42809", words));
    }
    if is_scalar(&name) && function.over.is_some() {
        let words = format!(
            "OVER specified, but {name} is not a window function nor an aggregate function"
        );
        return Err(SqlError::new("42809", words));
    }
    let Some(kind) = kind_of(function) else { return Ok(()) };
    if let Some(filter) = &function.filter {
        refuse_both(&**filter, "FILTER")?;
    }
    match kind {
        Kind::Aggregate if has(&function.args, Kind::Aggregate) => {
            Err(SqlError::new("42803", "aggregate function calls cannot be nested"))
        }
        Kind::Aggregate if has(&function.args, Kind::Window) => {
            let words = "aggregate function calls cannot contain window function calls";
            Err(SqlError::new("42803", words))
        }
        Kind::Window if has(&function.args, Kind::Window) || has(&function.over, Kind::Window) => {
            Err(SqlError::new("42P20", "window function calls cannot be nested"))
        }
        Kind::Window if is_distinct(function) => {
            Err(SqlError::unsupported("DISTINCT is not implemented for window functions"))
        }
        _ => Ok(()),
    }
}

/// Common functions that are neither of groups nor of windows.
const SCALAR: &[&str] = &[
    "abs",
    "ceil",
    "coalesce",
    "concat",
    "date_part",
    "date_trunc",
    "floor",
    "length",
    "lower",
    "ltrim",
    "now",
    "replace",
    "round",
    "rtrim",
    "split_part",
    "sqrt",
    "strpos",
    "substr",
    "to_char",
    "trim",
    "trunc",
    "upper",
];

fn is_scalar(name: &str) -> bool {
    SCALAR.contains(&name)
}

fn is_distinct(function: &Function) -> bool {
    match &function.args {
        FunctionArguments::List(list) => {
            list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
        }
        _ => false,
    }
}

/// Refuses aggregates and window functions in a statement that changes rows.
///
/// # Errors
/// `42803` and `42P20`.
pub fn refuse_in_change(expr: &impl Visit, place: &str) -> Result<(), SqlError> {
    refuse_both(expr, place)
}
