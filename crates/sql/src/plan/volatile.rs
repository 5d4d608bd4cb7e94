//! Refuses volatile expressions, such as `random()`, at places where DataFusion evaluates them twice for one row. The
//! decision "Wrong answers of DataFusion" lists them.

use crate::types::error::SqlError;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, LogicalPlan, SubqueryAlias};

const HINT: &str = "Compute the value in a subquery in FROM first.";

/// Checks a plan.
///
/// # Errors
/// `0A000` for a volatile operand of BETWEEN or COALESCE (apache/datafusion#25457, #25477), and for a filter on a
/// volatile key of GROUP BY (#25415), and for a query of WITH that is used twice, which DataFusion runs twice.
pub fn check_volatile(plan: &LogicalPlan) -> Result<(), SqlError> {
    let mut refused = None;
    let mut queries: Vec<SubqueryAlias> = Vec::new();
    plan.visit_plans(|node| {
        if let LogicalPlan::SubqueryAlias(query) = node
            && has_volatile(&query.input)?
        {
            if queries.contains(query) {
                refused = Some("a volatile function in a query of WITH that is used twice".into());
            }
            queries.push(query.clone());
        }
        node.visit_expressions(|expr| {
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

/// Returns true for a query that calls a volatile function. Returns false for an alias of another query.
fn has_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut is_found = false;
    if matches!(plan, LogicalPlan::SubqueryAlias(_)) {
        return Ok(false);
    }
    plan.visit_plans(|node| {
        is_found |= node.expressions().iter().any(Expr::is_volatile);
        Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_found)
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
