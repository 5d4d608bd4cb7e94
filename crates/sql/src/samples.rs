//! The table of all samples: a row for each.
//!
//! ```text
//! conditions ─► matchers, times ─► Store::select ─► series by series ─► rows (scan.rs)
//! ```

use crate::filters::Asked;
use crate::operators::jsonb_field;
use crate::rows::Rows;
use crate::scan::{self, Source};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{SelectLimits, Selection, Store};

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
        let (store, limits) = (self.store.clone(), self.limits.clone());
        let reading = Reading { store, asked: Asked::of(filters), limits };
        scan::plan(reading, &Column::ALL, &self.schema, projection, limit)
    }
}

/// One reading of the table.
#[derive(Clone)]
struct Reading {
    store: Arc<Store>,
    asked: Asked,
    limits: ReadLimits,
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reading({:?})", self.asked)
    }
}

impl Source for Reading {
    fn give(self, rows: &mut Rows, take: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        if self.asked.range.is_empty() {
            return Ok(());
        }
        let limits = SelectLimits {
            series_max: self.limits.series_max,
            deadline: Some(Instant::now() + self.limits.timeout),
            cost_max: u64::MAX,
        };
        let sets = [self.asked.matchers];
        let questions = self.store.strict();
        let selection = questions.select(&sets, self.asked.range, &limits).map_err(external)?;
        let mut start = 0;
        while start < selection.len() {
            let end = (start + selection.batch_len().max(1)).min(selection.len());
            if !read_some(&selection, start..end, rows, take)? {
                return Ok(());
            }
            start = end;
        }
        Ok(())
    }
}

/// Adds the rows of some series; whether more are wanted.
fn read_some(
    selection: &Selection,
    range: Range<usize>,
    rows: &mut Rows,
    take: &mut dyn FnMut(RecordBatch) -> bool,
) -> Result<bool> {
    let labels = selection.labels_of(range.clone()).map_err(external)?;
    let mut so_far = Ok(true);
    let read = selection.read(range.clone(), &mut |idx, times, values| {
        if matches!(so_far, Ok(true)) && !times.is_empty() {
            so_far = rows.push_series(&labels[idx - range.start], times, values, take);
        }
    });
    read.map_err(external)?;
    so_far
}

fn external(error: store::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
