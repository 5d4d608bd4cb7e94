//! Steps that yield, and batches of few long rows. A step may write out the values of a batch, one row after the
//! other: views that share one text of a megabyte become a megabyte each. So batches are cut where their rows would
//! become too large.
//!
//! ```text
//! batch, 8,192 rows of 100 KB ─► 50 batches of 164 rows ─► sort keys, groups, messages to the client
//! ```

use crate::types::runtime::memory::{charge, copied_size, free_constants, reservation};
use crate::types::traversal::Traversal as _;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::expressions::{CaseExpr, CastExpr, Column, Literal};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
    replace_children_if_necessary,
};
use futures::{Stream, StreamExt as _, ready};
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Bytes of the rows of a batch, written out.
const BATCH_SIZE_MAX: usize = 16 << 20;
/// Constants of fewer bytes are written out for a whole batch.
const CONSTANT_SIZE_MIN: usize = 1 << 10;
/// Bytes that a window function takes for each row beside the row: its value, and where that goes.
const WINDOW_ROW_SIZE: usize = 64;
/// Rows of a batch.
const BATCH_LEN: usize = 8192;

/// A step that yields, and whose batches are cut: those that it makes of longer rows, and those that it is given
/// where it writes a long constant out for each row.
///
/// # Errors
/// Those of the plan.
pub fn bounded_step(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let rows_max = BATCH_SIZE_MAX / constants_size(&plan)?.max(1);
    let plan = match rows_max < BATCH_LEN {
        false => plan,
        true => {
            let children = plan.children().into_iter().cloned();
            let cut = Cut { rows_max: Some(rows_max.max(1)), ..Cut::default() };
            let cut = children.map(|child| {
                Arc::new(BoundedBatchesExec::new(child, cut.clone())) as Arc<dyn ExecutionPlan>
            });
            let cut = cut.collect();
            replace_children_if_necessary(plan, cut)?
        }
    };
    let plan = with_charged_input(plan)?;
    let (is_long, constants) = (makes_long_rows(&plan), constant_columns(&plan));
    let yields = plan.properties().scheduling_type == SchedulingType::Cooperative;
    if yields && !is_long {
        return Ok(plan);
    }
    let cut = Cut { rows_max: is_long.then_some(BATCH_LEN), constants, is_charged: false };
    Ok(Arc::new(BoundedBatchesExec::new(plan, cut)))
}

/// A window function over whole partitions keeps all its rows, and joins them, without counting them: they are charged
/// as it takes them.
fn with_charged_input(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.name() != "WindowAggExec" {
        return Ok(plan);
    }
    let charged = plan.children().into_iter().map(|child| {
        let cut = Cut { is_charged: true, ..Cut::default() };
        Arc::new(BoundedBatchesExec::new(child.clone(), cut)) as Arc<dyn ExecutionPlan>
    });
    let charged = charged.collect();
    replace_children_if_necessary(plan, charged)
}

/// Steps that make new batches of the rows that come.
const MAKING_BATCHES: &[&str] = &[
    "AggregateExec",
    "BoundedWindowAggExec",
    "SortExec",
    "SortPreservingMergeExec",
    "UnnestExec",
    "WindowAggExec",
];

/// Whether a step makes rows of others that may be longer.
fn makes_long_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_join = plan.children().len() == 2 && !plan.name().ends_with("UnionExec");
    let has_long = plan.schema().fields().iter().any(|field| is_long(field.data_type()));
    has_long
        && match plan.downcast_ref::<ProjectionExec>() {
            Some(projection) => !projection.expr().iter().all(|one| one.expr.is::<Column>()),
            None => is_join || MAKING_BATCHES.contains(&plan.name()),
        }
}

fn is_long(of: &DataType) -> bool {
    !(of.is_primitive() || matches!(of, DataType::Boolean | DataType::Null))
}

/// Columns of a projection that functions of constants make.
fn constant_columns(plan: &Arc<dyn ExecutionPlan>) -> Vec<usize> {
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return Vec::new() };
    let (all, schema) = (projection.expr().iter().enumerate(), plan.schema());
    let constant = all.filter(|(at, one)| {
        is_long(schema.field(*at).data_type())
            && !one.expr.is::<Literal>()
            && collect_columns(&one.expr).is_empty()
    });
    constant.map(|(at, _)| at).collect()
}

/// Bytes of the constants that a step writes out for each row.
fn constants_size(plan: &Arc<dyn ExecutionPlan>) -> Result<usize> {
    let mut size = 0usize;
    plan.apply_expressions(&mut |expr| {
        expr.apply(|node| {
            if let Some(literal) = node.downcast_ref::<Literal>() {
                size = size.saturating_add(written_size(literal.value()));
            }
            // Functions take a constant as it is.
            let goes_on = node.is::<CaseExpr>() || node.is::<CastExpr>();
            Ok(if goes_on { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Jump })
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(size)
}

/// Bytes that each further row takes of a constant.
fn written_size(value: &ScalarValue) -> usize {
    match value {
        ScalarValue::Utf8View(_) | ScalarValue::BinaryView(_) => 0,
        value => Some(value.size()).filter(|size| CONSTANT_SIZE_MIN < *size).unwrap_or(0),
    }
}

/// How batches are cut and charged.
#[derive(Clone, Debug, Default)]
struct Cut {
    /// Rows that they have at most, fewer where those are long; none where they stay as they are.
    rows_max: Option<usize>,
    /// Columns that were made of constants.
    constants: Vec<usize>,
    /// Whether all batches are charged until the last one is done with.
    is_charged: bool,
}

/// Yields, and cuts batches.
#[derive(Debug)]
struct BoundedBatchesExec {
    input: Arc<dyn ExecutionPlan>,
    cut: Cut,
    properties: Arc<PlanProperties>,
}

impl BoundedBatchesExec {
    fn new(input: Arc<dyn ExecutionPlan>, cut: Cut) -> BoundedBatchesExec {
        let properties = PlanProperties::clone(input.properties());
        let properties = Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative));
        BoundedBatchesExec { input, cut, properties }
    }
}

impl DisplayAs for BoundedBatchesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoundedBatchesExec")
    }
}

impl ExecutionPlan for BoundedBatchesExec {
    fn name(&self) -> &str {
        "BoundedBatchesExec"
    }

    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
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
            return internal_err!("batches of nothing");
        };
        Ok(Arc::new(BoundedBatchesExec::new(input, self.cut.clone())))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let (cut, ready) = (self.cut.clone(), VecDeque::new());
        let held = if cut.is_charged { reservation("window") } else { None };
        Ok(make_cooperative(Box::pin(BoundedBatches { input, cut, ready, held })))
    }
}

/// Batches as they come.
struct BoundedBatches {
    input: SendableRecordBatchStream,
    cut: Cut,
    /// Parts of the last batch.
    ready: VecDeque<RecordBatch>,
    /// Charges the batches so far.
    held: Option<MemoryReservation>,
}

impl Stream for BoundedBatches {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(batch) = this.ready.pop_front() {
            return Poll::Ready(Some(Ok(batch)));
        }
        let polled = this.input.poll_next_unpin(context);
        let Some(batch) = ready!(polled) else {
            free_constants();
            return Poll::Ready(None);
        };
        let charged = batch.and_then(|batch| {
            if let Some(held) = &this.held {
                held.try_grow(kept_rows_size(&batch))?;
            }
            charge_columns(batch, &this.cut.constants)
        });
        free_constants();
        let Some(rows_max) = this.cut.rows_max else { return Poll::Ready(Some(charged)) };
        Poll::Ready(match charged {
            Ok(batch) => {
                this.ready = cut(batch, rows_max);
                this.ready.pop_front().map(Ok)
            }
            error => Some(error),
        })
    }
}

impl RecordBatchStream for BoundedBatches {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// Bytes that a window function takes for the rows of a batch: those, and a copy of them.
fn kept_rows_size(batch: &RecordBatch) -> usize {
    let sizes = batch.columns().iter().map(|column| copied_size(column));
    let size = sizes.fold(0, usize::saturating_add);
    size.saturating_mul(2).saturating_add(batch.num_rows().saturating_mul(WINDOW_ROW_SIZE))
}

/// Charges columns that were made of constants, which are freed.
fn charge_columns(batch: RecordBatch, constants: &[usize]) -> Result<RecordBatch> {
    if constants.is_empty() {
        return Ok(batch);
    }
    let (schema, mut columns, _) = batch.into_parts();
    // Frees the originals of these copies before the copies are charged.
    free_constants();
    for at in constants {
        columns[*at] = charge("constants", columns[*at].clone(), &[])?;
    }
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// The rows of a batch, in batches of no more than so many rows, whose values are not too large together.
fn cut(batch: RecordBatch, rows_max: usize) -> VecDeque<RecordBatch> {
    let size = |batch: &RecordBatch| {
        let sizes = batch.columns().iter().map(|column| copied_size(column));
        sizes.fold(0, usize::saturating_add)
    };
    let is_large = BATCH_SIZE_MAX < size(&batch);
    if !is_large && batch.num_rows() <= rows_max {
        return VecDeque::from([batch]);
    }
    let (mut parts, mut start, mut total) = (VecDeque::new(), 0, 0usize);
    for row in 0..batch.num_rows() {
        let more = if is_large { size(&batch.slice(row, 1)) } else { 0 };
        let is_full = BATCH_SIZE_MAX < total.saturating_add(more) || rows_max <= row - start;
        if start < row && is_full {
            parts.push_back(batch.slice(start, row - start));
            (start, total) = (row, 0);
        }
        total = total.saturating_add(more);
    }
    parts.push_back(batch.slice(start, batch.num_rows() - start));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray};

    fn lengths(batch: RecordBatch, rows_max: usize) -> Vec<usize> {
        cut(batch, rows_max).iter().map(RecordBatch::num_rows).collect()
    }

    #[test]
    fn batches_are_cut_by_the_bytes_of_their_rows() {
        let long = "x".repeat(5 << 20);
        let mut texts = vec!["a"; 10];
        texts[3..8].fill(&long);
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10));
        let texts: ArrayRef = Arc::new(StringViewArray::from(texts));
        let batch =
            RecordBatch::try_from_iter([("a", numbers.clone()), ("b", texts.clone())]).unwrap();
        assert_eq!(lengths(batch.clone(), 8192), [6, 4]);
        assert_eq!(lengths(batch, 4), [4, 3, 3]);
        let short = RecordBatch::try_from_iter([("a", numbers)]).unwrap();
        assert_eq!(lengths(short.clone(), 8192), [10]);
        assert_eq!(lengths(short.clone(), 4), [4, 4, 2]);
        assert_eq!(lengths(short.slice(0, 0), 4), [0]);
        let huge: ArrayRef = Arc::new(StringViewArray::from(vec!["x".repeat(17 << 20); 2]));
        assert_eq!(lengths(RecordBatch::try_from_iter([("a", huge)]).unwrap(), 8192), [1, 1]);
    }
}
