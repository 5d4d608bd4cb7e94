//! An interval times a number, and divided by one: `3 * INTERVAL '1 day'`.

use crate::types::error::SqlError;
use datafusion::arrow::array::types::{IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::arrow::array::{AsArray as _, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{DataType, Float64Type, IntervalUnit};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable as _, ScalarUDF, Volatility, create_udf,
};
use std::sync::{Arc, LazyLock};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAYS_PER_MONTH: f64 = 30.0;
const SECONDS_PER_DAY: f64 = 86_400.0;
const NANOS_PER_MICRO: f64 = 1e3;

static PRODUCT: LazyLock<ScalarUDF> = LazyLock::new(|| scaling("interval_product", times));
static QUOTIENT: LazyLock<ScalarUDF> = LazyLock::new(|| scaling("interval_quotient", over));

type Work = fn(IntervalMonthDayNano, f64) -> Result<IntervalMonthDayNano>;

fn scaling(name: &str, work: Work) -> ScalarUDF {
    let types = vec![INTERVAL, DataType::Float64];
    let each = move |args: &[ColumnarValue]| scaled_all(args, work);
    create_udf(name, types, INTERVAL, Volatility::Immutable, Arc::new(each))
}

/// The product of an interval and a number, whichever comes first; none of others.
pub fn product(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let (interval, number) = match (is_interval(left, schema), is_interval(right, schema)) {
        (true, false) => (left, right),
        (false, true) => (right, left),
        _ => return None,
    };
    is_number(number, schema).then(|| PRODUCT.call(vec![interval.clone(), float(number, schema)]))
}

/// An interval divided by a number; none of others.
pub fn quotient(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_one = is_interval(left, schema) && is_number(right, schema);
    is_one.then(|| QUOTIENT.call(vec![left.clone(), float(right, schema)]))
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

fn is_number(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|ty| ty.is_numeric() || ty == DataType::Null)
}

fn float(expr: &Expr, schema: &DFSchema) -> Expr {
    expr.clone().cast_to(&DataType::Float64, schema).unwrap_or_else(|_| expr.clone())
}

fn scaled_all(args: &[ColumnarValue], work: Work) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(args)?;
    let intervals = arrays[0].as_primitive::<IntervalMonthDayNanoType>();
    let numbers = arrays[1].as_primitive::<Float64Type>();
    let pairs = intervals.iter().zip(numbers.iter());
    let made = pairs.map(|pair| match pair {
        (Some(interval), Some(number)) => work(interval, number).map(Some),
        _ => Ok(None),
    });
    let made = made.collect::<Result<IntervalMonthDayNanoArray>>()?;
    Ok(ColumnarValue::Array(Arc::new(made)))
}

fn times(interval: IntervalMonthDayNano, number: f64) -> Result<IntervalMonthDayNano> {
    scaled(interval, |part| part * number)
}

/// An interval divided by a number.
///
/// # Errors
/// 22012 for zero, and 22008 for a quotient out of range.
pub fn over(interval: IntervalMonthDayNano, number: f64) -> Result<IntervalMonthDayNano> {
    if number == 0.0 {
        let error = SqlError::new("22012", "division by zero");
        return Err(DataFusionError::External(Box::new(error)));
    }
    scaled(interval, |part| part / number)
}

/// Parts of a month become days of which it has thirty, parts of a day a time.
fn scaled(
    interval: IntervalMonthDayNano,
    scale: impl Fn(f64) -> f64,
) -> Result<IntervalMonthDayNano> {
    let out_of_range = || {
        let error = SqlError::new("22008", "interval out of range");
        DataFusionError::External(Box::new(error))
    };
    let (months, days) = (scale(f64::from(interval.months)), scale(f64::from(interval.days)));
    let days_of_months = micro((months - months.trunc()) * DAYS_PER_MONTH);
    let rest = days - days.trunc() + days_of_months - days_of_months.trunc();
    let mut seconds = micro(rest * SECONDS_PER_DAY);
    let mut whole_days = days.trunc();
    if SECONDS_PER_DAY <= seconds.abs() {
        let more = (seconds / SECONDS_PER_DAY).trunc();
        whole_days += more;
        seconds -= more * SECONDS_PER_DAY;
    }
    whole_days += days_of_months.trunc();
    let micros = scale(interval.nanoseconds as f64 / NANOS_PER_MICRO) + seconds * 1e6;
    let nanos = micros.round_ties_even() * NANOS_PER_MICRO;
    let whole = |value: f64| {
        let is_in = f64::from(i32::MIN) <= value && value <= f64::from(i32::MAX);
        is_in.then_some(value as i32).ok_or_else(out_of_range)
    };
    if nanos.is_nan() || i64::MAX as f64 <= nanos.abs() {
        return Err(out_of_range());
    }
    Ok(IntervalMonthDayNano::new(whole(months.trunc())?, whole(whole_days)?, nanos as i64))
}

/// Rounded to a millionth: what is left by rounding of floats is no part of a second.
fn micro(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_days_and_times() {
        let day = 86_400_000_000_000;
        let of = IntervalMonthDayNano::new;
        for (interval, number, expected) in [
            (of(0, 0, 60_000_000_000), 3.0, of(0, 0, 180_000_000_000)),
            (of(1, 0, 0), 1.5, of(1, 15, 0)),
            (of(1, 1, 0), 0.5, of(0, 15, day / 2)),
            (of(0, 1, 0), -0.25, of(0, 0, -day / 4)),
            (of(0, 7, 0), 1.0 / 7.0, of(0, 1, 0)),
            (of(12, 0, 0), 0.1, of(1, 6, 0)),
        ] {
            assert_eq!(times(interval, number).unwrap(), expected, "{interval:?} * {number}");
        }
        assert_eq!(over(of(0, 7, 0), 7.0).unwrap(), of(0, 1, 0));
        assert_eq!(over(of(0, 1, 0), 3.0).unwrap(), of(0, 0, day / 3));
        assert_eq!(over(of(1, 0, 0), 7.0).unwrap(), of(0, 4, 24_685_689_600_000));
        assert!(over(of(1, 0, 0), 0.0).is_err());
        for number in [1e300, f64::NAN, f64::INFINITY] {
            assert!(times(of(1, 1, 1), number).is_err(), "{number}");
            assert!(times(of(0, 0, 1), number).is_err(), "{number}");
        }
    }
}
