//! The columns of a file that are parts of samples: which there are, and what a row has in them.

use crate::copy::copy_values::BadRow;
use crate::copy::parquet::errors::unreadable;
use crate::ddl_dml::insert::missing;
use crate::tables::metrics::tables::Column;
use crate::types::error::SqlError;
use crate::types::json::labels::labels_of;
use ::parquet::schema::types::SchemaDescriptor;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, Float64Array, Int64Array, MapArray, RecordBatch,
    StringViewArray, StructArray,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Field, Float64Type, Int64Type, Schema, SchemaRef, TimeUnit,
};
use model::{Labels, METRIC_NAME};
use std::sync::Arc;

/// Columns that only `quipu export` writes, for what SQL does not know.
pub const NANOS: &str = "nanos";
/// See [`NANOS`].
pub const START_MS: &str = "start_ms";
/// See [`NANOS`].
pub const HISTOGRAM: &str = "histogram";

/// Bytes of a row's labels: what a line of JSON may have of them.
const LABELS_SIZE_MAX: usize = wire::json_lines::KEY_SIZE_MAX / 2;
/// Labels of a row; the store takes fewer.
const LABELS_MAX: usize = 1000;
/// Bytes of a histogram's text.
const HISTOGRAM_SIZE_MAX: usize = 4 << 20;

/// What a column of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Of(Column),
    Nanos,
    StartMs,
    Histogram,
}

impl Part {
    /// The part that a column of that name is. The line of a sample says what the others do.
    fn named(name: &str) -> Option<Part> {
        match name {
            NANOS => Some(Part::Nanos),
            START_MS => Some(Part::StartMs),
            HISTOGRAM => Some(Part::Histogram),
            name => Column::OF_SAMPLES.into_iter().find(|one| one.is_named(name)).map(Part::Of),
        }
    }
}

/// The parts of samples that a file has, by the places of their columns.
#[derive(Clone, Debug)]
pub struct Parts {
    found: Vec<(usize, Part)>,
}

impl Parts {
    /// Those of a file; only those that are wanted, if somebody said which.
    ///
    /// # Errors
    /// When it has others, or no name and value.
    pub fn of(schema: &Schema, wanted: Option<&[Column]>) -> Result<Parts, SqlError> {
        let mut found: Vec<(usize, Part)> = Vec::new();
        for (at, field) in schema.fields().iter().enumerate() {
            let name = field.name();
            let part = Part::named(name);
            let is_wanted = |part: Part| match (part, wanted) {
                (_, None) => true,
                (Part::Of(column), Some(all)) => all.contains(&column),
                (_, Some(_)) => false,
            };
            match part {
                Some(Part::Of(Column::Sample)) => {}
                Some(part) if !is_wanted(part) => {}
                Some(part) if found.iter().any(|(_, other)| *other == part) => {
                    let words = format!("column \"{name}\" of the file is there twice");
                    return Err(SqlError::new("42701", words));
                }
                Some(part) => {
                    check_type(part, field)?;
                    found.push((at, part));
                }
                None if wanted.is_some() => {}
                None => return Err(unknown(name)),
            }
        }
        let has = |column: Column| found.iter().any(|(_, part)| *part == Part::Of(column));
        let needed = wanted.unwrap_or(&[]).iter().chain(&[Column::Name, Column::Value]);
        for column in needed.filter(|column| **column != Column::Sample) {
            if !has(*column) {
                let words = format!("the file has no column \"{}\"", column.name());
                return Err(SqlError::new("42703", words));
            }
        }
        Ok(Parts { found })
    }

    /// Whether that leaf of the file's columns belongs to one of them.
    pub fn has_leaf(&self, schema: &SchemaDescriptor, leaf: usize) -> bool {
        let root = schema.get_column_root_idx(leaf);
        self.found.iter().any(|(at, _)| *at == root)
    }

    /// Their places.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        self.found.iter().map(|(at, _)| *at)
    }

    /// What a batch has of them: its columns are theirs alone, in the order of the file.
    ///
    /// # Errors
    /// When a value cannot be what its column is.
    pub fn read(&self, batch: &RecordBatch) -> Result<Cells, SqlError> {
        let mut cells = Cells { len: batch.num_rows(), ..Cells::default() };
        for ((_, part), column) in self.found.iter().zip(batch.columns()) {
            cells.take(*part, column)?;
        }
        Ok(cells)
    }
}

fn unknown(name: &str) -> SqlError {
    let words = format!("column \"{name}\" of the file is no part of a sample");
    let hint = "Parts are time, name, value and labels: COPY metrics (time, name, value, labels) \
                passes over other columns.";
    SqlError::new("42703", words).with_hint(hint)
}

fn check_type(part: Part, field: &Field) -> Result<(), SqlError> {
    let of = field.data_type();
    let (is_right, wanted) = match part {
        Part::Of(Column::Time) => (matches!(of, DataType::Timestamp(..)), "a timestamp"),
        Part::Of(Column::Value) => (of.is_numeric(), "a number"),
        Part::Of(Column::Labels) => (
            matches!(of, DataType::Map(..) | DataType::Struct(_)) || of.is_string(),
            "a map or a structure of strings, or an object of JSON as a string",
        ),
        Part::Nanos | Part::StartMs => (of.is_integer(), "a whole number"),
        Part::Of(_) | Part::Histogram => (of.is_string(), "a string"),
    };
    if is_right {
        return Ok(());
    }
    let words = format!("column \"{}\" of the file is {wanted}, not {of}", field.name());
    Err(SqlError::new("42804", words))
}

/// A file's columns with their texts in the form that shares what is repeated: a dictionary's value
/// of a megabyte in each of a thousand rows is a megabyte.
pub fn sharing(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| Arc::new(shared(field)));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn shared(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Map(entries, is_sorted) => DataType::Map(Arc::new(shared(entries)), *is_sorted),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| Arc::new(shared(field))).collect())
        }
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

/// What a batch has.
#[derive(Default)]
pub struct Cells {
    /// Rows.
    pub len: usize,
    names: Option<StringViewArray>,
    values: Option<Float64Array>,
    times: Option<(TimeUnit, Int64Array)>,
    nanos: Option<Int64Array>,
    starts: Option<Int64Array>,
    histograms: Option<StringViewArray>,
    labels: LabelColumn,
}

/// Labels as they may come.
#[derive(Default)]
enum LabelColumn {
    #[default]
    None,
    Map(Box<(MapArray, StringViewArray, StringViewArray)>),
    Struct(StructArray, Vec<StringViewArray>),
    Json(StringViewArray),
}

/// What a sample is.
#[derive(Debug)]
pub enum Value<'a> {
    /// A number.
    Float(f64),
    /// A native histogram's text.
    Histogram(&'a str),
}

fn converted(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, SqlError> {
    // What cannot be is an error, no null.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, wanted, &options)
        .map_err(|error| SqlError::new("22P02", format!("the Parquet file: {error}")))
}

fn numbers(array: &ArrayRef) -> Result<Int64Array, SqlError> {
    Ok(converted(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

fn texts(array: &ArrayRef) -> Result<StringViewArray, SqlError> {
    Ok(converted(array, &DataType::Utf8View)?.as_string_view().clone())
}

impl Cells {
    fn take(&mut self, part: Part, array: &ArrayRef) -> Result<(), SqlError> {
        match part {
            Part::Of(Column::Name) => self.names = Some(texts(array)?),
            Part::Of(Column::Value) => {
                let values = converted(array, &DataType::Float64)?;
                self.values = Some(values.as_primitive::<Float64Type>().clone());
            }
            Part::Of(Column::Time) => {
                let DataType::Timestamp(unit, _) = array.data_type() else {
                    return Err(unreadable("a time that is none"));
                };
                self.times = Some((*unit, numbers(array)?));
            }
            Part::Of(Column::Labels) => self.labels = LabelColumn::of(array)?,
            Part::Of(_) => {}
            Part::Nanos => self.nanos = Some(numbers(array)?),
            Part::StartMs => self.starts = Some(numbers(array)?),
            Part::Histogram => self.histograms = Some(texts(array)?),
        }
        Ok(())
    }

    /// Whether two rows are of one series.
    pub fn is_same_series(&self, one: usize, other: usize) -> bool {
        let name =
            |at: usize| self.names.as_ref().map(|names| (names.is_null(at), names.value(at)));
        name(one) == name(other) && self.labels.is_same(one, other)
    }

    /// The series of a row.
    ///
    /// # Errors
    /// When it has no name, and when its labels are none.
    pub fn series(&self, at: usize) -> Result<Labels, BadRow> {
        let of_name = |bad: BadRow| bad.of_column(Column::Name.name());
        let names = self.names.as_ref().filter(|names| !names.is_null(at));
        let name = names.map(|names| names.value(at));
        let name = name.ok_or_else(|| of_name(missing(Column::Name).into()))?;
        if name.is_empty() {
            return Err(of_name(BadRow::new("22P02", "a metric's name is no empty text")));
        }
        let pairs = self.labels.pairs(at);
        let mut pairs = pairs.map_err(|bad| bad.of_column(Column::Labels.name()))?;
        pairs.push((METRIC_NAME.to_string(), name.to_string()));
        let size: usize = pairs.iter().map(|(name, value)| name.len() + value.len()).sum();
        if LABELS_SIZE_MAX < size {
            let words = format!("name and labels of {size} bytes, the limit is {LABELS_SIZE_MAX}");
            return Err(BadRow::new("54000", words));
        }
        Ok(Labels::from_pairs(&pairs))
    }

    /// When a row was, in nanoseconds; none where it does not say.
    ///
    /// # Errors
    /// When no clock says so.
    pub fn time(&self, at: usize) -> Result<Option<i64>, BadRow> {
        let Some((unit, times)) = self.times.as_ref().filter(|(_, times)| !times.is_null(at))
        else {
            return Ok(None);
        };
        let factor = match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1,
        };
        let behind = self.number(self.nanos.as_ref(), at).unwrap_or(0);
        let time = times.value(at).checked_mul(factor).and_then(|time| time.checked_add(behind));
        let out_of_range = || BadRow::new("22008", "timestamp out of range");
        time.map(Some).ok_or_else(|| out_of_range().of_column(Column::Time.name()))
    }

    fn number(&self, column: Option<&Int64Array>, at: usize) -> Option<i64> {
        column.filter(|column| !column.is_null(at)).map(|column| column.value(at))
    }

    /// Since when a row counts, in milliseconds; 0 where it does not say.
    pub fn start_ms(&self, at: usize) -> i64 {
        self.number(self.starts.as_ref(), at).unwrap_or(0)
    }

    /// What a row is.
    ///
    /// # Errors
    /// When it is nothing, or too much.
    pub fn value(&self, at: usize) -> Result<Value<'_>, BadRow> {
        let histograms = self.histograms.as_ref().filter(|all| !all.is_null(at));
        if let Some(text) = histograms.map(|all| all.value(at)) {
            if HISTOGRAM_SIZE_MAX < text.len() {
                let size = text.len();
                let words =
                    format!("a histogram of {size} bytes, the limit is {HISTOGRAM_SIZE_MAX}");
                return Err(BadRow::new("54000", words).of_column(HISTOGRAM));
            }
            return Ok(Value::Histogram(text));
        }
        let values = self.values.as_ref().filter(|values| !values.is_null(at));
        let value = values.map(|values| Value::Float(values.value(at)));
        let bad = || BadRow::from(missing(Column::Value)).of_column(Column::Value.name());
        value.ok_or_else(bad)
    }
}

impl LabelColumn {
    fn of(array: &ArrayRef) -> Result<LabelColumn, SqlError> {
        Ok(match array.data_type() {
            DataType::Map(..) => {
                let map = array.as_map().clone();
                let (keys, values) = (texts(map.keys())?, texts(map.values())?);
                LabelColumn::Map(Box::new((map, keys, values)))
            }
            DataType::Struct(_) => {
                let all = array.as_struct().clone();
                let columns: Result<_, _> = all.columns().iter().map(texts).collect();
                LabelColumn::Struct(all, columns?)
            }
            _ => LabelColumn::Json(texts(array)?),
        })
    }

    fn is_same(&self, one: usize, other: usize) -> bool {
        match self {
            LabelColumn::None => true,
            LabelColumn::Json(all) => {
                all.is_null(one) == all.is_null(other) && all.value(one) == all.value(other)
            }
            LabelColumn::Map(all) => {
                let (map, keys, values) = &**all;
                let (first, second) = (range(map, one), range(map, other));
                let pair = |at: usize| (keys.value(at), values.is_null(at), values.value(at));
                first.len() == second.len() && first.zip(second).all(|(a, b)| pair(a) == pair(b))
            }
            LabelColumn::Struct(all, columns) => {
                let same = |column: &StringViewArray| {
                    let at = |row: usize| (column.is_null(row), column.value(row));
                    at(one) == at(other)
                };
                all.is_null(one) == all.is_null(other) && columns.iter().all(same)
            }
        }
    }

    /// The labels of a row. Those without a value are none.
    fn pairs(&self, at: usize) -> Result<Vec<(String, String)>, BadRow> {
        let pairs: Vec<(&str, &str)> = match self {
            LabelColumn::None => Vec::new(),
            LabelColumn::Json(all) if all.is_null(at) => Vec::new(),
            LabelColumn::Json(all) if LABELS_SIZE_MAX < all.value(at).len() => {
                let size = all.value(at).len();
                let words = format!("labels of {size} bytes, the limit is {LABELS_SIZE_MAX}");
                return Err(BadRow::new("54000", words));
            }
            LabelColumn::Json(all) => return Ok(labels_of(all.value(at))?),
            LabelColumn::Map(all) => {
                let (map, keys, values) = &**all;
                let there = range(map, at).filter(|at| !values.is_null(*at));
                there.map(|at| (keys.value(at), values.value(at))).take(LABELS_MAX + 1).collect()
            }
            LabelColumn::Struct(all, _) if all.is_null(at) => Vec::new(),
            LabelColumn::Struct(all, columns) => {
                let named = all.column_names().into_iter().zip(columns);
                let there = named.filter(|(_, column)| !column.is_null(at));
                there.map(|(name, column)| (name, column.value(at))).take(LABELS_MAX + 1).collect()
            }
        };
        if LABELS_MAX < pairs.len() {
            let words = format!("more than {LABELS_MAX} labels, which is the limit");
            return Err(BadRow::new("54000", words));
        }
        let size: usize = pairs.iter().map(|(name, value)| name.len() + value.len()).sum();
        if LABELS_SIZE_MAX < size {
            let words = format!("labels of {size} bytes, the limit is {LABELS_SIZE_MAX}");
            return Err(BadRow::new("54000", words));
        }
        let mut names: Vec<&str> = pairs.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        if let Some(two) = names.windows(2).find(|two| two[0] == two[1]) {
            return Err(BadRow::new("22P02", format!("label {:?} is there twice", two[0])));
        }
        if let Some(name) = names.iter().find(|name| name.is_empty() || **name == METRIC_NAME) {
            return Err(BadRow::new("22P02", format!("a label cannot be called {name:?}")));
        }
        Ok(pairs.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }
}

/// The entries of a row; none of a null.
fn range(map: &MapArray, at: usize) -> std::ops::Range<usize> {
    if map.is_null(at) {
        return 0..0;
    }
    let place = |at: usize| usize::try_from(map.value_offsets()[at]).unwrap_or(0);
    place(at)..place(at + 1)
}
