//! `to_char`, `to_date`, `to_timestamp` and `to_number`: values by templates
//! (<https://www.postgresql.org/docs/15/functions-formatting.html>).
//!
//! ```text
//! template ─► pattern (fields, and what stands between) ─┬─ written: a time as its fields are ─► text
//!                                                        └─ reading: text ─► a time
//! template ─► numbers: places and signs ─► a number as text, a text as a number
//! ```

use crate::functions::bounded::{Growth, bounded};
use crate::functions::templates::decimals::{Decimal, Float};
use crate::functions::templates::{numbers, reading, written};
use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::numeric::conversions::{column, decimals};
use crate::types::numeric::value::{NUMERIC, Numeric};
use crate::types::text::shown;
use crate::types::time::zones::{ZONE, Zone};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Date32Builder, StringViewArray, StringViewBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use std::sync::Arc;

/// Bytes of a template; what a number or a time becomes is at most some 40 times as much.
const TEMPLATE_SIZE_MAX: usize = 16 << 10;

/// `to_timestamp(text, template)`, which has another name here: with one argument it takes seconds.
pub const TIMESTAMP_BY: &str = "to_timestamp_by_template";

/// All of them.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let any = |least: usize, most: usize| {
        let all = (least..=most).map(TypeSignature::Any).collect();
        Signature::one_of(all, Volatility::Stable)
    };
    let numeric = |_: &[DataType]| NUMERIC;
    let instant = |_: &[DataType]| DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
    let char = function("to_char", any(2, 3), |_| DataType::Utf8View, to_char);
    [
        bounded(Arc::new(char), Growth::Times(1)),
        function("to_date", any(2, 2), |_| DataType::Date32, to_date),
        function(TIMESTAMP_BY, any(2, 3), instant, to_timestamp),
        function("to_number", any(2, 2), numeric, to_number),
    ]
    .into_iter()
}

fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn texts(array: &ArrayRef) -> Result<StringViewArray> {
    Ok(cast(array, &DataType::Utf8View)?.as_string_view().clone())
}

/// Templates row by row, none where there is none.
fn templates(array: &ArrayRef) -> Result<StringViewArray> {
    let all = texts(array)?;
    let longest = all.iter().flatten().map(str::len).max().unwrap_or(0);
    if TEMPLATE_SIZE_MAX < longest {
        let words = format!("a template of {longest} bytes, the limit is {TEMPLATE_SIZE_MAX}");
        return Err(outside(SqlError::limit(words)));
    }
    Ok(all)
}

/// The zone that is said, the same in all rows.
fn zone_of(args: &[ArrayRef]) -> Result<Zone> {
    match args.get(2) {
        Some(zones) => {
            let zones = texts(zones)?;
            let name = zones.iter().flatten().next().unwrap_or(ZONE);
            Zone::named(name).map_err(outside)
        }
        None => Ok(Zone::utc()),
    }
}

/// A value of a column as a template has it.
type Shown<'a> = Box<dyn Fn(usize, &str) -> Result<Option<String>, SqlError> + 'a>;

fn to_char(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (values, templates) = (&args[0], templates(&args[1])?);
    let zone = zone_of(args)?;
    let shown = shown_by(values, &zone)?;
    let (mut out, mut size) = (StringViewBuilder::with_capacity(rows), 0usize);
    for row in 0..rows {
        if values.is_null(row) || templates.is_null(row) {
            out.append_null();
            continue;
        }
        let text = shown(row, templates.value(row)).map_err(outside)?;
        size += text.as_ref().map_or(0, String::len);
        if crate::functions::bounded::SIZE_MAX < size {
            let words = format!(
                "to_char would make more than {} bytes",
                crate::functions::bounded::SIZE_MAX
            );
            return Err(outside(SqlError::limit(words)));
        }
        out.append_option(text);
    }
    Ok(Arc::new(out.finish()))
}

fn shown_by<'a>(values: &ArrayRef, zone: &'a Zone) -> Result<Shown<'a>> {
    Ok(match values.data_type() {
        DataType::Timestamp(_, of) => {
            let micros = cast(values, &DataType::Timestamp(TimeUnit::Microsecond, of.clone()))?;
            let micros = micros.as_primitive::<TimestampMicrosecondType>().clone();
            let is_instant = of.is_some();
            Box::new(move |row, template| {
                Ok(match is_instant {
                    true => shown_instant(micros.value(row), zone, template)?,
                    false => shown_clock(micros.value(row), template)?,
                })
            })
        }
        // A day is an instant to `to_char`: its beginning.
        DataType::Date32 => {
            let micros = cast(values, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
            let micros = micros.as_primitive::<TimestampMicrosecondType>().clone();
            Box::new(move |row, template| {
                let instant = zone.instant_of_clock(micros.value(row));
                instant.map_or(Ok(None), |instant| shown_instant(instant, zone, template))
            })
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            let lengths = shown::lengths(values).unwrap_or_default();
            Box::new(move |row, template| {
                let length = lengths.get(row).copied().flatten();
                length.map(|length| written::interval(length, template)).transpose()
            })
        }
        // A time of day is an interval to `to_char`.
        DataType::Time64(_) => {
            let micros = cast(values, &DataType::Time64(TimeUnit::Microsecond))?;
            let micros = cast(&micros, &DataType::Int64)?.as_primitive::<Int64Type>().clone();
            Box::new(move |row, template| {
                let length = shown::Length { months: 0, days: 0, micros: micros.value(row) };
                written::interval(length, template).map(Some)
            })
        }
        kind if kind.is_integer() => {
            let all = cast(values, &DataType::Int64)?.as_primitive::<Int64Type>().clone();
            Box::new(move |row, template| {
                let number = Decimal { units: i128::from(all.value(row)), scale: 0 };
                numbers::number(&number, template).map(Some)
            })
        }
        DataType::Decimal128(_, scale) => {
            let scale = *scale;
            let all = values.as_primitive::<Decimal128Type>().clone();
            Box::new(move |row, template| {
                let number = Decimal { units: all.value(row), scale };
                numbers::number(&number, template).map(Some)
            })
        }
        DataType::Decimal256(..) => {
            let all = decimals(values)?;
            Box::new(move |row, template| {
                shown_numeric(&Numeric::decode(all.value(row)), template).map(Some)
            })
        }
        kind if kind.is_numeric() => {
            let all = cast(values, &DataType::Float64)?.as_primitive::<Float64Type>().clone();
            Box::new(move |row, template| {
                numbers::number(&Float(all.value(row)), template).map(Some)
            })
        }
        DataType::Null => Box::new(|_, _| Ok(None)),
        other => return Err(outside(unknown(other))),
    })
}

fn shown_numeric(number: &Numeric, template: &str) -> Result<String, SqlError> {
    let Numeric::Finite(one) = number else {
        return numbers::number(&Float(number.to_f64()), template);
    };
    let units = one
        .units
        .to_i128()
        .ok_or_else(|| SqlError::unsupported("to_char of a numeric of more than 38 digits"))?;
    let scale = i8::try_from(one.scale).unwrap_or(i8::MAX);
    numbers::number(&Decimal { units, scale }, template)
}

fn unknown(of: &DataType) -> SqlError {
    SqlError::new("42883", format!("function to_char({of}, text) does not exist"))
}

fn shown_instant(micros: i64, zone: &Zone, template: &str) -> Result<Option<String>, SqlError> {
    let Some(at) = zone.at(micros) else { return Ok(None) };
    let place = written::Place { offset: at.offset, zone: &at.abbreviation };
    written::time(at.clock, place, template).map(Some)
}

fn shown_clock(micros: i64, template: &str) -> Result<Option<String>, SqlError> {
    let Some(at) = Zone::utc().at(micros) else { return Ok(None) };
    let place = written::Place { offset: 0, zone: "" };
    written::time(at.clock, place, template).map(Some)
}

/// Texts with their templates, where there are both.
fn read_all<T>(
    args: &[ArrayRef],
    rows: usize,
    mut work: impl FnMut(&str, &str) -> Result<T, SqlError>,
    mut push: impl FnMut(Option<T>),
) -> Result<()> {
    let (texts, templates) = (texts(&args[0])?, templates(&args[1])?);
    for row in 0..rows {
        match texts.is_null(row) || templates.is_null(row) {
            true => push(None),
            false => push(Some(work(texts.value(row), templates.value(row)).map_err(outside)?)),
        }
    }
    Ok(())
}

fn to_date(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut out = Date32Builder::with_capacity(rows);
    let epoch = jiff::civil::Date::constant(1970, 1, 1);
    let day = |text: &str, template: &str| {
        let date = reading::read(text, template)?.clock.date();
        let days = (date - epoch).get_days();
        Ok(days)
    };
    read_all(args, rows, day, |day| out.append_option(day))?;
    Ok(Arc::new(out.finish()))
}

fn to_timestamp(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let zone = zone_of(args)?;
    let mut out = TimestampMicrosecondBuilder::with_capacity(rows).with_timezone(ZONE);
    let instant = |text: &str, template: &str| {
        let read = reading::read(text, template)?;
        let clock = crate::types::time::zones::micros_of(read.clock) + read.micros;
        let instant = match read.offset {
            Some(offset) => clock.checked_sub(offset * 1_000_000),
            None => zone.instant_of_clock(clock),
        };
        instant.ok_or_else(|| SqlError::new("22008", format!("timestamp out of range: \"{text}\"")))
    };
    read_all(args, rows, instant, |instant| out.append_option(instant))?;
    Ok(Arc::new(out.finish()))
}

fn to_number(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut all = Vec::with_capacity(rows);
    let number = |text: &str, template: &str| {
        let digits = numbers::read(text, template)?;
        let wrong = || {
            let words = format!("invalid input syntax for type numeric: \"{text}\"");
            SqlError::new("22P02", words)
        };
        Numeric::parse(&digits.ok_or_else(wrong)?)
    };
    read_all(args, rows, number, |number| all.push(number.map(Ok)))?;
    column(all.into_iter())
}
