//! `extract` and `date_part`: fields of times and intervals. The first is a `numeric`, the second a
//! `double precision`.

use crate::functions::calendar::{micros, outside, texts};
use crate::types::error::SqlError;
use crate::types::numeric::conversions::column;
use crate::types::numeric::value::{Decimal, NUMERIC, Numeric};
use crate::types::text::shown;
use crate::types::text::shown::Length;
use crate::types::time::zones::{Zone, clock};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Float64Builder, StringViewArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, TimeUnit, i256};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use std::sync::Arc;

/// What `extract(field FROM time)` is: `extract_numeric('field', time)`.
pub const EXTRACT: &str = "extract_numeric";

const SECOND: i128 = 1_000_000;
/// The number of the Julian day that 1970 began with.
const EPOCH_JULIAN: i64 = 2_440_588;

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Epoch,
    Julian,
    DayOfWeek,
    DayOfWeekIso,
    DayOfYear,
    YearIso,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

impl Unit {
    /// By one of its names.
    pub fn named(name: &str) -> Option<Unit> {
        Some(match name.to_ascii_lowercase().as_str() {
            "us" | "usec" | "usecs" | "useconds" | "microsecond" | "microseconds"
            | "microsecon" => Unit::Microseconds,
            "ms" | "msec" | "msecs" | "mseconds" | "millisecond" | "milliseconds"
            | "millisecon" => Unit::Milliseconds,
            "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
            "d" | "day" | "days" => Unit::Day,
            "w" | "week" | "weeks" => Unit::Week,
            "mon" | "mons" | "month" | "months" => Unit::Month,
            "qtr" | "quarter" => Unit::Quarter,
            "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
            "dec" | "decs" | "decade" | "decades" => Unit::Decade,
            "c" | "cent" | "century" | "centuries" => Unit::Century,
            "mil" | "mils" | "millennium" | "millennia" => Unit::Millennium,
            "epoch" => Unit::Epoch,
            "j" | "jd" | "julian" => Unit::Julian,
            "dow" => Unit::DayOfWeek,
            "isodow" => Unit::DayOfWeekIso,
            "doy" => Unit::DayOfYear,
            "isoyear" => Unit::YearIso,
            "timezone" => Unit::Timezone,
            "timezone_h" | "timezone_hour" => Unit::TimezoneHour,
            "timezone_m" | "timezone_minute" => Unit::TimezoneMinute,
            _ => return None,
        })
    }

    /// Digits behind the point of such a number.
    fn scale(self, of: &Kind) -> i8 {
        match self {
            Unit::Second => 6,
            Unit::Epoch if *of == Kind::Date => 0,
            Unit::Epoch => 6,
            Unit::Milliseconds => 3,
            Unit::Julian if *of != Kind::Date => 10,
            _ => 0,
        }
    }
}

/// That there is no such field.
pub fn unknown_unit(unit: &str, of: &str) -> SqlError {
    SqlError::new("22023", format!("unit \"{unit}\" not recognized for type {of}"))
}

/// What fields are taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Instant,
    Clock,
    Date,
    Time,
    Interval,
}

impl Kind {
    fn of(data_type: &DataType) -> Option<Kind> {
        Some(match data_type {
            DataType::Timestamp(_, Some(_)) => Kind::Instant,
            DataType::Timestamp(_, None) => Kind::Clock,
            DataType::Date32 | DataType::Date64 => Kind::Date,
            DataType::Time32(_) | DataType::Time64(_) => Kind::Time,
            DataType::Interval(_) | DataType::Duration(_) => Kind::Interval,
            // A text is a time of any kind.
            text if text.is_string() || text.is_null() => Kind::Clock,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Instant => "timestamp with time zone",
            Kind::Clock => "timestamp without time zone",
            Kind::Date => "date",
            Kind::Time => "time without time zone",
            Kind::Interval => "interval",
        }
    }
}

/// Both functions: of a field's name and a time, and the zone where the time is an instant elsewhere.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    [(EXTRACT, Number::Numeric), ("date_part", Number::Float)].into_iter().map(|(name, number)| {
        let takes = vec![TypeSignature::Any(2), TypeSignature::Any(3)];
        let signature = Signature::one_of(takes, Volatility::Immutable);
        ScalarUDF::from(Extract { name, number, signature })
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Number {
    Numeric,
    Float,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extract {
    name: &'static str,
    number: Number,
    signature: Signature,
}

impl ScalarUDFImpl for Extract {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.number {
            Number::Numeric => NUMERIC,
            Number::Float => DataType::Float64,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(of) = args.arg_fields.get(1).map(|field| field.data_type().clone()) else {
            return plan_err!("{} takes a field and a time", self.name);
        };
        if Kind::of(&of).is_none() {
            let name = if self.number == Number::Float { "date_part" } else { "extract" };
            let words = format!("function pg_catalog.{name}(unknown, {of}) does not exist");
            return Err(outside(SqlError::new("42883", words)));
        }
        let data_type = match self.number {
            Number::Numeric => NUMERIC,
            Number::Float => DataType::Float64,
        };
        Ok(Arc::new(Field::new(self.name, data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let is_scalar = args.args.iter().all(|one| matches!(one, ColumnarValue::Scalar(_)));
        let arrays = args.args.iter().map(|one| one.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let made = extracted(&arrays, args.return_field.data_type())?;
        Ok(match is_scalar && 0 < rows {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?),
            false => ColumnarValue::Array(made),
        })
    }
}

/// A field of a value, in units of its scale; none where it has none.
type Taken = Option<(i128, i8)>;

fn extracted(args: &[ArrayRef], wanted: &DataType) -> Result<ArrayRef> {
    let (units, values) = (texts(&args[0])?, &args[1]);
    let zone = match args.get(2).map(texts).transpose()? {
        Some(names) => match names.iter().flatten().next() {
            Some(name) => Zone::named(name).map_err(outside)?,
            None => Zone::utc(),
        },
        None => Zone::utc(),
    };
    let Some(kind) = Kind::of(values.data_type()) else {
        return plan_err!("{} has no fields", values.data_type());
    };
    let values = Values::of(kind, values, zone)?;
    match *wanted == NUMERIC {
        true => {
            let mut out = Vec::with_capacity(units.len());
            each(&units, &values, |taken, scale| {
                out.push(taken.map(|(number, from)| {
                    let units = i256::from_i128(rescaled(number, from, scale));
                    Ok(Numeric::Finite(Decimal::new(units, scale.unsigned_abs())))
                }));
            })?;
            column(out.into_iter())
        }
        false => {
            let mut out = Float64Builder::with_capacity(units.len());
            each(&units, &values, |taken, _| {
                out.append_option(
                    taken.map(|(number, scale)| number as f64 / 10_f64.powi(i32::from(scale))),
                );
            })?;
            Ok(Arc::new(out.finish()))
        }
    }
}

fn rescaled(number: i128, from: i8, to: i8) -> i128 {
    match from <= to {
        true => number * 10_i128.pow(u32::from((to - from).unsigned_abs())),
        false => number / 10_i128.pow(u32::from((from - to).unsigned_abs())),
    }
}

fn each(units: &StringViewArray, values: &Values, mut push: impl FnMut(Taken, i8)) -> Result<()> {
    let mut known: Option<(&str, Unit)> = None;
    for (row, name) in units.iter().enumerate() {
        let Some(name) = name else {
            push(None, 0);
            continue;
        };
        let unit = match known {
            Some((one, unit)) if one == name => unit,
            _ => {
                let unit = Unit::named(name);
                unit.ok_or_else(|| outside(unknown_unit(name, values.kind.name())))?
            }
        };
        known = Some((name, unit));
        push(values.field(row, unit, name).map_err(outside)?, unit.scale(&values.kind));
    }
    Ok(())
}

/// Values that fields are taken of.
struct Values {
    kind: Kind,
    zone: Zone,
    all: All,
}

enum All {
    Micros(Vec<Option<i64>>),
    Lengths(Vec<Option<Length>>),
}

impl Values {
    fn of(kind: Kind, array: &ArrayRef, zone: Zone) -> Result<Values> {
        let all = match kind {
            Kind::Interval => All::Lengths(shown::lengths(array).unwrap_or_default()),
            Kind::Time => {
                let micros = cast(array, &DataType::Time64(TimeUnit::Microsecond))?;
                let micros = cast(&micros, &DataType::Int64)?;
                All::Micros(micros.as_primitive::<Int64Type>().iter().collect())
            }
            Kind::Instant | Kind::Clock | Kind::Date => {
                All::Micros(micros(array, None)?.iter().collect())
            }
        };
        Ok(Values { kind, zone, all })
    }

    fn field(&self, row: usize, unit: Unit, name: &str) -> Result<Taken, SqlError> {
        let none = || {
            let words = format!("unit \"{name}\" not supported for type {}", self.kind.name());
            SqlError::unsupported(words)
        };
        match &self.all {
            All::Lengths(all) => {
                let Some(length) = all[row] else { return Ok(None) };
                of_length(length, unit).map(Some).ok_or_else(none)
            }
            All::Micros(all) => {
                let Some(micros) = all[row] else { return Ok(None) };
                if self.kind == Kind::Time {
                    return of_day(micros, unit).map(Some).ok_or_else(none);
                }
                if [i64::MIN, i64::MAX].contains(&micros) {
                    return Ok(None);
                }
                self.of_time(micros, unit).ok_or_else(none)
            }
        }
    }

    /// None where times of that kind have no such field.
    fn of_time(&self, micros: i64, unit: Unit) -> Option<Taken> {
        let offset = match self.kind {
            Kind::Instant => self.zone.offset_at(micros),
            _ => 0,
        };
        let clocks = micros + i64::from(offset) * 1_000_000;
        let is_zone =
            |unit: Unit| matches!(unit, Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute);
        Some(match unit {
            unit if is_zone(unit) && self.kind != Kind::Instant => return None,
            Unit::Timezone => Some((i128::from(offset), 0)),
            Unit::TimezoneHour => Some((i128::from(offset / 3600), 0)),
            Unit::TimezoneMinute => Some((i128::from(offset / 60 % 60), 0)),
            Unit::Epoch => Some((i128::from(micros), 6)),
            _ => {
                let of_day = of_day(clocks.rem_euclid(86_400_000_000), unit);
                if of_day.is_some() {
                    return (self.kind != Kind::Date).then_some(of_day);
                }
                of_calendar(clocks, unit)
            }
        })
    }
}

/// A field of a time of day.
fn of_day(micros: i64, unit: Unit) -> Option<(i128, i8)> {
    let (micros, minute) = (i128::from(micros), 60 * SECOND);
    Some(match unit {
        Unit::Microseconds => (micros % minute, 0),
        Unit::Milliseconds => (micros % minute, 3),
        Unit::Second => (micros % minute, 6),
        Unit::Minute => (micros / minute % 60, 0),
        Unit::Hour => (micros / (60 * minute), 0),
        Unit::Epoch => (micros, 6),
        _ => return None,
    })
}

/// A field of a date.
fn of_calendar(clocks: i64, unit: Unit) -> Taken {
    let at = clock(clocks)?;
    let date = at.date();
    let year = i64::from(date.year());
    // There is no year 0: the one before the first is -1.
    let shown = if 0 < year { year } else { year - 1 };
    let grouped = |size: i64| match 0 < year {
        true => (year + size - 1) / size,
        false => -((size - (year - 1)) / size),
    };
    let whole = match unit {
        Unit::Day => i64::from(date.day()),
        Unit::Month => i64::from(date.month()),
        Unit::Quarter => (i64::from(date.month()) - 1) / 3 + 1,
        Unit::Year => shown,
        Unit::Decade => year.div_euclid(10),
        Unit::Century => grouped(100),
        Unit::Millennium => grouped(1000),
        Unit::Week => i64::from(date.iso_week_date().week()),
        Unit::YearIso => i64::from(date.iso_week_date().year()),
        Unit::DayOfWeek => i64::from(date.weekday().to_sunday_zero_offset()),
        Unit::DayOfWeekIso => i64::from(date.weekday().to_monday_one_offset()),
        Unit::DayOfYear => i64::from(date.day_of_year()),
        Unit::Julian => {
            let day = 86_400 * SECOND;
            let days = i128::from(EPOCH_JULIAN) * day + i128::from(clocks);
            return Some((days * 10_i128.pow(10) / day, 10));
        }
        _ => return None,
    };
    Some((i128::from(whole), 0))
}

/// A field of an interval.
fn of_length(length: Length, unit: Unit) -> Option<(i128, i8)> {
    let years = i128::from(length.months / 12);
    let micros = i128::from(length.micros);
    Some(match unit {
        Unit::Year => (years, 0),
        Unit::Decade => (years / 10, 0),
        Unit::Century => (years / 100, 0),
        Unit::Millennium => (years / 1000, 0),
        Unit::Month => (i128::from(length.months % 12), 0),
        Unit::Quarter => (i128::from(length.months % 12 / 3 + 1), 0),
        Unit::Day => (i128::from(length.days), 0),
        Unit::Hour => (micros / (3600 * SECOND), 0),
        Unit::Minute => (micros / (60 * SECOND) % 60, 0),
        Unit::Second => (micros % (60 * SECOND), 6),
        Unit::Milliseconds => (micros % (60 * SECOND), 3),
        Unit::Microseconds => (micros % (60 * SECOND), 0),
        Unit::Epoch => {
            // A year has 365.25 days where it is whole, a month has 30.
            let quarters = years * (365 * 4 + 1) + i128::from(length.months % 12) * 30 * 4;
            let days = quarters * (86_400 * SECOND / 4) + i128::from(length.days) * 86_400 * SECOND;
            (days + micros, 6)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::time::instants::clock_of as read;

    #[test]
    fn fields_are_those_of_postgresql() {
        let of = |text: &str, unit: &str, kind: Kind| {
            let all = All::Micros(vec![read(text)]);
            let values = Values { kind, zone: Zone::utc(), all };
            values.field(0, Unit::named(unit).unwrap(), unit).map_err(|error| error.code)
        };
        let at = "2024-02-29 13:04:05.5";
        for (unit, expected) in [
            ("century", (21, 0)),
            ("decade", (202, 0)),
            ("millennium", (3, 0)),
            ("second", (5_500_000, 6)),
            ("ms", (5_500_000, 3)),
            ("usec", (5_500_000, 0)),
            ("epoch", (1_709_211_845_500_000, 6)),
            ("dow", (4, 0)),
            ("isodow", (4, 0)),
            ("doy", (60, 0)),
            ("week", (9, 0)),
            ("quarter", (1, 0)),
            ("hour", (13, 0)),
            ("timezone", (0, 0)),
        ] {
            assert_eq!(of(at, unit, Kind::Instant), Ok(Some(expected)), "{unit}");
        }
        assert_eq!(of(at, "timezone", Kind::Clock), Err("0A000"));
        assert_eq!(of(at, "hour", Kind::Date), Err("0A000"));
        assert_eq!(of("2000-12-31", "century", Kind::Date), Ok(Some((20, 0))));
        assert_eq!(of("infinity", "year", Kind::Clock), Ok(None));
        let length = Length { months: 14, days: 1, micros: 7_200_000_000 };
        assert_eq!(of_length(length, Unit::Epoch), Some((36_835_200_000_000, 6)));
        assert_eq!(of_length(length, Unit::Month), Some((2, 0)));
        assert_eq!(of_length(length, Unit::DayOfWeek), None);
    }
}
