//! Rows of a hypertable, put together of the samples of their columns.

use crate::tables::heap::arrays::array_of;
use crate::tables::heap::columns::column_type;
use crate::tables::hypertables::append::Series;
use crate::tables::hypertables::conditions::{Asked, ValueCondition};
use crate::tables::hypertables::entities::{Entities, Samples, whole_rows};
use crate::tables::hypertables::shape::Hypertable;
use crate::tables::metrics::alternatives::escaped;
use crate::types::runtime::cancellation;
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
use model::{METRIC_NAME, MatchOp, Matcher, TimeRange, is_stale_marker, stale_marker};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use store::{SelectLimits, Selection};
use tables::Datum;

/// Batches that wait for who reads them.
const BATCHES_WAITING: usize = 2;

/// Series from which on it is worth looking where the newest rows begin.
const RECENT_SERIES_MIN: usize = 256;

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
    select_within(series, table, asked, (columns, u64::MAX))
}

/// The same, unless it costs more than so much ([`SelectLimits::cost_max`]).
///
/// # Errors
/// When the store cannot, and when it would cost more.
pub fn select_within(
    series: &Series,
    table: &Hypertable,
    asked: &Asked,
    (columns, cost_max): (&[usize], u64),
) -> Result<Selection> {
    let limits = SelectLimits {
        series_max: series.limits.series_max,
        deadline: Some(Instant::now() + series.limits.timeout),
        cancelled: cancellation::search_flag(),
        cost_max,
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
    // Rows of hypertables were never anywhere else.
    let selection = series.store.strict().own().select(&[matchers], asked.range, &limits);
    selection.map_err(|error| DataFusionError::External(Box::new(error)))
}

/// What is wanted of a hypertable.
pub struct Wanted {
    /// Conditions.
    pub asked: Asked,
    /// Conditions on values, by which rows are left out.
    pub values: Vec<ValueCondition>,
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
    let Wanted { asked, values, newest, columns, limit } = wanted;
    let schema = Arc::new(schema.project(&columns)?);
    let scan =
        Scan { series, table, asked, values, newest, wanted: columns, schema: schema.clone() };
    let exec = StreamingTableExec::try_new(schema, vec![Arc::new(scan)], None, [], false, limit)?;
    Ok(Arc::new(exec))
}

/// One reading.
#[derive(Clone)]
pub struct Scan {
    pub series: Arc<Series>,
    pub table: Arc<Hypertable>,
    pub asked: Asked,
    pub values: Vec<ValueCondition>,
    pub newest: Option<usize>,
    pub wanted: Vec<usize>,
    pub schema: SchemaRef,
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
        let is_asked = |at: &usize| self.values.iter().any(|one| one.column == *at);
        let is_read = |at: &usize| self.wanted.contains(at) || is_asked(at);
        let wanted: Vec<usize> = all.iter().copied().filter(is_read).collect();
        if wanted.is_empty() { all[..1].to_vec() } else { wanted }
    }

    /// Makes all rows; `take` says whether more are wanted.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn give(&self, batch_len: usize, take: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        self.give_within(u64::MAX, batch_len, take)
    }

    /// The same, unless it costs more than so much ([`SelectLimits::cost_max`]).
    ///
    /// # Errors
    /// As [`Scan::give`], and when it would cost more.
    pub fn give_within(
        &self,
        cost_max: u64,
        batch_len: usize,
        take: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<()> {
        if self.asked.range.is_empty() {
            return Ok(());
        }
        let columns = self.columns();
        let entities = match self.recent(&columns)? {
            Some(recent) => recent,
            None => self.entities(&self.asked, (&columns, cost_max))?,
        };
        let mut rows = Rows::new(self, &columns);
        let (mut start, mut samples, mut chosen) = (0, Vec::new(), Vec::new());
        while start < entities.len() {
            let end = (start + entities.batch_len()).min(entities.len());
            entities.read(start..end, &mut samples)?;
            for (entity, own) in (start..end).zip(samples.chunks(columns.len())) {
                let merged = (!are_alike(own)).then(|| merged(own));
                let own = merged.as_deref().unwrap_or(own);
                let count = own[0].times.len();
                let first = count - self.newest.map_or(count, |newest| newest.min(count));
                let labels = entities.labels(entity);
                if !self.values.is_empty() {
                    self.choose(&columns, own, first..count, &mut chosen);
                    for some in chosen.chunks(batch_len) {
                        rows.push_chosen(labels, own, some);
                        if batch_len <= rows.times.len() && !take(rows.batch()?) {
                            return Ok(());
                        }
                    }
                    continue;
                }
                for start in (first..count).step_by(batch_len) {
                    rows.push(labels, own, start..count.min(start + batch_len));
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

impl Scan {
    fn entities(&self, asked: &Asked, columns: (&[usize], u64)) -> Result<Entities> {
        let select = || select_within(&self.series, &self.table, asked, columns);
        Entities::selected(&self.table, columns.0, select)
    }

    /// The rows of the last stretch of time, where only the newest are wanted of many label sets, and all of those have
    /// as many there: nothing that is older is read then.
    fn recent(&self, columns: &[usize]) -> Result<Option<Entities>> {
        let Some(count) = self.newest.filter(|count| 0 < *count) else { return Ok(None) };
        let all = select(&self.series, &self.table, &self.asked, columns)?;
        if all.len() < RECENT_SERIES_MIN {
            return Ok(None);
        }
        let Some(firsts) = whole_rows(&self.table, columns, &all)? else { return Ok(None) };
        let Some(start) = begin_of_last(&all, &firsts, count)? else { return Ok(None) };
        drop(all);
        let range = TimeRange::new(start, self.asked.range.end);
        let asked = Asked { range, ..self.asked.clone() };
        let one = select(&self.series, &self.table, &asked, &columns[..1])?;
        let mut whole = 0;
        let read = one.read(0..one.len(), &mut |_, times, _| {
            whole += usize::from(count <= times.len());
        });
        read.map_err(|error| DataFusionError::External(Box::new(error)))?;
        match whole == firsts.len() {
            true => self.entities(&asked, (columns, u64::MAX)).map(Some),
            false => Ok(None),
        }
    }

    /// Which rows of one entity the conditions on values leave.
    fn choose(
        &self,
        columns: &[usize],
        own: &[Samples],
        range: Range<usize>,
        chosen: &mut Vec<usize>,
    ) {
        chosen.clear();
        let values = |one: &ValueCondition| {
            let nth = columns.iter().position(|at| *at == one.column)?;
            own.get(nth).map(|samples| samples.values.as_slice())
        };
        let Some((first, others)) = self.values.split_first() else { return };
        let Some(of_first) = values(first) else { return };
        chosen.extend(range.filter(|row| first.holds(of_first[*row])));
        for one in others {
            let Some(values) = values(one) else { return chosen.clear() };
            chosen.retain(|row| one.holds(values[*row]));
        }
    }
}

/// When about so many of the newest rows begin, by those of some label sets.
fn begin_of_last(all: &Selection, firsts: &[usize], count: usize) -> Result<Option<i64>> {
    let (mut begin, some) = (None, [0, firsts.len() / 2, firsts.len().saturating_sub(1)]);
    for idx in some.iter().filter_map(|at| firsts.get(*at)) {
        let read = all.read(*idx..idx + 1, &mut |_, times, _| {
            // One more, for those that are not quite as regular.
            if let Some(at) = times.len().checked_sub(count.saturating_add(1)) {
                begin = Some(begin.map_or(times[at], |begin: i64| begin.min(times[at])));
            }
        });
        read.map_err(|error| DataFusionError::External(Box::new(error)))?;
    }
    Ok(begin)
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
        self.name(labels);
    }

    /// Adds those rows of one entity.
    fn push_chosen(&mut self, labels: &[Datum], columns: &[Samples], rows: &[usize]) {
        self.times.extend(rows.iter().map(|row| columns[0].times[*row]));
        for (into, samples) in self.values.iter_mut().zip(columns) {
            into.extend(rows.iter().map(|row| samples.values[*row]));
        }
        self.name(labels);
    }

    /// The rows that were added last have these labels.
    fn name(&mut self, labels: &[Datum]) {
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
