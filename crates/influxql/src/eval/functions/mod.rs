//! Aggregates and selectors over the points of one window.

pub mod fold;
pub mod holt_winters;
pub mod math;
pub mod reduce;
pub mod stream_functions;

use super::point::Point;
use crate::ast::{DataType, Expr};
use crate::value::Value;
use std::cmp::Ordering;
use std::collections::HashMap;

/// A value of a window; without a time it is the window's own.
pub struct Picked {
    pub time: Option<i64>,
    pub value: Value,
    pub aux: Vec<Value>,
}

impl Picked {
    fn value(value: Value) -> Picked {
        Picked { time: None, value, aux: Vec::new() }
    }

    fn point(point: &Point) -> Picked {
        Picked { time: Some(point.time), value: point.value.clone(), aux: point.aux.clone() }
    }
}

/// The values of function `name` over the points of a window, which are not none.
pub fn reduce(name: &str, args: &[Expr], kind: DataType, points: &[Point]) -> Vec<Picked> {
    let one = |value: Value| vec![Picked::value(value)];
    match name {
        "count" => one(Value::Integer(points.len() as i64)),
        "sum" => one(sum(points, kind)),
        "mean" => one(Value::Float(total(points, kind) / points.len() as f64)),
        "min" | "max" | "first" | "last" => vec![Picked::point(pick(name, points))],
        "median" => one(Value::Float(median(points))),
        "mode" => one(mode(points)),
        "stddev" => one(deviation(points)),
        "spread" => one(spread(points, kind)),
        "percentile" => percentile(args, points).into_iter().collect(),
        "distinct" => distinct(points),
        "top" | "bottom" => ranked(name == "top", count_of(args), points),
        "sample" => sample(count_of(args), points),
        _ => Vec::new(),
    }
}

/// The whole number behind the other arguments.
fn count_of(args: &[Expr]) -> usize {
    match args.last() {
        Some(Expr::Integer(count)) => usize::try_from(*count).unwrap_or(0),
        _ => 0,
    }
}

fn is_whole(kind: DataType) -> bool {
    matches!(kind, DataType::Integer | DataType::Unsigned)
}

fn number(point: &Point) -> f64 {
    point.value.as_f64().unwrap_or(0.0)
}

fn sum(points: &[Point], kind: DataType) -> Value {
    match is_whole(kind) {
        true => Value::Integer(whole_sum(points)),
        false => Value::Float(points.iter().map(number).fold(0.0, |a, b| a + b)),
    }
}

fn whole_sum(points: &[Point]) -> i64 {
    points.iter().fold(0, |total: i64, point| match point.value {
        Value::Integer(value) => total.wrapping_add(value),
        _ => total,
    })
}

fn total(points: &[Point], kind: DataType) -> f64 {
    match is_whole(kind) {
        true => whole_sum(points) as f64,
        false => points.iter().map(number).fold(0.0, |a, b| a + b),
    }
}

fn pick<'p>(name: &str, points: &'p [Point]) -> &'p Point {
    let mut best = &points[0];
    for point in &points[1..] {
        let by_value = point.value.order(&best.value);
        let is_better = match name {
            "min" => by_value.is_lt() || (by_value.is_eq() && point.time < best.time),
            "max" => by_value.is_gt() || (by_value.is_eq() && point.time < best.time),
            "first" if point.time == best.time => match point.value {
                // Of truths of one time `first` takes the false one, and `last` the true one.
                Value::Boolean(_) => by_value.is_lt(),
                _ => by_value.is_gt(),
            },
            "first" => point.time < best.time,
            _ => best.time < point.time || (point.time == best.time && by_value.is_gt()),
        };
        if is_better {
            best = point;
        }
    }
    best
}

fn median(points: &[Point]) -> f64 {
    let wholes: Option<Vec<i64>> = points
        .iter()
        .map(|point| match point.value {
            Value::Integer(value) => Some(value),
            _ => None,
        })
        .collect();
    if let Some(mut values) = wholes {
        values.sort_unstable();
        let middle = values.len() / 2;
        return match values.len() % 2 {
            0 => {
                let (low, high) = (values[middle - 1], values[middle]);
                low as f64 + high.wrapping_sub(low) as f64 / 2.0
            }
            _ => values[middle] as f64,
        };
    }
    let mut values: Vec<f64> = points.iter().map(number).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => {
            let (low, high) = (values[middle - 1], values[middle]);
            low + (high - low) / 2.0
        }
        _ => values[middle],
    }
}

/// The value that comes most often; of several, that of which one came first.
fn mode(points: &[Point]) -> Value {
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by(|a, b| a.value.order(&b.value));
    let (mut most, mut most_value, mut most_time) = (0, &sorted[0].value, sorted[0].time);
    let (mut count, mut value, mut time) = (0, &sorted[0].value, sorted[0].time);
    for point in sorted {
        if point.value != *value {
            (count, value, time) = (1, &point.value, point.time);
            continue;
        }
        count += 1;
        if count < most || (count == most && most_time < time) {
            continue;
        }
        (most, most_value, most_time) = (count, &point.value, point.time);
    }
    most_value.clone()
}

/// Of the sample; nothing of less than two.
fn deviation(points: &[Point]) -> Value {
    // No number rather than nothing: what is made of it is none either, and rows are not left out.
    if points.len() < 2 {
        return Value::Float(f64::NAN);
    }
    let (mut mean, mut count) = (0.0, 0.0);
    for value in points.iter().map(number) {
        count += 1.0;
        mean += (value - mean) / count;
    }
    let variance: f64 = points.iter().map(|point| (number(point) - mean).powi(2)).sum();
    Value::Float((variance / (count - 1.0)).sqrt())
}

fn spread(points: &[Point], kind: DataType) -> Value {
    if is_whole(kind) {
        let whole = |point: &Point| match point.value {
            Value::Integer(value) => value,
            _ => number(point) as i64,
        };
        let values = || points.iter().map(whole);
        let (least, greatest) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
        return Value::Integer(greatest.wrapping_sub(least));
    }
    let values = points.iter().map(number);
    let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
    values.for_each(|value| (least, greatest) = (least.min(value), greatest.max(value)));
    Value::of_sample(greatest - least, kind)
}

/// The point at that rank, counted from 1; none below the first.
fn percentile(args: &[Expr], points: &[Point]) -> Option<Picked> {
    let percent = match args.get(1) {
        Some(Expr::Integer(value)) => *value as f64,
        Some(Expr::Number(value)) => *value,
        _ => return None,
    };
    let rank = (points.len() as f64 * percent / 100.0 + 0.5).floor() - 1.0;
    if rank < 0.0 || points.len() as f64 <= rank {
        return None;
    }
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by(|a, b| a.value.order(&b.value));
    sorted.get(rank as usize).map(|point| Picked::point(point))
}

/// A value's own bits, so that it can be looked up.
fn bits(value: &Value) -> (u8, u64, &str) {
    match value {
        Value::Null => (0, 0, ""),
        // Both zeros are one.
        Value::Float(value) => (1, (value + 0.0).to_bits(), ""),
        Value::Integer(value) | Value::Time(value) => (2, *value as u64, ""),
        Value::Boolean(value) => (3, u64::from(*value), ""),
        Value::Text(text) => (4, 0, text),
    }
}

/// Each value once, in the order in which they came first.
fn distinct(points: &[Point]) -> Vec<Picked> {
    let mut first: HashMap<(u8, u64, &str), &Point> = HashMap::new();
    for point in points {
        first.entry(bits(&point.value)).or_insert(point);
    }
    let mut kept: Vec<&Point> = first.into_values().collect();
    kept.sort_by(|a, b| a.time.cmp(&b.time).then_with(|| a.value.order(&b.value)));
    kept.into_iter().map(Picked::point).collect()
}

/// The greatest or least points; of equal ones the earliest.
fn ranked(is_top: bool, count: usize, points: &[Point]) -> Vec<Picked> {
    let mut sorted: Vec<&Point> = points.iter().collect();
    let order = |a: &&Point, b: &&Point| -> Ordering {
        let by_value = a.value.order(&b.value);
        let by_value = if is_top { by_value.reverse() } else { by_value };
        by_value.then(a.time.cmp(&b.time))
    };
    sorted.sort_by(order);
    sorted.truncate(count);
    sorted.into_iter().map(Picked::point).collect()
}

/// Some points: which ones nobody can say, but the same of the same.
fn sample(count: usize, points: &[Point]) -> Vec<Picked> {
    let mut kept: Vec<usize> = (0..points.len().min(count)).collect();
    let mut state = points.len() as u64 ^ points[0].time as u64;
    for idx in count..points.len() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = ((state >> 33) as usize) % (idx + 1);
        if let Some(slot) = kept.get_mut(place) {
            *slot = idx;
        }
    }
    kept.sort_unstable();
    kept.into_iter().filter_map(|idx| points.get(idx)).map(Picked::point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// InfluxDB's answers: the distance of the two in the middle is exact, their sum is a float's.
    #[test]
    fn medians_of_integers_beyond_floats() {
        const BORDER: i64 = 1 << 53;
        for (values, expected) in [
            (&[BORDER + 1, BORDER - 2][..], BORDER as f64),
            (&[BORDER + 1, BORDER + 3], BORDER as f64),
            (&[BORDER + 5], BORDER as f64 + 4.0),
            (&[i64::MIN, i64::MAX], i64::MIN as f64 - 0.5),
            (&[1, 2, 3, 4], 2.5),
        ] {
            let point = |value: &i64| Point::new(0, Value::Integer(*value));
            let points: Vec<Point> = values.iter().map(point).collect();
            assert_eq!(median(&points), expected, "{values:?}");
        }
    }
}
