//! Samples of either kind, one after the other.

use crate::gap::ABSENT;
use crate::histograms::cells::{Cell, HISTOGRAM};
use crate::histograms::samples::MixedSamples;
use histogram::Histogram;
use std::sync::Arc;

/// The value of one step.
pub(crate) enum Value {
    Gap,
    Number(f64),
    Histogram(Histogram),
}

impl From<Option<Histogram>> for Value {
    fn from(histogram: Option<Histogram>) -> Value {
        histogram.map_or(Value::Gap, Value::Histogram)
    }
}

/// A sample of either kind.
#[derive(Clone, Copy)]
pub(crate) enum Point<'a> {
    Number(f64),
    Histogram(&'a Histogram),
}

impl<'a> MixedSamples<'a> {
    /// All samples, oldest first.
    pub(crate) fn merged(self) -> impl Iterator<Item = (i64, Point<'a>)> {
        let mut numbers = self.times.iter().zip(self.values).peekable();
        let mut histograms = self.histogram_times.iter().zip(self.histograms).peekable();
        std::iter::from_fn(move || {
            let is_number = match (numbers.peek(), histograms.peek()) {
                (Some((number, _)), Some((histogram, _))) => number < histogram,
                (number, _) => number.is_some(),
            };
            if is_number {
                numbers.next().map(|(time, value)| (*time, Point::Number(*value)))
            } else {
                histograms.next().map(|(time, histogram)| (*time, Point::Histogram(histogram)))
            }
        })
    }
}

/// Writes the value of a step.
pub(crate) fn write(found: Value, value: &mut f64, cell: &mut Cell) {
    (*value, *cell) = match found {
        Value::Gap => (ABSENT, None),
        Value::Number(number) => (number, None),
        Value::Histogram(histogram) => (HISTOGRAM, Some(Arc::new(histogram))),
    };
}

impl From<Option<(i64, Point<'_>)>> for Value {
    fn from(point: Option<(i64, Point<'_>)>) -> Value {
        match point {
            None => Value::Gap,
            Some((_, Point::Number(number))) => Value::Number(number),
            Some((_, Point::Histogram(histogram))) => Value::Histogram(histogram.clone()),
        }
    }
}

/// How often neighbours differ.
pub(super) fn changes<'a>(points: impl Iterator<Item = (i64, Point<'a>)>) -> f64 {
    count_pairs(points, |before, after| match (before, after) {
        (Point::Number(a), Point::Number(b)) => a != b && !(a.is_nan() && b.is_nan()),
        (Point::Histogram(a), Point::Histogram(b)) => !b.same_data(a),
        _ => true,
    })
}

/// How often a counter began again; another kind of sample is a beginning.
pub(super) fn resets<'a>(points: impl Iterator<Item = (i64, Point<'a>)>) -> f64 {
    count_pairs(points, |before, after| match (before, after) {
        (Point::Number(a), Point::Number(b)) => b < a,
        (Point::Histogram(a), Point::Histogram(b)) => b.is_reset_after(a),
        _ => true,
    })
}

fn count_pairs<'a>(
    points: impl Iterator<Item = (i64, Point<'a>)>,
    counts: impl Fn(Point<'a>, Point<'a>) -> bool,
) -> f64 {
    let mut before = None;
    let pairs = points.filter(|(_, after)| {
        let is_counted = before.is_some_and(|before| counts(before, *after));
        before = Some(*after);
        is_counted
    });
    pairs.count() as f64
}
