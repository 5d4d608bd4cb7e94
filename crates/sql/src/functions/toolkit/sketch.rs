//! `uddsketch(size, error, value)`: how many values lie near each power of a number, from which
//! percentiles are told to within a share of themselves
//! (<https://docs.tigerdata.com/api/latest/hyperfunctions/percentile-approximation/>).
//!
//! A bucket has the values between two powers of gamma. When there are more buckets than there may be,
//! two become one: gamma is squared, and the error about twice what it was. Infinities and what is no
//! number have buckets of their own, in PostgreSQL's order.

use crate::functions::toolkit::not_distinct;
use crate::types::error::SqlError;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Int64Array, StructArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type, Int64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{DataFusionError, Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Buckets that a sketch may have.
const SIZE_MAX: i64 = 10_000;
/// The least error that may be asked for: keys of all numbers are below [`APART`] with it.
const ERROR_MIN: f64 = 1e-6;
/// Buckets that there may be however few are asked for: the largest numbers are no more apart than
/// that once gamma cannot grow.
const SIZE_LEAST: i64 = 10;
/// Those that are of no power: nothing, the infinities and what is no number.
const NO_POWERS: i64 = 4;
/// What lies between the keys of numbers above nothing and those below.
const APART: i64 = 1 << 40;
/// How far logarithms of one gamma lie apart: whoever squares it often rounds it often.
const GAMMA_ERROR: f64 = 1e-4;
const INFINITE: i64 = 1 << 42;
const NO_NUMBER: i64 = 1 << 43;

/// The function.
pub fn uddsketch() -> AggregateUDF {
    let types = vec![DataType::Int64, DataType::Float64, DataType::Float64];
    let signature = Signature::exact(types, Volatility::Immutable);
    AggregateUDF::from(UddSketch { signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct UddSketch {
    signature: Signature,
}

/// What a sketch is made of.
pub fn fields() -> Fields {
    let list =
        |name: &str| Field::new_list(name, Field::new_list_field(DataType::Int64, true), true);
    Fields::from(vec![
        list("keys"),
        list("counts"),
        Field::new("gamma", DataType::Float64, true),
        Field::new("size", DataType::Int64, true),
        Field::new("num_vals", DataType::Int64, true),
    ])
}

impl AggregateUDFImpl for UddSketch {
    fn name(&self) -> &str {
        "uddsketch"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(fields()))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new("sketch", DataType::Struct(fields()), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        not_distinct(self.name(), &args)?;
        Ok(Box::new(Sketch::default()))
    }
}

/// How many values there are of each key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sketch {
    counts: BTreeMap<i64, i64>,
    /// What the powers are of; 0 before the first value.
    gamma: f64,
    size: i64,
}

fn wrong(words: &str) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::wrong_value(words)))
}

impl Sketch {
    fn sized(size: i64, error: f64) -> Result<Sketch> {
        if !(1..=SIZE_MAX).contains(&size) {
            return Err(wrong(&format!("a sketch of {size} buckets; 1 to {SIZE_MAX} may be")));
        }
        if !(ERROR_MIN..1.0).contains(&error) {
            return Err(wrong(&format!("an error of {error}; {ERROR_MIN} to below 1 may be")));
        }
        let gamma = (1.0 + error) / (1.0 - error);
        Ok(Sketch { counts: BTreeMap::new(), gamma, size })
    }

    fn key(&self, value: f64) -> i64 {
        let sign = if value < 0.0 { -1 } else { 1 };
        match value.abs() {
            0.0 => 0,
            size if size.is_nan() => NO_NUMBER,
            size if size.is_infinite() => sign * INFINITE,
            size => sign * ((size.ln() / self.gamma.ln()).ceil() as i64 + APART),
        }
    }

    /// A number in the middle of a bucket.
    fn value(&self, key: i64) -> f64 {
        match key {
            0 => 0.0,
            NO_NUMBER => f64::NAN,
            INFINITE => f64::INFINITY,
            _ if key == -INFINITE => f64::NEG_INFINITY,
            _ => {
                let power = (key.abs() - APART) as f64;
                let middle = f64::midpoint(1.0, self.gamma).ln();
                let middle = (power * self.gamma.ln() - middle).exp();
                middle.min(f64::MAX) * key.signum() as f64
            }
        }
    }

    /// Makes as few buckets as there may be; keys that are not in it yet are of another gamma then.
    fn fit(&mut self) {
        let most = self.size.max(SIZE_LEAST) + NO_POWERS;
        while usize::try_from(most).is_ok_and(|most| most < self.counts.len()) && self.compact() {}
    }

    /// Squares gamma, and says whether it could: a power that is no number has no buckets.
    fn compact(&mut self) -> bool {
        let squared = self.gamma * self.gamma;
        if !squared.is_finite() {
            return false;
        }
        self.gamma = squared;
        let halved = |key: i64| match key.abs() {
            0 | INFINITE | NO_NUMBER => key,
            // Up to the next whole one, as powers are.
            size => key.signum() * ((size - APART + 1).div_euclid(2) + APART),
        };
        let before = std::mem::take(&mut self.counts);
        before.into_iter().for_each(|(key, count)| {
            *self.counts.entry(halved(key)).or_insert(0) += count;
        });
        true
    }

    /// Whether another's gamma is larger by a power of two.
    fn is_finer(&self, other: &Sketch) -> bool {
        self.gamma.ln() < other.gamma.ln() * 0.75
    }

    fn merge(&mut self, mut other: Sketch) -> Result<()> {
        if self.gamma == 0.0 || other.gamma == 0.0 {
            if self.gamma == 0.0 {
                *self = other;
            }
            return Ok(());
        }
        while self.is_finer(&other) && self.compact() {}
        while other.is_finer(self) && other.compact() {}
        // Both began with one error, so that one was a power of the other.
        let apart = self.gamma.ln() / other.gamma.ln() - 1.0;
        if self.size != other.size || GAMMA_ERROR < apart.abs() {
            return Err(wrong("a sketch has one size and one error for all its values"));
        }
        other.counts.into_iter().for_each(|(key, count)| {
            *self.counts.entry(key).or_insert(0) += count;
        });
        self.fit();
        Ok(())
    }

    /// The value below which such a share of all values lies; none of none.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let all: i64 = self.counts.values().sum();
        let mut left = ((all as f64 * share) as i64 + 1).min(all);
        for (key, count) in &self.counts {
            left -= count;
            if left <= 0 {
                return Some(self.value(*key));
            }
        }
        None
    }

    fn take(&mut self, size: i64, error: f64, value: f64) -> Result<()> {
        if self.gamma == 0.0 {
            *self = Sketch::sized(size, error)?;
        }
        *self.counts.entry(self.key(value)).or_insert(0) += 1;
        self.fit();
        Ok(())
    }

    fn as_struct(&self) -> Result<ScalarValue> {
        if self.gamma == 0.0 {
            return Ok(ScalarValue::Struct(Arc::new(StructArray::new_null(fields(), 1))));
        }
        let list = |all: Vec<i64>| {
            let array: ArrayRef = Arc::new(Int64Array::from(all));
            SingleRowListArrayBuilder::new(array).build_list_scalar().to_array()
        };
        let columns = vec![
            list(self.counts.keys().copied().collect())?,
            list(self.counts.values().copied().collect())?,
            ScalarValue::Float64(Some(self.gamma)).to_array()?,
            ScalarValue::Int64(Some(self.size)).to_array()?,
            ScalarValue::Int64(Some(self.counts.values().sum())).to_array()?,
        ];
        Ok(ScalarValue::Struct(Arc::new(StructArray::try_new(fields(), columns, None)?)))
    }

    /// The sketch in a row of those that [`fields`] are of; none of null.
    pub fn of(sketches: &StructArray, row: usize) -> Option<Sketch> {
        let column = |at: usize| sketches.columns().get(at).filter(|one| one.is_valid(row));
        if sketches.is_null(row) {
            return None;
        }
        let list = |at: usize| Some(column(at)?.as_list_opt::<i32>()?.value(row));
        let (keys, counts) = (list(0)?, list(1)?);
        let both = keys.as_primitive_opt::<Int64Type>()?.iter();
        let both = both.zip(counts.as_primitive_opt::<Int64Type>()?);
        Some(Sketch {
            counts: both.filter_map(|(key, count)| Some((key?, count?))).collect(),
            gamma: column(2)?.as_primitive_opt::<Float64Type>()?.value(row),
            size: column(3)?.as_primitive_opt::<Int64Type>()?.value(row),
        })
    }
}

impl Accumulator for Sketch {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [sizes, errors, values] = values else { return plan_err!("three are asked for") };
        let (sizes, errors) = (cast(sizes, &DataType::Int64)?, cast(errors, &DataType::Float64)?);
        let values = cast(values, &DataType::Float64)?;
        let (sizes, errors) =
            (sizes.as_primitive::<Int64Type>(), errors.as_primitive::<Float64Type>());
        for (row, value) in values.as_primitive::<Float64Type>().iter().enumerate() {
            if let Some(value) = value.filter(|_| sizes.is_valid(row) && errors.is_valid(row)) {
                self.take(sizes.value(row), errors.value(row), value)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.as_struct()
    }

    fn size(&self) -> usize {
        // A tree's nodes are half full at worst.
        size_of_val(self) + self.counts.len() * 4 * size_of::<i64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.as_struct()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(sketches) = states.first().and_then(|one| one.as_struct_opt()) else {
            return plan_err!("a sketch is asked for");
        };
        let mut all = (0..sketches.len()).filter_map(|row| Sketch::of(sketches, row));
        all.try_for_each(|sketch| self.merge(sketch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(size: i64, values: impl IntoIterator<Item = f64>) -> Sketch {
        let mut sketch = Sketch::default();
        values.into_iter().for_each(|value| sketch.take(size, 0.001, value).unwrap());
        sketch
    }

    #[track_caller]
    fn check(sketch: &Sketch, share: f64, expected: f64, error: f64) {
        let found = sketch.percentile(share).unwrap();
        assert!((found - expected).abs() <= expected.abs() * error, "{share}: {found}, {expected}");
    }

    #[test]
    fn percentiles_are_near() {
        let few = of(200, [1.0, 2.0, 3.0, 4.0, -5.0]);
        for (share, expected) in [(0.0, -5.0), (0.3, 1.0), (0.5, 2.0), (0.9, 4.0), (1.0, 4.0)] {
            check(&few, share, expected, 0.001_001);
        }
        let many = of(200, (1..=10_000).map(f64::from));
        assert!(many.counts.len() <= 204, "{}", many.counts.len());
        for share in [0.1, 0.5, 0.99] {
            check(&many, share, share * 10_000.0, 0.04);
        }
        let extremes = of(50, [5e-324, f64::MAX, -f64::MAX, 0.0, 1e-300, 1e300]);
        assert_eq!(extremes.percentile(0.2), Some(0.0));
        check(&extremes, 0.0, -f64::MAX, 0.001_001);
        let tiny = of(1, (0..1000).map(|power| 1.5f64.powi(power)));
        assert!(tiny.counts.len() <= 14 && tiny.percentile(0.5).is_some_and(f64::is_finite));
    }

    #[test]
    fn however_few_buckets_are_asked_for_there_is_an_end() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        let odd = [0.0, infinity, -infinity, nan];
        let powers = (-1074..1024).map(|power| 2f64.powi(power));
        let all: Vec<f64> = powers.flat_map(|one| [one, -one]).chain(odd).collect();
        for size in [1, 2, 3, 4, 10] {
            let few = of(size, [0.5, 2.0, -0.5, -2.0].into_iter().chain(odd));
            assert_eq!(few.percentile(1.0).map(f64::is_nan), Some(true));
            check(&few, 0.2, -2.0, 0.001_001);
            let mut many = of(size, all.iter().copied());
            assert!(many.gamma.is_finite() && many.counts.len() <= 14, "{size}: {many:?}");
            assert!(many.percentile(0.9).is_some_and(f64::is_finite), "{size}");
            many.merge(few.clone()).unwrap();
            let mut few = few;
            few.merge(many).unwrap();
            assert!(few.counts.len() <= 14, "{size}");
        }
    }

    #[test]
    fn parts_of_the_least_error_fit_each_other() {
        let with = |error: f64, values: std::ops::RangeInclusive<i32>| {
            let mut sketch = Sketch::default();
            values.for_each(|value| sketch.take(100, error, f64::from(value)).unwrap());
            sketch
        };
        let (mut whole, few) = (with(1e-6, 1..=5000), with(1e-6, 4000..=4010));
        whole.merge(few).unwrap();
        check(&whole, 0.5, 2505.0, 0.04);
        assert!(whole.merge(with(0.3, 1..=2)).is_err());
    }

    #[test]
    fn what_is_no_number_is_the_largest() {
        let odd = of(200, [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 7.0]);
        assert_eq!(odd.percentile(0.0), Some(f64::NEG_INFINITY));
        assert_eq!(odd.percentile(0.2), Some(0.0));
        assert_eq!(odd.percentile(0.7), Some(f64::INFINITY));
        assert!(odd.percentile(1.0).unwrap().is_nan());
        assert_eq!(Sketch::default().percentile(0.5), None);
        for (size, error) in [(0, 0.1), (i64::MAX, 0.1), (9, 0.0), (9, f64::NAN), (9, 1.0)] {
            assert!(Sketch::sized(size, error).is_err(), "{size} {error}");
        }
    }

    #[test]
    fn parts_together_say_what_all_say() {
        let whole = of(100, (1..=5000).map(f64::from));
        let (mut first, mut second) =
            (of(100, (1..=10).map(f64::from)), of(100, (11..=5000).map(f64::from)));
        let state = second.state().unwrap()[0].to_array().unwrap();
        first.merge_batch(&[state]).unwrap();
        let nothing = Sketch::default().state().unwrap()[0].to_array().unwrap();
        first.merge_batch(&[nothing]).unwrap();
        assert_eq!(first, whole);
        let mut begun = Sketch::default();
        begun.merge(first).unwrap();
        assert_eq!(begun, whole);
    }
}
