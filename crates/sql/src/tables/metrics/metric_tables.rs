//! A table for each metric that the store has: Promscale's `prom_metric.<metric>` and
//! `prom_series.<metric>`. None is kept anywhere: its columns are asked of the index whenever a
//! statement that names it is planned.
//!
//! ```text
//! name in a statement ─ a table that is written down? ─ no ─► label names of the metric ─► columns
//! ```

use crate::tables::metrics::samples::{ReadLimits, Samples};
use crate::tables::metrics::tables::{Column, Rows, Shows};
use crate::types::error::SqlError;
use crate::types::runtime::cancellation;
use crate::types::runtime::statement_scope::spawn_blocking;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use model::{METRIC_NAME, Matcher, TimeRange};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;
use store::{Missing, SelectLimits, Store};

/// The schema of tables of samples, a metric each.
pub const METRIC_SCHEMA: &str = "prom_metric";
/// The schema of tables of series, a metric each.
pub const SERIES_SCHEMA: &str = "prom_series";
/// Label names of a metric that has a table.
const LABELS_MAX: usize = 1000;

/// What a row of a metric's table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sample, with a column `<label>_id` for each label.
    Samples,
    /// A series, with a column for each label.
    Series,
}

/// Where tables of metrics come from.
#[derive(Clone)]
pub struct Metrics {
    store: Arc<Store>,
    limits: ReadLimits,
}

impl Metrics {
    /// Of a store.
    pub fn new(store: Arc<Store>, limits: ReadLimits) -> Metrics {
        Metrics { store, limits }
    }

    /// The table of a metric, if there is any series of that name.
    async fn table(&self, name: &str, kind: Kind) -> Result<Option<Arc<dyn TableProvider>>> {
        if name.is_empty() {
            return Ok(None);
        }
        let (metrics, name) = (self.clone(), name.to_string());
        // The index may have to be read from the disk.
        let made = spawn_blocking(move || metrics.read_table(&name, kind)).await;
        made.map_err(|failure| DataFusionError::External(Box::new(failure)))?
    }

    fn read_table(&self, name: &str, kind: Kind) -> Result<Option<Arc<dyn TableProvider>>> {
        let matchers = vec![Matcher::equal(METRIC_NAME, name)];
        let limits = SelectLimits {
            series_max: self.limits.series_max,
            deadline: Some(Instant::now() + self.limits.timeout),
            cancelled: cancellation::search_flag(),
            cost_max: u64::MAX,
        };
        let sets = [matchers.clone()];
        // Where a legacy backend is away, the table is what is here; reading it says so.
        let missing = Missing::new();
        let labels = self.store.noting(&missing).label_names(&sets, TimeRange::ALL, &limits);
        let labels = labels.map_err(|error| DataFusionError::External(Box::new(error)))?;
        if labels.is_empty() {
            return Ok(None);
        }
        let columns = columns(name, kind, &labels)?;
        let rows = match kind {
            Kind::Samples => Rows::Samples,
            Kind::Series => Rows::Series,
        };
        let (store, limits) = (self.store.clone(), self.limits.clone());
        Ok(Some(Arc::new(Samples::of_metric(store, limits, rows, columns, matchers))))
    }
}

/// The columns of a metric's table and their names.
fn columns(metric: &str, kind: Kind, labels: &[String]) -> Result<Vec<(Shows, String)>> {
    let others = labels.iter().filter(|label| *label != METRIC_NAME);
    let count = others.clone().count();
    if LABELS_MAX < count {
        let words = format!(
            "\"{metric}\" has {count} label names; {LABELS_MAX} are the most that a table has: ask \
             \"metrics\""
        );
        return Err(DataFusionError::External(Box::new(SqlError::limit(words))));
    }
    let own: &[(Column, &str)] = match kind {
        Kind::Samples => &[
            (Column::Time, "time"),
            (Column::Value, "value"),
            (Column::SeriesId, "series_id"),
            (Column::Labels, "labels"),
        ],
        Kind::Series => &[(Column::SeriesId, "series_id"), (Column::Labels, "labels")],
    };
    let own = own.iter().map(|(column, name)| (Shows::Part(*column), name.to_string()));
    let mut all: Vec<(Shows, String)> = own.collect();
    let mut taken: HashSet<String> = all.iter().map(|(_, name)| name.clone()).collect();
    for label in others {
        let name = match kind {
            Kind::Samples => format!("{label}_id"),
            Kind::Series => label.clone(),
        };
        // What is called as another column is among the labels alone.
        if taken.insert(name.clone()) {
            all.push((Shows::Label(label.as_str().into()), name));
        }
    }
    Ok(all)
}

/// A schema whose tables are those of metrics, but for some that are written down.
pub struct MetricSchema {
    written: Arc<dyn SchemaProvider>,
    metrics: Metrics,
    kind: Kind,
}

impl std::fmt::Debug for MetricSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MetricSchema({:?})", self.kind)
    }
}

impl MetricSchema {
    /// One with nothing else.
    pub fn new(metrics: &Metrics, kind: Kind) -> MetricSchema {
        MetricSchema::beside(Arc::new(MemorySchemaProvider::new()), metrics, kind)
    }

    /// One with the tables of another, which come first.
    pub fn beside(written: Arc<dyn SchemaProvider>, metrics: &Metrics, kind: Kind) -> MetricSchema {
        MetricSchema { written, metrics: metrics.clone(), kind }
    }
}

#[async_trait::async_trait]
impl SchemaProvider for MetricSchema {
    /// Those that are written down: there may be a million metrics.
    fn table_names(&self) -> Vec<String> {
        self.written.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.written.table(name).await? {
            Some(table) => Ok(Some(table)),
            None => self.metrics.table(name, self.kind).await,
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.written.table_exist(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(kind: Kind, labels: &[&str]) -> Vec<String> {
        let labels: Vec<String> = labels.iter().map(|label| label.to_string()).collect();
        columns("m", kind, &labels).unwrap().into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn labels_are_columns_unless_others_are_called_so() {
        assert_eq!(
            names(Kind::Samples, &["__name__", "job", "series", "time"]),
            ["time", "value", "series_id", "labels", "job_id", "time_id"]
        );
        assert_eq!(
            names(Kind::Series, &["__name__", "job", "labels", "value"]),
            ["series_id", "labels", "job", "value"]
        );
    }

    #[test]
    fn tables_have_an_end() {
        let labels: Vec<String> = (0..=LABELS_MAX).map(|at| format!("l{at}")).collect();
        let failure = columns("m", Kind::Series, &labels).unwrap_err();
        assert_eq!(SqlError::from(failure).code, "54000");
    }
}
