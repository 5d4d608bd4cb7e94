//! Aggregates of floats over frames that move. DataFusion takes values that leave a frame off its sum: NaN stays in
//! it, and small values beside large ones are lost. PostgreSQL adds the values of each frame up, and so does this.

use crate::types::runtime::cancellation;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;
use std::collections::VecDeque;

/// Aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Mean,
    Variance { is_sample: bool },
    Deviation { is_sample: bool },
}

impl Kind {
    fn named(name: &str) -> Option<Kind> {
        Some(match name {
            "sum" => Kind::Sum,
            "avg" | "mean" => Kind::Mean,
            "var" | "var_samp" => Kind::Variance { is_sample: true },
            "var_pop" => Kind::Variance { is_sample: false },
            "stddev" | "stddev_samp" => Kind::Deviation { is_sample: true },
            "stddev_pop" => Kind::Deviation { is_sample: false },
            _ => return None,
        })
    }
}

/// An accumulator of the floats in a frame; none of other values, and of other aggregates.
pub fn moving(name: &str, args: &AccumulatorArgs<'_>) -> Option<Box<dyn Accumulator>> {
    let of = args.return_field.data_type();
    let is_float = |of: &DataType| matches!(of, DataType::Float32 | DataType::Float64);
    let inputs = args.expr_fields.iter().all(|field| is_float(field.data_type()));
    if args.is_distinct || !is_float(of) || !inputs {
        return None;
    }
    let kind = Kind::named(name)?;
    Some(Box::new(Frame { kind, of: of.clone(), values: VecDeque::new() }))
}

/// The values in a frame, but NULL.
#[derive(Debug)]
struct Frame {
    kind: Kind,
    of: DataType,
    values: VecDeque<f64>,
}

impl Frame {
    /// As PostgreSQL does: the sum of values one after the other, and that of squares by Youngs and Cramer.
    fn value(&self) -> Option<f64> {
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for value in &self.values {
            count += 1.0;
            sum += value;
            if 1.0 < count {
                let distance = value * count - sum;
                squares += distance * distance / (count * (count - 1.0));
            } else if !value.is_finite() {
                squares = f64::NAN;
            }
        }
        let variance = |is_sample: bool| {
            let degrees = if is_sample { count - 1.0 } else { count };
            (0.0 < degrees).then(|| squares / degrees)
        };
        match self.kind {
            _ if self.values.is_empty() => None,
            Kind::Sum => Some(sum),
            Kind::Mean => Some(sum / count),
            Kind::Variance { is_sample } => variance(is_sample),
            Kind::Deviation { is_sample } => variance(is_sample).map(f64::sqrt),
        }
    }
}

fn floats(values: &[ArrayRef]) -> Result<ArrayRef> {
    Ok(cast(&values[0], &DataType::Float64)?)
}

impl Accumulator for Frame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.extend(floats(values)?.as_primitive::<Float64Type>().iter().flatten());
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let left = values[0].len() - values[0].null_count();
        self.values.drain(..left.min(self.values.len()));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        cancellation::check()?;
        let value = ScalarValue::Float64(self.value());
        value.cast_to(&self.of)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        datafusion::common::internal_err!("a frame has no state")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        datafusion::common::internal_err!("a frame has no state")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Float64Array;
    use std::sync::Arc;

    fn values(kind: Kind, all: &[Option<f64>], width: usize) -> Vec<Option<f64>> {
        let mut frame = Frame { kind, of: DataType::Float64, values: VecDeque::new() };
        let one = |value: Option<f64>| [Arc::new(Float64Array::from(vec![value])) as ArrayRef];
        let step = |(at, value): (usize, &Option<f64>)| {
            if width <= at {
                frame.retract_batch(&one(all[at - width])).unwrap();
            }
            frame.update_batch(&one(*value)).unwrap();
            let ScalarValue::Float64(value) = frame.evaluate().unwrap() else { panic!("a float") };
            value
        };
        all.iter().enumerate().map(step).collect()
    }

    #[test]
    fn values_that_left_the_frame_are_forgotten() {
        let all = [Some(f64::NAN), Some(1.0), Some(2.0), None, Some(3.0)];
        let sums = values(Kind::Sum, &all, 2);
        assert!(sums[0].is_some_and(f64::is_nan) && sums[1].is_some_and(f64::is_nan));
        assert_eq!(sums[2..], [Some(3.0), Some(2.0), Some(3.0)]);
        let all = [Some(1e16), Some(1.0), Some(2.0)];
        assert_eq!(values(Kind::Sum, &all, 2)[2], Some(3.0));
        assert_eq!(values(Kind::Mean, &all, 2)[2], Some(1.5));
        assert_eq!(values(Kind::Variance { is_sample: true }, &all, 2)[2], Some(0.5));
        assert_eq!(values(Kind::Variance { is_sample: true }, &all, 2)[0], None);
        assert_eq!(values(Kind::Deviation { is_sample: false }, &all, 2)[2], Some(0.5));
    }
}
