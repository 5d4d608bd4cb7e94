//! Rows that are made on a thread that may block, as DataFusion's plans read them.
//!
//! ```text
//! Source::give ─► batches of rows ─► a channel of few ─► DataFusion: who does not read stops who makes
//! ```

use crate::tables::metrics::rows::Rows;
use crate::tables::metrics::tables::Shows;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use std::fmt::Debug;
use std::sync::Arc;

/// Batches that wait for who reads them.
const BATCHES_WAITING: usize = 2;

/// Something that makes rows. A plan may be run more than once: each run has a source of its own.
pub trait Source: Clone + Debug + Send + Sync + 'static {
    /// Makes all rows; `take` gets batches that are full and says whether more are wanted.
    ///
    /// # Errors
    /// What stops the statement.
    fn give(self, rows: &mut Rows, take: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()>;
}

/// A plan that reads some of a source's columns: those at `projection`, or all.
///
/// # Errors
/// When there are no such columns.
pub fn plan(
    source: impl Source,
    all: &[Shows],
    schema: &SchemaRef,
    projection: Option<&Vec<usize>>,
    limit: Option<usize>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let wanted = projection.cloned().unwrap_or_else(|| (0..all.len()).collect());
    let schema = Arc::new(schema.project(&wanted)?);
    let columns = wanted.iter().map(|at| all[*at].clone()).collect();
    let scan = Scan { source, columns, schema: schema.clone() };
    let exec = StreamingTableExec::try_new(schema, vec![Arc::new(scan)], None, [], false, limit)?;
    Ok(Arc::new(exec))
}

/// One reading.
#[derive(Debug)]
struct Scan<S> {
    source: S,
    columns: Vec<Shows>,
    schema: SchemaRef,
}

impl<S: Source> PartitionStream for Scan<S> {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch_len = context.session_config().batch_size();
        let mut builder = RecordBatchReceiverStream::builder(self.schema.clone(), BATCHES_WAITING);
        let sender = builder.tx();
        let mut rows = Rows::new(&self.columns, self.schema.clone(), batch_len);
        let source = self.source.clone();
        builder.spawn_blocking(move || {
            // Nobody hears when whoever asked has gone.
            let mut take = |batch| sender.blocking_send(Ok(batch)).is_ok();
            source.give(&mut rows, &mut take)?;
            if let Some(batch) = rows.finish()? {
                take(batch);
            }
            Ok(())
        });
        builder.build()
    }
}
