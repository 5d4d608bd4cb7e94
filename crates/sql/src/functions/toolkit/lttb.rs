//! `lttb(time, value, count)`: so few of many points that a plot looks the same
//! (S. Steinarsson, Downsampling Time Series for Visual Representation, 2013,
//! <https://skemman.is/handle/1946/15343>; as TimescaleDB's Toolkit names it).
//!
//! ```text
//! first │ bucket │ bucket │ .. │ last     of each bucket the point is kept that makes the largest
//!   └──────►▲◄───────┘ mean               triangle with the one kept before and the mean of the next
//! ```

use crate::functions::toolkit::not_distinct;
use crate::functions::toolkit::summaries::Point;
use crate::types::error::SqlError;
use crate::types::time::zones::ZONE;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Float64Array, Int64Array, StructArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Fields, Float64Type, Int64Type, TimeUnit,
};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{DataFusionError, Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The function.
pub const LTTB: &str = "lttb";
/// What its points are made of.
pub const TIME: &str = "time";
/// As above.
pub const VALUE: &str = "value";

/// Fewest points that say how a line begins, goes on and ends.
const COUNT_MIN: i64 = 3;

/// The function, for a session.
pub fn lttb() -> AggregateUDF {
    AggregateUDF::from(Lttb { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Lttb {
    signature: Signature,
}

fn time_type(zone: Option<Arc<str>>) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, zone)
}

fn point_fields(time: &DataType) -> Fields {
    Fields::from(vec![
        Field::new(TIME, time.clone(), false),
        Field::new(VALUE, DataType::Float64, false),
    ])
}

impl AggregateUDFImpl for Lttb {
    fn name(&self) -> &str {
        LTTB
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [time, value, count]
                if (value.is_numeric() || value.is_null()) && count.is_integer() =>
            {
                let zone = match time {
                    DataType::Timestamp(_, zone) => zone.clone(),
                    DataType::Null => Some(ZONE.into()),
                    _ => {
                        return plan_err!(
                            "No function matches lttb but of a time, a number and a count"
                        );
                    }
                };
                Ok(vec![time_type(zone), DataType::Float64, DataType::Int64])
            }
            _ => plan_err!("No function matches lttb but of a time, a number and a count"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let time = types.first().cloned().unwrap_or_else(|| time_type(None));
        let point = DataType::Struct(point_fields(&time));
        Ok(DataType::List(Arc::new(Field::new_list_field(point, true))))
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let list =
            |name: &str, of| Arc::new(Field::new_list(name, Field::new_list_field(of, true), true));
        let count = Arc::new(Field::new("count", DataType::Int64, true));
        Ok(vec![list("times", DataType::Int64), list("values", DataType::Float64), count])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        not_distinct(LTTB, &args)?;
        let time = args.expr_fields.first().map(|field| field.data_type().clone());
        let time = time.unwrap_or_else(|| time_type(None));
        Ok(Box::new(Fewer { time, count: None, all: Vec::new() }))
    }
}

/// The points of one group, until the last has come.
#[derive(Debug)]
struct Fewer {
    time: DataType,
    count: Option<i64>,
    all: Vec<Point>,
}

impl Fewer {
    fn add(&mut self, times: &ArrayRef, values: &ArrayRef) -> Result<()> {
        let (times, values) = (cast(times, &DataType::Int64)?, cast(values, &DataType::Float64)?);
        let both = times.as_primitive::<Int64Type>().iter();
        let both = both.zip(values.as_primitive::<Float64Type>());
        let points = both.filter_map(|(time, value)| Some(Point { time: time?, value: value? }));
        // What is no number has no place in a plot.
        self.all.extend(points.filter(|point| point.value.is_finite()));
        Ok(())
    }

    fn set_count(&mut self, counts: &ArrayRef) -> Result<()> {
        let counts = cast(counts, &DataType::Int64)?;
        let Some(count) = counts.as_primitive::<Int64Type>().iter().flatten().next() else {
            return Ok(());
        };
        if count < COUNT_MIN {
            let words = format!("lttb makes {COUNT_MIN} points at least, not {count}");
            return Err(DataFusionError::External(Box::new(SqlError::wrong_value(words))));
        }
        self.count = Some(count);
        Ok(())
    }
}

impl Accumulator for Fewer {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [times, values, counts, ..] = values else {
            return plan_err!("a time, a value and a count are asked for");
        };
        self.set_count(counts)?;
        self.add(times, values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.all.sort_by_key(|point| point.time);
        let count = usize::try_from(self.count.unwrap_or(i64::MAX)).unwrap_or(usize::MAX);
        let kept = fewer(&self.all, count);
        let times: TimestampMicrosecondArray = kept.iter().map(|point| Some(point.time)).collect();
        let times = cast(&times, &self.time)?;
        let values: Float64Array = kept.iter().map(|point| Some(point.value)).collect();
        let arrays: Vec<ArrayRef> = vec![times, Arc::new(values)];
        let points = StructArray::try_new(point_fields(&self.time), arrays, None)?;
        Ok(SingleRowListArrayBuilder::new(Arc::new(points)).build_list_scalar())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.all.capacity() * size_of::<Point>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let times: Int64Array = self.all.iter().map(|point| Some(point.time)).collect();
        let values: Float64Array = self.all.iter().map(|point| Some(point.value)).collect();
        let list = |array: ArrayRef| SingleRowListArrayBuilder::new(array).build_list_scalar();
        Ok(vec![list(Arc::new(times)), list(Arc::new(values)), ScalarValue::Int64(self.count)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [times, values, counts] = states else {
            return plan_err!("two lists and a count are asked for");
        };
        self.set_count(counts)?;
        let (times, values) = (times.as_list::<i32>(), values.as_list::<i32>());
        for row in (0..times.len()).filter(|row| times.is_valid(*row) && values.is_valid(*row)) {
            self.add(&times.value(row), &values.value(row))?;
        }
        Ok(())
    }
}

/// So many of the points, which are in order of time: all if there are no more.
fn fewer(points: &[Point], count: usize) -> Vec<Point> {
    let Some(inner) = count.checked_sub(2).filter(|inner| 0 < *inner && count < points.len())
    else {
        return points.to_vec();
    };
    // Where a bucket of the points between the first and the last begins.
    let begin = |bucket: usize| 1 + bucket * (points.len() - 2) / inner;
    let mut kept = Vec::with_capacity(count);
    kept.push(points[0]);
    for bucket in 0..inner {
        let next = match bucket + 1 == inner {
            true => mean(&points[points.len() - 1..]),
            false => mean(&points[begin(bucket + 1)..begin(bucket + 2)]),
        };
        let before = kept[kept.len() - 1];
        let mut largest = (f64::NEG_INFINITY, points[begin(bucket)]);
        for point in &points[begin(bucket)..begin(bucket + 1)] {
            let area = triangle(before, *point, next);
            if largest.0 < area {
                largest = (area, *point);
            }
        }
        kept.push(largest.1);
    }
    kept.push(points[points.len() - 1]);
    kept
}

/// The mean of some points: when, by the first of them, and how much.
fn mean(points: &[Point]) -> (i64, f64, f64) {
    let start = points.first().map_or(0, |point| point.time);
    let count = points.len().max(1) as f64;
    let after: f64 = points.iter().map(|point| (point.time - start) as f64).sum();
    let value: f64 = points.iter().map(|point| point.value / count).sum();
    (start, after / count, value)
}

/// Twice the area of a triangle; times count from the first point, so that they are exact.
fn triangle(one: Point, other: Point, (start, after, value): (i64, f64, f64)) -> f64 {
    let across = other.time.saturating_sub(one.time) as f64;
    let to_mean = start.saturating_sub(one.time) as f64 + after;
    (to_mean * (other.value - one.value) - across * (value - one.value)).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f64]) -> Vec<Point> {
        (0..)
            .zip(values)
            .map(|(time, value)| Point { time: time * 1_000_000, value: *value })
            .collect()
    }

    #[test]
    fn peaks_stay_and_what_lies_on_a_line_goes() {
        let mut values = vec![1.0; 100];
        values[40] = 9.0;
        values[71] = -7.0;
        let kept = fewer(&points(&values), 12);
        assert_eq!(kept.len(), 12);
        assert_eq!((kept[0].time, kept[11].time), (0, 99_000_000));
        assert!(kept.iter().any(|point| point.value == 9.0 && point.time == 40_000_000));
        assert!(kept.iter().any(|point| point.value == -7.0 && point.time == 71_000_000));
        assert!(kept.is_sorted_by(|one, next| one.time < next.time));
    }

    #[test]
    fn few_points_are_all_kept() {
        for len in 0..=5 {
            let all = points(&[3.0, 1.0, 4.0, 1.0, 5.0][..len]);
            assert_eq!(fewer(&all, 5).len(), len);
            assert_eq!(fewer(&all, 1_000_000).len(), len);
            assert_eq!(fewer(&all, 3).len(), len.min(3));
        }
    }

    #[test]
    fn parts_together_say_what_all_say() {
        let new = || Fewer { time: time_type(None), count: None, all: Vec::new() };
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values((0..60).rev()));
        let values: ArrayRef =
            Arc::new(Float64Array::from_iter_values((0..60).map(|n| f64::from(n * n % 17))));
        let counts: ArrayRef = Arc::new(Int64Array::from_iter_values((0..60).map(|_| 7)));
        let all = [times, values, counts];
        let part = |from: usize, len: usize| all.iter().map(|one| one.slice(from, len)).collect();
        let (mut whole, mut first, mut second) = (new(), new(), new());
        whole.update_batch(&all).unwrap();
        first.update_batch(&Vec::<ArrayRef>::clone(&part(0, 25))).unwrap();
        second.update_batch(&Vec::<ArrayRef>::clone(&part(25, 35))).unwrap();
        let states = second.state().unwrap();
        let states: Vec<ArrayRef> = states.iter().map(|one| one.to_array().unwrap()).collect();
        first.merge_batch(&states).unwrap();
        assert_eq!(first.evaluate().unwrap(), whole.evaluate().unwrap());
    }
}
