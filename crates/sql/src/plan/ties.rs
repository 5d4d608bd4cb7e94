//! `FETCH FIRST n ROWS WITH TIES`: the rows that are as the last one in the order, too.
//!
//! ```text
//! limit n with ties ─ sort      becomes      sort ─ filter rank <= n ─ rank in that order
//! ```

use crate::functions::ties_marker::WITH_TIES;
use crate::types::error::SqlError;
use crate::types::traversal::PlanTraversal as _;
use datafusion::common::tree_node::{Transformed, TransformedResult as _};
use datafusion::common::{Column, DataFusionError, Result, ScalarValue};
use datafusion::functions_window::rank::rank;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt as _, Limit, LogicalPlan, LogicalPlanBuilder, Sort, lit,
};
use std::sync::Arc;

const RANK: &str = "\0rank";
const NUMBER: &str = "\0number";

/// A plan whose limits with ties are conditions.
///
/// # Errors
/// When a limit is not written as a number.
pub fn with_ties(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_plans_up(|node| match node {
        LogicalPlan::Limit(limit) => Ok(match count_of(&limit) {
            Some(count) => Transformed::yes(tied(&limit, count)?),
            None => Transformed::no(LogicalPlan::Limit(limit)),
        }),
        other => Ok(Transformed::no(other)),
    });
    changed.data()
}

fn count_of(limit: &Limit) -> Option<&Expr> {
    match limit.fetch.as_deref()? {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == WITH_TIES => {
            args.first()
        }
        _ => None,
    }
}

fn number(expr: &Expr) -> Result<i64> {
    let value = match expr {
        Expr::Literal(value, _) => value.cast_to(&datafusion::arrow::datatypes::DataType::Int64)?,
        Expr::Cast(cast) => return number(&cast.expr),
        _ => ScalarValue::Null,
    };
    match value {
        ScalarValue::Int64(Some(count)) if 0 <= count => Ok(count),
        ScalarValue::Int64(Some(_)) => {
            Err(refused(SqlError::new("2201W", "LIMIT must not be negative")))
        }
        _ => Err(refused(SqlError::unsupported("WITH TIES takes a number that is written down"))),
    }
}

fn refused(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn tied(limit: &Limit, count: &Expr) -> Result<LogicalPlan> {
    let count = number(count)?;
    let skip = limit.skip.as_deref().map(number).transpose()?.unwrap_or_default();
    tied_below(&limit.input, skip, skip.saturating_add(count))
}

/// The rows below projections, which stay above.
fn tied_below(plan: &LogicalPlan, skip: i64, last: i64) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let input = tied_below(&projection.input, skip, last)?;
            plan.with_new_exprs(plan.expressions(), vec![input])
        }
        LogicalPlan::Sort(Sort { expr: order, input, .. }) => {
            let column = |name: &str| Expr::Column(Column::from_name(name));
            let ranked = rank().order_by(order.clone()).build()?.alias(RANK);
            let numbered = row_number().order_by(order.clone()).build()?.alias(NUMBER);
            let is_meant = column(NUMBER).gt(lit(skip)).and(column(RANK).lt_eq(lit(last)));
            let shown = input.schema().columns().into_iter().map(Expr::Column);
            LogicalPlanBuilder::from(Arc::clone(input))
                .window([ranked, numbered])?
                .filter(is_meant)?
                .project(shown)?
                .sort(order.clone())?
                .build()
        }
        _ => Err(refused(SqlError::unsupported("WITH TIES of such a query is not known here"))),
    }
}
