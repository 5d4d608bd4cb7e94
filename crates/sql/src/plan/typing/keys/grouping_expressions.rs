//! Computed values in grouping sets. DataFusion replaces a parameter by its value, and a constant expression by its
//! result, under an alias, which a grouping set cannot have. So the aggregate's input gets columns for such expressions:
//!
//! ```text
//! aggregate by ROLLUP (n, $1)   becomes   aggregate by ROLLUP (n, "$1") ─ projection of *, $1 AS "$1"
//! ```

use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

/// Computes expressions below the grouping sets that have them.
///
/// # Errors
/// Returns errors of the planner.
pub fn compute_below(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_plans_up(|node| match node {
        LogicalPlan::Aggregate(aggregate) if has_computed(&aggregate) => {
            with_columns(aggregate).map(Transformed::yes)
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(changed?.data)
}

/// Whether an expression is neither a column nor a constant.
fn is_computed(expr: &Expr) -> bool {
    !matches!(expr, Expr::Column(_) | Expr::Literal(..))
}

fn has_computed(aggregate: &Aggregate) -> bool {
    let is_one = |one: &Expr| match one {
        Expr::GroupingSet(sets) => sets.distinct_expr().into_iter().any(is_computed),
        _ => false,
    };
    aggregate.group_expr.iter().any(is_one)
}

fn with_columns(aggregate: Aggregate) -> Result<LogicalPlan> {
    let mut computed: Vec<Expr> = Vec::new();
    let mut column = |expr: Expr| match is_computed(&expr) {
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
    let aggregates = aggregate.aggr_expr.into_iter().map(|one| name_arguments(one, input.schema()));
    let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
    Aggregate::try_new(Arc::new(input), groups, aggregates).map(LogicalPlan::Aggregate)
}

/// `grouping(x)` names the column that `x` has become.
fn name_arguments(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let changed = expr.transform_up(|one| match one {
        Expr::AggregateFunction(mut called) if called.func.name() == "grouping" => {
            for arg in called.params.args.iter_mut().filter(|arg| is_computed(arg)) {
                let column = Column::from_name(arg.schema_name().to_string());
                if schema.has_column(&column) {
                    *arg = Expr::Column(column);
                }
            }
            Ok(Transformed::yes(Expr::AggregateFunction(called)))
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(changed?.data)
}
