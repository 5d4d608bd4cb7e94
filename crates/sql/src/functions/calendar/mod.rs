//! Functions about times that PostgreSQL has and DataFusion has not, or in another way: fields of times
//! (`extract`, `date_part`), what is made of fields (`make_date` and its kin), what lies between two times
//! (`age`), and what a clock elsewhere says (`AT TIME ZONE`).

pub(crate) mod age;
pub(crate) mod days;
pub(crate) mod fields;
pub(crate) mod interval_extremes;
pub(crate) mod making;
pub(crate) mod spans;
pub(crate) mod truncation;

use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::text::shown;
use crate::types::text::shown::Length;
use crate::types::time::instants::{clock_of, instant_of, wrong_time};
use crate::types::time::intervals::INTERVAL;
use crate::types::time::zones::{ZONE, Zone};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, IntervalMonthDayNanoBuilder, StringViewArray,
    TimestampMicrosecondArray, TimestampMicrosecondBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNano, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use std::sync::Arc;

/// `AT TIME ZONE`, which is this function in PostgreSQL, too.
pub const TIMEZONE: &str = "timezone";

/// All of them.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let any = |count: usize| Signature::any(count, Volatility::Immutable);
    let interval = |_: &[DataType]| INTERVAL;
    let ages = Signature::one_of(
        vec![TypeSignature::Any(2), TypeSignature::Any(3)],
        Volatility::Immutable,
    );
    let own = [
        function("age", ages, interval, age),
        function(TIMEZONE, any(2), zoned_type, timezone),
        function("isfinite", any(1), |_| DataType::Boolean, |args, rows| is_finite(&args[0], rows)),
        function("justify_hours", any(1), interval, |args, _| justified(&args[0], age::hours)),
        function("justify_days", any(1), interval, |args, _| justified(&args[0], age::days)),
        function("justify_interval", any(1), interval, |args, _| justified(&args[0], age::both)),
        truncation::date_trunc(),
    ];
    own.into_iter().chain(fields::functions()).chain(making::functions())
}

fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn texts(array: &ArrayRef) -> Result<StringViewArray> {
    Ok(cast(array, &DataType::Utf8View)?.as_string_view().clone())
}

/// Instants, or what a clock says, in microseconds; texts are read.
fn micros(array: &ArrayRef, zone: Option<&str>) -> Result<TimestampMicrosecondArray> {
    let wanted = DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    if array.data_type().is_string() {
        let read = if zone.is_some() { instant_of } else { clock_of };
        let mut out = TimestampMicrosecondBuilder::with_capacity(array.len());
        for text in &texts(array)? {
            let wrong = |text: &str| outside(wrong_time(text, "timestamp"));
            out.append_option(text.map(|text| read(text).ok_or_else(|| wrong(text))).transpose()?);
        }
        return Ok(out.finish());
    }
    // What has another zone, or none, keeps its number.
    let unit = match array.data_type() {
        DataType::Timestamp(_, of) => DataType::Timestamp(TimeUnit::Microsecond, of.clone()),
        _ => wanted,
    };
    let array = cast(array, &unit)?;
    Ok(array.as_primitive::<TimestampMicrosecondType>().clone().with_timezone_opt(None::<&str>))
}

/// `timezone(zone, time)`: of an instant the clock there, of a clock there the instant.
fn zoned_type(types: &[DataType]) -> DataType {
    let is_instant =
        matches!(types.get(1), Some(DataType::Timestamp(_, Some(_)) | DataType::Date32) | None);
    let zone = (!is_instant).then(|| ZONE.into());
    DataType::Timestamp(TimeUnit::Microsecond, zone)
}

fn timezone(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let [zones, times] = args else { return Err(outside(SqlError::unexpected("two arguments"))) };
    let types: Vec<DataType> = args.iter().map(|one| one.data_type().clone()).collect();
    let DataType::Timestamp(_, of) = zoned_type(&types) else { return Ok(times.clone()) };
    let is_clock = of.is_some();
    let times = micros(times, None)?;
    let lengths = shown::lengths(zones);
    let names = if lengths.is_some() { None } else { Some(texts(zones)?) };
    let mut known: Option<(String, Zone)> = None;
    let mut out = TimestampMicrosecondBuilder::with_capacity(rows).with_timezone_opt(of);
    for row in 0..rows {
        if zones.is_null(row) || times.is_null(row) {
            out.append_null();
            continue;
        }
        let time = times.value(row);
        let shift = lengths
            .as_ref()
            .and_then(|all| all[row])
            .map(|length| length.micros.saturating_add(i64::from(length.days) * 86_400_000_000));
        let moved = match (&names, shift) {
            (_, Some(shift)) if is_clock => time.checked_sub(shift),
            (_, Some(shift)) => time.checked_add(shift),
            (Some(names), None) => {
                let name = names.value(row);
                if known.as_ref().is_none_or(|(one, _)| one != name) {
                    known = Some((name.to_string(), Zone::of_expression(name).map_err(outside)?));
                }
                known.as_ref().and_then(|(_, zone)| match is_clock {
                    true => zone.instant_of_clock(time),
                    false => Some(zone.clock_of(time)),
                })
            }
            (None, None) => None,
        };
        let moved = moved.ok_or_else(|| outside(SqlError::new("22008", "timestamp out of range")));
        out.append_value(moved?);
    }
    Ok(Arc::new(out.finish()))
}

fn is_finite(array: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    let all: BooleanArray = match array.data_type() {
        DataType::Timestamp(..) | DataType::Date32 => {
            let micros = micros(array, None)?;
            let is_one = |micros: i64| ![i64::MIN, i64::MAX].contains(&micros);
            micros.iter().map(|one| one.map(is_one)).collect()
        }
        _ => (0..rows).map(|row| array.is_valid(row).then_some(true)).collect(),
    };
    Ok(Arc::new(all))
}

/// Intervals that were made of lengths.
fn intervals(lengths: impl Iterator<Item = Option<Length>>) -> Result<ArrayRef> {
    let mut out = IntervalMonthDayNanoBuilder::new();
    for length in lengths {
        match length {
            None => out.append_null(),
            Some(Length { months, days, micros }) => {
                let nanos = micros.checked_mul(1000);
                let nanos = nanos
                    .ok_or_else(|| outside(SqlError::new("22008", "interval out of range")))?;
                out.append_value(IntervalMonthDayNano::new(months, days, nanos));
            }
        }
    }
    Ok(Arc::new(out.finish()))
}

fn lengths_of(array: &ArrayRef) -> Result<Vec<Option<Length>>> {
    let read = match array.data_type() {
        text if text.is_string() => Some(cast(array, &INTERVAL)?),
        // A time of day is what has passed since midnight.
        DataType::Time64(_) => {
            let micros = cast(array, &DataType::Time64(TimeUnit::Microsecond))?;
            let micros = cast(&micros, &DataType::Int64)?;
            Some(cast(&micros, &DataType::Duration(TimeUnit::Microsecond))?)
        }
        _ => None,
    };
    let lengths = shown::lengths(read.as_ref().unwrap_or(array));
    lengths.ok_or_else(|| {
        let words = format!("no interval, but {}", array.data_type());
        outside(SqlError::new("42883", words))
    })
}

fn justified(array: &ArrayRef, work: fn(Length) -> Length) -> Result<ArrayRef> {
    intervals(lengths_of(array)?.into_iter().map(|one| one.map(work)))
}

/// `age(later, earlier [, zone])`; with one argument it is said from today's midnight on, by who calls.
fn age(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let zone = match args.get(2) {
        Some(names) => match texts(names)?.iter().flatten().next() {
            Some(name) => Zone::named(name).map_err(outside)?,
            None => Zone::utc(),
        },
        None => Zone::utc(),
    };
    let clocks = |array: &ArrayRef| -> Result<TimestampMicrosecondArray> {
        let is_instant = matches!(array.data_type(), DataType::Timestamp(_, Some(_)));
        let all = micros(array, None)?;
        Ok(if is_instant { all.unary(|one| zone.clock_of(one)) } else { all })
    };
    let (later, earlier) = (clocks(&args[0])?, clocks(&args[1])?);
    let mut all = Vec::with_capacity(rows);
    for (later, earlier) in later.iter().zip(&earlier) {
        let between = match (later, earlier) {
            (Some(later), Some(earlier)) => {
                let between = age::between(later, earlier);
                Some(
                    between
                        .ok_or_else(|| outside(SqlError::new("22008", "timestamp out of range")))?,
                )
            }
            _ => None,
        };
        all.push(between);
    }
    intervals(all.into_iter())
}
