//! The step that runs: sorted rows in, the same and those that are missing out.

use crate::plan::gapfill::buckets::Buckets;
use crate::plan::gapfill::stream::{Fill, Filler, Most};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexRequirement, OrderingRequirements, Partitioning,
    PhysicalExpr, PhysicalSortRequirement,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt as _, stream};
use std::fmt;
use std::sync::Arc;

/// Fills gaps between rows.
#[derive(Debug)]
pub struct GapFillExec {
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    fills: Vec<Fill>,
    buckets: Buckets,
    order: OrderingRequirements,
    properties: Arc<PlanProperties>,
}

impl GapFillExec {
    /// Of rows whose columns are those of `schema`.
    ///
    /// # Errors
    /// When none of them is a bucket.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        schema: SchemaRef,
        fills: Vec<Fill>,
        buckets: Buckets,
    ) -> Result<GapFillExec> {
        let of = |wanted: Fill| {
            let all = fills.iter().enumerate();
            all.filter(move |(_, fill)| **fill == wanted).map(|(at, _)| at)
        };
        let options = SortOptions { descending: false, nulls_first: false };
        let sorted = of(Fill::Group).chain(of(Fill::Bucket)).map(|at| {
            let column = Arc::new(Column::new(input.schema().field(at).name(), at));
            PhysicalSortRequirement::new(column, Some(options))
        });
        let Some(sorted) = LexRequirement::new(sorted) else {
            return internal_err!("rows are in no buckets");
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (order, properties) = (OrderingRequirements::new(sorted), Arc::new(properties));
        Ok(GapFillExec { input, schema, fills, buckets, order, properties })
    }
}

impl DisplayAs for GapFillExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GapFillExec: {:?}", self.buckets)
    }
}

impl ExecutionPlan for GapFillExec {
    fn name(&self) -> &str {
        "GapFillExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(self.order.clone())]
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
        let Some(input) = children.into_iter().next() else {
            return internal_err!("gaps are filled between rows of something");
        };
        let (schema, fills) = (self.schema.clone(), self.fills.clone());
        Ok(Arc::new(GapFillExec::new(input, schema, fills, self.buckets)?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let len_max = context.session_config().batch_size().max(1);
        let schema = self.schema.clone();
        let memory = MemoryConsumer::new(self.name()).register(context.memory_pool());
        let most = Most { len: len_max, memory };
        let filler = Filler::new(schema.clone(), self.fills.clone(), self.buckets, most)?;
        let begun = Running { input: self.input.execute(partition, context)?, filler };
        let rows = stream::try_unfold(begun, |mut running| async move {
            Ok(running.next().await?.map(|batch| (batch, running)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

struct Running {
    input: SendableRecordBatchStream,
    filler: Filler,
}

impl Running {
    async fn next(&mut self) -> Result<Option<datafusion::arrow::array::RecordBatch>> {
        loop {
            if let Some(batch) = self.filler.next()? {
                return Ok(Some(batch));
            }
            match self.input.next().await {
                Some(rows) => self.filler.take(&rows?)?,
                None => return self.filler.finish(),
            }
        }
    }
}
