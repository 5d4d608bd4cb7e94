//! `date_trunc` of times and intervals (<https://www.postgresql.org/docs/15/functions-datetime.html#FUNCTIONS-DATETIME-TRUNC>).
//! DataFusion's function has fewer units, wants a constant one, and takes no intervals.

use crate::functions::calendar::fields::{Unit, unknown_unit};
use crate::functions::calendar::{age, intervals, lengths_of, outside, texts};
use crate::types::error::SqlError;
use crate::types::function::map_columns;
use crate::types::time::intervals::{INTERVAL, is_interval};
use crate::types::time::zones::ZONE;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, StringViewArray, TimestampMicrosecondBuilder,
    new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Days from the first of March of year 0 to 1970, and of 400 years.
const EPOCH_DAYS: i64 = 719_468;
const ERA_DAYS: i64 = 146_097;

/// The function.
pub fn date_trunc() -> ScalarUDF {
    ScalarUDF::from(DateTrunc { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateTrunc {
    signature: Signature,
}

impl ScalarUDFImpl for DateTrunc {
    fn name(&self) -> &str {
        "date_trunc"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let instant = DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
        let [unit, time] = types else {
            return plan_err!("No function matches date_trunc with {} arguments", types.len());
        };
        let time = match time {
            DataType::Timestamp(..) | DataType::Time64(_) => time.clone(),
            one if is_interval(one) => one.clone(),
            DataType::Date32 | DataType::Null => instant,
            one if one.is_string() => instant,
            _ => return plan_err!("No function matches date_trunc({unit}, {time})"),
        };
        match unit {
            DataType::Null => Ok(vec![DataType::Utf8View, time]),
            one if one.is_string() => Ok(vec![one.clone(), time]),
            _ => plan_err!("No function matches date_trunc({unit}, {time})"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types.get(1) {
            Some(time @ DataType::Timestamp(..)) => time.clone(),
            _ => INTERVAL,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_columns(&args.args, args.number_rows, |arrays, rows| match arrays[1].data_type() {
            DataType::Timestamp(..) => truncate_times(&texts(&arrays[0])?, &arrays[1], rows),
            _ => truncate_intervals(&texts(&arrays[0])?, &arrays[1]),
        })
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        let is_constant = input[0].sort_properties == SortProperties::Singleton;
        Ok(if is_constant { input[1].sort_properties } else { SortProperties::Unordered })
    }
}

fn truncate_times(units: &StringViewArray, times: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    let of = times.data_type();
    if times.null_count() == rows {
        return Ok(new_null_array(of, rows));
    }
    let DataType::Timestamp(_, zone) = of else { return Ok(times.clone()) };
    let type_name = match zone {
        Some(_) => "timestamp with time zone",
        None => "timestamp without time zone",
    };
    let micros = cast(times, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
    let micros = micros.as_primitive::<TimestampMicrosecondType>();
    let mut out = TimestampMicrosecondBuilder::with_capacity(rows).with_timezone_opt(zone.clone());
    let mut known: Option<(&str, Step)> = None;
    for row in 0..rows {
        if units.is_null(row) || micros.is_null(row) {
            out.append_null();
            continue;
        }
        let (name, time) = (units.value(row), micros.value(row));
        if [i64::MIN, i64::MAX].contains(&time) {
            out.append_value(time);
            continue;
        }
        let unit = match known {
            Some((last, unit)) if last == name => unit,
            _ => Step::of(name, type_name).map_err(outside)?,
        };
        known = Some((name, unit));
        let truncated = unit.truncate(time);
        let error = || outside(SqlError::new("22008", "timestamp out of range"));
        out.append_value(truncated.ok_or_else(error)?);
    }
    let made: ArrayRef = Arc::new(out.finish());
    Ok(if made.data_type() == of { made } else { cast(&made, of)? })
}

fn truncate_intervals(units: &StringViewArray, lengths: &ArrayRef) -> Result<ArrayRef> {
    let lengths = lengths_of(lengths)?;
    let mut all = Vec::with_capacity(lengths.len());
    for (unit, length) in units.iter().zip(lengths) {
        let both = unit.zip(length);
        let made = both.map(|(unit, length)| age::truncated(unit, length));
        all.push(made.transpose().map_err(outside)?);
    }
    intervals(all.into_iter())
}

/// The length of a unit of times.
#[derive(Clone, Copy)]
enum Step {
    /// Microseconds that are as many in each unit.
    Micros(i64),
    Week,
    Months(i64),
    /// Years, and the first year of a unit.
    Years {
        count: i64,
        first: i64,
    },
}

impl Step {
    fn of(name: &str, type_name: &str) -> Result<Step, SqlError> {
        let unit = Unit::named(name).ok_or_else(|| unknown_unit(name, type_name))?;
        Ok(match unit {
            Unit::Microseconds => Step::Micros(1),
            Unit::Milliseconds => Step::Micros(1_000),
            Unit::Second => Step::Micros(SECOND),
            Unit::Minute => Step::Micros(60 * SECOND),
            Unit::Hour => Step::Micros(3_600 * SECOND),
            Unit::Day => Step::Micros(DAY),
            Unit::Week => Step::Week,
            Unit::Month => Step::Months(1),
            Unit::Quarter => Step::Months(3),
            Unit::Year => Step::Years { count: 1, first: 0 },
            Unit::Decade => Step::Years { count: 10, first: 0 },
            Unit::Century => Step::Years { count: 100, first: 1 },
            Unit::Millennium => Step::Years { count: 1000, first: 1 },
            Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute => {
                let words = format!("unit \"{name}\" not supported for type {type_name}");
                return Err(SqlError::unsupported(words));
            }
            _ => return Err(unknown_unit(name, type_name)),
        })
    }

    /// The beginning of the unit that a time is in; none beyond what a time may be.
    fn truncate(self, micros: i64) -> Option<i64> {
        let days = micros.div_euclid(DAY);
        let day = match self {
            Step::Micros(size) => return micros.checked_sub(micros.rem_euclid(size)),
            // 1970 began with a Thursday, weeks begin with a Monday.
            Step::Week => days - (days + 3).rem_euclid(7),
            Step::Months(count) => {
                let (year, month) = month_of(days);
                days_of(year, month - (month - 1) % count)
            }
            Step::Years { count, first } => {
                let (year, _) = month_of(days);
                days_of(year - (year - first).rem_euclid(count), 1)
            }
        };
        day.checked_mul(DAY)
    }
}

/// The year and month of a day, counted from 1970.
fn month_of(days: i64) -> (i64, i64) {
    let shifted = days + EPOCH_DAYS;
    let (era, day) = (shifted.div_euclid(ERA_DAYS), shifted.rem_euclid(ERA_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let year = year + era * 400;
    if month < 10 { (year, month + 3) } else { (year + 1, month - 9) }
}

/// The first day of a month, counted from 1970.
fn days_of(year: i64, month: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = (153 * month + 2) / 5;
    era * ERA_DAYS + year * 365 + year / 4 - year / 100 + day - EPOCH_DAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_begin_with_their_first_day() {
        for (year, month, days) in
            [(1970, 1, 0), (2000, 3, 11_017), (1969, 12, -31), (2024, 2, 19_754)]
        {
            assert_eq!(days_of(year, month), days);
            assert_eq!(month_of(days), (year, month));
            assert_eq!(month_of(days + 27), (year, month));
        }
    }
}
