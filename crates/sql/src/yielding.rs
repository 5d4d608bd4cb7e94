//! Plans whose every step lets others work now and then: a join of everything with everything makes
//! batches for minutes from one batch of its input, and could be neither cancelled nor timed out.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::SchedulingType;
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
        let wrapped = plan.transform_up(|plan| {
            let is_done = plan.properties().scheduling_type == SchedulingType::Cooperative;
            Ok(match is_done {
                true => Transformed::no(plan),
                false => Transformed::yes(Arc::new(CooperativeExec::new(plan)) as _),
            })
        });
        Ok(wrapped?.data)
    }

    fn name(&self) -> &str {
        "every_step_yields"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
