//! The series that are columns of the same rows.

use crate::tables::hypertables::shape::Hypertable;
use crate::types::error::SqlError;
use datafusion::common::{DataFusionError, Result};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use model::{Labels, METRIC_NAME};
use std::hash::BuildHasher as _;
use store::Selection;
use tables::Datum;

/// Labels of a series that say which table's it is.
const TABLE_LABELS: usize = 1;

/// That a column has no series.
const NONE: u32 = u32::MAX;

/// What there is of a hypertable, label set by label set.
pub struct Entities {
    selection: Selection,
    /// How many columns of values are read.
    columns: usize,
    /// A value for each label of the table, entity after entity.
    labels: Vec<Datum>,
    label_count: usize,
    /// The series of each column, entity after entity.
    series: Vec<u32>,
    count: usize,
    /// Whether no two of them have the same labels of the table.
    are_told_apart: bool,
}

/// Samples of one series.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// When, in nanoseconds.
    pub times: Vec<i64>,
    /// And their values.
    pub values: Vec<f64>,
}

/// How often series are selected whose labels are deleted meanwhile.
const TRIES_MAX: usize = 16;

fn external(error: store::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl Entities {
    /// Series of one column that nobody asks for the labels of.
    pub fn unnamed(selection: Selection) -> Entities {
        let count = selection.len();
        let series = (0..count).map(|idx| u32::try_from(idx).unwrap_or(NONE)).collect();
        let are_told_apart = count < 2;
        let (columns, labels, label_count) = (1, Vec::new(), 0);
        Entities { columns, labels, label_count, series, count, are_told_apart, selection }
    }

    /// Of what is selected: again, when a series was deleted between that and the reading of its labels.
    ///
    /// # Errors
    /// As [`Entities::new`]; [`store::Error::SeriesDropped`] when that happens each time.
    pub fn selected(
        table: &Hypertable,
        columns: &[usize],
        mut select: impl FnMut() -> Result<Selection>,
    ) -> Result<Entities> {
        let mut tries = 1;
        loop {
            match Entities::new(table, columns, select()?) {
                Err(error) if was_dropped(&error) && tries < TRIES_MAX => tries += 1,
                made => return made,
            }
        }
    }

    /// Of what was selected; `columns` are those of values that are read.
    ///
    /// # Errors
    /// When the index is corrupt, and when a label is no value of its column.
    pub fn new(table: &Hypertable, columns: &[usize], selection: Selection) -> Result<Entities> {
        let mut entities = Entities {
            columns: columns.len(),
            labels: Vec::new(),
            label_count: table.labels.len(),
            series: Vec::new(),
            count: 0,
            are_told_apart: true,
            selection,
        };
        let Rows { firsts, found } = Rows::of(table, columns, &entities.selection)?;
        let (order, places) = entities.tags(&firsts)?;
        let mut is_row = Vec::with_capacity(order.len());
        for tags in &order {
            let values = values_of(table, tags);
            is_row.push(values.is_ok());
            let is_as_written = |values| is_as_written(table, tags, values);
            entities.are_told_apart &= values.as_deref().map_or(true, is_as_written);
            // What no row of the table could have made is none of its rows: somebody else wrote it, or it was
            // a table of other columns that is gone.
            let none = || vec![Datum::Null; entities.label_count];
            entities.labels.extend(values.unwrap_or_else(|_| none()));
        }
        entities.count = order.len();
        entities.series = vec![NONE; entities.count * entities.columns];
        for (row, column, idx) in found {
            let at = places[row as usize];
            if is_row[at] {
                entities.series[at * entities.columns + column] = idx;
            }
        }
        Ok(entities)
    }

    /// The labels of rows, whose first series those are, each once, and where those of each row are.
    fn tags(&self, firsts: &[usize]) -> Result<(Vec<Labels>, Vec<usize>)> {
        let hasher = DefaultHashBuilder::default();
        let hash = |tags: &Labels| hasher.hash_one(tags);
        let mut known: HashTable<usize> = HashTable::with_capacity(firsts.len());
        let mut order: Vec<Labels> = Vec::with_capacity(firsts.len());
        let mut places = Vec::with_capacity(firsts.len());
        let mut take = |_: usize, labels: Labels| {
            let tags = labels.only(|name| name != METRIC_NAME.as_bytes());
            let is_it = |at: &usize| order[*at] == tags;
            let entry = known.entry(hash(&tags), is_it, |at| hash(&order[*at]));
            let at = *entry.or_insert(order.len()).get();
            if at == order.len() {
                order.push(tags);
            }
            places.push(at);
        };
        // What lies side by side is read at once.
        for run in firsts.chunk_by(|one, next| one + 1 == *next) {
            let range = run[0]..run[0] + run.len();
            self.selection.read_labels(range, None, &mut take).map_err(external)?;
        }
        Ok((order, places))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no two of them have the same labels of the table, as far as is known.
    pub fn are_told_apart(&self) -> bool {
        self.are_told_apart
    }

    /// How many are best read at once.
    pub fn batch_len(&self) -> usize {
        (self.selection.batch_len() / self.columns.max(1)).max(1)
    }

    /// The values of the labels of one.
    pub fn labels(&self, entity: usize) -> &[Datum] {
        &self.labels[entity * self.label_count..(entity + 1) * self.label_count]
    }

    /// Reads the samples of some: those of each column, entity after entity.
    ///
    /// # Errors
    /// When they cannot be read, or it takes too long.
    pub fn read(&self, range: std::ops::Range<usize>, into: &mut Vec<Samples>) -> Result<()> {
        let slots = range.start * self.columns..range.end * self.columns;
        into.resize_with(slots.len(), Samples::default);
        for samples in into.iter_mut() {
            samples.times.clear();
            samples.values.clear();
        }
        let mut wanted: Vec<(u32, usize)> = self.series[slots]
            .iter()
            .enumerate()
            .filter(|(_, idx)| **idx != NONE)
            .map(|(slot, idx)| (*idx, slot))
            .collect();
        wanted.sort_unstable();
        // What lies side by side is read at once.
        for run in wanted.chunk_by(|(one, _), (next, _)| one + 1 == *next) {
            let first = run[0].0 as usize;
            let read = self.selection.read(first..first + run.len(), &mut |idx, times, values| {
                let samples = &mut into[run[idx - first].1];
                samples.times.extend_from_slice(times);
                samples.values.extend_from_slice(values);
            });
            read.map_err(external)?;
        }
        Ok(())
    }
}

/// A series of each row there is, where each has all of these columns; none where some do not.
///
/// # Errors
/// When the index is corrupt.
pub fn whole_rows(
    table: &Hypertable,
    columns: &[usize],
    selection: &Selection,
) -> Result<Option<Vec<usize>>> {
    let Rows { firsts, found } = Rows::of(table, columns, selection)?;
    let mut counts = vec![0; firsts.len()];
    found.iter().for_each(|(row, _, _)| counts[*row as usize] += 1);
    Ok(counts.iter().all(|count| *count == columns.len()).then_some(firsts))
}

/// Series by the rows whose columns they are, before anybody reads their labels.
struct Rows {
    /// The first series of each row.
    firsts: Vec<usize>,
    /// The row, the column and the number of each series that is read.
    found: Vec<(u32, usize, u32)>,
}

impl Rows {
    fn of(table: &Hypertable, columns: &[usize], selection: &Selection) -> Result<Rows> {
        let metrics: HashMap<String, usize> =
            columns.iter().enumerate().map(|(nth, at)| (table.metric(*at), nth)).collect();
        let mut names: HashMap<u64, Option<usize>> = HashMap::new();
        let mut known: HashMap<u64, usize> = HashMap::new();
        let mut rows = Rows { firsts: Vec::new(), found: Vec::with_capacity(selection.len()) };
        // Series come metric by metric, and within each in one order: the next row is most often the one
        // behind the last.
        let (mut keys, mut guess, mut last): (Vec<u64>, usize, _) = (Vec::new(), 0, None);
        for idx in 0..selection.len() {
            let own = selection.keys(idx);
            let column = match last {
                Some((name, column)) if name == own.name => column,
                _ => match names.get(&own.name) {
                    Some(column) => *column,
                    None => {
                        let labels = selection.labels(idx).map_err(external)?;
                        let column = metrics.get(labels.metric_name()).copied();
                        names.insert(own.name, column);
                        column
                    }
                },
            };
            last = Some((own.name, column));
            let Some(column) = column else { continue };
            let row = match keys.get(guess) {
                Some(next) if *next == own.entity => guess,
                _ => *known.entry(own.entity).or_insert(keys.len()),
            };
            if row == keys.len() {
                keys.push(own.entity);
                rows.firsts.push(idx);
            }
            guess = row + 1;
            let number = |at: usize| u32::try_from(at).unwrap_or(NONE);
            rows.found.push((number(row), column, number(idx)));
        }
        Ok(rows)
    }
}

fn was_dropped(error: &DataFusionError) -> bool {
    let DataFusionError::External(inner) = error else { return false };
    matches!(inner.downcast_ref(), Some(store::Error::SeriesDropped))
}

fn values_of(table: &Hypertable, tags: &Labels) -> Result<Vec<Datum>, SqlError> {
    let value = |at: &usize| table.label_value(*at, tags.get(&table.schema.columns[*at].name));
    table.labels.iter().map(value).collect()
}

/// Whether labels are those that a row of the table has with such values. Somebody else may have written a label more,
/// that no column shows, or `+1` for 1.
fn is_as_written(table: &Hypertable, tags: &Labels, values: &[Datum]) -> bool {
    let shown = values.iter().filter(|value| **value != Datum::Null).count();
    let is_said = |(at, value): (&usize, &Datum)| {
        let (text, name) = (table.label_text(*at, value), &table.schema.columns[*at].name);
        matches!(value, Datum::Text(_)) || text.is_ok_and(|text| text.as_deref() == tags.get(name))
    };
    tags.len() <= shown + TABLE_LABELS && table.labels.iter().zip(values).all(is_said)
}
