//! `rank(value) WITHIN GROUP (ORDER BY column)` and its kin: the place that a row would have among those of a group,
//! by counting the rows that stand before it.

use crate::parse::rewrite::expressions::{arguments, is_named, query};
use crate::parse::rewrite::queries::subqueries::{both, either};
use crate::types::error::SqlError;
use crate::types::traversal::walk_mut;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, OrderByExpr, SelectItem, SetExpr, VisitorMut,
};
use std::ops::ControlFlow;

/// Stands for the conditions in the expressions below.
const BEFORE: &str = "rows before";
const UP_TO: &str = "rows up to it";
const FILTER: &str = "rows at all";
const COLUMN: &str = "column of the order";

/// A call as counts of rows; none if it is another one.
///
/// # Errors
/// `42883` for another number of values than of columns, `0A000` for `dense_rank` of several.
pub fn hypothetical(function: &Function) -> Result<Option<Expr>, SqlError> {
    let is = |name: &str| is_named(&function.name, name);
    let by = &function.within_group;
    if by.is_empty() || function.over.is_some() {
        return Ok(None);
    }
    let text = if is("rank") {
        format!("1 + count(*) FILTER (WHERE \"{BEFORE}\")")
    } else if is("dense_rank") {
        format!(
            "1 + count(DISTINCT \"{COLUMN}\") FILTER (WHERE \"{BEFORE}\") + \
             least(count(*) FILTER (WHERE \"{COLUMN}\" IS NULL AND \"{BEFORE}\"), 1)"
        )
    } else if is("percent_rank") {
        format!(
            "CASE WHEN count(*) FILTER (WHERE \"{FILTER}\") = 0 THEN 0.0::float8 ELSE \
             (count(*) FILTER (WHERE \"{BEFORE}\"))::float8 / (count(*) FILTER (WHERE \"{FILTER}\"))::float8 END"
        )
    } else if is("cume_dist") {
        format!(
            "(count(*) FILTER (WHERE \"{UP_TO}\") + 1)::float8 / (count(*) FILTER (WHERE \"{FILTER}\") + 1)::float8"
        )
    } else {
        return Ok(None);
    };
    let args = arguments(function).unwrap_or_default();
    if args.len() != by.len() {
        let words = format!("function {}: as many values as columns of the order", function.name);
        return Err(SqlError::new("42883", words));
    }
    if is("dense_rank") && 1 < by.len() {
        let words = "dense_rank(..) WITHIN GROUP of several columns is not known here";
        return Err(SqlError::unsupported(words));
    }
    let filter = function.filter.as_deref();
    let conditions = [
        (BEFORE, with_filter(before(&args, by, false)?, filter)),
        (UP_TO, with_filter(before(&args, by, true)?, filter)),
        (FILTER, filter.cloned().unwrap_or_else(yes)),
        (COLUMN, by[0].expr.clone()),
    ];
    let Some(mut made) = expression(&text) else {
        return Err(SqlError::unexpected("an expression that is none"));
    };
    let _: ControlFlow<()> = walk_mut(&mut made, &mut Placed(&conditions));
    let named = args.into_iter().filter(|arg| !matches!(arg, Expr::Value(_)));
    Ok(Some(named.fold(Expr::Nested(Box::new(made)), of_group)))
}

/// A value that names a direct argument outside of the counts, too: PostgreSQL lets it name keys of GROUP BY alone.
fn of_group(value: Expr, arg: &Expr) -> Expr {
    let nested = || Box::new(Expr::Nested(Box::new(arg.clone())));
    let condition = Expr::IsNotDistinctFrom(nested(), nested());
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result: value }],
        else_result: None,
    }
}

fn yes() -> Expr {
    Expr::Value(datafusion::sql::sqlparser::ast::Value::Boolean(true).into())
}

fn with_filter(condition: Expr, filter: Option<&Expr>) -> Expr {
    match filter {
        Some(filter) => both(condition, filter.clone()),
        None => condition,
    }
}

/// The expression of a text, which is ours.
fn expression(text: &str) -> Option<Expr> {
    let SetExpr::Select(select) = *query(&format!("SELECT {text}"))?.body else { return None };
    match select.projection.into_iter().next()? {
        SelectItem::UnnamedExpr(expr) => Some(expr),
        _ => None,
    }
}

/// Whether a row stands before the values, or is as they are.
fn before(values: &[&Expr], by: &[OrderByExpr], or_equal: bool) -> Result<Expr, SqlError> {
    let nested = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    let mut made: Option<Expr> = None;
    for (value, by) in values.iter().zip(by).rev() {
        let equal = Expr::IsNotDistinctFrom(nested(&by.expr), nested(value));
        let equal = Expr::Nested(Box::new(equal));
        let less = sorts_before(&by.expr, value, by);
        made = Some(match made {
            None if or_equal => either(less, equal),
            None => less,
            Some(rest) => either(less, both(equal, rest)),
        });
    }
    made.ok_or_else(|| SqlError::unexpected("an order of nothing"))
}

fn sorts_before(column: &Expr, value: &Expr, by: &OrderByExpr) -> Expr {
    let nested = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    let ascends = by.options.asc != Some(false);
    let nulls_first = by.options.nulls_first.unwrap_or(!ascends);
    let op = if ascends { BinaryOperator::Lt } else { BinaryOperator::Gt };
    let less = Expr::BinaryOp { left: nested(column), op, right: nested(value) };
    let (first, second) = if nulls_first { (column, value) } else { (value, column) };
    let nulls = both(Expr::IsNull(nested(first)), Expr::IsNotNull(nested(second)));
    either(less, nulls)
}

/// Puts conditions in the places of their names.
struct Placed<'a>(&'a [(&'a str, Expr)]);

impl VisitorMut for Placed<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && let Some((_, made)) = self.0.iter().find(|(one, _)| *one == name.value)
        {
            *expr = Expr::Nested(Box::new(made.clone()));
        }
        ControlFlow::Continue(())
    }
}
