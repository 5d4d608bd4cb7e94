//! How plans become what runs: as DataFusion does it, with the steps that are ours.

use crate::plan::gapfill::node::Planner as GapFillPlanner;
use crate::plan::kept_order;
use crate::plan::runs::node::Planner as RunPlanner;
use crate::types::runtime::{cancellation, memory};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner as _};
use std::sync::Arc;

/// Plans all that DataFusion does, gaps that are filled, and first rows of runs.
#[derive(Debug)]
pub struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        cancellation::check()?;
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![
            Arc::new(GapFillPlanner),
            Arc::new(RunPlanner),
            Arc::new(kept_order::Planner),
        ]);
        let planned = planner.create_physical_plan(plan, session).await;
        // Values of `VALUES` are evaluated here.
        memory::free_constants();
        planned
    }
}
