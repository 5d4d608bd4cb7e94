//! Intervals as PostgreSQL compares them, and TimescaleDB's buckets.
//!
//! An interval has months, days and parts of a day. Arrow compares the months first; PostgreSQL takes
//! a month for 30 days and a day for 24 hours. Where times are taken from each other arrow has a
//! length of time, which is of another type.

use crate::types::error::SqlError;
use crate::types::function::{function, map_columns};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Decimal128Array, Int64Array, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use model::sample::NANOS_PER_MICRO;
use std::sync::{Arc, LazyLock};

const DAY_MICROS: i64 = 86_400 * 1_000_000;
const MONTH_DAYS: i64 = 30;
/// Digits of a number of microseconds: those of 2^31 months and more.
const DIGITS: u8 = 38;
/// From where buckets are counted that are no months: the first Monday of 2000, so that weeks begin
/// with one (<https://docs.tigerdata.com/api/latest/hyperfunctions/time_bucket/>).
pub const MONDAY: i64 = 946_857_600 * 1_000_000;
/// From where months are counted.
const YEAR: i64 = 2000;

/// The type of intervals.
pub const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Whether a type is an interval's, or a length of time.
pub fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

/// The type of lengths of intervals.
pub const WORTH_TYPE: DataType = DataType::Decimal128(DIGITS, 0);

/// What an interval is worth in microseconds, by which they are compared.
pub static WORTH: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    let number = |_: &[DataType]| WORTH_TYPE;
    Arc::new(function("interval_worth", signature, number, |args, _| worths(&args[0])))
});

/// The lengths of intervals.
///
/// # Errors
/// When the values are no intervals.
pub fn worths(array: &ArrayRef) -> Result<ArrayRef> {
    let worths: Decimal128Array = match array.data_type() {
        DataType::Duration(_) => {
            let micros = cast(array, &DataType::Duration(TimeUnit::Microsecond))?;
            let micros = cast(&micros, &DataType::Int64)?;
            let micros = micros.as_primitive::<Int64Type>();
            micros.iter().map(|one| one.map(i128::from)).collect()
        }
        _ => {
            let intervals = cast(array, &INTERVAL)?;
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            intervals.iter().map(|one| one.map(|one| worth(&one))).collect()
        }
    };
    Ok(Arc::new(worths.with_precision_and_scale(DIGITS, 0)?))
}

pub(crate) fn worth(interval: &IntervalMonthDayNano) -> i128 {
    let days = i64::from(interval.months) * MONTH_DAYS + i64::from(interval.days);
    let micros = interval.nanoseconds.div_euclid(NANOS_PER_MICRO);
    i128::from(days) * i128::from(DAY_MICROS) + i128::from(micros)
}

/// `time_bucket(width, time [, origin])`, of times by intervals and of whole numbers by such.
pub fn time_bucket() -> ScalarUDF {
    ScalarUDF::from(TimeBucket { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeBucket {
    signature: Signature,
}

fn micros_of(zone: Option<Arc<str>>) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, zone)
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [width, time, others @ ..] = types else {
            return plan_err!("No function matches time_bucket with {} arguments", types.len());
        };
        if 1 < others.len() {
            return plan_err!("No function matches time_bucket with {} arguments", types.len());
        }
        if width.is_integer() && time.is_integer() {
            let mut counted = vec![DataType::Int64; types.len()];
            if matches!(time, DataType::Int16 | DataType::Int32) {
                counted[1] = time.clone();
            }
            return Ok(counted);
        }
        let time = match time {
            DataType::Timestamp(_, zone) => micros_of(zone.clone()),
            DataType::Date32 => match others {
                [origin @ DataType::Timestamp(..)] => micros_of(zone_of(origin)),
                _ => DataType::Date32,
            },
            DataType::Null | DataType::Utf8 | DataType::Utf8View => {
                micros_of(Some(crate::types::time::zones::ZONE.into()))
            }
            other => return plan_err!("No function matches time_bucket of {other}"),
        };
        let origin = match others.first() {
            Some(one) if is_interval(one) => Some(INTERVAL),
            Some(_) => Some(time.clone()),
            None => None,
        };
        Ok([INTERVAL, time].into_iter().chain(origin).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.get(1).cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_columns(&args.args, args.number_rows, |arrays, _| match arrays[0].data_type() {
            DataType::Int64 => numbers(arrays),
            _ => times(arrays),
        })
    }
}

fn numbers(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let of = arrays[1].data_type();
    let wide = arrays.iter().map(|array| cast(array, &DataType::Int64));
    let wide = wide.collect::<Result<Vec<_>, _>>()?;
    let column = |at: usize| wide[at].as_primitive::<Int64Type>();
    let row = |at: usize| {
        if wide.iter().any(|array| array.is_null(at)) {
            return Ok(None);
        }
        let (width, number) = (positive(column(0).value(at))?, column(1).value(at));
        let offset = if wide.len() == 3 { column(2).value(at) } else { 0 };
        let made = floor(number, width, offset).filter(|made| match of {
            DataType::Int16 => i16::try_from(*made).is_ok(),
            DataType::Int32 => i32::try_from(*made).is_ok(),
            _ => true,
        });
        made.map(Some).ok_or_else(|| number_out_of_range(of))
    };
    let all = (0..wide[0].len()).map(row).collect::<Result<Int64Array>>()?;
    Ok(cast(&all, of)?)
}

fn zone_of(time: &DataType) -> Option<Arc<str>> {
    match time {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    }
}

/// The type in which times of another are counted: dates as times, small numbers as large ones.
pub fn counted(of: &DataType) -> DataType {
    match of {
        DataType::Date32 => micros_of(None),
        whole if whole.is_integer() => DataType::Int64,
        other => other.clone(),
    }
}

fn times(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let are_dates = *arrays[1].data_type() == DataType::Date32;
    let arrays = arrays.iter().map(|array| cast(array, &counted(array.data_type())));
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    let widths = arrays[0].as_primitive::<IntervalMonthDayNanoType>();
    let times = arrays[1].as_primitive::<TimestampMicrosecondType>();
    let row = |at: usize| {
        if arrays.iter().any(|array| array.is_null(at)) {
            return Ok(None);
        }
        let (width, time) = (widths.value(at), times.value(at));
        if are_dates {
            of_days(&width)?;
        }
        // What has no end is in a bucket of its own.
        if [i64::MIN, i64::MAX].contains(&time) {
            return Ok(Some(time));
        }
        let made = match arrays.get(2) {
            None => bucket(&width, time, None),
            Some(origin) if *origin.data_type() == INTERVAL => {
                let offset = origin.as_primitive::<IntervalMonthDayNanoType>().value(at);
                shifted(&width, time, &offset)
            }
            Some(origin) => bucket(
                &width,
                time,
                Some(origin.as_primitive::<TimestampMicrosecondType>().value(at)),
            ),
        };
        made.map(Some)
    };
    let all = (0..times.len()).map(row).collect::<Result<TimestampMicrosecondArray>>()?;
    let all = all.with_timezone_opt(zone_of(arrays[1].data_type()));
    Ok(if are_dates { cast(&all, &DataType::Date32)? } else { Arc::new(all) })
}

/// That a width is of whole days, as those of dates are.
fn of_days(width: &IntervalMonthDayNano) -> Result<()> {
    let micros = worth(width);
    if width.months == 0 && 0 < micros && micros < i128::from(DAY_MICROS) {
        return Err(wrong("interval must not have sub-day precision"));
    }
    match micros % i128::from(DAY_MICROS) {
        0 => Ok(()),
        _ => Err(wrong("interval must be a multiple of a day")),
    }
}

/// Buckets that begin so much later.
fn shifted(width: &IntervalMonthDayNano, time: i64, by: &IntervalMonthDayNano) -> Result<i64> {
    if by.months != 0 {
        return Err(wrong("an offset of months is not known here"));
    }
    let by = i64::try_from(worth(by)).map_err(|_| out_of_range())?;
    let before = time.checked_sub(by).ok_or_else(out_of_range)?;
    let made = bucket(width, before, None)?.checked_add(by).ok_or_else(out_of_range)?;
    of_calendar(made)
}

/// The bucket that a time is in, where one begins at `origin`.
///
/// # Errors
/// Where the width makes no sense, and what has no bucket.
pub fn bucket(width: &IntervalMonthDayNano, time: i64, origin: Option<i64>) -> Result<i64> {
    if width.months == 0 {
        let micros = positive(i64::try_from(worth(width)).map_err(|_| out_of_range())?)?;
        let made = floor(time, micros, origin.unwrap_or(MONDAY)).ok_or_else(out_of_range)?;
        return of_calendar(made);
    }
    if width.days != 0 || width.nanoseconds != 0 {
        return Err(wrong("a bucket is months or a length of time, not both"));
    }
    let origin = origin.map(month_of).transpose()?.unwrap_or(0);
    let month = floor(month_of(time)?, positive(i64::from(width.months))?, origin);
    begin_of(month.ok_or_else(out_of_range)?)
}

/// A time that can be shown.
fn of_calendar(micros: i64) -> Result<i64> {
    Timestamp::from_microsecond(micros).map(|_| micros).map_err(|_| out_of_range())
}

/// The bucket that a number is in, where one begins at `origin`; none that is too far.
pub fn floor(number: i64, width: i64, origin: i64) -> Option<i64> {
    // Only what is left of the origin matters, which keeps the difference small.
    let since = number.checked_sub(origin.rem_euclid(width))?;
    number.checked_sub(since.rem_euclid(width))
}

/// Months since the year 2000.
pub fn month_of(micros: i64) -> Result<i64> {
    let at = Timestamp::from_microsecond(micros).map_err(|_| out_of_range())?;
    let date = at.to_zoned(TimeZone::UTC).date();
    Ok((i64::from(date.year()) - YEAR) * 12 + i64::from(date.month()) - 1)
}

/// When a month begins, in microseconds since 1970.
pub fn begin_of(month: i64) -> Result<i64> {
    let year = i16::try_from(month.div_euclid(12) + YEAR).map_err(|_| out_of_range())?;
    let number = i8::try_from(month.rem_euclid(12) + 1).map_err(|_| out_of_range())?;
    let date = Date::new(year, number, 1).map_err(|_| out_of_range())?;
    let at = date.to_zoned(TimeZone::UTC).map_err(|_| out_of_range())?;
    Ok(at.timestamp().as_microsecond())
}

pub fn positive(width: i64) -> Result<i64> {
    if width <= 0 { Err(wrong("period must be greater than 0")) } else { Ok(width) }
}

fn wrong(words: &str) -> DataFusionError {
    let message = format!("time_bucket: {words}");
    DataFusionError::External(Box::new(SqlError::new("22023", message)))
}

pub fn out_of_range() -> DataFusionError {
    let message = "timestamp out of range".to_string();
    DataFusionError::External(Box::new(SqlError::new("22008", message)))
}

/// That there is no number of a type where a bucket begins.
pub fn number_out_of_range(of: &DataType) -> DataFusionError {
    let name = match of {
        DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        _ => "bigint",
    };
    DataFusionError::External(Box::new(SqlError::new("22003", format!("{name} out of range"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::time::instants::instant_of;
    use datafusion::common::ScalarValue;

    fn interval(months: i32, days: i32, seconds: i64) -> IntervalMonthDayNano {
        IntervalMonthDayNano::new(months, days, seconds * 1_000_000_000)
    }

    #[test]
    fn intervals_are_worth_what_postgresql_takes_them_for() {
        assert_eq!(worth(&interval(0, 1, 0)), worth(&interval(0, 0, 86_400)));
        assert_eq!(worth(&interval(1, 0, 0)), worth(&interval(0, 30, 0)));
        assert!(worth(&interval(0, 40, 0)) > worth(&interval(1, 0, 0)));
        assert!(worth(&interval(i32::MAX, 0, 0)) > worth(&interval(0, i32::MAX, 0)));
        assert_eq!(worth(&IntervalMonthDayNano::new(0, 0, -1)), -1);
    }

    #[test]
    fn buckets_begin_where_timescaledb_has_them() {
        for (width, time, expected) in [
            (interval(0, 0, 300), "2024-02-29 12:04:59.999999", "2024-02-29 12:00"),
            (interval(0, 7, 0), "2024-02-29 12:00", "2024-02-26"),
            (interval(0, 1, 0), "1969-12-31 23:00", "1969-12-31"),
            (interval(1, 0, 0), "2024-02-29 12:00", "2024-02-01"),
            (interval(3, 0, 0), "2024-05-31", "2024-04-01"),
            (interval(12, 0, 0), "1999-12-31", "1999-01-01"),
            (interval(120, 0, 0), "1999-12-31", "1990-01-01"),
            (interval(0, 0, 7), "2000-01-03 00:00:06", "2000-01-03"),
        ] {
            let found = bucket(&width, instant_of(time).unwrap(), None).unwrap();
            assert_eq!(found, instant_of(expected).unwrap(), "{width:?} {time}");
        }
        let noon = instant_of("2024-02-29 12:00").unwrap();
        let origin = instant_of("2024-01-01 00:30");
        assert_eq!(bucket(&interval(0, 1, 0), noon, origin).unwrap(), noon - 23 * 1_800_000_000);
        let off = shifted(&interval(0, 0, 3600), noon, &interval(0, 0, 900)).unwrap();
        assert_eq!(off, noon - 45 * 60_000_000);
        for width in [interval(0, 0, 0), interval(0, -1, 0), interval(-1, 0, 0), interval(1, 1, 0)]
        {
            assert!(bucket(&width, noon, None).is_err(), "{width:?}");
        }
        for time in [i64::MIN, i64::MAX] {
            for width in [interval(1, 0, 0), interval(0, i32::MAX, 0)] {
                let _ = bucket(&width, time, None);
            }
        }
        assert!(bucket(&interval(0, 1, 0), i64::MIN, None).is_err());
    }

    /// What a call says, in words, or the code of its failure.
    fn called(args: &[ScalarValue]) -> String {
        let arrays: Vec<ArrayRef> = args.iter().map(|one| one.to_array().unwrap()).collect();
        let types: Vec<DataType> = arrays.iter().map(|one| one.data_type().clone()).collect();
        let wanted = time_bucket().coerce_types(&types).unwrap();
        let arrays: Vec<ArrayRef> =
            arrays.iter().zip(&wanted).map(|(one, to)| cast(one, to).unwrap()).collect();
        let made = match wanted[0] {
            DataType::Int64 => numbers(&arrays),
            _ => times(&arrays),
        };
        match made {
            Ok(made) => format!("{:?}", ScalarValue::try_from_array(&made, 0).unwrap()),
            Err(error) => {
                let error = SqlError::from(error);
                format!("{} {}", error.code, error.message)
            }
        }
    }

    #[test]
    fn buckets_past_all_calendars_are_refused() {
        let at = |text: &str| {
            ScalarValue::TimestampMicrosecond(
                instant_of(text),
                Some(crate::types::time::zones::ZONE.into()),
            )
        };
        let days = |days| ScalarValue::IntervalMonthDayNano(Some(interval(0, days, 0)));
        let refused = "22008 timestamp out of range";
        assert_eq!(called(&[days(100_000_000), at("1999-12-31")]), refused);
        assert_eq!(called(&[days(1), at("2024-01-01"), days(1_000_000_000)]), refused);
        for end in ["infinity", "-infinity"] {
            assert_eq!(called(&[days(1), at(end)]), format!("{:?}", at(end)));
        }
        let number = |one| ScalarValue::Int64(Some(one));
        assert_eq!(called(&[number(10), number(i64::MIN)]), "22003 bigint out of range");
        assert_eq!(called(&[number(7), number(-1)]), "Int64(-7)");
    }

    #[test]
    fn dates_and_small_numbers_stay_such() {
        let days =
            |months, days| ScalarValue::IntervalMonthDayNano(Some(interval(months, days, 0)));
        let date = |days| ScalarValue::Date32(Some(days));
        // 2024-05-05, a Sunday.
        let sunday = 19_848;
        assert_eq!(called(&[days(0, 1), date(sunday)]), format!("{:?}", date(sunday)));
        assert_eq!(called(&[days(0, 7), date(sunday)]), format!("{:?}", date(sunday - 6)));
        assert_eq!(called(&[days(1, 0), date(sunday)]), format!("{:?}", date(sunday - 4)));
        assert_eq!(called(&[days(0, 7), date(sunday), date(1)]), format!("{:?}", date(sunday - 2)));
        assert_eq!(called(&[days(0, 7), date(sunday), days(0, -1)]), format!("{:?}", date(sunday)));
        let hours = ScalarValue::IntervalMonthDayNano(Some(interval(0, 0, 3600 * 25)));
        assert!(called(&[hours, date(sunday)]).contains("multiple of a day"));
        let (small, int) =
            (|one| ScalarValue::Int16(Some(one)), |one| ScalarValue::Int32(Some(one)));
        assert_eq!(called(&[small(5), small(12)]), "Int16(10)");
        assert_eq!(called(&[ScalarValue::Int64(Some(5)), int(12), int(1)]), "Int32(11)");
        assert_eq!(called(&[small(5), small(i16::MIN)]), "22003 smallint out of range");
    }
}
