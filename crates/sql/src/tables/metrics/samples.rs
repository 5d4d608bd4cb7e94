//! Tables of samples and of series, read from the store.
//!
//! ```text
//! conditions ─► matchers, times ─► Store::select ─► series by series ─► rows (scan.rs)
//! ```

use crate::tables::metrics::filters::{Asked, Named};
use crate::tables::metrics::rows::Rows;
use crate::tables::metrics::scan;
use crate::tables::metrics::scan::Source;
use crate::tables::metrics::tables::{Rows as Kind, Shows, Table, schema_of};
use crate::types::runtime::cancellation;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use model::{Labels, Matcher};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{SelectLimits, Selection, Store};

/// What reading may cost.
#[derive(Clone, Debug)]
pub struct ReadLimits {
    /// Series of one table in one statement.
    pub series_max: usize,
    /// How long a statement reads.
    pub timeout: Duration,
}

/// A table over a store.
pub struct Samples {
    store: Arc<Store>,
    limits: ReadLimits,
    rows: Kind,
    columns: Vec<Shows>,
    /// What its columns' names mean in conditions.
    named: Named,
    /// What holds of all its series.
    matchers: Vec<Matcher>,
    /// A label that is not shown.
    hides: Option<&'static str>,
    schema: SchemaRef,
}

impl std::fmt::Debug for Samples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Samples")
    }
}

impl Samples {
    /// What a store has, as that table shows it.
    pub fn new(store: Arc<Store>, limits: ReadLimits, table: &Table) -> Samples {
        Samples::of_metric(store, limits, table.rows, table.shows(), Vec::new())
    }

    /// What its rows are.
    pub fn rows(&self) -> Kind {
        self.rows
    }

    /// What a condition says of samples, all of it; none where it says something else.
    pub fn said(&self, filter: &Expr) -> Option<Asked> {
        Asked::said(&self.named, filter)
    }

    /// What holds of all its samples.
    pub fn matchers(&self) -> &[Matcher] {
        &self.matchers
    }

    /// The same without a label.
    pub fn without(self, label: &'static str) -> Samples {
        Samples { hides: Some(label), ..self }
    }

    /// What a store has of those series for which all matchers hold, in columns of those names.
    pub fn of_metric(
        store: Arc<Store>,
        limits: ReadLimits,
        rows: Kind,
        columns: Vec<(Shows, String)>,
        matchers: Vec<Matcher>,
    ) -> Samples {
        let schema = schema_of(&columns);
        let shown = columns.iter().map(|(shows, _)| shows.clone()).collect();
        Samples {
            store,
            limits,
            rows,
            columns: shown,
            named: Named::new(columns),
            matchers,
            hides: None,
            schema,
        }
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
        let support = |filter: &&Expr| match Asked::understands(&self.named, filter) {
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
        let mut asked = Asked::of(&self.named, filters);
        asked.matchers.extend_from_slice(&self.matchers);
        let reading = Reading { store, rows: self.rows, asked, limits, hides: self.hides };
        scan::plan(reading, &self.columns, &self.schema, projection, limit)
    }
}

/// One reading of the table.
#[derive(Clone)]
struct Reading {
    store: Arc<Store>,
    rows: Kind,
    asked: Asked,
    limits: ReadLimits,
    hides: Option<&'static str>,
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reading({:?})", self.asked)
    }
}

impl Source for Reading {
    fn give(self, rows: &mut Rows, take: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        if self.rows == Kind::None || self.asked.range.is_empty() {
            return Ok(());
        }
        let limits = SelectLimits {
            series_max: self.limits.series_max,
            deadline: Some(Instant::now() + self.limits.timeout),
            cancelled: cancellation::search_flag(),
            cost_max: u64::MAX,
        };
        let sets = [self.asked.matchers];
        let questions = self.store.strict();
        let selection = questions.select(&sets, self.asked.range, &limits).map_err(external)?;
        let mut start = 0;
        while start < selection.len() {
            let end = (start + selection.batch_len().max(1)).min(selection.len());
            let goes_on = match self.rows {
                Kind::Series => name_some(&selection, start..end, self.hides, rows, take)?,
                _ => read_some(&selection, start..end, self.hides, rows, take)?,
            };
            if !goes_on {
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
    hides: Option<&str>,
    rows: &mut Rows,
    take: &mut dyn FnMut(RecordBatch) -> bool,
) -> Result<bool> {
    let labels = shown(selection, range.clone(), hides)?;
    let mut so_far = Ok(true);
    let read = selection.read(range.clone(), &mut |idx, times, values| {
        if matches!(so_far, Ok(true)) && !times.is_empty() {
            so_far = rows.push_series(&labels[idx - range.start], times, values, take);
        }
    });
    read.map_err(external)?;
    so_far
}

/// Adds a row for each of some series; whether more are wanted.
fn name_some(
    selection: &Selection,
    range: Range<usize>,
    hides: Option<&str>,
    rows: &mut Rows,
    take: &mut dyn FnMut(RecordBatch) -> bool,
) -> Result<bool> {
    for labels in &shown(selection, range, hides)? {
        if !rows.push_series(labels, &[0], &[0.0], take)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The labels of some series, without one that is not shown.
fn shown(selection: &Selection, range: Range<usize>, hides: Option<&str>) -> Result<Vec<Labels>> {
    let all = selection.labels_of(range).map_err(external)?;
    let Some(hidden) = hides else { return Ok(all) };
    Ok(all.iter().map(|labels| labels.only(|name| name != hidden.as_bytes())).collect())
}

fn external(error: store::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
