//! Plans that do one thing at a time. A statement in `pg_sleep` leaves its place among the queries to others, which
//! it may only if nothing else of it goes on meanwhile.

use crate::types::traversal::Traversal as _;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PhysicalExpr,
    PlanProperties,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use std::fmt;
use std::sync::Arc;

/// Whether no step of a plan has several parts, which would run side by side.
pub fn is_serial(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.output_partitioning().partition_count() == 1 && plan.children().into_iter().all(is_serial)
}

/// Whether a plan calls functions that wait.
pub fn waits(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.name() == "AsyncFuncExec" || plan.children().into_iter().any(waits)
}

/// The same plan with its unions one after the other.
///
/// # Errors
/// Those of the plan.
fn with_serial_unions(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        Ok(match node.is::<UnionExec>() {
            true => {
                let inputs = node.children().into_iter().cloned().collect();
                Transformed::yes(Arc::new(SerialUnionExec::new(node.schema(), inputs)) as _)
            }
            false => Transformed::no(node),
        })
    })
    .data()
}

/// The first step of optimising: the branches of a union come one after the other, in the order in which they are
/// written. Rows of `VALUES` with queries are such branches, and each has its place.
#[derive(Debug)]
pub struct SerialUnions;

impl PhysicalOptimizerRule for SerialUnions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        with_serial_unions(plan)
    }

    fn name(&self) -> &str {
        "serial_unions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The rows of several plans, one plan after the other.
#[derive(Debug)]
struct SerialUnionExec {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl SerialUnionExec {
    fn new(schema: SchemaRef, inputs: Vec<Arc<dyn ExecutionPlan>>) -> SerialUnionExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        SerialUnionExec { inputs, properties: Arc::new(properties) }
    }
}

impl DisplayAs for SerialUnionExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SerialUnionExec")
    }
}

impl ExecutionPlan for SerialUnionExec {
    fn name(&self) -> &str {
        "SerialUnionExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() {
            return internal_err!("a union of nothing");
        }
        Ok(Arc::new(SerialUnionExec::new(self.schema(), children)))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let parts = self.inputs.iter().flat_map(|input| {
            let count = input.output_partitioning().partition_count();
            (0..count).map(|at| (input.clone(), at))
        });
        let parts: Vec<_> = parts.collect();
        let (schema, own) = (self.schema(), self.schema());
        // A part is not begun before the one before it has ended.
        let rows = stream::iter(parts)
            .map(move |(input, at)| input.execute(at, context.clone()))
            .try_flatten()
            .map(move |batch| {
                let batch = batch?;
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let columns = batch.columns().to_vec();
                Ok(RecordBatch::try_new_with_options(own.clone(), columns, &options)?)
            });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
