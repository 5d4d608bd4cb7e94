//! Promscale's tables about what there is: `prom_info.metric`, `prom_info.label`,
//! `prom_info.system_stats`, and `get_metric_metadata(name)`. They have the columns that can be filled
//! truly; each reading asks the store.

use crate::tables::metrics::filters::{Asked, Named};
use crate::tables::metrics::rows::series_id;
use crate::tables::metrics::samples::ReadLimits;
use crate::tables::metrics::tables::{Column, Shows};
use crate::types::error::SqlError;
use crate::types::runtime::cancellation;
use datafusion::arrow::array::{
    ArrayBuilder as _, ArrayRef, Int64Builder, ListBuilder, RecordBatch, StringViewBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{
    MemorySchemaProvider, SchemaProvider as _, Session, TableFunctionArgs, TableFunctionImpl,
    TableProvider,
};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use model::{Labels, METRIC_NAME, Matcher, TimeRange};
use std::sync::Arc;
use std::time::Instant;
use store::{CardinalityRequest, SelectLimits, Store};

/// The schema of these tables.
pub const SCHEMA: &str = "prom_info";
/// What is known of a metric, in words.
pub const METADATA: &str = "get_metric_metadata";
/// Values of one label that a row may list.
const VALUES_MAX: usize = 100_000;
/// Rows of a batch, and texts in the lists of its rows, from which on it is full.
const ROWS_MAX: usize = 1024;
const TEXTS_MAX: usize = 100_000;
/// Batches that wait for who reads them.
const BATCHES_WAITING: usize = 1;

/// What is told.
#[derive(Clone, Debug, PartialEq)]
enum Topic {
    Metrics,
    Labels,
    Store,
    Metadata(String),
}

impl Topic {
    fn schema(&self) -> SchemaRef {
        let text = |name| Field::new(name, DataType::Utf8View, true);
        let number = |name| Field::new(name, DataType::Int64, true);
        let texts = |name| {
            let each = Arc::new(Field::new_list_field(DataType::Utf8View, true));
            Field::new(name, DataType::List(each), true)
        };
        Arc::new(Schema::new(match self {
            Topic::Metrics => {
                vec![number("id"), text("metric_name"), text("table_name"), texts("label_keys")]
            }
            Topic::Labels => vec![
                text("key"),
                text("value_column_name"),
                text("id_column_name"),
                texts("values"),
            ],
            Topic::Store => vec![
                number("num_series_approx"),
                number("num_metric"),
                number("num_label_keys"),
                number("num_labels"),
            ],
            Topic::Metadata(_) => {
                vec![text("metric_family"), text("type"), text("unit"), text("help")]
            }
        }))
    }

    /// The columns whose conditions choose what is asked of the store.
    fn named(&self) -> Named {
        let name = |column: &str| (Shows::Part(Column::Name), column.to_string());
        Named::new(match self {
            Topic::Metrics => vec![name("metric_name"), name("table_name")],
            Topic::Labels => vec![name("key"), name("value_column_name")],
            Topic::Store | Topic::Metadata(_) => Vec::new(),
        })
    }
}

/// The schema with its tables.
///
/// # Errors
/// When two have one name.
pub fn schema(store: &Arc<Store>, limits: &ReadLimits) -> Result<Arc<MemorySchemaProvider>> {
    let schema = Arc::new(MemorySchemaProvider::new());
    for (name, topic) in
        [("metric", Topic::Metrics), ("label", Topic::Labels), ("system_stats", Topic::Store)]
    {
        let table = Info { store: store.clone(), limits: limits.clone(), topic };
        schema.register_table(name.to_string(), Arc::new(table))?;
    }
    Ok(schema)
}

/// `get_metric_metadata(name)`.
pub struct Metadata {
    store: Arc<Store>,
    limits: ReadLimits,
}

impl Metadata {
    /// Of a store.
    pub fn new(store: Arc<Store>, limits: ReadLimits) -> Metadata {
        Metadata { store, limits }
    }
}

impl std::fmt::Debug for Metadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(METADATA)
    }
}

impl TableFunctionImpl for Metadata {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let name = match args.exprs() {
            [Expr::Literal(value, _)] => value.try_as_str().flatten(),
            _ => None,
        };
        let name = name.ok_or_else(|| {
            let words = format!("{METADATA}(name) takes the text of a metric's name");
            DataFusionError::External(Box::new(SqlError::wrong_value(words)))
        })?;
        let topic = Topic::Metadata(name.to_string());
        Ok(Arc::new(Info { store: self.store.clone(), limits: self.limits.clone(), topic }))
    }
}

/// One of the tables.
#[derive(Clone)]
struct Info {
    store: Arc<Store>,
    limits: ReadLimits,
    topic: Topic,
}

impl std::fmt::Debug for Info {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.topic.fmt(f)
    }
}

#[async_trait::async_trait]
impl TableProvider for Info {
    fn schema(&self) -> SchemaRef {
        self.topic.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let named = self.topic.named();
        let support = |filter: &&Expr| match Asked::understands(&named, filter) {
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
        let whole = self.topic.schema();
        let wanted = projection.cloned().unwrap_or_else(|| (0..whole.fields().len()).collect());
        let schema = Arc::new(whole.project(&wanted)?);
        let asked = Asked::of(&self.topic.named(), filters).matchers;
        let reading = Reading { info: self.clone(), asked, wanted, schema: schema.clone() };
        let stream: Arc<dyn PartitionStream> = Arc::new(reading);
        let exec = StreamingTableExec::try_new(schema, vec![stream], None, [], false, limit)?;
        Ok(Arc::new(exec))
    }
}

/// One reading of a table.
#[derive(Clone, Debug)]
struct Reading {
    info: Info,
    /// On the name of what a row is about.
    asked: Vec<Matcher>,
    wanted: Vec<usize>,
    schema: SchemaRef,
}

impl PartitionStream for Reading {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(self.schema.clone(), BATCHES_WAITING);
        let (sender, reading) = (builder.tx(), self.clone());
        builder.spawn_blocking(move || {
            // Nobody hears when whoever asked has gone.
            reading.give(&mut |batch| sender.blocking_send(Ok(batch)).is_ok())
        });
        builder.build()
    }
}

/// A value of a row.
enum Cell {
    Number(u64),
    Text(String),
    Texts(Vec<String>),
}

impl Reading {
    fn give(&self, take: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        let limits = SelectLimits {
            series_max: self.info.limits.series_max,
            deadline: Some(Instant::now() + self.info.limits.timeout),
            cancelled: cancellation::search_flag(),
            cost_max: u64::MAX,
        };
        let mut rows = Rows { reading: self, rows: Vec::new(), texts: 0 };
        let asks = Asks { store: &self.info.store, limits };
        match &self.info.topic {
            Topic::Metrics => {
                for metric in asks.metrics(&self.asked)? {
                    let keys = match self.wanted.contains(&3) {
                        true => asks.label_names(Some(&metric))?,
                        false => Vec::new(),
                    };
                    let id = series_id(&Labels::from_pairs(&[(METRIC_NAME, &metric)]));
                    let (id, table) = (Cell::Number(id.unsigned_abs()), metric.clone());
                    let row = [id, Cell::Text(metric), Cell::Text(table), Cell::Texts(keys)];
                    if !rows.push(row, take)? {
                        return Ok(());
                    }
                }
            }
            Topic::Labels => {
                for key in asks.chosen_label_names(&self.asked)? {
                    let values = match self.wanted.contains(&3) {
                        true => asks.label_values(&key)?,
                        false => Vec::new(),
                    };
                    let (column, id) = (key.clone(), format!("{key}_id"));
                    let row =
                        [Cell::Text(key), Cell::Text(column), Cell::Text(id), Cell::Texts(values)];
                    if !rows.push(row, take)? {
                        return Ok(());
                    }
                }
            }
            Topic::Store => {
                rows.push(asks.sizes()?, take)?;
            }
            Topic::Metadata(name) => {
                for one in self.info.store.metadata(Some(name), 1) {
                    let kind = one.kind.as_str().to_string();
                    let row = [one.metric, kind, one.unit, one.help].map(Cell::Text);
                    rows.push(row, take)?;
                }
            }
        }
        rows.finish(take).map(drop)
    }
}

/// What is asked of a store.
struct Asks<'a> {
    store: &'a Store,
    limits: SelectLimits,
}

fn external(error: store::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl Asks<'_> {
    fn metrics(&self, asked: &[Matcher]) -> Result<Vec<String>> {
        let sets = if asked.is_empty() { Vec::new() } else { vec![asked.to_vec()] };
        let (questions, range) = (self.store.strict(), TimeRange::ALL);
        let names = questions.label_values(METRIC_NAME, &sets, range, &self.limits);
        names.map_err(external)
    }

    /// Names of labels, of one metric or of all, without that of the metric's name.
    fn label_names(&self, metric: Option<&str>) -> Result<Vec<String>> {
        let sets = metric.map(|metric| vec![Matcher::equal(METRIC_NAME, metric)]);
        let sets: Vec<_> = sets.into_iter().collect();
        let names = self.store.strict().label_names(&sets, TimeRange::ALL, &self.limits);
        let mut names = names.map_err(external)?;
        names.retain(|name| name != METRIC_NAME);
        Ok(names)
    }

    /// Names of labels, only one where only one is asked for.
    fn chosen_label_names(&self, asked: &[Matcher]) -> Result<Vec<String>> {
        let mut names = self.label_names(None)?;
        for matcher in asked.iter().filter(|one| one.op == model::MatchOp::Equal) {
            names.retain(|name| *name == matcher.value);
        }
        Ok(names)
    }

    fn label_values(&self, key: &str) -> Result<Vec<String>> {
        let values = self.store.strict().label_values(key, &[], TimeRange::ALL, &self.limits);
        let values = values.map_err(external)?;
        if VALUES_MAX < values.len() {
            let words = format!(
                "label \"{key}\" has {} values; {VALUES_MAX} are the most that are listed",
                values.len()
            );
            return Err(DataFusionError::External(Box::new(SqlError::limit(words))));
        }
        Ok(values)
    }

    fn sizes(&self) -> Result<[Cell; 4]> {
        let (sets, limits) = (Vec::new(), self.limits.clone());
        let request = CardinalityRequest { top_n: 0, day: None, sets, focus_label: None, limits };
        let counted = self.store.strict().cardinality(&request).map_err(external)?;
        let count = |len: usize| Cell::Number(u64::try_from(len).unwrap_or(u64::MAX));
        let metrics = count(self.metrics(&[])?.len());
        let keys = count(self.label_names(None)?.len());
        Ok([Cell::Number(counted.series), metrics, keys, Cell::Number(counted.label_pairs)])
    }
}

/// Rows that become batches.
struct Rows<'a> {
    reading: &'a Reading,
    rows: Vec<[Cell; 4]>,
    /// Texts in their lists.
    texts: usize,
}

impl Rows<'_> {
    /// Adds a row; whether more are wanted.
    fn push(&mut self, row: [Cell; 4], take: &mut dyn FnMut(RecordBatch) -> bool) -> Result<bool> {
        self.texts += row
            .iter()
            .map(|cell| match cell {
                Cell::Texts(texts) => texts.len(),
                _ => 0,
            })
            .sum::<usize>();
        self.rows.push(row);
        match self.rows.len() < ROWS_MAX && self.texts < TEXTS_MAX {
            true => Ok(true),
            false => self.finish(take),
        }
    }

    fn finish(&mut self, take: &mut dyn FnMut(RecordBatch) -> bool) -> Result<bool> {
        let rows = std::mem::take(&mut self.rows);
        self.texts = 0;
        if rows.is_empty() {
            return Ok(true);
        }
        let columns = self.reading.wanted.iter().map(|at| column(&rows, *at));
        let columns: Vec<ArrayRef> = columns.collect();
        // Who only counts rows wants no column.
        let options = datafusion::arrow::array::RecordBatchOptions::new();
        let options = options.with_row_count(Some(rows.len()));
        let schema = self.reading.schema.clone();
        Ok(take(RecordBatch::try_new_with_options(schema, columns, &options)?))
    }
}

fn column(rows: &[[Cell; 4]], at: usize) -> ArrayRef {
    let mut numbers = Int64Builder::new();
    let mut texts = StringViewBuilder::new();
    let mut lists = ListBuilder::new(StringViewBuilder::new());
    for row in rows {
        match &row[at] {
            Cell::Number(number) => {
                numbers.append_value(i64::try_from(*number).unwrap_or(i64::MAX));
            }
            Cell::Text(text) => texts.append_value(text),
            Cell::Texts(all) => {
                all.iter().for_each(|text| lists.values().append_value(text));
                lists.append(true);
            }
        }
    }
    match (numbers.len(), texts.len()) {
        (0, 0) => Arc::new(lists.finish()),
        (0, _) => Arc::new(texts.finish()),
        _ => Arc::new(numbers.finish()),
    }
}
