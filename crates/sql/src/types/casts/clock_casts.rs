//! Casts of times of day to intervals and back, which arrow has not.

use crate::types::function::function;
use crate::types::text::shown;
use crate::types::time::intervals::INTERVAL;
use datafusion::arrow::array::{ArrayRef, AsArray as _, PrimitiveArray, Time64MicrosecondArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType, TimeUnit,
};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, ScalarUDF, Signature, Volatility};
use model::sample::NANOS_PER_MICRO;
use std::sync::{Arc, LazyLock};

const DAY: i64 = 86_400_000_000;
const CLOCK: DataType = DataType::Time64(TimeUnit::Microsecond);

/// A cast between these types; none of others.
pub fn clock_cast(value: &Expr, from: &DataType, to: &DataType) -> Option<Expr> {
    let is_interval = |ty: &DataType| matches!(ty, DataType::Interval(_) | DataType::Duration(_));
    match (from, to) {
        (DataType::Time64(_), DataType::Interval(_)) => Some(TO_INTERVAL.call(vec![value.clone()])),
        (from, DataType::Time64(_)) if is_interval(from) => {
            Some(TO_CLOCK.call(vec![value.clone()]))
        }
        _ => None,
    }
}

static TO_INTERVAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    let work = |args: &[ArrayRef], _: usize| -> Result<ArrayRef> {
        let clocks = cast(&args[0], &CLOCK)?;
        let length = |micros: i64| IntervalMonthDayNano::new(0, 0, micros * NANOS_PER_MICRO);
        let made: PrimitiveArray<IntervalMonthDayNanoType> =
            clocks.as_primitive::<Time64MicrosecondType>().unary(length);
        Ok(Arc::new(made))
    };
    Arc::new(function("pg_time_interval", signature, |_| INTERVAL, work))
});

static TO_CLOCK: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    let work = |args: &[ArrayRef], rows: usize| -> Result<ArrayRef> {
        let lengths = shown::lengths(&args[0]).unwrap_or_else(|| (0..rows).map(|_| None).collect());
        // PostgreSQL drops months and days, and keeps the time of day.
        let clock = |length: Option<shown::Length>| length.map(|one| one.micros.rem_euclid(DAY));
        let made: Time64MicrosecondArray = lengths.into_iter().map(clock).collect();
        Ok(Arc::new(made))
    };
    Arc::new(function("pg_interval_time", signature, |_| CLOCK, work))
});
