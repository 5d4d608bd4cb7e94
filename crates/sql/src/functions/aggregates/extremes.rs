//! `min` and `max` of numbers with a fraction, as PostgreSQL has them: NaN is the largest of all.
//!
//! DataFusion's own, when it groups, begins with the largest and the smallest finite number, which the
//! infinities never pass, and compares with NaN, which is never true.

use crate::functions::aggregates::taken::each_taken;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

/// `min`.
pub static MIN: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| function("min", Ordering::Less));
/// `max`.
pub static MAX: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| function("max", Ordering::Greater));

fn function(name: &'static str, wins: Ordering) -> Arc<AggregateUDF> {
    let types = vec![DataType::Float64, DataType::Float32];
    let signature = Signature::uniform(1, types, Volatility::Immutable);
    Arc::new(AggregateUDF::from(Extreme { name, wins, signature }))
}

/// The number that wins over all others: in which order it stands to them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    name: &'static str,
    wins: Ordering,
    signature: Signature,
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [one] => Ok(one.clone()),
            _ => exec_err!("{} takes one argument", self.name),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Alone(Groups::new(self.wins, args.return_type()))))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::new(self.wins, args.return_type())))
    }
}

/// As PostgreSQL compares numbers: NaN is equal to itself and larger than others, zeros are equal.
pub fn compared(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The winner of each group, none where there was nothing.
#[derive(Debug)]
struct Groups {
    wins: Ordering,
    returns: DataType,
    winners: Vec<Option<f64>>,
}

impl Groups {
    fn new(wins: Ordering, returns: &DataType) -> Groups {
        Groups { wins, returns: returns.clone(), winners: Vec::new() }
    }

    fn take(&mut self, group: usize, value: f64) {
        let winner = &mut self.winners[group];
        if winner.is_none_or(|winner| compared(value, winner) == self.wins) {
            *winner = Some(value);
        }
    }

    fn emit(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let winners: Float64Array = emit_to.take_needed(&mut self.winners).into_iter().collect();
        Ok(cast(&winners, &self.returns)?)
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
        self.winners.resize(count.max(self.winners.len()), None);
        let values = cast(&values[0], &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>();
        each_taken(values, filter, |row, value| self.take(groups[row], value));
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.emit(emit_to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.emit(emit_to)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.update_batch(states, groups, None, count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        // Each row is a group: what is not taken is none.
        let rows: Vec<usize> = (0..values[0].len()).collect();
        let mut each = Groups::new(self.wins, &self.returns);
        GroupsAccumulator::update_batch(&mut each, values, &rows, filter, rows.len())?;
        GroupsAccumulator::state(&mut each, EmitTo::All)
    }

    fn size(&self) -> usize {
        self.winners.capacity() * size_of::<Option<f64>>()
    }
}

/// One group.
#[derive(Debug)]
struct Alone(Groups);

impl Accumulator for Alone {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let groups = vec![0; values[0].len()];
        self.0.update_batch(values, &groups, None, 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let winner = self.0.winners.first().copied().flatten();
        ScalarValue::Float64(winner).cast_to(&self.0.returns)
    }

    fn size(&self) -> usize {
        size_of::<Alone>() + GroupsAccumulator::size(&self.0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![Accumulator::evaluate(self)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        Accumulator::update_batch(self, states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn winners(wins: Ordering, values: &[f64]) -> f64 {
        let mut groups = Groups::new(wins, &DataType::Float64);
        let array: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
        let at = vec![0; values.len()];
        GroupsAccumulator::update_batch(&mut groups, &[array], &at, None, 1).unwrap();
        groups.winners[0].unwrap()
    }

    #[test]
    fn nothing_is_too_large_or_too_small() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        assert_eq!(winners(Ordering::Less, &[nan, 1.0, -infinity]), -infinity);
        assert_eq!(winners(Ordering::Greater, &[-infinity]), -infinity);
        assert!(winners(Ordering::Greater, &[1.0, nan, infinity]).is_nan());
        assert!(winners(Ordering::Less, &[nan]).is_nan());
        assert_eq!(winners(Ordering::Less, &[nan, infinity]), infinity);
        assert_eq!(winners(Ordering::Greater, &[2.0, 3.0, -1.0]), 3.0);
    }

    #[test]
    fn filters_and_nulls_are_heeded() {
        let mut groups = Groups::new(Ordering::Greater, &DataType::Float32);
        let values: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(9.0)]));
        let filter = BooleanArray::from(vec![Some(true), Some(true), None]);
        let update = GroupsAccumulator::update_batch;
        update(&mut groups, &[values], &[0, 1, 0], Some(&filter), 3).unwrap();
        assert_eq!(groups.winners, [Some(1.0), None, None]);
        let made = GroupsAccumulator::evaluate(&mut groups, EmitTo::First(1)).unwrap();
        assert_eq!(
            (made.len(), made.data_type(), groups.winners.len()),
            (1, &DataType::Float32, 2)
        );
    }
}
