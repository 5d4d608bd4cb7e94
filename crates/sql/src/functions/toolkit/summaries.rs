//! What is said of points in the order of their times, as the Toolkit says it
//! (<https://github.com/timescale/timescaledb-toolkit>, `counter-agg` and `time-weighted-average`).

use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::ScalarValue;

const MICROS_PER_SECOND: f64 = 1e6;

/// A value at a time in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When.
    pub time: i64,
    /// What.
    pub value: f64,
}

/// What points are summed up as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Summary {
    /// A number that grows, and begins again at nothing.
    Counter,
    /// A number that holds until the next is known.
    Held,
    /// A number that moves to the next in a straight line.
    Line,
}

impl Summary {
    /// The answers that there are, by the names of the functions that ask for them.
    pub fn fields(self) -> Fields {
        let real = |name: &str| Field::new(name, DataType::Float64, true);
        let whole = |name: &str| Field::new(name, DataType::Int64, true);
        match self {
            Summary::Counter => Fields::from(vec![
                real("rate"),
                real("delta"),
                real("time_delta"),
                whole("num_resets"),
                whole("num_changes"),
                whole("num_elements"),
            ]),
            Summary::Held | Summary::Line => Fields::from(vec![real("average"), real("integral")]),
        }
    }

    /// The answers of points that are sorted by time; none of no points.
    pub fn of(self, points: &[Point]) -> Option<Vec<ScalarValue>> {
        let first = points.first()?;
        // Of points at one time the first counts.
        let mut last = *first;
        let mut later = points.iter().copied().filter_map(move |point| {
            let before = (last.time < point.time).then_some(last)?;
            last = point;
            Some((before, point))
        });
        Some(match self {
            Summary::Counter => counter(*first, &mut later),
            Summary::Held | Summary::Line => self.weighed(*first, &mut later),
        })
    }

    fn weighed(
        self,
        first: Point,
        steps: &mut dyn Iterator<Item = (Point, Point)>,
    ) -> Vec<ScalarValue> {
        let (mut sum, mut last) = (0.0, first);
        for (before, point) in steps {
            let height = match self {
                Summary::Line => f64::midpoint(before.value, point.value),
                Summary::Held | Summary::Counter => before.value,
            };
            sum += height * micros(before, point);
            last = point;
        }
        let length = micros(first, last);
        let average = (0.0 < length).then(|| sum / length);
        vec![ScalarValue::Float64(average), ScalarValue::Float64(Some(sum / MICROS_PER_SECOND))]
    }
}

fn micros(from: Point, to: Point) -> f64 {
    (i128::from(to.time) - i128::from(from.time)) as f64
}

fn counter(first: Point, steps: &mut dyn Iterator<Item = (Point, Point)>) -> Vec<ScalarValue> {
    let (mut last, mut before_resets) = (first, 0.0);
    let (mut resets, mut changes, mut elements) = (0, 0, 1);
    for (before, point) in steps {
        if point.value < before.value {
            before_resets += before.value;
            resets += 1;
        }
        changes += i64::from(point.value != before.value);
        elements += 1;
        last = point;
    }
    let delta = last.value + before_resets - first.value;
    let seconds = micros(first, last) / MICROS_PER_SECOND;
    let rate = (0.0 < seconds).then(|| delta / seconds);
    vec![
        ScalarValue::Float64(rate),
        ScalarValue::Float64(Some(delta)),
        ScalarValue::Float64(Some(seconds)),
        ScalarValue::Int64(Some(resets)),
        ScalarValue::Int64(Some(changes)),
        ScalarValue::Int64(Some(elements)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(all: &[(i64, f64)]) -> Vec<Point> {
        all.iter().map(|(time, value)| Point { time: time * 1_000_000, value: *value }).collect()
    }

    fn check(summary: Summary, of: &[(i64, f64)], expected: &str) {
        let said = summary.of(&points(of)).map(|all| {
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            all.join(" ")
        });
        assert_eq!(said.unwrap_or_default(), expected, "{summary:?} of {of:?}");
    }

    #[test]
    fn counters_begin_again() {
        let check = |of: &[(i64, f64)], expected: &str| check(Summary::Counter, of, expected);
        check(&[], "");
        check(&[(5, 7.0)], "NULL 0 0 0 0 1");
        check(&[(0, 10.0), (10, 20.0), (20, 20.0)], "0.5 10 20 0 1 3");
        check(&[(0, 10.0), (10, 0.0), (20, 5.0), (30, 2.0)], "0.23333333333333334 7 30 2 3 4");
        // Of two at one time the first counts.
        check(&[(0, 1.0), (0, 9.0), (10, 2.0)], "0.1 1 10 0 1 2");
        check(&[(0, 1.0), (10, f64::INFINITY)], "inf inf 10 0 1 2");
        check(&[(0, f64::NAN), (10, 1.0)], "NaN NaN 10 0 1 2");
    }

    #[test]
    fn weights_are_lengths_of_time() {
        check(Summary::Held, &[], "");
        check(Summary::Held, &[(0, 7.0)], "NULL 0");
        check(Summary::Held, &[(0, 10.0), (10, 20.0), (40, 99.0)], "17.5 700");
        check(Summary::Line, &[(0, 10.0), (10, 20.0), (20, 0.0)], "12.5 250");
        check(Summary::Line, &[(0, 1.0), (0, 5.0)], "NULL 0");
        check(Summary::Held, &[(0, f64::NAN), (1, 1.0)], "NaN NaN");
        check(Summary::Line, &[(0, 1e308), (1, 1e308)], "inf inf");
    }
}
