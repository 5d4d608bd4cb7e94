//! PostgreSQL's `mode() WITHIN GROUP (ORDER BY value)`: the value that is there most often, of several
//! the first in their order.
//!
//! Values and how often they are there are kept until the last has come; what they take counts for the
//! statement's memory.

use crate::functions::toolkit::not_distinct;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Int64Array, UInt32Array};
use datafusion::arrow::compute::{SortOptions, sort_to_indices};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Of values from the least on.
pub const MODE: &str = "mode_ascending";
/// Of values from the largest on.
pub const MODE_DESCENDING: &str = "mode_descending";

/// Both functions.
pub fn functions() -> impl Iterator<Item = AggregateUDF> {
    [MODE, MODE_DESCENDING].into_iter().map(|name| {
        let signature = Signature::any(1, Volatility::Immutable);
        AggregateUDF::from(Mode { name, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Mode {
    name: &'static str,
    signature: Signature,
}

impl AggregateUDFImpl for Mode {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        let of = fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        let made = Field::new(self.name, of, true);
        Ok(Arc::new(match fields.first() {
            Some(field) => made.with_metadata(field.metadata().clone()),
            None => made,
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let values = Field::new_list_field(args.return_field.data_type().clone(), true);
        let counts = Field::new_list_field(DataType::Int64, true);
        Ok(vec![
            Arc::new(Field::new_list("values", values, true)),
            Arc::new(Field::new_list("counts", counts, true)),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        not_distinct("mode", &args)?;
        Ok(Box::new(Counts {
            is_descending: self.name == MODE_DESCENDING,
            of: args.return_field.data_type().clone(),
            all: HashMap::new(),
            size: 0,
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// How often each value of a group is there.
#[derive(Debug)]
struct Counts {
    is_descending: bool,
    of: DataType,
    all: HashMap<ScalarValue, i64>,
    /// Bytes of the values.
    size: usize,
}

impl Counts {
    fn add(&mut self, value: ScalarValue, count: i64) {
        let size = value.size();
        let before = self.all.len();
        *self.all.entry(value).or_default() += count;
        self.size += (self.all.len() - before) * size;
    }

    fn mode(&self) -> Result<ScalarValue> {
        let most = self.all.values().max().copied().unwrap_or(0);
        let often = self.all.iter().filter(|(_, count)| **count == most);
        let often: Vec<ScalarValue> = often.map(|(value, _)| value.clone()).collect();
        if often.is_empty() {
            return ScalarValue::try_from(&self.of);
        }
        let values = ScalarValue::iter_to_array(often)?;
        let options = SortOptions { descending: self.is_descending, nulls_first: false };
        let order: UInt32Array = sort_to_indices(&values, Some(options), Some(1))?;
        ScalarValue::try_from_array(&values, usize::try_from(order.value(0)).unwrap_or(0))
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let [values] = columns else { return plan_err!("a value is asked for") };
        for row in (0..values.len()).filter(|row| values.is_valid(*row)) {
            self.add(ScalarValue::try_from_array(values, row)?, 1);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.mode()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.size + self.all.capacity() * size_of::<(ScalarValue, i64)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (values, counts): (Vec<_>, Vec<_>) = self.all.drain().unzip();
        let values = match values.is_empty() {
            true => datafusion::arrow::array::new_empty_array(&self.of),
            false => ScalarValue::iter_to_array(values)?,
        };
        let counts: ArrayRef = Arc::new(Int64Array::from(counts));
        Ok(vec![
            SingleRowListArrayBuilder::new(values).build_list_scalar(),
            SingleRowListArrayBuilder::new(counts).build_list_scalar(),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, counts] = states else { return plan_err!("values and counts are asked for") };
        let (values, counts) = (values.as_list::<i32>(), counts.as_list::<i32>());
        for (values, counts) in values.iter().zip(counts.iter()) {
            let (Some(values), Some(counts)) = (values, counts) else { continue };
            let counts = counts.as_primitive::<Int64Type>();
            for row in 0..values.len() {
                self.add(ScalarValue::try_from_array(&values, row)?, counts.value(row));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_most_often() {
        let counts = |is_descending| Counts {
            is_descending,
            of: DataType::Int64,
            all: HashMap::new(),
            size: 0,
        };
        let of = |values: Vec<Option<i64>>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
        for (is_descending, expected) in [(false, 2), (true, 3)] {
            let (mut one, mut other) = (counts(is_descending), counts(is_descending));
            one.update_batch(&[of(vec![Some(3), Some(2), Some(1), None, None, None])]).unwrap();
            other.update_batch(&[of(vec![Some(3), Some(2)])]).unwrap();
            let states = other.state().unwrap();
            let states: Vec<ArrayRef> = states.iter().map(|one| one.to_array().unwrap()).collect();
            one.merge_batch(&states).unwrap();
            assert_eq!(one.evaluate().unwrap(), ScalarValue::Int64(Some(expected)));
        }
        assert_eq!(counts(false).evaluate().unwrap(), ScalarValue::Int64(None));
    }
}
