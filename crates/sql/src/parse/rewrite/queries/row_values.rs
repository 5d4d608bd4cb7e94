//! Rows as values: `(a, b) = (1, 2)`, `(a, b) > (1, 2)`, `(a, b) IN ((1, 2), (3, 4))` and
//! `(a, b) IN (SELECT ..)`, said by their columns, one after the other.

use crate::parse::rewrite::expressions::is_named;
use crate::parse::rewrite::queries::subqueries::{both, either};
use crate::types::error::SqlError;
use crate::types::traversal::walk;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Join,
    JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, Value, Visitor,
};
use std::ops::ControlFlow;

/// Columns of a row that is compared.
const COLUMNS_MAX: usize = 100;
/// Alias of a subquery that a value or a row is compared with; no table has this name.
pub(crate) const LOOKED_AT: &str = "rows looked at";

/// A comparison of rows, by their columns; none if it is none.
///
/// # Errors
/// When the rows are not of the same number of columns.
pub fn compared(expr: &Expr) -> Result<Option<Expr>, SqlError> {
    match expr {
        Expr::BinaryOp { left, op, right } => match (row_of(left), row_of(right)) {
            (Some(left), Some(right)) => compared_by(&left, op, &right),
            (Some(left), None) => compared_with_query(&left, op, right),
            _ => Ok(None),
        },
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => {
            any_of_query(left, right, false)
        }
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => {
            any_of_query(left, right, true)
        }
        Expr::InList { expr, list, negated } => {
            let Some(row) = row_of(expr) else { return Ok(None) };
            let equals = |one: &Expr| match row_of(one) {
                Some(other) => equal(&row, &other),
                None => Err(SqlError::new("42601", "a row is compared with what is no row")),
            };
            let all: Result<Vec<Expr>, SqlError> = list.iter().map(equals).collect();
            Ok(any_of(all?).map(|any| negated_if(any, *negated)))
        }
        // A row is NULL, or is not, if all its members are.
        Expr::IsNull(inner) => Ok(row_of(inner).and_then(|row| each(row, Expr::IsNull))),
        Expr::IsNotNull(inner) => Ok(row_of(inner).and_then(|row| each(row, Expr::IsNotNull))),
        Expr::InSubquery { expr, subquery, negated } => match row_of(expr) {
            Some(row) => found_value(&row, subquery, *negated).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// `(a, b) = ANY (query)` is `(a, b) IN (query)`, and `<> ALL` is `NOT IN`.
fn any_of_query(left: &Expr, right: &Expr, negated: bool) -> Result<Option<Expr>, SqlError> {
    match (row_of(left), right) {
        (Some(row), Expr::Subquery(query)) => found_value(&row, query, negated).map(Some),
        _ => Ok(None),
    }
}

/// `(a, b) = (query)`: the row of the query compared, NULL if there is none.
fn compared_with_query(
    left: &[Expr],
    op: &BinaryOperator,
    right: &Expr,
) -> Result<Option<Expr>, SqlError> {
    let Expr::Subquery(query) = right else { return Ok(None) };
    check_columns(query, left.len())?;
    let alias = looked_at(left.len());
    let Some(value) = compared_by(left, op, &columns_of(&alias))? else { return Ok(None) };
    Ok(Some(Expr::Subquery(Box::new(of_rows(query, alias, value, None)))))
}

/// `(a, b) IN (query)` as conditions of a query and of its joins, where what is not known is as false: EXISTS.
///
/// # Errors
/// When the rows are not of the same number of columns.
pub fn find_rows(select: &mut Select) -> Result<(), SqlError> {
    if let Some(condition) = &mut select.selection {
        find_row(condition)?;
    }
    for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
        if let JoinOperator::Join(JoinConstraint::On(condition))
        | JoinOperator::Inner(JoinConstraint::On(condition))
        | JoinOperator::Left(JoinConstraint::On(condition))
        | JoinOperator::LeftOuter(JoinConstraint::On(condition)) = &mut join.join_operator
        {
            find_row(condition)?;
        }
    }
    Ok(())
}

fn find_row(condition: &mut Expr) -> Result<(), SqlError> {
    match condition {
        Expr::Nested(inner) => find_row(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            find_row(left)?;
            find_row(right)
        }
        Expr::InSubquery { expr, subquery, negated } => {
            if let Some(row) = row_of(expr) {
                *condition = found_in(&row, subquery, *negated)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The same said of each column of a row.
fn each(row: Vec<Expr>, say: fn(Box<Expr>) -> Expr) -> Option<Expr> {
    let said = row.into_iter().map(|one| say(Box::new(Expr::Nested(Box::new(one)))));
    said.reduce(both).map(|all| Expr::Nested(Box::new(all)))
}

/// `count(table.*)` leaves rows out that an outer join made up; DataFusion counts all.
///
/// # Errors
/// `0A000` where there is such a join.
pub fn check_counted_rows(select: &Select) -> Result<(), SqlError> {
    struct Counted(usize);
    impl Visitor for Counted {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.0 -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
            let FunctionArguments::List(list) = &function.args else {
                return ControlFlow::Continue(());
            };
            let is_row = |arg: &FunctionArg| {
                matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)))
            };
            match self.0 == 0 && list.args.iter().any(is_row) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    let is_outer = |join: &Join| {
        matches!(
            join.join_operator,
            JoinOperator::Left(_)
                | JoinOperator::LeftOuter(_)
                | JoinOperator::Right(_)
                | JoinOperator::RightOuter(_)
                | JoinOperator::FullOuter(_)
        )
    };
    let has_outer = select.from.iter().any(|from| from.joins.iter().any(is_outer));
    let counts = |item: &SelectItem| walk(item, &mut Counted(0)).is_break();
    let is_counted = has_outer
        && (select.projection.iter().any(counts)
            || select.having.as_ref().is_some_and(|one| walk(one, &mut Counted(0)).is_break()));
    match is_counted {
        true => Err(SqlError::unsupported(
            "a function of table.* beside an outer join is not known here",
        )
        .with_hint("Count a column that is never NULL.")),
        false => Ok(()),
    }
}

/// The columns of a row that is written down.
pub fn row_of(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Nested(inner) => row_of(inner),
        Expr::Tuple(columns) => Some(columns.clone()),
        Expr::Function(function) if is_named(&function.name, "row") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let column = |arg: &FunctionArg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            };
            list.args.iter().map(column).collect()
        }
        _ => None,
    }
}

fn compared_by(
    left: &[Expr],
    op: &BinaryOperator,
    right: &[Expr],
) -> Result<Option<Expr>, SqlError> {
    Ok(match op {
        BinaryOperator::Eq => Some(equal(left, right)?),
        BinaryOperator::NotEq => Some(negated_if(equal(left, right)?, true)),
        BinaryOperator::Lt | BinaryOperator::LtEq => {
            Some(ordered(left, BinaryOperator::Lt, op, right)?)
        }
        BinaryOperator::Gt | BinaryOperator::GtEq => {
            Some(ordered(left, BinaryOperator::Gt, op, right)?)
        }
        _ => None,
    })
}

/// Whether any of them is true, of as few steps into each other as there can be.
fn any_of(mut all: Vec<Expr>) -> Option<Expr> {
    let rest = all.split_off(all.len() / 2);
    match (all.is_empty(), rest.len()) {
        (_, 0) => None,
        (true, _) => rest.into_iter().next(),
        (false, _) => Some(either(any_of(all)?, any_of(rest)?)),
    }
}

fn same_length(left: &[Expr], right: &[Expr]) -> Result<(), SqlError> {
    if left.len() != right.len() {
        return Err(SqlError::new("42601", "unequal number of entries in row expressions"));
    }
    if COLUMNS_MAX < left.len() {
        return Err(SqlError::limit(format!("rows of more than {COLUMNS_MAX} columns compared")));
    }
    Ok(())
}

fn is(left: &Expr, op: BinaryOperator, right: &Expr) -> Expr {
    let side = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    Expr::BinaryOp { left: side(left), op, right: side(right) }
}

fn equal(left: &[Expr], right: &[Expr]) -> Result<Expr, SqlError> {
    same_length(left, right)?;
    let pairs = left.iter().zip(right).map(|(left, right)| is(left, BinaryOperator::Eq, right));
    nested(pairs.reduce(both))
}

/// The first columns that differ decide; `last` is what is asked of the last ones.
fn ordered(
    left: &[Expr],
    strictly: BinaryOperator,
    last: &BinaryOperator,
    right: &[Expr],
) -> Result<Expr, SqlError> {
    same_length(left, right)?;
    let mut made: Option<Expr> = None;
    for (left, right) in left.iter().zip(right).rev() {
        made = Some(match made {
            None => is(left, last.clone(), right),
            Some(rest) => either(
                is(left, strictly.clone(), right),
                both(is(left, BinaryOperator::Eq, right), rest),
            ),
        });
    }
    nested(made)
}

fn nested(expr: Option<Expr>) -> Result<Expr, SqlError> {
    let expr = expr.ok_or_else(|| SqlError::new("42601", "a row has at least one column"))?;
    Ok(Expr::Nested(Box::new(expr)))
}

fn negated_if(expr: Expr, negated: bool) -> Expr {
    match negated {
        true => {
            let op = datafusion::sql::sqlparser::ast::UnaryOperator::Not;
            Expr::UnaryOp { op, expr: Box::new(Expr::Nested(Box::new(expr))) }
        }
        false => Expr::Nested(Box::new(expr)),
    }
}

/// A column of the row that a query has.
pub fn column_of_row(row: &Query, at: usize, count: usize) -> Expr {
    let alias = looked_at(count);
    let column = Expr::CompoundIdentifier(vec![alias.name.clone(), column_name(at)]);
    Expr::Subquery(Box::new(of_rows(row, alias, column, None)))
}

/// Checks the number of columns of a query that names them.
///
/// # Errors
/// `42601` for another number.
pub fn check_columns(query: &Query, count: usize) -> Result<(), SqlError> {
    let SetExpr::Select(select) = &*query.body else { return Ok(()) };
    let is_plain = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
    };
    let items = &select.projection;
    if !items.iter().all(is_plain) || items.len() == count {
        return Ok(());
    }
    let words = if items.len() < count { "few" } else { "many" };
    Err(SqlError::invalid(format!("subquery has too {words} columns")))
}

fn column_name(at: usize) -> Ident {
    Ident::with_quote('"', format!("column {}", at + 1))
}

/// The name of a query's rows, and those of its columns.
fn looked_at(count: usize) -> TableAlias {
    let column = |at| TableAliasColumnDef { name: column_name(at), data_type: None };
    let name = Ident::with_quote('"', LOOKED_AT);
    TableAlias { explicit: true, name, columns: (0..count).map(column).collect(), at: None }
}

fn columns_of(alias: &TableAlias) -> Vec<Expr> {
    let column = |column: &TableAliasColumnDef| {
        Expr::CompoundIdentifier(vec![alias.name.clone(), column.name.clone()])
    };
    alias.columns.iter().map(column).collect()
}

/// `(a, b) IN (query)` as a value: NULL where no row is equal and one may be.
fn found_value(row: &[Expr], subquery: &Query, negated: bool) -> Result<Expr, SqlError> {
    check_columns(subquery, row.len())?;
    let alias = looked_at(row.len());
    let found = equal(&columns_of(&alias), row)?;
    let text = "SELECT CASE WHEN bool_or(found) THEN true WHEN count(found) < count(*) THEN NULL ELSE false END \
                FROM (SELECT 1) AS a";
    let mut made = crate::parse::rewrite::expressions::query(text)
        .ok_or_else(|| SqlError::unexpected("no query"))?;
    let found = SelectItem::ExprWithAlias { expr: found, alias: Ident::new("found") };
    let mut rows = of_rows(subquery, alias, Expr::Value(Value::Null.into()), None);
    if let SetExpr::Select(select) = &mut *rows.body {
        select.projection = vec![found];
    }
    if let SetExpr::Select(select) = &mut *made.body {
        for from in &mut select.from {
            if let TableFactor::Derived { subquery, .. } = &mut from.relation {
                **subquery = rows.clone();
            }
        }
    }
    Ok(negated_if(Expr::Subquery(made), negated))
}

/// `SELECT value FROM (rows) WHERE condition`.
fn of_rows(rows: &Query, alias: TableAlias, value: Expr, condition: Option<Expr>) -> Query {
    let Some(mut made) = crate::parse::rewrite::expressions::query("SELECT 1 FROM (SELECT 1) AS a")
    else {
        unreachable!("a query that is one")
    };
    if let SetExpr::Select(select) = &mut *made.body {
        select.projection = vec![SelectItem::UnnamedExpr(value)];
        select.selection = condition;
        for from in &mut select.from {
            from.relation = TableFactor::Derived {
                lateral: false,
                subquery: Box::new(rows.clone()),
                alias: Some(alias.clone()),
                sample: None,
            };
        }
    }
    *made
}

/// Whether a query has the row. `NOT IN` is true where it is not equal to any, and nothing is unknown.
fn found_in(row: &[Expr], subquery: &Query, negated: bool) -> Result<Expr, SqlError> {
    check_columns(subquery, row.len())?;
    let alias = looked_at(row.len());
    let found = equal(&columns_of(&alias), row)?;
    let condition = if negated { Expr::IsNotFalse(Box::new(found)) } else { found };
    let one = Expr::Value(Value::Number("1".into(), false).into());
    let made = Box::new(of_rows(subquery, alias, one, Some(condition)));
    Ok(Expr::Exists { subquery: made, negated })
}
