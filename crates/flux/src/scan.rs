//! `from |> range |> filter`: what is asked of the source, and the tables that it becomes, one for
//! each series.

use crate::error::{Error, Result};
use crate::eval::Evaluation;
use crate::predicate::{Known, Predicate};
use crate::table::{Column, Table};
use crate::value::{Kind, Value};
use influxql::ast::DataType;
use influxql::{Place, SeriesSet};
use model::{Labels, Matcher, TimeRange};
use std::sync::Arc;

/// What a bucket will be asked.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) bucket: Arc<str>,
    /// From, and the first moment that is not wanted any more.
    pub(crate) range: Option<(i64, i64)>,
    /// Conditions that must all hold.
    pub(crate) filters: Vec<Predicate>,
}

/// Fields of a measurement that may have what is wanted.
pub(crate) struct Candidate {
    pub(crate) measurement: Arc<str>,
    pub(crate) fields: Vec<Field>,
    /// Conditions on tags for the index.
    pub(crate) matchers: Vec<Matcher>,
    /// Whether all fields of the measurement are there, and the matchers say all.
    pub(crate) is_simple: bool,
}

/// A field, or the strings that a field of numbers has besides, which are tables of their own.
#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    kind: DataType,
    is_beside: bool,
}

/// What receives the tables of a scan.
pub(crate) type Sink<'s> = dyn FnMut(Table) -> Result<()> + 's;

/// What receives measurement, field and tags of series.
pub(crate) type SeriesSink<'s> = dyn FnMut(&str, &str, &Labels) -> Result<()> + 's;

impl Scan {
    /// The measurements and fields that may have what is wanted.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) fn candidates(&self, evaluation: &Evaluation<'_>) -> Result<Vec<Candidate>> {
        let database = self.bucket.as_ref();
        let named = self.filters.iter().find_map(|filter| filter.values_of("_measurement"));
        let mut measurements = match named {
            Some(names) => names,
            None => {
                let all = evaluation.source.measurements(database)?;
                all.into_iter().map(Arc::from).collect()
            }
        };
        measurements.sort();
        measurements.dedup();
        let matchers: Vec<Matcher> = self.filters.iter().filter_map(Predicate::matcher).collect();
        let mut found = Vec::new();
        for measurement in measurements {
            evaluation.check_time()?;
            let mut is_simple = true;
            let all = evaluation.source.fields(database, &measurement)?;
            let mut fields: Vec<Field> = all
                .into_iter()
                .map(|(name, kind)| Field { name, kind, is_beside: false })
                .filter(|field| {
                    let truth = |filter: &Predicate| {
                        filter.test(&|column| known(column, &measurement, &field.name))
                    };
                    let is_wanted = self.filters.iter().all(|filter| truth(filter) != Some(false));
                    let is_open =
                        |filter: &Predicate| truth(filter).is_none() && !filter.is_exact();
                    is_simple &= is_wanted && !self.filters.iter().any(is_open);
                    is_wanted
                })
                .collect();
            let has_texts = |field: &&Field| {
                evaluation.source.has_texts_beside(database, &measurement, &field.name)
            };
            let texts: Vec<Field> = fields.iter().filter(has_texts).cloned().collect();
            let beside = |field| Field { kind: DataType::String, is_beside: true, ..field };
            fields.extend(texts.into_iter().map(beside));
            if !fields.is_empty() {
                let matchers = matchers.clone();
                found.push(Candidate { measurement, fields, matchers, is_simple });
            }
        }
        Ok(found)
    }

    /// The time that is asked for.
    ///
    /// # Errors
    /// When nobody has said.
    pub(crate) fn bounds(&self) -> Result<(i64, i64)> {
        self.range.ok_or_else(|| {
            Error::runtime(format!(
                "cannot submit unbounded read to {:?}; try bounding 'from' with a call to 'range'",
                self.bucket
            ))
        })
    }

    /// The series of a field.
    fn select<'s>(
        &self,
        evaluation: &Evaluation<'s>,
        candidate: &Candidate,
        field: &Field,
        bounds: (i64, i64),
    ) -> Result<Box<dyn SeriesSet + 's>> {
        let (source, place) = (evaluation.source, self.place(&candidate.measurement, bounds));
        Ok(match field.is_beside {
            true => source.select_texts_beside(&place, &field.name, &candidate.matchers)?,
            false => source.select(&place, &field.name, &candidate.matchers)?,
        })
    }

    fn place<'p>(&'p self, measurement: &'p str, (start, stop): (i64, i64)) -> Place<'p> {
        let range = TimeRange { start, end: stop.saturating_sub(1) };
        Place { database: &self.bucket, measurement, range }
    }

    /// Calls `sink` for each series that may have samples.
    ///
    /// # Errors
    /// A failed read, or what `sink` says.
    pub(crate) fn series(
        &self,
        evaluation: &Evaluation<'_>,
        sink: &mut SeriesSink<'_>,
    ) -> Result<()> {
        let bounds = self.bounds()?;
        for candidate in self.candidates(evaluation)? {
            for field in &candidate.fields {
                evaluation.check_time()?;
                let set = self.select(evaluation, &candidate, field, bounds)?;
                for labels in set.tags(None)? {
                    let look = |column: &str| {
                        known_of_series(column, &candidate.measurement, &field.name, &labels)
                    };
                    if self.filters.iter().all(|filter| filter.test(&look) != Some(false)) {
                        sink(&candidate.measurement, &field.name, &labels)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls `sink` for the table of each series that has rows.
    ///
    /// # Errors
    /// A failed read, or what `sink` says.
    pub(crate) fn read(&self, evaluation: &Evaluation<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let bounds = self.bounds()?;
        if bounds.1 <= bounds.0 {
            return Ok(());
        }
        for candidate in self.candidates(evaluation)? {
            self.read_measurement(evaluation, &candidate, bounds, sink)?;
        }
        Ok(())
    }

    /// Tables in the order of their tags, then fields, as InfluxDB's.
    fn read_measurement(
        &self,
        evaluation: &Evaluation<'_>,
        candidate: &Candidate,
        bounds: (i64, i64),
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let mut sets = Vec::with_capacity(candidate.fields.len());
        let mut order: Vec<(Labels, usize, usize)> = Vec::new();
        for (at, field) in candidate.fields.iter().enumerate() {
            let set = self.select(evaluation, candidate, field, bounds)?;
            let tags = set.tags(None)?;
            order.extend(tags.into_iter().enumerate().map(|(idx, tags)| (tags, at, idx)));
            sets.push(set);
        }
        order.sort();
        for (tags, at, idx) in order {
            evaluation.check_time()?;
            let Field { name: field, kind, .. } = &candidate.fields[at];
            let series = Series { measurement: &candidate.measurement, field, tags: &tags };
            let look = |column: &str| known_of_series(column, series.measurement, field, &tags);
            let truths = self.filters.iter().map(|filter| (filter, filter.test(&look)));
            let mut open: Vec<&Predicate> = Vec::new();
            let mut is_wanted = true;
            for (filter, truth) in truths {
                match truth {
                    Some(true) => {}
                    Some(false) => is_wanted = false,
                    None => open.push(filter),
                }
            }
            if !is_wanted {
                continue;
            }
            let mut table = None;
            read_column(&*sets[at], *kind, idx, &mut |times, column| {
                table = Some(series.table(times, column, bounds));
            })?;
            let Some(table) = table else { continue };
            let size = table.size() as u64;
            evaluation.budget.take(size)?;
            let table = match open.is_empty() {
                true => table,
                false => filtered(evaluation, &table, &open)?,
            };
            let result = if table.rows == 0 { Ok(()) } else { sink(table) };
            evaluation.budget.give_back(size);
            result?;
        }
        Ok(())
    }
}

/// The rows of which all conditions are true.
///
/// # Errors
/// What goes wrong in a condition.
pub(crate) fn filtered(
    evaluation: &Evaluation<'_>,
    table: &Table,
    filters: &[&Predicate],
) -> Result<Table> {
    let mut rows = Vec::new();
    'rows: for row in 0..table.rows {
        evaluation.tick(row)?;
        let look = |column: &str| match table.column(column) {
            Some(column) => Known::Value(column.get(row)),
            None => Known::Value(Value::Null),
        };
        let record = || Value::Record(Arc::new(table.row(row)));
        for filter in filters {
            if filter.holds(evaluation, &look, &record)? != Some(true) {
                continue 'rows;
            }
        }
        rows.push(row);
    }
    Ok(if rows.len() == table.rows { table.clone() } else { table.picked(&rows) })
}

fn known(column: &str, measurement: &str, field: &str) -> Known {
    match column {
        "_measurement" => Known::Value(Value::text(measurement)),
        "_field" => Known::Value(Value::text(field)),
        _ => Known::Unknown,
    }
}

fn known_of_series(column: &str, measurement: &str, field: &str, tags: &Labels) -> Known {
    match column {
        "_measurement" | "_field" => known(column, measurement, field),
        "_value" | "_time" | "_start" | "_stop" => Known::Unknown,
        tag => match tags.get(tag) {
            Some(value) => Known::Value(Value::text(value)),
            None => Known::NoTag,
        },
    }
}

struct Series<'s> {
    measurement: &'s str,
    field: &'s str,
    tags: &'s Labels,
}

impl Series<'_> {
    fn table(&self, times: &[i64], values: Column, bounds: (i64, i64)) -> Table {
        let mut columns = vec![
            Column::key("_start", Value::Time(bounds.0)),
            Column::key("_stop", Value::Time(bounds.1)),
            Column::times("_time", times.to_vec()),
            values,
            Column::key("_field", Value::text(self.field)),
            Column::key("_measurement", Value::text(self.measurement)),
        ];
        columns.extend(self.tags.iter().map(|(name, value)| Column::key(name, Value::text(value))));
        Table { columns, rows: times.len(), bounds: Some(bounds) }
    }
}

/// Calls `sink` with the times and values of a series that has some.
fn read_column(
    set: &dyn SeriesSet,
    kind: DataType,
    idx: usize,
    sink: &mut dyn FnMut(&[i64], Column),
) -> Result<()> {
    match set.integers() {
        Some(integers) => integers.read(idx..idx + 1, &mut |_, times, numbers| {
            if !times.is_empty() {
                let cells = numbers.iter().copied().map(Value::Integer).collect();
                sink(times, Column::values("_value", Kind::Integer, cells));
            }
        })?,
        None => set.read(idx..idx + 1, &mut |_, times, values| {
            if !times.is_empty() {
                sink(times, field_column(values, kind, set));
            }
        })?,
    }
    Ok(())
}

fn field_column(values: &[f64], kind: DataType, set: &dyn SeriesSet) -> Column {
    let cells = |make: fn(f64) -> Value| values.iter().map(|value| make(*value)).collect();
    match kind {
        DataType::Integer => {
            Column::values("_value", Kind::Integer, cells(|value| Value::Integer(value as i64)))
        }
        DataType::Unsigned => {
            Column::values("_value", Kind::Unsigned, cells(|value| Value::Unsigned(value as u64)))
        }
        DataType::Boolean => {
            Column::values("_value", Kind::Boolean, cells(|value| Value::Boolean(value != 0.0)))
        }
        DataType::String => {
            let text = |value: &f64| set.text(*value).map_or(Value::Null, Value::Text);
            Column::values("_value", Kind::Text, values.iter().map(text).collect())
        }
        _ => Column::floats("_value", values.to_vec()),
    }
}
