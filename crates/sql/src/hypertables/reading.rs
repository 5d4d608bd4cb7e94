//! Rows of a hypertable, put together of the samples of their columns.

use super::append::Series;
use super::conditions::Asked;
use super::entities::{Entities, Samples};
use super::shape::Hypertable;
use crate::alternatives::escaped;
use crate::ordinary::{array_of, column_type};
use datafusion::arrow::array::{
    ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray, UInt32Array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use model::sample::NANOS_PER_MICRO;
use model::{METRIC_NAME, MatchOp, Matcher, is_stale_marker, stale_marker};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use store::{SelectLimits, Selection};
use tables::Datum;

/// Batches that wait for who reads them.
const BATCHES_WAITING: usize = 2;

/// Selects the series of some columns of values.
///
/// # Errors
/// When the store cannot.
pub fn select(
    series: &Series,
    table: &Hypertable,
    asked: &Asked,
    columns: &[usize],
) -> Result<Selection> {
    let limits = SelectLimits {
        series_max: series.limits.series_max,
        deadline: Some(Instant::now() + series.limits.timeout),
        cost_max: u64::MAX,
    };
    let mut matchers = asked.matchers.clone();
    matchers.push(Hypertable::matcher(&table.name));
    match columns {
        [one] => matchers.push(Matcher::equal(METRIC_NAME, table.metric(*one))),
        some if some.len() < table.values.len() => {
            let names: Vec<String> = some.iter().map(|at| escaped(&table.metric(*at))).collect();
            matchers.push(Matcher::new(METRIC_NAME, MatchOp::Regex, names.join("|")));
        }
        _ => {}
    }
    let selection = series.store.strict().select(&[matchers], asked.range, &limits);
    selection.map_err(|error| DataFusionError::External(Box::new(error)))
}

/// What is wanted of a hypertable.
pub struct Wanted {
    /// Conditions.
    pub asked: Asked,
    /// How many rows of each label set, the newest ones; all for none.
    pub newest: Option<usize>,
    /// Columns, by their places.
    pub columns: Vec<usize>,
    /// How many rows.
    pub limit: Option<usize>,
}

/// A plan that reads what is wanted of a table.
///
/// # Errors
/// When there are no such columns.
pub fn plan(
    series: Arc<Series>,
    table: Arc<Hypertable>,
    wanted: Wanted,
    schema: &SchemaRef,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Wanted { asked, newest, columns, limit } = wanted;
    let schema = Arc::new(schema.project(&columns)?);
    let scan = Scan { series, table, asked, newest, wanted: columns, schema: schema.clone() };
    let exec = StreamingTableExec::try_new(schema, vec![Arc::new(scan)], None, [], false, limit)?;
    Ok(Arc::new(exec))
}

/// One reading.
#[derive(Clone)]
struct Scan {
    series: Arc<Series>,
    table: Arc<Hypertable>,
    asked: Asked,
    newest: Option<usize>,
    wanted: Vec<usize>,
    schema: SchemaRef,
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hypertable({}, {:?})", self.table.name, self.asked)
    }
}

impl PartitionStream for Scan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch_len = context.session_config().batch_size();
        let mut builder = RecordBatchReceiverStream::builder(self.schema.clone(), BATCHES_WAITING);
        let (sender, scan) = (builder.tx(), self.clone());
        builder.spawn_blocking(move || {
            // Nobody hears when whoever asked has gone.
            scan.give(batch_len, &mut |batch| sender.blocking_send(Ok(batch)).is_ok())
        });
        builder.build()
    }
}

impl Scan {
    /// The columns of values that are read. Any tells which rows there are.
    fn columns(&self) -> Vec<usize> {
        let all = &self.table.values;
        let wanted: Vec<usize> =
            all.iter().copied().filter(|at| self.wanted.contains(at)).collect();
        if wanted.is_empty() { all[..1].to_vec() } else { wanted }
    }

    /// Makes all rows; `take` says whether more are wanted.
    fn give(&self, batch_len: usize, take: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        if self.asked.range.is_empty() {
            return Ok(());
        }
        let columns = self.columns();
        let select = || select(&self.series, &self.table, &self.asked, &columns);
        let entities = Entities::selected(&self.table, &columns, select)?;
        let mut rows = Rows::new(self, &columns);
        let (mut start, mut samples) = (0, Vec::new());
        while start < entities.len() {
            let end = (start + entities.batch_len()).min(entities.len());
            entities.read(start..end, &mut samples)?;
            for (entity, own) in (start..end).zip(samples.chunks(columns.len())) {
                let merged = (!are_alike(own)).then(|| merged(own));
                let own = merged.as_deref().unwrap_or(own);
                let count = own[0].times.len();
                let first = count - self.newest.map_or(count, |newest| newest.min(count));
                for start in (first..count).step_by(batch_len) {
                    rows.push(entities.labels(entity), own, start..count.min(start + batch_len));
                    if batch_len <= rows.times.len() && !take(rows.batch()?) {
                        return Ok(());
                    }
                }
            }
            start = end;
        }
        if !rows.times.is_empty() {
            take(rows.batch()?);
        }
        Ok(())
    }
}

fn are_alike(columns: &[Samples]) -> bool {
    columns.windows(2).all(|two| two[0].times == two[1].times)
}

/// The samples of all columns at the times of any: where somebody else wrote or deleted some, others are null.
fn merged(columns: &[Samples]) -> Vec<Samples> {
    let mut all: Vec<Samples> = columns.iter().map(|_| Samples::default()).collect();
    let mut next = vec![0; columns.len()];
    loop {
        let heads = columns.iter().zip(&next).filter_map(|(one, at)| one.times.get(*at));
        let Some(time) = heads.min().copied() else { return all };
        for (nth, samples) in columns.iter().enumerate() {
            let is_there = samples.times.get(next[nth]) == Some(&time);
            let value = if is_there { samples.values[next[nth]] } else { stale_marker() };
            all[nth].times.push(time);
            all[nth].values.push(value);
            next[nth] += usize::from(is_there);
        }
    }
}

/// Rows that are no batch yet.
struct Rows<'a> {
    scan: &'a Scan,
    columns: &'a [usize],
    times: Vec<i64>,
    /// Values of each column that is read.
    values: Vec<Vec<f64>>,
    /// Which of `labels` a row has.
    entities: Vec<u32>,
    labels: Vec<Vec<Datum>>,
}

impl<'a> Rows<'a> {
    fn new(scan: &'a Scan, columns: &'a [usize]) -> Rows<'a> {
        Rows {
            scan,
            columns,
            times: Vec::new(),
            values: vec![Vec::new(); columns.len()],
            entities: Vec::new(),
            labels: vec![Vec::new(); scan.table.labels.len()],
        }
    }

    /// Adds some rows of one entity, whose columns have these samples at the same times.
    fn push(&mut self, labels: &[Datum], columns: &[Samples], range: Range<usize>) {
        self.times.extend_from_slice(&columns[0].times[range.clone()]);
        for (into, samples) in self.values.iter_mut().zip(columns) {
            into.extend_from_slice(&samples.values[range.clone()]);
        }
        let entity = self.labels.first().map_or(0, Vec::len);
        self.entities.resize(self.times.len(), u32::try_from(entity).unwrap_or(u32::MAX));
        for (into, label) in self.labels.iter_mut().zip(labels) {
            into.push(label.clone());
        }
    }

    /// All rows that there are, as a batch.
    fn batch(&mut self) -> Result<RecordBatch> {
        let count = self.times.len();
        let entities = UInt32Array::from(std::mem::take(&mut self.entities));
        let mut arrays = Vec::with_capacity(self.scan.wanted.len());
        for at in &self.scan.wanted {
            arrays.push(self.array(*at, &entities)?);
        }
        self.times.clear();
        self.values.iter_mut().for_each(Vec::clear);
        self.labels.iter_mut().for_each(Vec::clear);
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(self.scan.schema.clone(), arrays, &options)?)
    }

    fn array(&self, at: usize, entities: &UInt32Array) -> Result<ArrayRef> {
        let table = &self.scan.table;
        let column = &table.schema.columns[at];
        if at == table.time {
            let micros = self.times.iter().map(|nanos| nanos.div_euclid(NANOS_PER_MICRO));
            let times = TimestampMicrosecondArray::from_iter_values(micros);
            return Ok(Arc::new(times.with_data_type(column_type(column))));
        }
        if let Some(nth) = table.labels.iter().position(|one| *one == at) {
            let values = array_of(column, &self.labels[nth])?;
            return Ok(take(&values, entities, None)?);
        }
        let nth = self.columns.iter().position(|one| *one == at);
        let nth = nth.ok_or_else(|| DataFusionError::Internal("a column was not read".into()))?;
        let values = &self.values[nth];
        let present = values
            .iter()
            .any(|value| is_stale_marker(*value))
            .then(|| values.iter().map(|value| !is_stale_marker(*value)).collect::<NullBuffer>());
        let values: ArrayRef = Arc::new(Float64Array::new(values.clone().into(), present));
        Ok(cast(&values, &column_type(column))?)
    }
}
