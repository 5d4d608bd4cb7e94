//! `counter_agg(time, value)` and `time_weight(method, time, value)`: points are kept until the last
//! has come, since they come in any order. What they take counts for the statement's memory.

use crate::functions::toolkit::not_distinct;
use crate::functions::toolkit::summaries::{Point, Summary};
use crate::types::time::zones::ZONE;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Float64Array, Int64Array, StructArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, TimeUnit};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The functions; the method of a weight is in the name, where [`crate::parse::rewrite::rewriter`] puts it.
pub fn functions() -> impl Iterator<Item = AggregateUDF> {
    let all = [
        ("counter_agg", Summary::Counter),
        ("time_weight_locf", Summary::Held),
        ("time_weight_linear", Summary::Line),
    ];
    all.into_iter().map(|(name, summary)| {
        let signature = Signature::user_defined(Volatility::Immutable);
        AggregateUDF::from(Summed { name, summary, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Summed {
    name: &'static str,
    summary: Summary,
    signature: Signature,
}

impl AggregateUDFImpl for Summed {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Timestamp(_, zone), value] if value.is_numeric() || value.is_null() => {
                let time = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
                Ok(vec![time, DataType::Float64])
            }
            [DataType::Null, value] if value.is_numeric() || value.is_null() => {
                let time = DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
                Ok(vec![time, DataType::Float64])
            }
            _ => plan_err!("No function matches {} but of a time and a number", self.name),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(self.summary.fields()))
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let list =
            |name: &str, of| Arc::new(Field::new_list(name, Field::new_list_field(of, true), true));
        Ok(vec![list("times", DataType::Int64), list("values", DataType::Float64)])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        not_distinct(self.name(), &args)?;
        Ok(Box::new(Points { summary: self.summary, all: Vec::new() }))
    }
}

/// The points of one group.
#[derive(Debug)]
struct Points {
    summary: Summary,
    all: Vec<Point>,
}

impl Points {
    fn add(&mut self, times: &ArrayRef, values: &ArrayRef) -> Result<()> {
        let (times, values) = (cast(times, &DataType::Int64)?, cast(values, &DataType::Float64)?);
        let both = times.as_primitive::<Int64Type>().iter();
        let both = both.zip(values.as_primitive::<Float64Type>());
        self.all
            .extend(both.filter_map(|(time, value)| Some(Point { time: time?, value: value? })));
        Ok(())
    }
}

impl Accumulator for Points {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match values {
            // What they are ordered by is behind them.
            [times, values, ..] => self.add(times, values),
            _ => plan_err!("a time and a value are asked for"),
        }
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.all.sort_by_key(|point| point.time);
        let fields = self.summary.fields();
        let made = match self.summary.of(&self.all) {
            None => StructArray::new_null(fields, 1),
            Some(answers) => {
                let arrays = answers.iter().map(ScalarValue::to_array);
                StructArray::try_new(fields, arrays.collect::<Result<_>>()?, None)?
            }
        };
        Ok(ScalarValue::Struct(Arc::new(made)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.all.capacity() * size_of::<Point>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let times: Int64Array = self.all.iter().map(|point| Some(point.time)).collect();
        let values: Float64Array = self.all.iter().map(|point| Some(point.value)).collect();
        let list = |array: ArrayRef| SingleRowListArrayBuilder::new(array).build_list_scalar();
        Ok(vec![list(Arc::new(times)), list(Arc::new(values))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [times, values] = states else { return plan_err!("two lists are asked for") };
        let (times, values) = (times.as_list::<i32>(), values.as_list::<i32>());
        for row in (0..times.len()).filter(|row| times.is_valid(*row) && values.is_valid(*row)) {
            self.add(&times.value(row), &values.value(row))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_together_say_what_all_say() {
        let new = || Points { summary: Summary::Counter, all: Vec::new() };
        let times: ArrayRef = Arc::new(Int64Array::from(vec![Some(30), Some(10), None, Some(20)]));
        let values: ArrayRef =
            Arc::new(Float64Array::from(vec![Some(3.0), Some(1.0), Some(9.0), Some(2.0)]));
        let (mut whole, mut first, mut second) = (new(), new(), new());
        whole.update_batch(&[times.clone(), values.clone()]).unwrap();
        first.update_batch(&[times.slice(0, 1), values.slice(0, 1)]).unwrap();
        second.update_batch(&[times.slice(1, 3), values.slice(1, 3)]).unwrap();
        let states = second.state().unwrap();
        let states: Vec<ArrayRef> = states.iter().map(|one| one.to_array().unwrap()).collect();
        first.merge_batch(&states).unwrap();
        assert_eq!(first.evaluate().unwrap(), whole.evaluate().unwrap());
        assert!(new().evaluate().unwrap().is_null());
    }
}
