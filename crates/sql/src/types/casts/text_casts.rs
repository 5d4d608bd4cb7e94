//! Casts of texts to numbers, booleans, bytes, dates, times and intervals: values of columns and elements of arrays are
//! read as literals are.

use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::text::bytea_text;
use crate::types::text::literals::{boolean_of, is_float_out_of_range};
use crate::types::time::instants::{clock_of, date_of_text, instant_of, time_of_day, wrong_time};
use crate::types::time::interval_texts::interval_text;
use crate::types::time::intervals::INTERVAL;
use crate::types::time::zones::ZONE;
use datafusion::arrow::array::{ArrayRef, AsArray as _, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{Expr, ScalarUDF, Signature, Volatility};
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

static TO_DATE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| reader("pg_text_date", DataType::Date32, "date"));
static TO_TIME: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| reader("pg_text_time", DataType::Time64(TimeUnit::Microsecond), "time"));
static TO_CLOCK: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let clock = DataType::Timestamp(TimeUnit::Microsecond, None);
    reader("pg_text_timestamp", clock, "timestamp")
});
static TO_INSTANT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
    reader("pg_text_timestamptz", instant, "timestamp with time zone")
});
static TO_INTERVAL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| reader("pg_text_interval", INTERVAL, "interval"));
static TO_BOOLEAN: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| reader("pg_text_boolean", DataType::Boolean, "boolean"));
static TO_REAL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| reader("pg_text_real", DataType::Float32, "real"));
static TO_DOUBLE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| reader("pg_text_double", DataType::Float64, "double precision"));

/// A cast of texts to a type; none for literals, which the planner reads, and for other types.
pub fn text_cast(value: &Expr, from: &DataType, to: &DataType) -> Option<Expr> {
    if !from.is_string() || matches!(value, Expr::Literal(..)) {
        return None;
    }
    let read = match to {
        DataType::Date32 => &TO_DATE,
        DataType::Time64(TimeUnit::Microsecond) => &TO_TIME,
        DataType::Timestamp(TimeUnit::Microsecond, None) => &TO_CLOCK,
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => &TO_INSTANT,
        DataType::Interval(_) => &TO_INTERVAL,
        DataType::Boolean => &TO_BOOLEAN,
        DataType::Float32 => &TO_REAL,
        DataType::Float64 => &TO_DOUBLE,
        _ => return None,
    };
    Some(read.call(vec![value.clone()]))
}

fn reader(name: &'static str, to: DataType, type_name: &'static str) -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    let returned = to.clone();
    let work = move |args: &[ArrayRef], _: usize| read_texts(&args[0], &to, type_name);
    Arc::new(function(name, signature, move |_| returned.clone(), work))
}

/// Casts texts to a type; returns none for types that arrow reads as PostgreSQL does.
pub fn cast_texts(texts: &ArrayRef, to: &DataType) -> Option<Result<ArrayRef>> {
    let type_name = match to {
        DataType::Date32 => "date",
        DataType::Time64(TimeUnit::Microsecond) => "time",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp",
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp with time zone",
        DataType::Interval(_) => "interval",
        DataType::Boolean => "boolean",
        DataType::Float32 => "real",
        DataType::Float64 => "double precision",
        DataType::Binary => "bytea",
        _ => return None,
    };
    Some(read_texts(texts, to, type_name))
}

fn read_texts(texts: &ArrayRef, to: &DataType, type_name: &str) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8View)?;
    let texts = texts.as_string_view();
    if *to == DataType::Float64 {
        let read =
            |text: Option<&str>| text.map(|text| float::<f64>(text, to, type_name)).transpose();
        let values = texts.iter().map(read).collect::<Result<Float64Array>>()?;
        return Ok(Arc::new(values));
    }
    let null = ScalarValue::try_from(to)?;
    let read = |text: Option<&str>| text.map_or(Ok(null.clone()), |text| read(text, to, type_name));
    let values = texts.iter().map(read).collect::<Result<Vec<_>>>()?;
    if values.is_empty() {
        Ok(null.to_array_of_size(0)?)
    } else {
        ScalarValue::iter_to_array(values)
    }
}

/// Reads a float; one beyond its type's range is an error, as is one that would become zero.
fn float<Float: FromStr>(text: &str, to: &DataType, type_name: &str) -> Result<Float> {
    let text = text.trim_matches(|one: char| one.is_ascii_whitespace());
    let wrong = |code, words| DataFusionError::External(Box::new(SqlError::new(code, words)));
    if is_float_out_of_range(text, to) {
        return Err(wrong("22003", format!("\"{text}\" is out of range for type {type_name}")));
    }
    let words = || format!("invalid input syntax for type {type_name}: \"{text}\"");
    text.parse().map_err(|_| wrong("22P02", words()))
}

/// # Errors
/// 22P02, 22003, 22007, 22008, 22009 and 22023, as PostgreSQL has them.
fn read(text: &str, to: &DataType, type_name: &str) -> Result<ScalarValue> {
    let value = match to {
        DataType::Date32 => date_of_text(text).map(|days| ScalarValue::Date32(Some(days))),
        DataType::Time64(_) => {
            time_of_day(text).map(|micros| ScalarValue::Time64Microsecond(Some(micros)))
        }
        DataType::Timestamp(_, zone) => {
            let micros = if zone.is_some() { instant_of(text) } else { clock_of(text) };
            micros.map(|micros| ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()))
        }
        DataType::Float32 => {
            return Ok(ScalarValue::Float32(Some(float(text, to, type_name)?)));
        }
        DataType::Boolean => {
            let words = || format!("invalid input syntax for type boolean: \"{text}\"");
            let wrong = || DataFusionError::External(Box::new(SqlError::new("22P02", words())));
            return boolean_of(text).map(ScalarValue::from).ok_or_else(wrong);
        }
        DataType::Binary => {
            let bytes = bytea_text::read(text);
            let bytes = bytes.map_err(|error| DataFusionError::External(Box::new(error)))?;
            return Ok(ScalarValue::Binary(Some(bytes)));
        }
        _ => return read_as_arrow(&interval_text(text), to),
    };
    let is_year_zero = text.trim().starts_with("0000");
    // Arrow knows forms of dates that are not read here.
    let value = match value {
        None if !is_year_zero && !matches!(to, DataType::Time64(_)) => {
            ScalarValue::from(text).cast_to(to).ok()
        }
        value => value,
    };
    value.ok_or_else(|| DataFusionError::External(Box::new(wrong_time(text, type_name))))
}

fn read_as_arrow(text: &str, to: &DataType) -> Result<ScalarValue> {
    let wrong = |_| {
        let words = format!("invalid input syntax for type interval: \"{text}\"");
        DataFusionError::External(Box::new(SqlError::new("22007", words)))
    };
    ScalarValue::from(text).cast_to(to).map_err(wrong)
}
