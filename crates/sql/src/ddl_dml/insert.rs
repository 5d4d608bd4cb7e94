//! `INSERT INTO metrics`: a query whose rows become lines of exposition text, which go where those of
//! a `COPY` go.

use crate::parse::rewrite::{cast_to, now};
use crate::session::statements::{Parsed, Query};
use crate::tables::metrics::tables::Column;
use crate::types::error::SqlError;
use crate::types::json::jsonb;
use crate::types::names::folded;
use crate::types::postgres_types as types;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Float64Type, TimestampMicrosecondType};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Insert as Statement, ObjectName, ObjectNamePart, SetExpr, TableObject, Value,
};
use model::sample::NANOS_PER_MICRO;
use model::{Labels, METRIC_NAME};
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use wire::exposition::Format;
use wire::exposition::encode::push_series;
use wire::prom_json::push_exposition_value;

/// Microseconds of a second.
const MICROS: i64 = 1_000_000;

/// `INSERT INTO table (columns) query`.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The table.
    pub table: String,
    /// Whose rows.
    pub query: Query,
    columns: Columns,
}

/// Which columns the values of a row are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(Option<Vec<Column>>);

/// What `INSERT` wants of each column, by SQL's names.
fn sql_type(column: Column) -> &'static str {
    match column {
        Column::Sample | Column::Name => "text",
        Column::Time => "timestamptz",
        Column::Value => "double precision",
        Column::Labels => "jsonb",
        Column::SeriesId => "bigint",
    }
}

impl Insert {
    /// Of a statement.
    ///
    /// # Errors
    /// When it has what is not known here, and when its columns are none of samples.
    pub fn of(statement: Statement) -> Result<Insert, SqlError> {
        if statement.on.is_some() || statement.returning.is_some() {
            let words = "INSERT with ON CONFLICT or RETURNING is not known here: of two samples of \
                         one series at one time the later one stays";
            return Err(SqlError::unsupported(words));
        }
        let (TableObject::TableName(name), Some(mut source)) = (statement.table, statement.source)
        else {
            return Err(SqlError::unsupported("INSERT takes VALUES or a query"));
        };
        let table = table_of(&name)?;
        let named = statement.columns.iter().map(column_of).collect::<Result<Vec<_>, _>>()?;
        let columns = Columns((!named.is_empty()).then_some(named));
        if let SetExpr::Values(values) = &mut *source.body {
            for row in &mut values.rows {
                let kinds = columns.of(row.content.len())?;
                for (expr, column) in row.content.iter_mut().zip(kinds) {
                    *expr = value_for(expr, *column)?;
                }
            }
        }
        match Query::of(source)? {
            Parsed::Query(query) => Ok(Insert { table, query, columns }),
            _ => Err(SqlError::unsupported("INSERT takes VALUES or a query")),
        }
    }

    /// Which columns its rows fill.
    pub fn columns(&self) -> Columns {
        self.columns.clone()
    }
}

/// A table's name; all there are stand in one schema.
fn table_of(name: &ObjectName) -> Result<String, SqlError> {
    let parts: Vec<String> =
        name.0.iter().filter_map(ObjectNamePart::as_ident).map(folded).collect();
    match parts.as_slice() {
        [table] => Ok(table.clone()),
        [.., schema, table] if schema == "public" => Ok(table.clone()),
        other => {
            let message = format!("relation \"{}\" does not exist", other.join("."));
            Err(SqlError::new("42P01", message))
        }
    }
}

fn last_name(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(ObjectNamePart::as_ident)
}

fn column_of(name: &ObjectName) -> Result<Column, SqlError> {
    let name = last_name(name).map(folded).unwrap_or_default();
    Column::OF_SAMPLES.into_iter().find(|one| one.is_named(&name)).ok_or_else(|| {
        let message = format!(
            "column \"{name}\" does not exist: samples have sample, or time, name, value and labels"
        );
        SqlError::new("42703", message)
    })
}

/// A value as its column wants it.
fn value_for(expr: &Expr, column: Column) -> Result<Expr, SqlError> {
    let is_default = matches!(expr, Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"));
    match (is_default, column) {
        (false, _) if has_no_type(expr) => Ok(cast_to(expr.clone(), column)),
        // What has one is looked at when its rows come.
        (false, _) => Ok(expr.clone()),
        (true, Column::Time) => Ok(now()),
        (true, Column::Labels) => {
            Ok(cast_to(Expr::Value(Value::SingleQuotedString("{}".into()).into()), column))
        }
        (true, _) => Err(missing(column)),
    }
}

/// Whether a value is what its column makes of it: a text between quotes, or a parameter.
fn has_no_type(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => has_no_type(inner),
        Expr::Value(value) => !matches!(value.value, Value::Number(..) | Value::Boolean(_)),
        _ => false,
    }
}

impl Columns {
    /// Those of rows of so many values.
    fn of(&self, count: usize) -> Result<&[Column], SqlError> {
        let all: &[Column] = match &self.0 {
            Some(named) => named,
            None => Column::OF_SAMPLES.get(..count).unwrap_or(&Column::OF_SAMPLES),
        };
        if all.len() != count {
            let words = match all.len() < count {
                true => "INSERT has more expressions than target columns",
                false => "INSERT has more target columns than expressions",
            };
            return Err(SqlError::invalid(words));
        }
        for (at, column) in all.iter().enumerate() {
            if all[..at].contains(column) {
                let name = column.name();
                let message = format!("column \"{name}\" specified more than once");
                return Err(SqlError::new("42701", message));
            }
        }
        let is_line = all == [Column::Sample];
        let has_parts = !all.contains(&Column::Sample)
            && all.contains(&Column::Name)
            && all.contains(&Column::Value);
        match is_line || has_parts {
            true => Ok(all),
            false => Err(SqlError::unsupported(
                "a sample is inserted as a line, INSERT INTO metrics VALUES ('up 1'), or by its \
                 parts, INSERT INTO metrics (time, name, value, labels)",
            )),
        }
    }

    /// What the lines of such rows are written in: as they came, or to the microsecond.
    pub fn format(&self) -> Format {
        match &self.0 {
            Some(all) if !all.contains(&Column::Sample) => Format::OpenMetrics,
            _ => Format::Text,
        }
    }

    /// Appends rows as lines of exposition text; returns how many.
    ///
    /// # Errors
    /// When a value is missing, or none of its column's.
    pub fn push_lines(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<usize, SqlError> {
        let columns = self.of(batch.num_columns())?;
        let mut row = Cells::default();
        for (column, array) in columns.iter().zip(batch.columns()) {
            *row.of(*column) = converted(array, *column)?;
        }
        match &row.sample {
            Some(lines) => push_given(lines, out)?,
            None => (0..batch.num_rows()).try_for_each(|at| row.push_line(at, out))?,
        }
        Ok(batch.num_rows())
    }
}

/// The columns of some rows, each of its type.
#[derive(Default)]
struct Cells {
    sample: Option<ArrayRef>,
    time: Option<ArrayRef>,
    name: Option<ArrayRef>,
    value: Option<ArrayRef>,
    labels: Option<ArrayRef>,
    id: Option<ArrayRef>,
}

impl Cells {
    fn of(&mut self, column: Column) -> &mut Option<ArrayRef> {
        match column {
            Column::Sample => &mut self.sample,
            Column::Time => &mut self.time,
            Column::Name => &mut self.name,
            Column::Value => &mut self.value,
            Column::Labels => &mut self.labels,
            // No sample has it by itself: it is none of those that can be named.
            Column::SeriesId => &mut self.id,
        }
    }

    fn push_line(&self, at: usize, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let (Some(names), Some(values)) = (&self.name, &self.value) else {
            return Err(missing(Column::Name));
        };
        let times = self.time.as_ref().filter(|times| times.is_valid(at));
        let labels = self.labels.as_ref().filter(|labels| labels.is_valid(at));
        let parts = Parts {
            name: names.as_string_view().value(at),
            labels: labels.map(|labels| labels.as_string_view().value(at)),
            value: values.as_primitive::<Float64Type>().value(at),
            micros: times.map(|times| times.as_primitive::<TimestampMicrosecondType>().value(at)),
        };
        parts.push_line(out)
    }
}

/// A sample, taken apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts<'a> {
    /// The metric's name.
    pub name: &'a str,
    /// All other labels, as an object of texts; none without any.
    pub labels: Option<&'a str>,
    /// What.
    pub value: f64,
    /// When, in microseconds since 1970; none for now.
    pub micros: Option<i64>,
}

impl Parts<'_> {
    /// Appends it as a line of exposition text in [`Format::OpenMetrics`].
    ///
    /// # Errors
    /// When labels are none, or the time cannot be kept.
    pub fn push_line(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let mut pairs = vec![(METRIC_NAME.to_string(), self.name.to_string())];
        if let Some(labels) = self.labels {
            pairs.extend(labels_of(labels)?);
        }
        pairs.iter().try_for_each(|(name, value)| no_zero(name).and_then(|()| no_zero(value)))?;
        let time = self.micros.map(checked_time).transpose()?;
        push_series(out, &Labels::from_pairs(&pairs));
        out.push(b' ');
        push_exposition_value(out, self.value);
        if let Some(micros) = time {
            let sign = if micros < 0 { "-" } else { "" };
            let (micros, second) = (micros.unsigned_abs(), MICROS.unsigned_abs());
            let text = format!(" {sign}{}.{:06}", micros / second, micros % second);
            out.extend_from_slice(text.as_bytes());
        }
        out.push(b'\n');
        Ok(())
    }
}

/// A time that nanoseconds can say.
fn checked_time(micros: i64) -> Result<i64, SqlError> {
    match micros.checked_mul(NANOS_PER_MICRO) {
        Some(_) => Ok(micros),
        None => {
            let message = "timestamp out of range: it is not within 1678 to 2261".to_string();
            Err(SqlError::new("22008", message))
        }
    }
}

/// A column's values in its type; none where all are null. None is missing, but of times and labels,
/// which may as well be left out.
fn converted(array: &ArrayRef, column: Column) -> Result<Option<ArrayRef>, SqlError> {
    let is_nothing = *array.data_type() == DataType::Null;
    let may_lack = matches!(column, Column::Time | Column::Labels);
    if (is_nothing || array.null_count() != 0) && !may_lack {
        return Err(missing(column));
    }
    if is_nothing {
        return Ok(None);
    }
    let field = column.field(column.name());
    let given = array.data_type();
    let is_text = |one: &DataType| one.is_string();
    // PostgreSQL turns values into others only where it is told to, but for literals, which come as
    // texts.
    let is_kin = match column {
        Column::Value => given.is_numeric(),
        Column::Time => matches!(given, DataType::Timestamp(..) | DataType::Date32),
        _ => false,
    };
    if !is_text(given) && !is_kin {
        return Err(mismatched(array, column));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, field.data_type(), &options).map(Some).map_err(|failure| {
        use datafusion::arrow::error::ArrowError;
        match failure {
            ArrowError::ParseError(words) | ArrowError::CastError(words)
                if is_text(array.data_type()) =>
            {
                not_that(words)
            }
            _ => mismatched(array, column),
        }
    })
}

/// That a text has no zero byte: PostgreSQL's texts have none, and its clients end there.
fn no_zero(text: &str) -> Result<(), SqlError> {
    match text.contains('\0') {
        true => Err(SqlError::not_text("invalid byte sequence for encoding \"UTF8\": 0x00")),
        false => Ok(()),
    }
}

fn not_that(message: String) -> SqlError {
    SqlError::new("22P02", message)
}

fn mismatched(array: &ArrayRef, column: Column) -> SqlError {
    let given = types::type_name(types::of_arrow(array.data_type()));
    let given = given.unwrap_or_else(|| array.data_type().to_string());
    let (name, wanted) = (column.name(), sql_type(column));
    let message =
        format!("column \"{name}\" is of type {wanted} but expression is of type {given}");
    SqlError::new("42804", message)
}

/// Appends lines as they were given, each by itself.
fn push_given(lines: &ArrayRef, out: &mut Vec<u8>) -> Result<(), SqlError> {
    lines.as_string_view().iter().flatten().try_for_each(|line| push_one(line, out))
}

/// Appends a line as it was given.
///
/// # Errors
/// When it is none, or more than one.
pub fn push_one(line: &str, out: &mut Vec<u8>) -> Result<(), SqlError> {
    no_zero(line)?;
    let said = line.trim();
    let is_one =
        !line.contains(['\n', '\r']) && !said.is_empty() && !said.starts_with('#') && said != "\\.";
    if !is_one {
        let words = format!("invalid input syntax for prometheus sample: {line:?} is not one");
        return Err(not_that(words));
    }
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
    Ok(())
}

/// That a column has no value.
pub fn missing(column: Column) -> SqlError {
    let name = column.name();
    SqlError::new("23502", format!("null value in column \"{name}\""))
}

/// The pairs of a `jsonb` object of texts, no more than 1,000.
///
/// # Errors
/// When it is none, or a label cannot be called so.
pub fn labels_of(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = reader.deserialize_map(Pairs).and_then(|read| reader.end().map(|()| read));
    let ReadPairs { pairs, count } =
        read.map_err(|_| not_that(format!("labels are an object of texts, not {}", shown(text))))?;
    if LABELS_MAX < count {
        let words = format!("{count} labels, the limit is {LABELS_MAX}");
        return Err(SqlError::limit(words));
    }
    let pair = |(name, value): (String, _)| match value {
        serde_json::Value::String(_) if name == METRIC_NAME || name.is_empty() => {
            Err(not_that(format!("a label cannot be called {name:?}")))
        }
        serde_json::Value::String(value) if name.contains('\0') || value.contains('\0') => {
            Err(SqlError::new("22P05", jsonb::ZERO_REFUSED))
        }
        serde_json::Value::String(value) => Ok((name, value)),
        other => {
            let (name, other) = (shown(&name), shown(&other.to_string()));
            Err(not_that(format!("label {name:?} is {other}, which is no text")))
        }
    };
    pairs.into_iter().map(pair).collect()
}

/// Labels of a sample that are read. The store takes fewer, by a flag of its own; this bounds what is
/// made of a text before it is asked.
const LABELS_MAX: usize = 1000;
/// Characters of a text that an error shows.
const SHOWN_LEN_MAX: usize = 100;

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_LEN_MAX).collect()
}

/// What was read of an object: as many pairs as may be kept, and how many there are.
#[derive(Default)]
struct ReadPairs {
    pairs: serde_json::Map<String, serde_json::Value>,
    count: usize,
}

/// Reads an object.
struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = ReadPairs;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ReadPairs, A::Error> {
        let mut read = ReadPairs::default();
        while read.pairs.len() < LABELS_MAX {
            let Some((name, value)) = map.next_entry()? else {
                read.count = read.pairs.len();
                return Ok(read);
            };
            // The last of one name wins, as in PostgreSQL.
            read.pairs.insert(name, value);
        }
        read.count = read.pairs.len();
        // Only counted, without heed to those that are there twice.
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            read.count += 1;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::statements::parse;
    use datafusion::arrow::array::{
        Float64Array, Int64Array, NullArray, StringArray, TimestampNanosecondArray,
    };
    use std::sync::Arc;

    fn inserted(text: &str) -> Result<Insert, SqlError> {
        match parse(text)?.pop() {
            Some(Parsed::Insert(insert)) => Ok(insert),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn lines(text: &str, columns: Vec<ArrayRef>) -> Result<String, SqlError> {
        let named =
            columns.into_iter().enumerate().map(|(at, array)| (at.to_string(), array, true));
        let batch = RecordBatch::try_from_iter_with_nullable(named).unwrap();
        let mut out = Vec::new();
        inserted(text)?.columns().push_lines(&batch, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn rows_become_lines() {
        let texts = |all: &[&str]| Arc::new(StringArray::from(all.to_vec())) as ArrayRef;
        let parts = "INSERT INTO metrics (time, name, value, labels) SELECT 1";
        let columns = vec![
            Arc::new(TimestampNanosecondArray::from(vec![
                1_500_000_000_123_456_789,
                -1_500_000_000,
            ])) as ArrayRef,
            texts(&["a", "b c"]),
            Arc::new(Float64Array::from(vec![f64::NAN, 1e-9])),
            texts(&["{\"x\": \"1\\n\"}", "{}"]),
        ];
        let expected = "a{x=\"1\\n\"} NaN 1500000000.123456\n{\"b c\"} 1e-09 -1.500000\n";
        assert_eq!(lines(parts, columns).unwrap(), expected);
        let given = lines("INSERT INTO metrics_cx VALUES ('x')", vec![texts(&["up 1"])]);
        assert_eq!(given.unwrap(), "up 1\n");
        let numbers = || Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
        let both = "INSERT INTO metrics_cx (metric, value) SELECT 1";
        assert_eq!(lines(both, vec![texts(&["a", "b"]), numbers()]).unwrap(), "a 1\nb 2\n");
        for (columns, code) in [
            (vec![numbers(), numbers()], "42804"),
            (vec![texts(&["a"]), texts(&["x"])], "22P02"),
            (vec![texts(&["a"]), Arc::new(Float64Array::from(vec![None])) as ArrayRef], "23502"),
            (vec![texts(&["a"])], "42601"),
        ] {
            assert_eq!(lines(both, columns).unwrap_err().code, code);
        }
        let none = vec![texts(&["a"]), texts(&["1"]), Arc::new(NullArray::new(1)) as ArrayRef];
        let labels = "INSERT INTO metrics (name, value, labels) SELECT 1";
        assert_eq!(lines(labels, none).unwrap(), "a 1\n");
        let some = Arc::new(StringArray::from(vec![None, Some("{\"x\": \"y\"}")])) as ArrayRef;
        let some = vec![texts(&["a", "b"]), texts(&["1", "2"]), some];
        assert_eq!(lines(labels, some).unwrap(), "a 1\nb{x=\"y\"} 2\n");
        for text in ["[]", "{\"a\": 1}", "{\"__name__\": \"x\"}", "x"] {
            let columns = vec![texts(&["a"]), texts(&["1"]), texts(&[text])];
            assert_eq!(lines(labels, columns).unwrap_err().code, "22P02", "{text}");
        }
    }

    #[test]
    fn what_cannot_be_inserted_is_refused() {
        for (text, code) in [
            ("INSERT INTO metrics (time, value) VALUES (now(), 1)", "0A000"),
            ("INSERT INTO metrics (nothing) VALUES (1)", "42703"),
            ("INSERT INTO metrics (name, name) VALUES (1, 2)", "42701"),
            ("INSERT INTO metrics (name, value) VALUES ('a')", "42601"),
            ("INSERT INTO metrics (name, value) VALUES ('a', DEFAULT)", "23502"),
            ("INSERT INTO metrics VALUES ('a') RETURNING *", "0A000"),
            ("INSERT INTO metrics VALUES ('a') ON CONFLICT DO NOTHING", "0A000"),
        ] {
            assert_eq!(inserted(text).map_err(|error| error.code).unwrap_err(), code, "{text}");
        }
    }

    #[test]
    fn labels_are_bounded() {
        let object = |count: usize| {
            let pairs: Vec<_> = (0..count).map(|at| format!("\"l{at}\": \"x\"")).collect();
            format!("{{{}}}", pairs.join(","))
        };
        assert_eq!(labels_of(&object(LABELS_MAX)).unwrap().len(), LABELS_MAX);
        let many = labels_of(&object(LABELS_MAX + 1)).unwrap_err();
        assert_eq!((many.code, many.message.as_str()), ("54000", "1001 labels, the limit is 1000"));
        assert_eq!(labels_of(&object(1_000_000)).unwrap_err().code, "54000");
        let twice = labels_of("{\"a\": 1, \"a\": \"x\"}").unwrap();
        assert_eq!(twice, [("a".to_string(), "x".to_string())]);
        for text in ["x".repeat(1000), format!("{{\"a\": [{}1]}}", "1,".repeat(1000))] {
            let failure = labels_of(&text).unwrap_err();
            assert!(failure.code == "22P02" && failure.message.len() < 200, "{failure:?}");
        }
        for text in ["{} x", "{", "[]", "", "{\"a\"}"] {
            assert_eq!(labels_of(text).unwrap_err().code, "22P02", "{text}");
        }
    }
}
