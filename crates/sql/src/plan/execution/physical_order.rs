//! The order of a logical step as expressions of a physical plan.

use datafusion::arrow::compute::SortOptions;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_planner::PhysicalPlanner;

/// Plans the expressions of an order over rows of a schema.
///
/// # Errors
/// Errors of planning an expression.
pub fn plan_order(
    planner: &dyn PhysicalPlanner,
    order: &[Sort],
    schema: &DFSchema,
    session: &dyn Session,
    context: &PhysicalPlanningContext,
) -> Result<Vec<PhysicalSortExpr>> {
    let plan = |sort: &Sort| {
        let expr = planner.create_physical_expr(&sort.expr, schema, session, context)?;
        let options = SortOptions { descending: !sort.asc, nulls_first: sort.nulls_first };
        Ok(PhysicalSortExpr::new(expr, options))
    };
    order.iter().map(plan).collect()
}
