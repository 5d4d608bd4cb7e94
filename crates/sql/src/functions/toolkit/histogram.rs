//! `histogram(value, min, max, buckets)`: how many values lie in each of so many parts of what is
//! between two numbers, below and above
//! (<https://docs.tigerdata.com/api/latest/hyperfunctions/histogram/>).

use crate::functions::toolkit::not_distinct;
use crate::types::error::SqlError;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Int32Array, Int64Array, new_empty_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{DataFusionError, Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// Parts that there may be.
const BUCKETS_MAX: i64 = 10_000;

/// The function.
pub fn histogram() -> AggregateUDF {
    let types = vec![DataType::Float64, DataType::Float64, DataType::Float64, DataType::Int64];
    let signature = Signature::exact(types, Volatility::Immutable);
    AggregateUDF::from(Histogram { signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Histogram {
    signature: Signature,
}

fn list_of(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(of, true)))
}

impl AggregateUDFImpl for Histogram {
    fn name(&self) -> &str {
        "histogram"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(list_of(DataType::Int32))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new("counts", list_of(DataType::Int64), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        not_distinct(self.name(), &args)?;
        Ok(Box::new(Counts::default()))
    }
}

/// How many values are in each part; nothing before the first value.
#[derive(Debug, Default)]
struct Counts(Vec<i64>);

impl Counts {
    /// Room for parts, which are as many as before.
    fn sized(&mut self, len: usize) -> Result<()> {
        if self.0.is_empty() {
            self.0 = vec![0; len];
        }
        match self.0.len() == len {
            true => Ok(()),
            false => Err(wrong("22023", "number of buckets must not change between calls")),
        }
    }
}

fn wrong(code: &'static str, words: &str) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new(code, words)))
}

/// The part that a value is in, as PostgreSQL's `width_bucket` says it; 0 is below all.
fn part(value: f64, min: f64, max: f64, count: i64) -> Result<usize> {
    if count <= 0 {
        return Err(wrong("2201G", "count must be greater than zero"));
    }
    if BUCKETS_MAX < count {
        let words = format!("histogram of {count} buckets; {BUCKETS_MAX} are the most");
        return Err(wrong("54000", &words));
    }
    if value.is_nan() || min.is_nan() || max.is_nan() {
        return Err(wrong("2201G", "operand, lower bound, and upper bound cannot be NaN"));
    }
    if min.is_infinite() || max.is_infinite() {
        return Err(wrong("2201G", "lower and upper bounds must be finite"));
    }
    if max < min {
        return Err(wrong("2201G", "lower bound cannot exceed upper bound"));
    }
    if min == max {
        return Err(wrong("2201G", "lower bound cannot equal upper bound"));
    }
    let parts = count as f64;
    let at = if value < min {
        0.0
    } else if max <= value {
        parts + 1.0
    } else {
        // Halves, where the whole is more than there is.
        let share = match max - min {
            length if length.is_infinite() => (value / 2.0 - min / 2.0) / (max / 2.0 - min / 2.0),
            length => (value - min) / length,
        };
        // What is rounded up to the end is not past it.
        (parts * share).floor().min(parts - 1.0) + 1.0
    };
    Ok(at as usize)
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [value, min, max, count] = values else { return plan_err!("four are asked for") };
        let real = |array: &ArrayRef| cast(array, &DataType::Float64);
        let (value, min, max) = (real(value)?, real(min)?, real(max)?);
        let count = cast(count, &DataType::Int64)?;
        let column = |array: &ArrayRef| array.as_primitive::<Float64Type>().clone();
        let (value, min, max) = (column(&value), column(&min), column(&max));
        let count = count.as_primitive::<Int64Type>();
        let is_whole = |row: usize| {
            value.is_valid(row) && min.is_valid(row) && max.is_valid(row) && count.is_valid(row)
        };
        for row in (0..value.len()).filter(|row| is_whole(*row)) {
            let (min, max, count) = (min.value(row), max.value(row), count.value(row));
            let at = part(value.value(row), min, max, count)?;
            self.sized(usize::try_from(count + 2).unwrap_or(usize::MAX))?;
            self.0[at] += 1;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.0.is_empty() {
            return ScalarValue::try_from(&list_of(DataType::Int32));
        }
        let small =
            |count: &i64| i32::try_from(*count).map_err(|_| wrong("22003", "integer out of range"));
        let counts = self.0.iter().map(small).collect::<Result<Vec<i32>>>()?;
        let counts: ArrayRef = Arc::new(Int32Array::from(counts));
        Ok(SingleRowListArrayBuilder::new(counts).build_list_scalar())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.capacity() * size_of::<i64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let counts: ArrayRef = match self.0.is_empty() {
            true => new_empty_array(&DataType::Int64),
            false => Arc::new(Int64Array::from(self.0.clone())),
        };
        Ok(vec![SingleRowListArrayBuilder::new(counts).build_list_scalar()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [states] = states else { return plan_err!("counts are asked for") };
        for counts in states.as_list::<i32>().iter().flatten().filter(|one| !one.is_empty()) {
            self.sized(counts.len())?;
            let counts = counts.as_primitive::<Int64Type>().values().to_vec();
            self.0.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_parts() {
        for (value, expected) in [
            (-0.1, 0),
            (0.0, 1),
            (1.9, 1),
            (2.0, 2),
            (9.999, 5),
            (10.0, 6),
            (f64::INFINITY, 6),
            (f64::NEG_INFINITY, 0),
        ] {
            assert_eq!(part(value, 0.0, 10.0, 5).unwrap(), expected, "{value}");
        }
        assert_eq!(part(0.0, -1.7e308, 1.7e308, 4).unwrap(), 3);
        assert_eq!(part(1.0f64.next_down(), 0.0, 1.0, 3).unwrap(), 3);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let code =
            |value, min, max, count| SqlError::from(part(value, min, max, count).unwrap_err()).code;
        let nan = f64::NAN;
        assert_eq!(code(nan, 0.0, 1.0, 1), "2201G");
        assert_eq!(code(0.0, 1.0, 0.0, 1), "2201G");
        assert_eq!(code(0.0, 1.0, 1.0, 1), "2201G");
        assert_eq!(code(0.0, 0.0, f64::INFINITY, 1), "2201G");
        assert_eq!(code(0.0, 0.0, 1.0, 0), "2201G");
        assert_eq!(code(0.0, 0.0, 1.0, i64::MAX), "54000");
    }

    #[test]
    fn parts_together_say_what_all_say() {
        let values: ArrayRef = Arc::new(datafusion::arrow::array::Float64Array::from(vec![
            Some(1.0),
            None,
            Some(5.0),
            Some(99.0),
        ]));
        let same = |one: f64| -> ArrayRef {
            Arc::new(datafusion::arrow::array::Float64Array::from(vec![one; 4]))
        };
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![2; 4]));
        let (mut whole, mut merged) = (Counts::default(), Counts::default());
        whole.update_batch(&[values, same(0.0), same(10.0), counts]).unwrap();
        assert_eq!(whole.0, [0, 1, 1, 1]);
        assert!(merged.evaluate().unwrap().is_null());
        let empty = Counts::default().state().unwrap()[0].to_array().unwrap();
        merged.merge_batch(&[empty]).unwrap();
        let state = whole.state().unwrap()[0].to_array().unwrap();
        merged.merge_batch(std::slice::from_ref(&state)).unwrap();
        merged.merge_batch(&[state]).unwrap();
        assert_eq!(merged.0, [0, 2, 2, 2]);
        assert!(merged.sized(3).is_err());
    }
}
