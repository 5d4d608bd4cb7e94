//! Rows of a hypertable in groups: worked out series by series, where a group is a stretch of time and
//! some labels. No row is put together for it.
//!
//! ```text
//! series ─► its samples, stretch by stretch ─► cells: a count and a number for each group and column
//! ```

use crate::tables::heap::arrays::array_of;
use crate::tables::heap::columns::column_type;
use crate::tables::heap::values::row_size;
use crate::tables::hypertables::append::Series;
use crate::tables::hypertables::conditions::Asked;
use crate::tables::hypertables::entities::{Entities, Samples};
use crate::tables::hypertables::reading::{select, select_within};
use crate::tables::hypertables::shape::Hypertable;
use crate::types::time::intervals::{MONDAY, floor};
use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, TimestampMicrosecondArray, UInt32Array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use hashbrown::HashMap;
use model::sample::NANOS_PER_MICRO;
use model::{TimeRange, is_stale_marker};
use std::ops::Range;
use std::sync::Arc;
use store::Selection;
use tables::{ColumnType, Datum, Scalar};

/// Batches that wait for who reads them.
const BATCHES_WAITING: usize = 2;

/// The first time that PostgreSQL knows, in the year 4714 before ours.
const FIRST_MICROS: i64 = -210_866_803_200_000_000;

/// Series that are read without going elsewhere: a millisecond's work or so.
const AT_ONCE_MAX: usize = 500;

/// What is made of the values of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    Max,
    Min,
    Sum,
    Avg,
    /// How many there are.
    Count,
    /// How many rows there are, with a value or without.
    Rows,
}

/// What the groups of a query are called by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A stretch of so many microseconds.
    Time(i64),
    /// A label, by its column.
    Label(usize),
}

/// What is asked of the rows of a hypertable.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouping {
    /// What tells groups apart; at least one.
    pub keys: Vec<Key>,
    /// What is made of which column.
    pub summaries: Vec<(Summary, usize)>,
}

/// One working out.
#[derive(Clone)]
pub struct Groups {
    pub series: Arc<Series>,
    pub table: Arc<Hypertable>,
    pub asked: Asked,
    pub grouping: Grouping,
    /// A column for each key, and then one for each summary.
    pub schema: SchemaRef,
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Groups({}, {:?}, {:?})", self.table.name, self.asked, self.grouping)
    }
}

impl PartitionStream for Groups {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let groups = self.clone();
        self.spawned(&context, move || groups.selection())
    }
}

/// What is found before groups are read.
pub enum Found {
    /// All groups: they are of so few series that nobody else was kept waiting for them.
    All(Vec<RecordBatch>),
    /// The series that they are of.
    Many(Box<Selection>),
}

impl Groups {
    /// The groups, unless they cost more than so much (`SelectLimits::cost_max`).
    ///
    /// # Errors
    /// When they cannot be read, and when they would cost more.
    pub fn within(&self, cost_max: u64, context: &TaskContext) -> Result<Vec<RecordBatch>> {
        if self.asked.range.is_empty() {
            return Ok(Vec::new());
        }
        let columns = self.columns();
        let found = select_within(&self.series, &self.table, &self.asked, (&columns, cost_max))?;
        self.collected(found, context)
    }

    /// Looks for the series, and reads them if they are few.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn find(&self, context: &TaskContext) -> Result<Found> {
        Ok(match self.selection()? {
            None => Found::All(Vec::new()),
            Some(many) if AT_ONCE_MAX < many.len() => Found::Many(Box::new(many)),
            Some(few) => Found::All(self.collected(few, context)?),
        })
    }

    /// The groups of series that were found, as they are made.
    pub fn of(&self, found: Selection, context: &TaskContext) -> SendableRecordBatchStream {
        self.spawned(context, move || Ok(Some(found)))
    }

    fn spawned(
        &self,
        context: &TaskContext,
        selection: impl FnOnce() -> Result<Option<Selection>> + Send + 'static,
    ) -> SendableRecordBatchStream {
        let (batch_len, memory) = needed(context);
        let mut builder = RecordBatchReceiverStream::builder(self.schema.clone(), BATCHES_WAITING);
        let (sender, groups) = (builder.tx(), self.clone());
        builder.spawn_blocking(move || {
            let Some(selection) = selection()? else { return Ok(()) };
            // Nobody hears when whoever asked has gone.
            let take = &mut |batch| sender.blocking_send(Ok(batch)).is_ok();
            groups.give(selection, batch_len, memory, take)
        });
        builder.build()
    }

    /// The series that are asked for; none where no time is.
    fn selection(&self) -> Result<Option<Selection>> {
        match self.asked.range.is_empty() {
            true => Ok(None),
            false => select(&self.series, &self.table, &self.asked, &self.columns()).map(Some),
        }
    }

    fn collected(&self, selection: Selection, context: &TaskContext) -> Result<Vec<RecordBatch>> {
        let (batch_len, memory) = needed(context);
        let mut batches = Vec::new();
        self.give(selection, batch_len, memory, &mut |batch| {
            batches.push(batch);
            true
        })?;
        Ok(batches)
    }

    fn give(
        &self,
        selection: Selection,
        batch_len: usize,
        memory: MemoryReservation,
        take: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<()> {
        let columns = self.columns();
        let entities = match columns.len() == 1 && self.asks_no_labels() {
            true => Entities::unnamed(selection),
            false => {
                let mut found = Some(selection);
                let again = || select(&self.series, &self.table, &self.asked, &columns);
                Entities::selected(&self.table, &columns, || found.take().map_or_else(again, Ok))?
            }
        };
        let mut cells = Cells::new(self, &columns, &entities, memory);
        let (mut start, mut samples) = (0, Vec::new());
        while start < entities.len() {
            let end = (start + entities.batch_len()).min(entities.len());
            entities.read(start..end, &mut samples)?;
            for (entity, own) in (start..end).zip(samples.chunks(columns.len())) {
                cells.add(entities.labels(entity), own)?;
                if cells.are_whole() && batch_len <= cells.len() && !cells.give(batch_len, take)? {
                    return Ok(());
                }
            }
            cells.account()?;
            start = end;
        }
        cells.give(batch_len, take).map(drop)
    }

    /// Whether it does not matter which labels a row has. Of texts any will do; others might be no row's.
    fn asks_no_labels(&self) -> bool {
        let columns = &self.table.schema.columns;
        let is_text = |at: &usize| {
            columns[*at].ty == ColumnType::One(Scalar::Text) && columns[*at].declared.is_empty()
        };
        let is_label = |key: &Key| matches!(key, Key::Label(_));
        !self.grouping.keys.iter().any(is_label) && self.table.labels.iter().all(is_text)
    }

    /// At least so many of the newest groups of a query by time alone, where they are found without reading much that
    /// is older.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn newest(&self, context: &TaskContext, count: usize) -> Result<Option<Vec<RecordBatch>>> {
        let [Key::Time(width)] = self.grouping.keys.as_slice() else { return Ok(None) };
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let end = match self.asked.range.end {
            i64::MAX => self.series.now(),
            end => end,
        };
        let last = floor(end.div_euclid(NANOS_PER_MICRO), *width, MONDAY);
        for times in [1, 16, 256] {
            let before = width.saturating_mul(count).saturating_mul(times);
            let Some(start) = last.and_then(|last| last.checked_sub(before)) else { break };
            let start = start.saturating_mul(NANOS_PER_MICRO);
            if start <= self.asked.range.start {
                break;
            }
            let mut narrow = self.clone();
            narrow.asked.range = TimeRange::new(start, self.asked.range.end);
            let Some(selection) = narrow.selection()? else { continue };
            if !has_stretches(&selection, *width, count)? {
                continue;
            }
            let batches = narrow.collected(selection, context)?;
            let found = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
            if count <= i64::try_from(found).unwrap_or(i64::MAX) {
                return Ok(Some(batches));
            }
        }
        Ok(None)
    }

    /// The columns of values that are read. Any tells which rows there are.
    fn columns(&self) -> Vec<usize> {
        let is_read = |at: &usize| self.grouping.summaries.iter().any(|(_, column)| column == at);
        self.table.values.iter().copied().filter(is_read).collect()
    }
}

/// Whether it looks as if so many stretches of time had samples, by some of many series.
fn has_stretches(selection: &Selection, width: i64, count: i64) -> Result<bool> {
    let len = selection.len();
    if len <= AT_ONCE_MAX {
        return Ok(true);
    }
    let mut most = 0;
    for idx in [0, len / 2, len - 1] {
        let read = selection.read(idx..idx + 1, &mut |_, times, _| {
            let stretch = |at: &i64| floor(at.div_euclid(NANOS_PER_MICRO), width, MONDAY);
            let mut stretches: Vec<_> = times.iter().map(stretch).collect();
            stretches.dedup();
            most = most.max(stretches.len());
        });
        read.map_err(|error| DataFusionError::External(Box::new(error)))?;
    }
    Ok(count <= i64::try_from(most).unwrap_or(i64::MAX))
}

/// Rows of a batch, and memory for groups.
fn needed(context: &TaskContext) -> (usize, MemoryReservation) {
    let memory = MemoryConsumer::new("groups").register(context.memory_pool());
    (context.session_config().batch_size(), memory)
}

/// The numbers of all groups.
struct Cells<'a> {
    groups: &'a Groups,
    width: Option<i64>,
    /// Columns of labels that are keys, by their places among the table's labels.
    labels: Vec<usize>,
    /// Whether each label set is a group by itself.
    is_own: bool,
    /// Of such a one, the slots of stretches in which the first column has no sample.
    others: HashMap<i64, usize>,
    /// For each summary, which of the columns that are read it is of.
    sources: Vec<usize>,
    /// Groups of labels that were seen, where they are shared.
    known: HashMap<Vec<Option<String>>, u32>,
    /// The values of their labels, group after group.
    names: Vec<Vec<Datum>>,
    /// Stretches of shared groups.
    shared: HashMap<(u32, i64), u32>,
    /// The label group and the stretch of each slot.
    slots: Vec<(u32, i64)>,
    /// A cell for each slot and summary.
    cells: Vec<Cell>,
    /// Bytes of `names` and `known`, about.
    names_size: usize,
    memory: MemoryReservation,
}

fn take_value(value: &mut Datum) -> Datum {
    std::mem::replace(value, Datum::Null)
}

#[derive(Clone, Copy, Default)]
struct Cell {
    count: u64,
    value: f64,
}

impl Cell {
    #[inline]
    fn add(&mut self, summary: Summary, value: f64) {
        if is_stale_marker(value) && summary != Summary::Rows {
            return;
        }
        let is_first = self.count == 0;
        self.count += 1;
        match summary {
            // NaN is greater than any number.
            Summary::Max if is_first || self.value < value || value.is_nan() => self.value = value,
            Summary::Min if is_first || value < self.value || self.value.is_nan() => {
                self.value = value;
            }
            Summary::Sum | Summary::Avg => self.value += value,
            Summary::Max | Summary::Min | Summary::Count | Summary::Rows => {}
        }
    }

    fn result(self, summary: Summary) -> Option<f64> {
        match summary {
            _ if self.count == 0 => None,
            Summary::Avg => Some(self.value / self.count as f64),
            _ => Some(self.value),
        }
    }
}

impl<'a> Cells<'a> {
    fn new(
        groups: &'a Groups,
        columns: &[usize],
        entities: &Entities,
        memory: MemoryReservation,
    ) -> Cells<'a> {
        let (table, grouping) = (&groups.table, &groups.grouping);
        let place = |at: &usize| table.labels.iter().position(|one| one == at);
        let labels: Vec<usize> = grouping
            .keys
            .iter()
            .filter_map(|key| match key {
                Key::Label(at) => place(at),
                Key::Time(_) => None,
            })
            .collect();
        let width = grouping.keys.iter().find_map(|key| match key {
            Key::Time(width) => Some(*width),
            Key::Label(_) => None,
        });
        let source = |(_, at): &(Summary, usize)| columns.iter().position(|one| one == at);
        Cells {
            groups,
            width,
            is_own: (0..table.labels.len()).all(|at| labels.contains(&at))
                && entities.are_told_apart(),
            others: HashMap::new(),
            labels,
            sources: grouping.summaries.iter().filter_map(source).collect(),
            known: HashMap::new(),
            names: Vec::new(),
            shared: HashMap::new(),
            slots: Vec::new(),
            cells: Vec::new(),
            names_size: 0,
            memory,
        }
    }

    fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no group that there is gets more rows.
    fn are_whole(&self) -> bool {
        self.is_own
    }

    fn account(&mut self) -> Result<()> {
        let shared = self.shared.capacity() * size_of::<((u32, i64), u32)>();
        let cells = self.cells.capacity() * size_of::<Cell>();
        self.memory.try_resize(
            self.names_size + shared + cells + self.slots.capacity() * size_of::<(u32, i64)>(),
        )
    }

    /// Adds the rows of one label set, whose columns have these samples.
    fn add(&mut self, labels: &[Datum], columns: &[Samples]) -> Result<()> {
        if columns.iter().all(|samples| samples.times.is_empty()) {
            return Ok(());
        }
        let group = self.label_group(labels)?;
        let first = self.slots.len();
        self.others.clear();
        // Those of the first column are in the order of time.
        let mut ordered = first..first;
        for nth in 0..self.sources.len() {
            let samples = &columns[self.sources[nth]];
            let (summary, _) = self.groups.grouping.summaries[nth];
            let (mut slot, mut until) = (0, i64::MIN);
            let mut next = ordered.clone();
            for (time, value) in samples.times.iter().zip(&samples.values) {
                if until <= *time {
                    let begin = self.begin_of(*time)?;
                    until = self.end_of(begin);
                    slot = match nth == 0 && self.is_own {
                        true => self.new_slot(group, begin),
                        false => self.slot(group, begin, &mut next),
                    };
                }
                self.cells[slot * self.sources.len() + nth].add(summary, *value);
            }
            if nth == 0 {
                ordered.end = self.slots.len();
            }
        }
        Ok(())
    }

    /// When the stretch of a time begins, in microseconds.
    fn begin_of(&self, time: i64) -> Result<i64> {
        match self.width {
            Some(width) => floor(time.div_euclid(NANOS_PER_MICRO), width, MONDAY)
                .filter(|begin| FIRST_MICROS <= *begin)
                .ok_or_else(|| DataFusionError::Execution("timestamp out of range".into())),
            None => Ok(0),
        }
    }

    /// The first nanosecond behind a stretch.
    fn end_of(&self, begin: i64) -> i64 {
        match self.width {
            Some(width) => begin.saturating_add(width).saturating_mul(NANOS_PER_MICRO),
            None => i64::MAX,
        }
    }

    /// The slot of a stretch of a label group. Of one that is not shared `ordered` are those to look at, in the order
    /// of time: stretches are asked for in that order.
    fn slot(&mut self, group: u32, begin: i64, ordered: &mut Range<usize>) -> usize {
        if !self.is_own {
            if let Some(slot) = self.shared.get(&(group, begin)) {
                return *slot as usize;
            }
            let slot = self.new_slot(group, begin);
            self.shared.insert((group, begin), u32::try_from(slot).unwrap_or(u32::MAX));
            return slot;
        }
        while ordered.start < ordered.end && self.slots[ordered.start].1 < begin {
            ordered.start += 1;
        }
        if ordered.start < ordered.end && self.slots[ordered.start].1 == begin {
            return ordered.start;
        }
        if let Some(slot) = self.others.get(&begin) {
            return *slot;
        }
        let slot = self.new_slot(group, begin);
        self.others.insert(begin, slot);
        slot
    }

    fn new_slot(&mut self, group: u32, begin: i64) -> usize {
        self.slots.push((group, begin));
        self.cells.resize(self.slots.len() * self.sources.len(), Cell::default());
        self.slots.len() - 1
    }

    fn label_group(&mut self, labels: &[Datum]) -> Result<u32> {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let own: Vec<Datum> = self.labels.iter().map(|at| labels[*at].clone()).collect();
        if self.is_own {
            self.names_size += row_size(&own);
            self.names.push(own);
            return Ok(number(self.names.len() - 1));
        }
        let table = &self.groups.table;
        let text = |(at, value): (&usize, &Datum)| table.label_text(table.labels[*at], value);
        let texts = self.labels.iter().zip(&own).map(text).collect::<Result<Vec<_>, _>>();
        let texts = texts.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let count = self.names.len();
        let group = *self.known.entry(texts).or_insert(number(count));
        if group == number(count) {
            // Once as values, and once as texts.
            self.names_size += 2 * row_size(&own);
            self.names.push(own);
        }
        Ok(group)
    }

    /// Gives all groups that there are; whether more are wanted.
    fn give(
        &mut self,
        batch_len: usize,
        take: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<bool> {
        let mut goes_on = true;
        let table = &self.groups.table;
        let mut columns = self.labels.iter().enumerate();
        let names = columns.try_fold(Vec::new(), |mut all, (nth, at)| {
            let values: Vec<Datum> =
                self.names.iter_mut().map(|own| take_value(&mut own[nth])).collect();
            all.push(array_of(&table.schema.columns[table.labels[*at]], &values)?);
            Ok::<_, DataFusionError>(all)
        })?;
        for start in (0..self.slots.len()).step_by(batch_len) {
            let end = (start + batch_len).min(self.slots.len());
            goes_on = take(self.batch(start..end, &names)?);
            if !goes_on {
                break;
            }
        }
        self.slots.clear();
        self.cells.clear();
        self.names.clear();
        self.names_size = 0;
        self.known.clear();
        self.shared.clear();
        Ok(goes_on)
    }

    /// Some of the groups; `names` are the values of all labels that are keys.
    fn batch(&self, range: Range<usize>, names: &[ArrayRef]) -> Result<RecordBatch> {
        let Groups { table, grouping, schema, .. } = self.groups;
        let slots = &self.slots[range.clone()];
        let of: UInt32Array = slots.iter().map(|(group, _)| *group).collect();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        let mut nth_label = 0;
        for key in &grouping.keys {
            arrays.push(match key {
                Key::Time(_) => {
                    let begins = slots.iter().map(|(_, begin)| *begin);
                    let times = TimestampMicrosecondArray::from_iter_values(begins);
                    let ty = column_type(&table.schema.columns[table.time]);
                    Arc::new(times.with_data_type(ty))
                }
                Key::Label(_) => {
                    nth_label += 1;
                    take(&names[nth_label - 1], &of, None)?
                }
            });
        }
        for (nth, (summary, _)) in grouping.summaries.iter().enumerate() {
            let cells = range.clone().map(|slot| self.cells[slot * self.sources.len() + nth]);
            arrays.push(match summary {
                Summary::Count | Summary::Rows => {
                    let counts = cells.map(|cell| i64::try_from(cell.count).unwrap_or(i64::MAX));
                    Arc::new(Int64Array::from_iter_values(counts))
                }
                _ => Arc::new(cells.map(|cell| cell.result(*summary)).collect::<Float64Array>()),
            });
        }
        Ok(RecordBatch::try_new(schema.clone(), arrays)?)
    }
}
