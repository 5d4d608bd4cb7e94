//! The first rows of each run of alike ones: `SELECT DISTINCT ON (host) .. ORDER BY host, time DESC`, and
//! what `plan::subqueries::newest` makes of `LATERAL (.. ORDER BY .. LIMIT n)`.
//!
//! ```text
//! rows sorted by key, then by what is first     host  time          count 1
//!                                               a     12:02  ─────► a run begins, kept
//!                                               a     12:01         left out
//!                                               b     12:02  ─────► kept
//! ```
//! DataFusion has an aggregate for each column there, or a number for each row, which it makes for
//! each key by itself; with ten thousand keys that is most of the time of a statement.

pub(crate) mod exec;
pub(crate) mod node;

use crate::plan::typing::keys::equal_groups::distinct_on_keys;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchemaRef, Result};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{
    Distinct, DistinctOn, Expr, LogicalPlan, LogicalPlanBuilder, Projection,
};
use std::sync::Arc;

use crate::plan::runs::node::FirstOfRuns;

/// Columns of no statement's.
const ORDER: &str = "\0order";

/// A plan whose `DISTINCT ON` takes the first row of each run.
///
/// # Errors
/// Returns errors of the planner.
pub fn distinct_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_plans_up(|node| match node {
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            distinct_on_keys(&mut on);
            Ok(Transformed::yes(first_of_each(on)?))
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(changed?.data)
}

fn first_of_each(on: DistinctOn) -> Result<LogicalPlan> {
    let DistinctOn { on_expr, select_expr, sort_expr, input, schema } = on;
    if on_expr.iter().all(is_constant) {
        let order = sort_expr.into_iter().flatten().filter(|sort| !is_constant(&sort.expr));
        return first_of_all(input, select_expr, order.collect(), schema);
    }
    let key_count = on_expr.len();
    let order = match &sort_expr {
        // The planner has seen to it that it begins with what is distinct.
        Some(order) => order.clone(),
        None => on_expr.into_iter().map(|expr| Sort::new(expr, true, false)).collect(),
    };
    let firsts = FirstOfRuns::new(Arc::unwrap_or_clone(input), order, key_count, 1).into_plan();
    match sort_expr {
        Some(order) => sorted(firsts, select_expr, order, schema),
        None => {
            let made = Projection::try_new_with_schema(select_expr, Arc::new(firsts), schema)?;
            Ok(LogicalPlan::Projection(made))
        }
    }
}

/// Whether an expression is the same for all rows.
fn is_constant(expr: &Expr) -> bool {
    let asks_outside = |expr: &Expr| {
        let is_outer =
            matches!(expr, Expr::ScalarSubquery(query) if !query.outer_ref_columns.is_empty());
        Ok(is_outer || matches!(expr, Expr::Exists(_) | Expr::InSubquery(_)))
    };
    expr.column_refs().is_empty()
        && !expr.is_volatile()
        && !expr.contains_outer()
        && !expr.exists(asks_outside).unwrap_or(true)
}

/// The first row, where all are alike.
fn first_of_all(
    input: Arc<LogicalPlan>,
    selected: Vec<Expr>,
    order: Vec<Sort>,
    schema: DFSchemaRef,
) -> Result<LogicalPlan> {
    let mut rows = LogicalPlanBuilder::from(input);
    if !order.is_empty() {
        rows = rows.sort(order)?;
    }
    let first = Arc::new(rows.limit(0, Some(1))?.build()?);
    Projection::try_new_with_schema(selected, first, schema).map(LogicalPlan::Projection)
}

/// What is selected of rows, in their order. What is computed may be by several threads, so the order
/// is asked for behind that.
fn sorted(
    rows: LogicalPlan,
    selected: Vec<Expr>,
    order: Vec<Sort>,
    schema: DFSchemaRef,
) -> Result<LogicalPlan> {
    let name = |nth: usize| format!("{ORDER}{nth}");
    let sorts = order.iter().enumerate().map(|(nth, sort)| sort.expr.clone().alias(name(nth)));
    let (shown, all) = (selected.len(), selected.into_iter().chain(sorts));
    let made = LogicalPlanBuilder::from(rows).project(all)?;
    let columns = made.schema().columns();
    let order = order
        .iter()
        .enumerate()
        .map(|(nth, sort)| sort.with_expr(Expr::Column(Column::from_name(name(nth)))));
    let input = made.sort(order)?.build()?;
    let columns = columns.into_iter().take(shown).map(Expr::Column).collect();
    Projection::try_new_with_schema(columns, Arc::new(input), schema).map(LogicalPlan::Projection)
}
