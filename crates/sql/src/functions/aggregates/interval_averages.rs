//! `avg` of intervals: the sum of all, divided as `interval / number` is.

use crate::types::error::SqlError;
use crate::types::numeric::conversions::outside;
use crate::types::time::interval_products::over;
use crate::types::time::intervals::INTERVAL;
use datafusion::arrow::array::{ArrayRef, AsArray as _};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::utils::format_state_name;
use std::sync::Arc;

/// The sums of the parts of intervals, and how many there are.
#[derive(Debug, Default)]
pub struct IntervalAverage {
    count: i64,
    months: i64,
    days: i64,
    nanos: i64,
}

/// The columns of the state.
pub fn state_fields(name: &str) -> Vec<FieldRef> {
    let field = |part| Arc::new(Field::new(format_state_name(name, part), DataType::Int64, true));
    ["count", "months", "days", "nanos"].map(field).to_vec()
}

fn out_of_range() -> SqlError {
    SqlError::new("22008", "interval out of range")
}

impl IntervalAverage {
    /// # Errors
    /// 22008 if a sum is out of range.
    fn add(&mut self, count: i64, months: i64, days: i64, nanos: i64) -> Result<()> {
        let sums = [
            (&mut self.count, count),
            (&mut self.months, months),
            (&mut self.days, days),
            (&mut self.nanos, nanos),
        ];
        for (sum, by) in sums {
            *sum = sum.checked_add(by).ok_or_else(|| outside(out_of_range()))?;
        }
        Ok(())
    }

    fn add_all(&mut self, values: &ArrayRef, sign: i64) -> Result<()> {
        let intervals = cast(values, &INTERVAL)?;
        for one in intervals.as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            let nanos = one.nanoseconds.checked_mul(sign);
            let nanos = nanos.ok_or_else(|| outside(out_of_range()))?;
            self.add(sign, sign * i64::from(one.months), sign * i64::from(one.days), nanos)?;
        }
        Ok(())
    }
}

impl Accumulator for IntervalAverage {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add_all(&values[0], 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add_all(&values[0], -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return ScalarValue::try_from(&INTERVAL);
        }
        let whole = |sum: i64| i32::try_from(sum).map_err(|_| outside(out_of_range()));
        let sum = IntervalMonthDayNano::new(whole(self.months)?, whole(self.days)?, self.nanos);
        let average = over(sum, self.count as f64)?;
        Ok(ScalarValue::IntervalMonthDayNano(Some(average)))
    }

    fn size(&self) -> usize {
        size_of::<IntervalAverage>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let parts = [self.count, self.months, self.days, self.nanos];
        Ok(parts.map(|part| ScalarValue::Int64(Some(part))).to_vec())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let columns: Vec<_> = states.iter().map(|one| one.as_primitive::<Int64Type>()).collect();
        let [counts, months, days, nanos] = columns.as_slice() else { return Ok(()) };
        for row in 0..counts.len() {
            self.add(counts.value(row), months.value(row), days.value(row), nanos.value(row))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::IntervalMonthDayNanoArray;

    #[test]
    fn averages_are_merged_and_values_leave_again() {
        let of = IntervalMonthDayNano::new;
        let values: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![
            Some(of(0, 1, 0)),
            None,
            Some(of(1, 0, 0)),
        ]));
        let mut average = IntervalAverage::default();
        assert!(average.evaluate().unwrap().is_null());
        average.update_batch(std::slice::from_ref(&values)).unwrap();
        let expected = ScalarValue::IntervalMonthDayNano(Some(of(0, 15, 43_200_000_000_000)));
        assert_eq!(average.evaluate().unwrap(), expected);
        let states = average.state().unwrap();
        let states = states.iter().map(|one| one.to_array().unwrap()).collect::<Vec<_>>();
        let mut merged = IntervalAverage::default();
        merged.merge_batch(&states).unwrap();
        merged.update_batch(std::slice::from_ref(&values)).unwrap();
        merged.retract_batch(std::slice::from_ref(&values)).unwrap();
        assert_eq!(merged.evaluate().unwrap(), expected);
    }
}
