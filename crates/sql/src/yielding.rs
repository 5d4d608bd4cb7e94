//! Plans whose every step lets others work now and then: a join of everything with everything makes
//! batches for minutes from one batch of its input, and could be neither cancelled nor timed out. Batches of long
//! rows are cut on the way.

use crate::bounded_batches::bounded_step;
use crate::cancellable_joins::cancellable_join;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// The last step of optimising.
#[derive(Debug)]
pub struct EveryStepYields;

impl PhysicalOptimizerRule for EveryStepYields {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wrapped =
            plan.transform_up(|plan| Ok(Transformed::yes(bounded_step(cancellable_join(plan)?)?)));
        Ok(wrapped?.data)
    }

    fn name(&self) -> &str {
        "every_step_yields"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
