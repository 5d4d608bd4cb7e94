//! `make_date`, `make_time`, `make_timestamp`, `make_timestamptz` and `make_interval`.

use crate::functions::calendar::{intervals, outside, texts};
use crate::functions::numbers::degrees::as_float8;
use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::text::shown;
use crate::types::text::shown::Length;
use crate::types::time::intervals::INTERVAL;
use crate::types::time::zones::{ZONE, Zone, micros_of};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Date32Builder, Float64Array, Time64MicrosecondBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, TimeUnit};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use jiff::civil::{Date, DateTime, Time};
use std::sync::Arc;

/// The names of the arguments of `make_interval`, in their places.
pub const INTERVAL_PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// `to_timestamp(seconds)`; with two arguments it reads a text.
pub const TIMESTAMP_OF_SECONDS: &str = "timestamp_of_seconds";
/// Seconds from 1970 to 2000.
const EPOCH_2000: f64 = 946_684_800.0;
const EPOCH_2000_MICROS: i64 = 946_684_800_000_000;
/// Seconds from 1970 to 4714 BC and to the year 294277, between which timestamps lie.
const SECONDS_MIN: f64 = -210_866_803_200.0;
const SECONDS_MAX: f64 = 9_224_318_016_000.0;

/// All of them.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let any = |least: usize, most: usize| {
        let mut all: Vec<TypeSignature> = (least.max(1)..=most).map(TypeSignature::Any).collect();
        if least == 0 {
            all.push(TypeSignature::Nullary);
        }
        Signature::one_of(all, Volatility::Immutable)
    };
    let clock = |_: &[DataType]| DataType::Timestamp(TimeUnit::Microsecond, None);
    let instant = |_: &[DataType]| DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
    [
        function("make_date", any(3, 3), |_| DataType::Date32, make_date),
        function("make_time", any(3, 3), |_| DataType::Time64(TimeUnit::Microsecond), make_time),
        function("make_timestamp", any(6, 6), clock, |args, rows| make_timestamp(args, rows, None)),
        function("make_timestamptz", any(6, 7), instant, |args, rows| {
            let zones = args.get(6).map(texts).transpose()?;
            let name = zones.iter().flat_map(|all| all.iter().flatten()).next();
            let zone = name.map_or_else(|| Ok(Zone::utc()), Zone::named).map_err(outside)?;
            make_timestamp(args, rows, Some(&zone))
        }),
        function("make_interval", any(0, 7), |_| INTERVAL, make_interval),
        function(TIMESTAMP_OF_SECONDS, any(1, 1), instant, timestamp_of_seconds),
    ]
    .into_iter()
}

/// `to_timestamp(seconds)`, to the nearest microsecond since 2000, from which PostgreSQL counts.
fn timestamp_of_seconds(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let seconds = as_float8(&args[0])?;
    let mut out = TimestampMicrosecondBuilder::with_capacity(rows).with_timezone_opt(Some(ZONE));
    for value in seconds.as_primitive::<Float64Type>() {
        out.append_option(
            value.map(|value| instant_of_seconds(value).map_err(outside)).transpose()?,
        );
    }
    Ok(Arc::new(out.finish()))
}

fn instant_of_seconds(value: f64) -> Result<i64, SqlError> {
    let error = |words: String| SqlError::new("22008", words);
    match value {
        _ if value.is_nan() => return Err(error("timestamp cannot be NaN".into())),
        f64::INFINITY => return Ok(i64::MAX),
        f64::NEG_INFINITY => return Ok(i64::MIN),
        _ => {}
    }
    let out_of_range = || error(format!("timestamp out of range: \"{}\"", shown::float(value)));
    if !(SECONDS_MIN..SECONDS_MAX).contains(&value) {
        return Err(out_of_range());
    }
    let micros = ((value - EPOCH_2000) * 1e6).round_ties_even();
    (micros as i64).checked_add(EPOCH_2000_MICROS).ok_or_else(out_of_range)
}

fn numbers(args: &[ArrayRef]) -> Result<Vec<Float64Array>> {
    let number = |array: &ArrayRef| -> Result<Float64Array> {
        if !array.data_type().is_numeric() && !array.data_type().is_null() {
            return plan_err!("No function matches parts of a time of type {}", array.data_type());
        }
        Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
    };
    args.iter().map(number).collect()
}

/// The arguments of a row; none where one is null.
fn row_of(all: &[Float64Array], row: usize) -> Option<Vec<f64>> {
    all.iter().map(|one| one.is_valid(row).then(|| one.value(row))).collect()
}

fn date_of(parts: &[f64]) -> Result<Date> {
    let &[year, month, day, ..] = parts else { return plan_err!("a date has three parts") };
    // Years before the first are less than nothing.
    let calendar = if year < 0.0 { year + 1.0 } else { year };
    let date = Date::new(calendar as i16, month as i8, day as i8);
    let is_whole = year != 0.0 && f64::from(calendar as i16) == calendar;
    let out_of_range = || {
        let words = format!("date field value out of range: {year}-{month:02}-{day:02}");
        outside(SqlError::new("22008", words))
    };
    date.ok().filter(|_| is_whole).ok_or_else(out_of_range)
}

/// A time of day in microseconds; the minute may have 60 seconds, and the day 24 hours.
fn time_of(parts: &[f64]) -> Result<i64> {
    let &[hour, minute, second] = parts else { return plan_err!("a time has three parts") };
    let micros = (second * 1e6).round();
    let is_known = (0.0..=24.0).contains(&hour)
        && (0.0..60.0).contains(&minute)
        && (0.0..=60.0).contains(&second)
        && (hour < 24.0 || minute == 0.0 && micros == 0.0);
    if !is_known {
        let words = format!("time field value out of range: {hour}:{minute:02}:{second}");
        return Err(outside(SqlError::new("22008", words)));
    }
    Ok((hour as i64 * 3600 + minute as i64 * 60) * 1_000_000 + micros as i64)
}

fn make_date(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let all = numbers(args)?;
    let mut out = Date32Builder::with_capacity(rows);
    for row in 0..rows {
        let date = row_of(&all, row).map(|parts| date_of(&parts)).transpose()?;
        out.append_option(date.map(|date| (date - Date::constant(1970, 1, 1)).get_days()));
    }
    Ok(Arc::new(out.finish()))
}

fn make_time(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let all = numbers(args)?;
    let mut out = Time64MicrosecondBuilder::with_capacity(rows);
    for row in 0..rows {
        out.append_option(row_of(&all, row).map(|parts| time_of(&parts)).transpose()?);
    }
    Ok(Arc::new(out.finish()))
}

/// What a clock says, or the instant at which one in a zone says so.
fn make_timestamp(args: &[ArrayRef], rows: usize, zone: Option<&Zone>) -> Result<ArrayRef> {
    let all = numbers(args.get(..6).unwrap_or(args))?;
    let of = zone.map(|_| ZONE);
    let mut out = TimestampMicrosecondBuilder::with_capacity(rows).with_timezone_opt(of);
    for row in 0..rows {
        let Some(parts) = row_of(&all, row) else {
            out.append_null();
            continue;
        };
        let midnight = DateTime::from_parts(date_of(&parts)?, Time::midnight());
        let clock = micros_of(midnight) + time_of(&parts[3..])?;
        let time = match zone {
            Some(zone) => zone.instant_of_clock(clock),
            None => Some(clock),
        };
        let out_of_range = || outside(SqlError::new("22008", "timestamp out of range"));
        out.append_value(time.ok_or_else(out_of_range)?);
    }
    Ok(Arc::new(out.finish()))
}

fn make_interval(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let all = numbers(args)?;
    let out_of_range = || outside(SqlError::new("22008", "interval out of range"));
    let whole = |number: f64| {
        let is_one = number.abs() <= f64::from(i32::MAX);
        is_one.then_some(number.trunc() as i64).ok_or_else(out_of_range)
    };
    let mut made = Vec::with_capacity(rows);
    for row in 0..rows {
        let Some(parts) = row_of(&all, row) else {
            made.push(None);
            continue;
        };
        let part = |at: usize| whole(parts.get(at).copied().unwrap_or(0.0));
        let months = part(0)? * 12 + part(1)?;
        let days = part(2)? * 7 + part(3)?;
        let seconds = parts.get(6).copied().unwrap_or(0.0);
        let micros = (seconds * 1e6).round_ties_even();
        if 9.0e18 < micros.abs() || micros.is_nan() {
            return Err(out_of_range());
        }
        let micros = (part(4)? * 3600 + part(5)? * 60)
            .checked_mul(1_000_000)
            .and_then(|clock| clock.checked_add(micros as i64));
        made.push(Some(Length {
            months: i32::try_from(months).map_err(|_| out_of_range())?,
            days: i32::try_from(days).map_err(|_| out_of_range())?,
            micros: micros.ok_or_else(out_of_range)?,
        }));
    }
    intervals(made.into_iter())
}
