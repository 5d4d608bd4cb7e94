//! EXISTS, IN, ANY and ALL of a correlated subquery as aggregates of its rows.

use crate::plan::subqueries::decorrelation::domain::outside;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::functions_aggregate::bool_and_or::{bool_and, bool_or};
use datafusion::functions_aggregate::count::{count, count_all};
use datafusion::logical_expr::expr::SetQuantifier;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit, when,
};

/// Names that no statement can write.
const FOUND: &str = "\0found";
const VALUE: &str = "\0compared";
const ROWS: &str = "\0rows";
const KNOWN: &str = "\0known";

/// `EXISTS (query)`.
pub fn exists(rows: &LogicalPlan) -> Result<LogicalPlan> {
    let found = Expr::Column(Column::from_name(ROWS)).gt(lit(0_i64)).alias(FOUND);
    LogicalPlanBuilder::from(without_columns(rows).clone())
        .aggregate(Vec::<Expr>::new(), [count_all().alias(ROWS)])?
        .project([found])?
        .build()
}

/// A query without steps that do not change the number of its rows.
fn without_columns(rows: &LogicalPlan) -> &LogicalPlan {
    match rows {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => without_columns(&sort.input),
        other => other,
    }
}

/// `value IN (query)`.
pub fn is_in(value: Expr, rows: &LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    compared(value, Operator::Eq, SetQuantifier::Any, rows, schema)
}

/// `value operator ANY (query)` or `ALL`: NULL where no comparison decides and one is not known.
pub fn compared(
    value: Expr,
    op: Operator,
    quantifier: SetQuantifier,
    rows: &LogicalPlan,
    schema: &DFSchema,
) -> Result<LogicalPlan> {
    let column = rows.schema().columns().swap_remove(0);
    let compared = binary_expr(outside(value, schema)?, op, Expr::Column(column)).alias(VALUE);
    let column = |name: &str| Expr::Column(Column::from_name(name));
    let (found, decided) = match quantifier {
        SetQuantifier::Any => (bool_or(column(VALUE)), true),
        SetQuantifier::All => (bool_and(column(VALUE)), false),
    };
    let is_decided = match decided {
        true => column(FOUND),
        false => Expr::Not(Box::new(column(FOUND))),
    };
    let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
    let answer = when(is_decided, lit(decided))
        .when(column(KNOWN).lt(column(ROWS)), unknown)
        .otherwise(lit(!decided))?;
    LogicalPlanBuilder::from(without_columns(rows).clone())
        .project([compared])?
        .aggregate(
            Vec::<Expr>::new(),
            [found.alias(FOUND), count(column(VALUE)).alias(KNOWN), count_all().alias(ROWS)],
        )?
        .project([answer.alias("\0answer")])?
        .build()
}
