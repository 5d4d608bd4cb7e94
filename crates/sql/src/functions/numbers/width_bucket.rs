//! `width_bucket(value, low, high, count)` and `width_bucket(value, bounds)`: the number of the bucket
//! that a value falls into.

use crate::types::error::SqlError;
use crate::types::function::function;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Float64Array, Int32Builder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use std::sync::Arc;

/// The function.
pub fn width_bucket() -> ScalarUDF {
    let signature = Signature::one_of(
        vec![TypeSignature::Any(2), TypeSignature::Any(4)],
        Volatility::Immutable,
    );
    function(
        "width_bucket",
        signature,
        |_| DataType::Int32,
        |args, rows| match args {
            [value, bounds] => by_bounds(value, bounds),
            args => by_width(args, rows),
        },
    )
}

fn wrong(words: &str) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new("2201G", words)))
}

fn numbers(array: &ArrayRef) -> Result<Float64Array> {
    Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

fn by_width(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let all = args.iter().map(numbers).collect::<Result<Vec<_>>>()?;
    let mut out = Int32Builder::with_capacity(rows);
    for row in 0..rows {
        let parts: Option<Vec<f64>> =
            all.iter().map(|one| one.is_valid(row).then(|| one.value(row))).collect();
        match parts.as_deref() {
            Some(&[value, low, high, count]) => out.append_value(bucket(value, low, high, count)?),
            _ => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn bucket(value: f64, low: f64, high: f64, count: f64) -> Result<i32> {
    if !(1.0..f64::from(i32::MAX)).contains(&count) {
        return Err(wrong("count must be greater than zero"));
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return Err(wrong("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(wrong("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(wrong("lower bound cannot equal upper bound"));
    }
    // Buckets that go down are those that go up, seen from the other side.
    let (value, low, high) = if low < high { (value, low, high) } else { (-value, -low, -high) };
    Ok(if value < low {
        0
    } else if high <= value {
        count as i32 + 1
    } else {
        (((value - low) / (high - low) * count) as i32).min(count as i32 - 1) + 1
    })
}

fn by_bounds(values: &ArrayRef, bounds: &ArrayRef) -> Result<ArrayRef> {
    let values = numbers(values)?;
    let Some(lists) = bounds.as_list_opt::<i32>() else {
        return Err(wrong("thresholds must be an array of numbers"));
    };
    let mut out = Int32Builder::with_capacity(values.len());
    for (value, list) in values.iter().zip(lists.iter()) {
        let (Some(value), Some(list)) = (value, list) else {
            out.append_null();
            continue;
        };
        let list = numbers(&list)?;
        if list.null_count() != 0 {
            return Err(wrong("thresholds array must not contain NULLs"));
        }
        let below = list.values().partition_point(|bound| *bound <= value || value.is_nan());
        out.append_value(i32::try_from(below).unwrap_or(i32::MAX));
    }
    Ok(Arc::new(out.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_postgresql() {
        let of = |value, low, high, count| {
            bucket(value, low, high, count).map_err(|error| SqlError::from(error).code)
        };
        assert_eq!(of(5.35, 0.024, 10.06, 5.0), Ok(3));
        assert_eq!(of(-1.0, 0.0, 10.0, 5.0), Ok(0));
        assert_eq!(of(10.0, 0.0, 10.0, 5.0), Ok(6));
        assert_eq!(of(3.0, 10.0, 0.0, 5.0), Ok(4));
        assert_eq!(of(10.0, 10.0, 0.0, 5.0), Ok(1));
        assert_eq!(of(1.0, 0.0, 0.0, 5.0), Err("2201G"));
        assert_eq!(of(1.0, 0.0, 1.0, 0.0), Err("2201G"));
        assert_eq!(of(f64::NAN, 0.0, 1.0, 1.0), Err("2201G"));
    }
}
