//! `sum` of whole numbers: what a `bigint` does not hold is an error, where DataFusion begins again at the
//! other end. PostgreSQL's sum of `bigint` is a `numeric`; here it stays a `bigint`, which clients read as
//! a whole number.

use crate::error::SqlError;
use crate::taken::each_taken;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Decimal128Array, Int64Array,
};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// `sum` of whole numbers.
pub static SUM: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
    let signature = Signature::exact(vec![DataType::Int64], Volatility::Immutable);
    Arc::new(AggregateUDF::from(Sum { signature }))
});

/// Digits of a sum on its way: more than 2^63 numbers of 64 bits need.
const PRECISION: u8 = 38;
/// A sum on its way, in which no number of values is too much.
const WIDE: DataType = DataType::Decimal128(PRECISION, 0);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    signature: Signature,
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Alone::default()))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field =
            |name: &str, ty| Arc::new(Field::new(format_state_name(args.name, name), ty, true));
        Ok(vec![field("sum", WIDE), field("count", DataType::Int64)])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::default()))
    }
}

/// The sum of so many values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Total {
    sum: i128,
    count: i64,
}

impl Total {
    fn add(&mut self, sum: i128, count: i64) {
        self.sum += sum;
        self.count += count;
    }

    /// None of no value.
    fn whole(self) -> Result<Option<i64>> {
        if self.count == 0 {
            return Ok(None);
        }
        let outside = |_| {
            let words = "the sum is out of range for type bigint";
            let error = SqlError::new("22003", words).with_hint("Say sum(x::numeric).");
            DataFusionError::External(Box::new(error))
        };
        i64::try_from(self.sum).map(Some).map_err(outside)
    }
}

/// The total of each group.
#[derive(Debug, Default)]
struct Groups(Vec<Total>);

impl Groups {
    fn states(totals: &[Total]) -> Result<Vec<ArrayRef>> {
        let sums: Decimal128Array = totals.iter().map(|one| Some(one.sum)).collect();
        let sums = sums.with_precision_and_scale(PRECISION, 0)?;
        let counts: Int64Array = totals.iter().map(|one| Some(one.count)).collect();
        Ok(vec![Arc::new(sums), Arc::new(counts)])
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.0.resize(count.max(self.0.len()), Total::default());
        let values = values[0].as_primitive::<Int64Type>();
        each_taken(values, filter, |row, value| self.0[groups[row]].add(i128::from(value), 1));
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.0);
        let sums: Int64Array = totals.into_iter().map(Total::whole).collect::<Result<_>>()?;
        Ok(Arc::new(sums))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Groups::states(&emit_to.take_needed(&mut self.0))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.0.resize(count.max(self.0.len()), Total::default());
        let sums = states[0].as_primitive::<Decimal128Type>();
        let counts = states[1].as_primitive::<Int64Type>();
        each_taken(sums, None, |row, sum| self.0[groups[row]].add(sum, counts.value(row)));
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        // Each row is a group.
        let mut each = vec![Total::default(); values[0].len()];
        let values = values[0].as_primitive::<Int64Type>();
        each_taken(values, filter, |row, value| each[row].add(i128::from(value), 1));
        Groups::states(&each)
    }

    fn size(&self) -> usize {
        self.0.capacity() * size_of::<Total>()
    }
}

/// One group, which may lose values again, as a window that moves does.
#[derive(Debug, Default)]
struct Alone(Total);

impl Accumulator for Alone {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<Int64Type>();
        each_taken(values, None, |_, value| self.0.add(i128::from(value), 1));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<Int64Type>();
        each_taken(values, None, |_, value| self.0.add(-i128::from(value), -1));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(self.0.whole()?))
    }

    fn size(&self) -> usize {
        size_of::<Alone>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = ScalarValue::Decimal128(Some(self.0.sum), PRECISION, 0);
        Ok(vec![sum, ScalarValue::Int64(Some(self.0.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let sums = states[0].as_primitive::<Decimal128Type>();
        let counts = states[1].as_primitive::<Int64Type>();
        each_taken(sums, None, |row, sum| self.0.add(sum, counts.value(row)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_an_error_and_comes_back_when_it_does() {
        let mut alone = Alone::default();
        assert_eq!(alone.evaluate().unwrap(), ScalarValue::Int64(None));
        let most: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(1)]));
        alone.update_batch(std::slice::from_ref(&most)).unwrap();
        assert!(alone.evaluate().unwrap_err().to_string().contains("out of range"));
        let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        alone.retract_batch(&[one]).unwrap();
        assert_eq!(alone.evaluate().unwrap(), ScalarValue::Int64(Some(i64::MAX)));
    }

    #[test]
    fn groups_are_merged_from_their_states() {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), Some(7), None]));
        let filter = BooleanArray::from(vec![Some(true), None, Some(true)]);
        let states = Groups::default().convert_to_state(&[values], Some(&filter)).unwrap();
        let mut groups = Groups::default();
        groups.merge_batch(&states, &[1, 0, 0], 2).unwrap();
        let made = groups.evaluate(EmitTo::All).unwrap();
        assert_eq!(made.as_primitive::<Int64Type>(), &Int64Array::from(vec![None, Some(5)]));
    }
}
