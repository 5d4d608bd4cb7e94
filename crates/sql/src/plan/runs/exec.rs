//! The step that runs: sorted rows in, the first ones of each run out.

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat, partition, take_record_batch};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    Distribution, LexOrdering, LexRequirement, OrderingRequirements, Partitioning, PhysicalExpr,
    PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PlanProperties,
};
use futures::StreamExt as _;
use std::fmt;
use std::sync::Arc;

/// Keeps the first rows of each run.
#[derive(Debug)]
pub struct FirstOfRunsExec {
    input: Arc<dyn ExecutionPlan>,
    order: Vec<PhysicalSortExpr>,
    key_count: usize,
    count: usize,
    required: OrderingRequirements,
    properties: Arc<PlanProperties>,
}

impl FirstOfRunsExec {
    /// Of rows that are sorted by `order`, and alike in the first `key_count` of it.
    ///
    /// # Errors
    /// When there is no order.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        order: Vec<PhysicalSortExpr>,
        key_count: usize,
        count: usize,
    ) -> Result<FirstOfRunsExec> {
        let Some(sorted) = LexOrdering::new(order.clone()) else {
            return internal_err!("runs are of rows alike in something");
        };
        let mut known = input.equivalence_properties().clone();
        known.reorder(sorted.clone())?;
        let properties = PlanProperties::new(
            known,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let required = OrderingRequirements::new(LexRequirement::from(sorted));
        let properties = Arc::new(properties);
        Ok(FirstOfRunsExec { input, order, key_count, count, required, properties })
    }
}

impl DisplayAs for FirstOfRunsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> =
            self.order.iter().take(self.key_count).map(|key| key.expr.to_string()).collect();
        write!(f, "FirstOfRunsExec: count={}, keys=[{}]", self.count, keys.join(", "))
    }
}

impl ExecutionPlan for FirstOfRunsExec {
    fn name(&self) -> &str {
        "FirstOfRunsExec"
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
        vec![Some(self.required.clone())]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        look: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for sort in &self.order {
            if look(&sort.expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.into_iter().next() else {
            return internal_err!("runs are of rows");
        };
        let order = self.order.clone();
        Ok(Arc::new(FirstOfRunsExec::new(input, order, self.key_count, self.count)?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let keys = self.order.iter().take(self.key_count).map(|key| key.expr.clone()).collect();
        let mut runs = Runs { keys, count: self.count, last: None };
        let input = self.input.execute(partition, context)?;
        let rows = input.map(move |batch| runs.firsts(&batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// Runs as they go by.
struct Runs {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    count: usize,
    /// What the last row was alike in, each of one row, and how many rows of its run were kept.
    last: Option<(Vec<ArrayRef>, usize)>,
}

impl Runs {
    /// The rows of a batch that are among the first of their runs.
    fn firsts(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_rows() == 0 {
            return Ok(batch.clone());
        }
        let arrays = |key: &Arc<dyn PhysicalExpr>| {
            key.evaluate(batch).and_then(|value| value.into_array(batch.num_rows()))
        };
        let keys = self.keys.iter().map(arrays).collect::<Result<Vec<ArrayRef>>>()?;
        let goes_on = match &self.last {
            Some((last, kept)) if are_alike(last, &keys)? => *kept,
            _ => 0,
        };
        let (mut taken, mut kept) = (Vec::new(), goes_on);
        for (nth, run) in partition(&keys)?.ranges().into_iter().enumerate() {
            kept = if nth == 0 { goes_on } else { 0 };
            let wanted = run.len().min(self.count - kept);
            let rows = run.start..run.start + wanted;
            taken.extend(rows.filter_map(|row| u32::try_from(row).ok()));
            kept += wanted;
        }
        let last = keys.iter().map(|key| key.slice(key.len() - 1, 1)).collect();
        self.last = Some((last, kept));
        match taken.len() == batch.num_rows() {
            true => Ok(batch.clone()),
            false if batch.num_columns() == 0 => Ok(batch.slice(0, taken.len())),
            false => Ok(take_record_batch(batch, &UInt32Array::from(taken))?),
        }
    }
}

/// Whether a row that was last is of the run that begins a batch.
fn are_alike(last: &[ArrayRef], keys: &[ArrayRef]) -> Result<bool> {
    let both = last.iter().zip(keys);
    let both = both.map(|(last, key)| concat(&[last, &key.slice(0, 1)]));
    let both = both.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(partition(&both)?.ranges().len() == 1)
}
