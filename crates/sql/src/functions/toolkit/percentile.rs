//! PostgreSQL's `percentile_cont(share) WITHIN GROUP (ORDER BY value)`: of all values in their order
//! the one at a place, or what lies on the line between two. [`crate::parse::rewrite::rewriter`] puts the value first,
//! and the direction into the name.
//!
//! DataFusion's own cuts how far the place is from a row to millionths. Values are kept until the last
//! has come; what they take counts for the statement's memory.

use crate::functions::aggregates::extremes::compared;
use crate::functions::toolkit::not_distinct;
use crate::types::error::SqlError;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{DataFusionError, Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// Of values from the least to the largest.
pub const PERCENTILE: &str = "percentile_ascending";
/// Of values from the largest to the least.
pub const DESCENDING: &str = "percentile_descending";

/// Both functions: of a value and a share.
pub fn functions() -> impl Iterator<Item = AggregateUDF> {
    [PERCENTILE, DESCENDING].into_iter().map(|name| {
        let signature = Signature::user_defined(Volatility::Immutable);
        AggregateUDF::from(Percentile { name, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Percentile {
    name: &'static str,
    signature: Signature,
}

impl AggregateUDFImpl for Percentile {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [value, _] if value.is_numeric() || value.is_null() => {
                Ok(vec![DataType::Float64, DataType::Float64])
            }
            _ => plan_err!("No function matches percentile_cont but of numbers"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let values = Field::new_list_field(DataType::Float64, true);
        let values = Field::new_list("values", values, true);
        Ok(vec![Arc::new(values), Arc::new(Field::new("share", DataType::Float64, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        not_distinct("percentile_cont", &args)?;
        Ok(Box::new(Values { is_descending: self.name == DESCENDING, ..Values::default() }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The values of one group.
#[derive(Debug, Default)]
struct Values {
    is_descending: bool,
    share: Option<f64>,
    all: Vec<f64>,
}

impl Values {
    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        let values = cast(values, &DataType::Float64)?;
        self.all.extend(values.as_primitive::<Float64Type>().iter().flatten());
        Ok(())
    }

    /// The share is the same in all rows.
    fn take_share(&mut self, shares: &ArrayRef) -> Result<()> {
        let shares = cast(shares, &DataType::Float64)?;
        let share = shares.as_primitive::<Float64Type>().iter().flatten().next();
        if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
            let words = format!("percentile value {share} is not between 0 and 1");
            return Err(DataFusionError::External(Box::new(SqlError::new("22003", words))));
        }
        self.share = self.share.or(share);
        Ok(())
    }

    /// As PostgreSQL reckons it, so that it is rounded as there.
    fn percentile(&mut self) -> Option<f64> {
        let last = self.all.len().checked_sub(1)?;
        let place = self.share? * last as f64;
        let lower = (place.floor() as usize).min(last);
        let upper = (place.ceil() as usize).min(last);
        let is_descending = self.is_descending;
        let order = |a: &f64, b: &f64| match is_descending {
            true => compared(*b, *a),
            false => compared(*a, *b),
        };
        let (_, low, above) = self.all.select_nth_unstable_by(lower, order);
        let low = *low;
        if lower == upper {
            return Some(low);
        }
        let high = above.iter().copied().min_by(|a, b| order(a, b))?;
        Some(low + (place - place.floor()) * (high - low))
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let [values, shares] = columns else {
            return plan_err!("a value and a share are asked for");
        };
        self.take_share(shares)?;
        self.add(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.percentile()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.all.capacity() * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: ArrayRef = Arc::new(Float64Array::from(std::mem::take(&mut self.all)));
        let values = SingleRowListArrayBuilder::new(values).build_list_scalar();
        Ok(vec![values, ScalarValue::Float64(self.share)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, shares] = states else { return plan_err!("values and shares are asked for") };
        self.take_share(shares)?;
        let values = values.as_list::<i32>();
        let mut lists = (0..values.len()).filter(|row| values.is_valid(*row));
        lists.try_for_each(|row| self.add(&values.value(row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, share: f64, values: &[f64]) -> Values {
        let mut made = Values { is_descending: name == DESCENDING, ..Values::default() };
        let shares: ArrayRef = Arc::new(Float64Array::from(vec![share; values.len()]));
        made.update_batch(&[Arc::new(Float64Array::from(values.to_vec())), shares]).unwrap();
        made
    }

    #[track_caller]
    fn check(name: &str, share: f64, values: &[f64], expected: Option<f64>) {
        let found = of(name, share, values).percentile();
        assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits), "{found:?} {expected:?}");
    }

    #[test]
    fn percentiles_are_postgresqls() {
        let ten: Vec<f64> = [7, 2, 9, 10, 1, 4, 3, 8, 6, 5].map(f64::from).to_vec();
        // What is rounded is rounded as there.
        check(PERCENTILE, 0.3, &ten, Some(3.699_999_999_999_999_7));
        check(PERCENTILE, 0.25, &ten, Some(3.25));
        check(DESCENDING, 0.25, &ten, Some(7.75));
        check(PERCENTILE, 0.0, &ten, Some(1.0));
        check(PERCENTILE, 1.0, &ten, Some(10.0));
        check(DESCENDING, 1.0, &ten, Some(1.0));
        check(PERCENTILE, 1.0 / 3.0, &[0.0, 3e9], Some(1e9));
        check(PERCENTILE, 0.5, &[7.0], Some(7.0));
        check(PERCENTILE, 0.5, &[], None);
        check(PERCENTILE, 1.0, &[f64::NAN, f64::INFINITY, 1.0], Some(f64::NAN));
        check(PERCENTILE, 0.5, &[f64::NAN, f64::INFINITY, 1.0], Some(f64::INFINITY));
    }

    #[test]
    fn parts_together_say_what_all_say() {
        let (mut whole, mut first, mut second) = (
            of(PERCENTILE, 0.4, &[1.0, 5.0, 2.0, 9.0]),
            of(PERCENTILE, 0.4, &[9.0]),
            of(PERCENTILE, 0.4, &[5.0, 1.0, 2.0]),
        );
        for part in [&mut second, &mut Values::default()] {
            let states = part.state().unwrap();
            let states: Vec<ArrayRef> = states.iter().map(|one| one.to_array().unwrap()).collect();
            first.merge_batch(&states).unwrap();
        }
        assert_eq!(first.percentile(), whole.percentile());
        assert!(8 * 4 <= whole.size());
    }

    #[test]
    fn a_share_is_between_nothing_and_all() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        for share in [-0.1, 1.1, f64::NAN] {
            let shares: ArrayRef = Arc::new(Float64Array::from(vec![share]));
            let said = Values::default().update_batch(&[values.clone(), shares]);
            assert_eq!(SqlError::from(said.unwrap_err()).code, "22003", "{share}");
        }
    }
}
