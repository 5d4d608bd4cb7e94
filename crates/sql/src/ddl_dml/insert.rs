//! `INSERT INTO metrics`: a query whose rows become lines of exposition text, which go where those of
//! a `COPY` go.

use crate::parse::query::Query;
use crate::parse::rewrite::expressions::now;
use crate::parse::rewrite::rewriter::cast_to;
use crate::tables::metrics::tables::Column;
use crate::types::error::SqlError;
use crate::types::json::labels::{labels_of, not_that};
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
        Ok(Insert { table, query: Query::of(source)?, columns })
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
