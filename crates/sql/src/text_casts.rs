//! Casts of texts to dates, times and intervals: values of columns are read as literals are.

use crate::error::SqlError;
use crate::function::function;
use crate::instants::{clock_of, date_of_text, instant_of, time_of_day, wrong_time};
use crate::interval_texts::interval_text;
use crate::intervals::INTERVAL;
use crate::tables::ZONE;
use datafusion::arrow::array::{ArrayRef, AsArray as _};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{Expr, ScalarUDF, Signature, Volatility};
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

fn read_texts(texts: &ArrayRef, to: &DataType, type_name: &str) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8View)?;
    let null = ScalarValue::try_from(to)?;
    let read = |text: Option<&str>| text.map_or(Ok(null.clone()), |text| read(text, to, type_name));
    let values = texts.as_string_view().iter().map(read).collect::<Result<Vec<_>>>()?;
    if values.is_empty() {
        Ok(null.to_array_of_size(0)?)
    } else {
        ScalarValue::iter_to_array(values)
    }
}

/// # Errors
/// 22007, 22008, 22009 and 22023, as PostgreSQL has them.
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
        _ => return read_as_arrow(&interval_text(text), to),
    };
    let is_year_zero = text.trim().starts_with("0000-");
    // Arrow knows forms of dates that are not read here.
    let value = match value {
        None if !is_year_zero => ScalarValue::from(text).cast_to(to).ok(),
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
