//! Parameters in grouping sets. DataFusion replaces a parameter by its value under an alias, which a grouping set cannot
//! have, so the aggregate's input gets columns for such expressions:
//!
//! ```text
//! aggregate by ROLLUP (n, $1)   becomes   aggregate by ROLLUP (n, "$1") ─ projection of *, $1 AS "$1"
//! ```

use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

/// Computes expressions with parameters below the grouping sets that have them.
///
/// # Errors
/// Returns errors of the planner.
pub fn compute_below(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) if has_parameters(&aggregate) => {
            with_columns(aggregate).map(Transformed::yes)
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(changed?.data)
}

fn is_parameter(expr: &Expr) -> bool {
    expr.exists(|one| Ok(matches!(one, Expr::Placeholder(_)))).unwrap_or(false)
}

fn has_parameters(aggregate: &Aggregate) -> bool {
    let is_set = |one: &Expr| matches!(one, Expr::GroupingSet(_));
    aggregate.group_expr.iter().any(|one| is_set(one) && is_parameter(one))
}

fn with_columns(aggregate: Aggregate) -> Result<LogicalPlan> {
    let mut computed: Vec<Expr> = Vec::new();
    let mut column = |expr: Expr| match is_parameter(&expr) {
        true => {
            let name = expr.schema_name().to_string();
            let one = expr.alias(name.clone());
            if !computed.contains(&one) {
                computed.push(one);
            }
            Expr::Column(Column::from_name(name))
        }
        false => expr,
    };
    let mut columns = |all: Vec<Expr>| -> Vec<Expr> { all.into_iter().map(&mut column).collect() };
    let set = |one: Expr| match one {
        Expr::GroupingSet(GroupingSet::Rollup(all)) => {
            Expr::GroupingSet(GroupingSet::Rollup(columns(all)))
        }
        Expr::GroupingSet(GroupingSet::Cube(all)) => {
            Expr::GroupingSet(GroupingSet::Cube(columns(all)))
        }
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => Expr::GroupingSet(
            GroupingSet::GroupingSets(sets.into_iter().map(&mut columns).collect()),
        ),
        other => other,
    };
    let groups: Vec<Expr> = aggregate.group_expr.into_iter().map(set).collect();
    let input = Arc::unwrap_or_clone(aggregate.input);
    let all = input.schema().columns().into_iter().map(Expr::Column).chain(computed);
    let all: Vec<Expr> = all.collect();
    let input = LogicalPlanBuilder::from(input).project(all)?.build()?;
    Aggregate::try_new(Arc::new(input), groups, aggregate.aggr_expr).map(LogicalPlan::Aggregate)
}
