//! `(SELECT value FROM .. WHERE .. = outside ORDER BY .. LIMIT 1)`: the first of some rows about the row
//! outside. DataFusion knows no limit there, and believes an aggregate that it is one row:
//!
//! ```text
//! limit 1 ─ sort ─ rows       becomes       first_value(value ORDER BY ..) ─ rows
//! ```

use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::functions_aggregate::first_last::first_value;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::logical_plan::{FetchType, SkipType};
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, LogicalPlanBuilder, Subquery};
use std::sync::Arc;

/// A plan whose queries of one row, about rows outside, are aggregates.
///
/// # Errors
/// Returns errors of the planner.
pub fn as_aggregates(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_up(|node| {
        node.transform_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                Expr::ScalarSubquery(subquery) => changed(subquery),
                other => Ok(Transformed::no(other)),
            })
        })
    });
    Ok(changed?.data)
}

fn changed(subquery: Subquery) -> Result<Transformed<Expr>> {
    if subquery.outer_ref_columns.is_empty() {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    Ok(match aggregate(&subquery.subquery)? {
        Some(plan) => {
            let subquery = Subquery { subquery: Arc::new(plan), ..subquery };
            Transformed::yes(Expr::ScalarSubquery(subquery))
        }
        None => Transformed::no(Expr::ScalarSubquery(subquery)),
    })
}

/// The aggregate that a query of one row is; none of others.
pub fn aggregate(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Limit(limit) = plan else { return Ok(None) };
    if !is_one(limit)? {
        return Ok(None);
    }
    // What is shown, of what, in which order.
    let (shown, input, order) = match &*limit.input {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => (None, &sort.input, sort.expr.clone()),
        LogicalPlan::Projection(projection) => match (&*projection.input, &*projection.expr) {
            (LogicalPlan::Sort(sort), [shown]) if sort.fetch.is_none() => {
                (Some(shown.clone()), &sort.input, sort.expr.clone())
            }
            _ => (None, &limit.input, Vec::new()),
        },
        _ => (None, &limit.input, Vec::new()),
    };
    first(plan, shown, input, order).map(Some)
}

fn is_one(limit: &Limit) -> Result<bool> {
    let is_first = matches!(limit.get_skip_type()?, SkipType::Literal(0));
    Ok(is_first && matches!(limit.get_fetch_type()?, FetchType::Literal(Some(1))))
}

fn first(
    plan: &LogicalPlan,
    shown: Option<Expr>,
    input: &LogicalPlan,
    order: Vec<Sort>,
) -> Result<LogicalPlan> {
    let value = match shown {
        Some(shown) => shown.unalias(),
        None => Expr::Column(input.schema().columns().remove(0)),
    };
    let first = first_value(value, order);
    let name = plan.schema().field(0).name().clone();
    let built = LogicalPlanBuilder::from(input.clone()).aggregate(Vec::<Expr>::new(), [first])?;
    let made = Expr::Column(built.schema().columns().remove(0)).alias(name);
    built.project([made])?.build()
}
