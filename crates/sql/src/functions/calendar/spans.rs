//! The interval between two timestamps, in days and a time
//! (<https://www.postgresql.org/docs/15/functions-datetime.html>): DataFusion has a duration, which it neither
//! multiplies nor compares with intervals.

use crate::types::function::function;
use crate::types::time::intervals::INTERVAL;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, IntervalMonthDayNanoBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNano, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable as _, ScalarUDF, Signature, Volatility};
use std::sync::{Arc, LazyLock};

const DAY_MICROS: i128 = 86_400_000_000;

static BETWEEN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(function("pg_timestamp_minus", signature, |_| INTERVAL, spans))
});

/// The call that takes one timestamp from another; none for other operands.
pub fn call(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_time = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Timestamp(..)));
    (is_time(left) && is_time(right)).then(|| BETWEEN.call(vec![left.clone(), right.clone()]))
}

fn spans(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let clock = DataType::Timestamp(TimeUnit::Microsecond, None);
    let micros = |array: &ArrayRef| -> Result<ArrayRef> {
        let array = match array.data_type() {
            // The instant stays as it is.
            DataType::Timestamp(unit, Some(_)) => array
                .as_ref()
                .to_data()
                .into_builder()
                .data_type(DataType::Timestamp(*unit, None))
                .build()
                .map(datafusion::arrow::array::make_array)?,
            _ => array.clone(),
        };
        Ok(cast(&array, &clock)?)
    };
    let (left, right) = (micros(&args[0])?, micros(&args[1])?);
    let left = left.as_primitive::<TimestampMicrosecondType>();
    let right = right.as_primitive::<TimestampMicrosecondType>();
    let mut out = IntervalMonthDayNanoBuilder::with_capacity(rows);
    for row in 0..rows {
        if left.is_null(row) || right.is_null(row) {
            out.append_null();
            continue;
        }
        let between = i128::from(left.value(row)) - i128::from(right.value(row));
        // Both quotients are within their types: there are less than 2^28 days in 2^64 microseconds.
        let days = (between / DAY_MICROS) as i32;
        let nanos = (between % DAY_MICROS) as i64 * 1_000;
        out.append_value(IntervalMonthDayNano::new(0, days, nanos));
    }
    Ok(Arc::new(out.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::TimestampMicrosecondArray;
    use datafusion::arrow::datatypes::IntervalMonthDayNanoType;

    #[test]
    fn spans_have_days_and_the_rest_of_one_sign() {
        for (left, right, days, nanos) in [
            (0, 0, 0, 0),
            (86_400_000_001, 0, 1, 1_000),
            (0, 86_400_000_001, -1, -1_000),
            (i64::MAX, i64::MIN, 213_503_982, 28_909_551_615_000),
        ] {
            let one = |micros| Arc::new(TimestampMicrosecondArray::from(vec![micros])) as ArrayRef;
            let made = spans(&[one(left), one(right)], 1).unwrap();
            let made = made.as_primitive::<IntervalMonthDayNanoType>().value(0);
            assert_eq!(made, IntervalMonthDayNano::new(0, days, nanos), "{left} {right}");
        }
    }
}
