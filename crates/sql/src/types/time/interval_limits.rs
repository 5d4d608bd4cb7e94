//! Intervals of a type with fields or a precision: `interval day to minute`, `interval(2)`. What is smaller than the last
//! field is cut, and seconds are rounded (<https://www.postgresql.org/docs/15/datatype-datetime.html#DATATYPE-INTERVAL-INPUT>).

use crate::types::function::function;
use crate::types::time::intervals::INTERVAL;
use datafusion::arrow::array::{ArrayRef, AsArray as _};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
};
use datafusion::common::Result;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::Arc;

/// `pg_interval_limits(interval, last field, digits)`.
pub const INTERVAL_LIMITS: &str = "pg_interval_limits";
/// The last fields of types, and how intervals are cut behind them.
pub const FIELDS: [&str; 6] = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"];
/// Digits of a second that an interval has at most.
pub const DIGITS_MAX: u64 = 6;

const MICRO: i64 = 1_000;
const MINUTE: i64 = 60_000_000 * MICRO;
const HOUR: i64 = 60 * MINUTE;

/// The function.
pub fn interval_limits() -> ScalarUDF {
    let signature = Signature::any(3, Volatility::Immutable);
    function(INTERVAL_LIMITS, signature, |_| INTERVAL, limit)
}

fn limit(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let intervals = cast(&args[0], &INTERVAL)?;
    let (fields, digits) = (cast(&args[1], &DataType::Int64)?, cast(&args[2], &DataType::Int64)?);
    let first = |array: &ArrayRef| array.as_primitive::<Int64Type>().iter().flatten().next();
    let (field, digits) = (first(&fields).unwrap_or(5), first(&digits).unwrap_or(6));
    let cut = |one: IntervalMonthDayNano| limited(one, field, digits);
    let made: datafusion::arrow::array::IntervalMonthDayNanoArray =
        intervals.as_primitive::<IntervalMonthDayNanoType>().unary(cut);
    Ok(Arc::new(made))
}

/// Cuts an interval behind the field with this place in [`FIELDS`], and rounds its seconds to digits.
pub fn limited(one: IntervalMonthDayNano, field: i64, digits: i64) -> IntervalMonthDayNano {
    let IntervalMonthDayNano { months, days, nanoseconds } = one;
    match field {
        0 => IntervalMonthDayNano::new(months / 12 * 12, 0, 0),
        1 => IntervalMonthDayNano::new(months, 0, 0),
        2 => IntervalMonthDayNano::new(months, days, 0),
        3 => IntervalMonthDayNano::new(months, days, nanoseconds / HOUR * HOUR),
        4 => IntervalMonthDayNano::new(months, days, nanoseconds / MINUTE * MINUTE),
        _ => {
            let exponent = u32::try_from(6 - digits.clamp(0, 6)).unwrap_or(0);
            let scale = 10i64.pow(exponent) * MICRO;
            let half = if nanoseconds < 0 { -scale / 2 } else { scale / 2 };
            let rounded = nanoseconds.saturating_add(half) / scale * scale;
            let nanoseconds = if exponent == 0 { nanoseconds } else { rounded };
            IntervalMonthDayNano::new(months, days, nanoseconds)
        }
    }
}
