//! Numbers and times as PostgreSQL shows them in text (<https://www.postgresql.org/docs/15/datatype.html>).

use crate::types::numeric::value::Numeric;
use crate::types::text::bytea_text;
use crate::types::text::numbers::text_of;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, ListArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, Float32Type, Float64Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use jiff::Timestamp;
use jiff::tz::Offset;
use std::sync::Arc;

/// Powers of ten from which on a number has an exponent.
const EXPONENT_MIN: i32 = -4;
const EXPONENT_MAX: i32 = 15;
/// The same of a `real`.
const SHORT_EXPONENT_MAX: i32 = 6;
/// The same as a number.
const WHOLE_MAX: f64 = 1e15;

/// A column as text, if it is one of those that have a way of their own.
pub fn column(array: &ArrayRef) -> Option<ArrayRef> {
    let texts: StringViewArray = match array.data_type() {
        DataType::Float64 => {
            array.as_primitive::<Float64Type>().iter().map(|one| one.map(float)).collect()
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().iter();
            values.map(|one| one.map(short)).collect()
        }
        DataType::Decimal128(_, scale) => {
            let values = array.as_primitive::<Decimal128Type>().iter();
            values.map(|one| one.map(|units| text_of(units, *scale))).collect()
        }
        DataType::Decimal256(..) => {
            let values = crate::types::numeric::conversions::decimals(array).ok()?;
            values.iter().map(|one| one.map(|raw| Numeric::decode(raw).text())).collect()
        }
        DataType::Binary => {
            array.as_binary::<i32>().iter().map(|one| one.map(bytea_text::shown)).collect()
        }
        DataType::Timestamp(unit, zone) => {
            let zone = if zone.is_some() { "+00" } else { "" };
            let show = |micros: Option<i64>| micros.map(|micros| instant(micros, zone));
            micros(array, *unit).into_iter().map(show).collect()
        }
        DataType::Time64(_) => {
            let micros = cast(array, &DataType::Time64(TimeUnit::Microsecond)).ok()?;
            let values = micros.as_primitive::<Time64MicrosecondType>().iter();
            values.map(|one| one.map(clock)).collect()
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            lengths(array)?.into_iter().map(|one| one.map(interval)).collect()
        }
        DataType::List(_) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let shown = column(&values)?;
            let field = Arc::new(Field::new_list_field(DataType::Utf8View, true));
            return Some(Arc::new(ListArray::new(field, offsets, shown, nulls)));
        }
        _ => return None,
    };
    Some(Arc::new(texts))
}

/// A length of time as PostgreSQL keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

const DAY_MICROS: i64 = 86_400_000_000;

/// A column of intervals, or of differences of times, which have days and what is left of one; none
/// of others.
pub fn lengths(array: &ArrayRef) -> Option<Vec<Option<Length>>> {
    match array.data_type() {
        DataType::Duration(_) => {
            let micros = cast(array, &DataType::Duration(TimeUnit::Microsecond)).ok()?;
            let micros = cast(&micros, &DataType::Int64).ok()?;
            let length = |micros: i64| Length {
                months: 0,
                days: i32::try_from(micros / DAY_MICROS).unwrap_or(i32::MAX),
                micros: micros % DAY_MICROS,
            };
            Some(micros.as_primitive::<Int64Type>().iter().map(|one| one.map(length)).collect())
        }
        DataType::Interval(_) => {
            let intervals = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano)).ok()?;
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            let length = |one: IntervalMonthDayNano| Length {
                months: one.months,
                days: one.days,
                micros: one.nanoseconds.div_euclid(1000),
            };
            Some(intervals.iter().map(|one| one.map(length)).collect())
        }
        _ => None,
    }
}

/// A `real`.
pub fn short(value: f32) -> String {
    digits(&format!("{value:e}"), SHORT_EXPONENT_MAX)
}

/// An interval in the style `postgres`: `1 year 2 mons -3 days +04:05:06.7`.
pub fn interval(length: Length) -> String {
    let (mut parts, mut was_negative) = (Vec::new(), false);
    let named = [(length.months / 12, "year"), (length.months % 12, "mon"), (length.days, "day")];
    for (number, unit) in named.into_iter().filter(|(number, _)| *number != 0) {
        let sign = if was_negative && 0 < number { "+" } else { "" };
        let plural = if number == 1 { "" } else { "s" };
        parts.push(format!("{sign}{number} {unit}{plural}"));
        was_negative = number < 0;
    }
    if length.micros != 0 || parts.is_empty() {
        let sign = match (length.micros < 0, was_negative) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        parts.push(format!("{sign}{}", clock_of(length.micros.unsigned_abs())));
    }
    parts.join(" ")
}

/// A time of day.
fn clock(micros: i64) -> String {
    clock_of(micros.unsigned_abs())
}

/// Hours, minutes and seconds, their fraction as short as it may be.
fn clock_of(micros: u64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = match fraction {
        0 => String::new(),
        fraction => format!(".{fraction:06}").trim_end_matches('0').to_string(),
    };
    format!("{hours:02}:{minutes:02}:{seconds:02}{fraction}")
}

fn micros(array: &ArrayRef, unit: TimeUnit) -> Vec<Option<i64>> {
    let scaled = |factor: i64| move |one: Option<i64>| one.map(|one| one.saturating_mul(factor));
    match unit {
        TimeUnit::Second => {
            array.as_primitive::<TimestampSecondType>().iter().map(scaled(1_000_000)).collect()
        }
        TimeUnit::Millisecond => {
            array.as_primitive::<TimestampMillisecondType>().iter().map(scaled(1000)).collect()
        }
        TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().iter().collect(),
        TimeUnit::Nanosecond => {
            let values = array.as_primitive::<TimestampNanosecondType>().iter();
            values.map(|one| one.map(|one| one.div_euclid(1000))).collect()
        }
    }
}

/// The shortest text that is read back as the same number.
pub fn float(value: f64) -> String {
    match whole(value) {
        Some(whole) => whole.to_string(),
        None => digits(&format!("{value:e}"), EXPONENT_MAX),
    }
}

/// The integer that a number is, if it is one that is shown with all its digits.
#[expect(clippy::cast_possible_truncation, reason = "it is far below 2^53")]
fn whole(value: f64) -> Option<i64> {
    let is_whole = value.abs() < WHOLE_MAX && value.trunc() == value;
    (is_whole && !(value == 0.0 && value.is_sign_negative())).then_some(value as i64)
}

/// The same of what Rust shows with an exponent.
fn digits(text: &str, exponent_max: i32) -> String {
    match text {
        "NaN" => return "NaN".to_string(),
        "inf" => return "Infinity".to_string(),
        "-inf" => return "-Infinity".to_string(),
        _ => {}
    }
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let Some((mantissa, exponent)) = text.split_once('e') else { return text.to_string() };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{first}{rest}");
    if !(EXPONENT_MIN..exponent_max).contains(&exponent) {
        let point = if rest.is_empty() { "" } else { "." };
        let (mark, size) = (if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs());
        return format!("{sign}{first}{point}{rest}e{mark}{size:02}");
    }
    if exponent < 0 {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("{sign}0.{zeros}{all}");
    }
    let whole = usize::try_from(exponent).unwrap_or(0) + 1;
    if all.len() <= whole {
        return format!("{sign}{all:0<whole$}");
    }
    let (before, after) = all.split_at(whole);
    format!("{sign}{before}.{after}")
}

/// An instant in UTC, its fraction as short as it may be.
pub fn instant(micros: i64, zone: &str) -> String {
    let Ok(at) = Timestamp::from_microsecond(micros) else {
        // The infinities, and the last day of the year 9999.
        let shown = tables::Datum::Timestamp(micros).to_string();
        return if [i64::MIN, i64::MAX].contains(&micros) { shown } else { shown + zone };
    };
    let at = Offset::UTC.to_datetime(at);
    let mut shown = String::with_capacity(INSTANT_LEN);
    put_digits(&mut shown, at.year(), 4);
    for (mark, part) in [
        ('-', at.month()),
        ('-', at.day()),
        (' ', at.hour()),
        (':', at.minute()),
        (':', at.second()),
    ] {
        shown.push(mark);
        put_digits(&mut shown, i16::from(part), 2);
    }
    let fraction = micros.rem_euclid(1_000_000);
    if fraction != 0 {
        let fraction = format!("{fraction:06}");
        shown.push('.');
        shown += fraction.trim_end_matches('0');
    }
    shown + zone
}

/// Bytes of an instant with its fraction and zone.
const INSTANT_LEN: usize = 32;

/// A number of at least so many digits.
fn put_digits(text: &mut String, number: i16, len: u32) {
    if number < 0 {
        text.push('-');
    }
    let number = number.unsigned_abs();
    let mut unit = 10_u16.pow(len - 1);
    while 0 < unit {
        // A digit, as years have four.
        text.push(char::from_digit(u32::from(number / unit % 10), 10).unwrap_or('?'));
        unit /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_postgresql() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (34.6, "34.6"),
            (-1234.5, "-1234.5"),
            (1e9, "1000000000"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1e+15"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.000_012, "1.2e-05"),
            (0.1, "0.1"),
            (999_999_999_999_999.0, "999999999999999"),
            (-58.0, "-58"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float(value), expected);
        }
        for (value, expected) in [
            (1e6, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (123_456.0, "123456"),
            (-0.5, "-0.5"),
            (1e-5, "1e-05"),
        ] {
            assert_eq!(short(value), expected);
        }
    }

    #[test]
    fn intervals_are_those_of_postgresql() {
        for (months, days, micros, expected) in [
            (0, 0, 0, "00:00:00"),
            (14, 3, 14_706_700_000, "1 year 2 mons 3 days 04:05:06.7"),
            (0, -1, 3_600_000_000, "-1 days +01:00:00"),
            (-1, 1, 0, "-1 mons +1 day"),
            (0, 0, -1, "-00:00:00.000001"),
            (0, 0, 360_000_000_000, "100:00:00"),
        ] {
            assert_eq!(interval(Length { months, days, micros }), expected);
        }
    }

    #[test]
    fn times_are_those_of_postgresql() {
        assert_eq!(instant(1_709_208_000_000_000, "+00"), "2024-02-29 12:00:00+00");
        assert_eq!(instant(1_709_208_000_120_000, "+00"), "2024-02-29 12:00:00.12+00");
        assert_eq!(instant(-1, ""), "1969-12-31 23:59:59.999999");
        assert_eq!(instant(-62_135_596_800_000_000, ""), "0001-01-01 00:00:00");
    }
}
