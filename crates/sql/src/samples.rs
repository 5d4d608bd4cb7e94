//! The table of all samples: a row for each.
//!
//! ```text
//! conditions ─► matchers, times ─► Store::select ─► series by series, on a thread that may block
//!   ─► batches of rows ─► a channel of few ─► DataFusion: who does not read stops who reads the store
//! ```

use crate::filters::Asked;
use crate::operators::jsonb_field;
use crate::rows::Rows;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{SelectLimits, Selection, Store};

/// Batches that wait for who reads them.
const BATCHES_WAITING: usize = 2;
/// The zone of times: they are instants, shown in UTC.
pub const ZONE: &str = "+00:00";

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The whole sample as a line of exposition text.
    Sample,
    /// When.
    Time,
    /// The metric's name.
    Name,
    /// What.
    Value,
    /// All other labels.
    Labels,
}

/// Which names the columns have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// `time`, `name`: pg_prometheus'.
    Classic,
    /// `ts`, `metric`: pg_prometheus_cx'.
    Composite,
}

impl Column {
    const ALL: [Column; 5] =
        [Column::Sample, Column::Time, Column::Name, Column::Value, Column::Labels];

    fn name(self, vocabulary: Vocabulary) -> &'static str {
        match (self, vocabulary) {
            (Column::Sample, _) => "sample",
            (Column::Time, Vocabulary::Classic) => "time",
            (Column::Time, Vocabulary::Composite) => "ts",
            (Column::Name, Vocabulary::Classic) => "name",
            (Column::Name, Vocabulary::Composite) => "metric",
            (Column::Value, _) => "value",
            (Column::Labels, _) => "labels",
        }
    }

    /// Whether it has that name in either vocabulary.
    pub fn is_named(self, name: &str) -> bool {
        [Vocabulary::Classic, Vocabulary::Composite].iter().any(|one| self.name(*one) == name)
    }

    /// It as a column of a table.
    pub fn field(self, vocabulary: Vocabulary) -> Field {
        let name = self.name(vocabulary);
        let micros = DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
        match self {
            Column::Sample | Column::Name => Field::new(name, DataType::Utf8View, false),
            Column::Time => Field::new(name, micros, false),
            Column::Value => Field::new(name, DataType::Float64, false),
            Column::Labels => jsonb_field(name, false),
        }
    }
}

/// What reading may cost.
#[derive(Clone, Debug)]
pub struct ReadLimits {
    /// Series of one table in one statement.
    pub series_max: usize,
    /// How long a statement reads.
    pub timeout: Duration,
}

/// The table.
pub struct Samples {
    store: Arc<Store>,
    limits: ReadLimits,
    schema: SchemaRef,
}

impl std::fmt::Debug for Samples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Samples")
    }
}

impl Samples {
    /// The samples of a store, their columns named so.
    pub fn new(store: Arc<Store>, limits: ReadLimits, vocabulary: Vocabulary) -> Samples {
        let fields: Vec<Field> = Column::ALL.iter().map(|one| one.field(vocabulary)).collect();
        Samples { store, limits, schema: Arc::new(Schema::new(fields)) }
    }
}

#[async_trait::async_trait]
impl TableProvider for Samples {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match Asked::default().narrow(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..Column::ALL.len()).collect();
        let wanted = projection.unwrap_or(&all);
        let schema = Arc::new(self.schema.project(wanted)?);
        let scan = Scan {
            store: self.store.clone(),
            asked: Asked::of(filters),
            columns: wanted.iter().map(|at| Column::ALL[*at]).collect(),
            schema: schema.clone(),
            limits: self.limits.clone(),
        };
        let exec =
            StreamingTableExec::try_new(schema, vec![Arc::new(scan)], None, [], false, limit)?;
        Ok(Arc::new(exec))
    }
}

/// One reading of the table.
struct Scan {
    store: Arc<Store>,
    asked: Asked,
    columns: Vec<Column>,
    schema: SchemaRef,
    limits: ReadLimits,
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scan({:?}, {:?})", self.asked, self.columns)
    }
}

impl PartitionStream for Scan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch_len = context.session_config().batch_size();
        let mut builder = RecordBatchReceiverStream::builder(self.schema.clone(), BATCHES_WAITING);
        let sender = builder.tx();
        let reading = Reading {
            store: self.store.clone(),
            asked: self.asked.clone(),
            limits: SelectLimits {
                series_max: self.limits.series_max,
                deadline: Some(Instant::now() + self.limits.timeout),
                cost_max: u64::MAX,
            },
            rows: Rows::new(&self.columns, self.schema.clone(), batch_len),
        };
        builder.spawn_blocking(move || {
            // Nobody hears when whoever asked has gone.
            reading.read(&mut |batch| sender.blocking_send(Ok(batch)).is_ok())
        });
        builder.build()
    }
}

/// A reading on its way.
struct Reading {
    store: Arc<Store>,
    asked: Asked,
    limits: SelectLimits,
    rows: Rows,
}

impl Reading {
    /// Hands over batch by batch until `take` says no.
    fn read(mut self, take: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        if self.asked.range.is_empty() {
            return Ok(());
        }
        let sets = [self.asked.matchers.clone()];
        let questions = self.store.strict();
        let selection =
            questions.select(&sets, self.asked.range, &self.limits).map_err(external)?;
        let mut start = 0;
        while start < selection.len() {
            let end = (start + selection.batch_len().max(1)).min(selection.len());
            if !self.read_some(&selection, start..end, take)? {
                return Ok(());
            }
            start = end;
        }
        if let Some(batch) = self.rows.finish()? {
            take(batch);
        }
        Ok(())
    }

    fn read_some(
        &mut self,
        selection: &Selection,
        range: std::ops::Range<usize>,
        take: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<bool> {
        let labels = selection.labels_of(range.clone()).map_err(external)?;
        let (rows, mut failed, mut is_wanted) = (&mut self.rows, None, true);
        let read = selection.read(range.clone(), &mut |idx, times, values| {
            if failed.is_some() || !is_wanted || times.is_empty() {
                return;
            }
            let pushed =
                rows.push_series(&labels[idx - range.start], times, values, &mut |batch| {
                    is_wanted = take(batch);
                    is_wanted
                });
            failed = pushed.err();
        });
        read.map_err(external)?;
        match failed {
            Some(error) => Err(error),
            None => Ok(is_wanted),
        }
    }
}

fn external(error: store::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
