//! Refuses volatile expressions, such as `random()`, at places where DataFusion evaluates them twice for one row. The
//! decision "Wrong answers of DataFusion" lists them.

use crate::error::SqlError;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

const HINT: &str = "Compute the value in a subquery in FROM first.";

/// Checks a plan.
///
/// # Errors
/// `0A000` for a volatile operand of BETWEEN or COALESCE (apache/datafusion#25457, #25477), and for a filter on a
/// volatile key of GROUP BY (#25415).
pub fn check_volatile(plan: &LogicalPlan) -> Result<(), SqlError> {
    let mut refused = None;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Some(place) = evaluated_twice(expr) {
                    refused = Some(format!("a volatile function as the operand of {place}"));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        if let LogicalPlan::Filter(filter) = node
            && has_volatile_key(&filter.input)
        {
            refused = Some("a condition on a volatile function in GROUP BY".into());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    match refused {
        Some(what) => {
            Err(SqlError::unsupported(format!("{what} is not supported")).with_hint(HINT))
        }
        None => Ok(()),
    }
}

fn evaluated_twice(expr: &Expr) -> Option<&'static str> {
    match expr {
        Expr::Between(between) => between.expr.is_volatile().then_some("BETWEEN"),
        Expr::ScalarFunction(call) if call.func.name() == "coalesce" => {
            let (_, tested) = call.args.split_last()?;
            tested.iter().any(Expr::is_volatile).then_some("COALESCE")
        }
        _ => None,
    }
}

/// Whether the rows of a plan are groups by a volatile key.
fn has_volatile_key(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.iter().any(Expr::is_volatile),
        LogicalPlan::Projection(projection) => has_volatile_key(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_volatile_key(&alias.input),
        LogicalPlan::Filter(filter) => has_volatile_key(&filter.input),
        LogicalPlan::Sort(sort) => has_volatile_key(&sort.input),
        _ => false,
    }
}
