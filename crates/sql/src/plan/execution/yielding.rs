//! Plans whose every step lets others work now and then: a join of everything with everything makes
//! batches for minutes from one batch of its input, and could be neither cancelled nor timed out. Batches of long
//! rows are cut on the way.

use crate::plan::execution::bounded_batches::bounded_step;
use crate::plan::execution::cancellable_joins::cancellable_join;
use crate::types::traversal::Traversal as _;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, replace_children_if_necessary};
use std::sync::Arc;

/// Removes a step that deals the rows of a recursive query out to several threads: its rows have an order that people
/// rely on, with LIMIT above all.
fn without_repartitions(plan: Arc<dyn ExecutionPlan>) -> Transformed<Arc<dyn ExecutionPlan>> {
    let is_dealt = plan.downcast_ref::<RepartitionExec>().is_some_and(|step| {
        matches!(step.partitioning(), Partitioning::RoundRobinBatch(_))
            && is_recursive(step.input().as_ref())
    });
    match plan.children().first() {
        Some(input) if is_dealt => Transformed::yes(Arc::clone(input)),
        _ => Transformed::no(plan),
    }
}

/// Aggregates whose results have the order of their rows.
const ORDERED: &[&str] = &["array_agg", "string_agg", "first_value", "last_value"];

/// Removes steps that deal the rows of such an aggregate out to several threads.
fn in_order(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let is_ordered = plan
        .downcast_ref::<AggregateExec>()
        .is_some_and(|step| step.aggr_expr().iter().any(|one| ORDERED.contains(&one.fun().name())));
    match plan.children().as_slice() {
        [input] if is_ordered => {
            let input = not_dealt(Arc::clone(input))?;
            Ok(Transformed::yes(replace_children_if_necessary(plan, vec![input])?))
        }
        _ => Ok(Transformed::no(plan)),
    }
}

fn not_dealt(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(step) = plan.downcast_ref::<RepartitionExec>()
        && matches!(step.partitioning(), Partitioning::RoundRobinBatch(_))
    {
        return not_dealt(Arc::clone(step.input()));
    }
    match plan.children().as_slice() {
        [input] if plan.is::<ProjectionExec>() || plan.is::<FilterExec>() => {
            let input = not_dealt(Arc::clone(input))?;
            replace_children_if_necessary(plan, vec![input])
        }
        _ => Ok(plan),
    }
}

fn is_recursive(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<RecursiveQueryExec>()
        || plan.children().into_iter().any(|input| is_recursive(input.as_ref()))
}

/// The last step of optimising.
#[derive(Debug)]
pub struct EveryStepYields;

impl PhysicalOptimizerRule for EveryStepYields {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_down(|plan| Ok(without_repartitions(plan)))?.data;
        let plan = plan.transform_down(in_order)?.data;
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
