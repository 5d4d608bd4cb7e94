//! Transformations: each point and the ones before it.

use crate::ast::{DataType, Expr};
use crate::eval::point::{Direction, Point};
use crate::eval::window::Windows;
use crate::value::Value;
use std::collections::VecDeque;

const SECOND: i64 = 1_000_000_000;

/// What a transformation is told.
pub struct Transformation<'a> {
    pub name: &'a str,
    pub args: &'a [Expr],
    /// The type of what it takes.
    pub kind: DataType,
    pub windows: &'a Windows,
    pub direction: Direction,
}

impl Transformation<'_> {
    /// The points made of others.
    pub fn apply(&self, points: &[Point]) -> Vec<Point> {
        let points = points.iter().filter(|point| !point.value.is_null());
        match self.name {
            "derivative" => self.differences(points, Self::slope, false),
            "non_negative_derivative" => self.differences(points, Self::slope, true),
            "difference" => self.differences(points, Self::difference, false),
            "non_negative_difference" => self.differences(points, Self::difference, true),
            "elapsed" => self.elapsed(points),
            "cumulative_sum" => self.sums(points),
            "moving_average" => self.averages(points),
            "integral" => self.integral(points),
            _ => Vec::new(),
        }
    }

    fn is_whole(&self) -> bool {
        matches!(self.kind, DataType::Integer | DataType::Unsigned)
    }

    fn unit(&self) -> Option<i64> {
        match self.args.get(1) {
            Some(Expr::Duration(unit)) => Some(*unit),
            _ => None,
        }
    }

    /// Of each two neighbours; of equal times only the first counts.
    fn differences<'p>(
        &self,
        points: impl Iterator<Item = &'p Point>,
        of: fn(&Self, &Point, &Point) -> Value,
        is_non_negative: bool,
    ) -> Vec<Point> {
        let mut out = Vec::new();
        let mut previous: Option<&Point> = None;
        for point in points {
            match previous {
                Some(before) if before.time == point.time => continue,
                Some(before) => {
                    let rise = of(self, before, point);
                    let is_number = |point: &Point| !point.value.as_f64().is_some_and(f64::is_nan);
                    let falls = point.value.order(&before.value).is_lt()
                        && is_number(point)
                        && is_number(before);
                    // A rise beyond 64 bits wraps around.
                    let is_negative = matches!(rise, Value::Integer(rise) if rise < 0)
                        || matches!(rise, Value::Float(rise) if rise < 0.0);
                    if !(is_non_negative && (falls || is_negative)) {
                        out.push(Point::new(point.time, rise));
                    }
                }
                None => {}
            }
            previous = Some(point);
        }
        out
    }

    fn slope(&self, before: &Point, point: &Point) -> Value {
        let default = self.windows.interval.duration;
        let default = if default == 0 { SECOND } else { default };
        let unit = self.unit().unwrap_or(default) as f64;
        let rise = match (&before.value, &point.value) {
            (Value::Integer(a), Value::Integer(b)) => b.wrapping_sub(*a) as f64,
            (a, b) => b.as_f64().unwrap_or(0.0) - a.as_f64().unwrap_or(0.0),
        };
        let elapsed = match self.direction {
            Direction::Up => point.time.saturating_sub(before.time),
            Direction::Down => before.time.saturating_sub(point.time),
        };
        Value::Float(if 0 < elapsed { rise / (elapsed as f64 / unit) } else { 0.0 })
    }

    fn difference(&self, before: &Point, point: &Point) -> Value {
        match (&before.value, &point.value) {
            (Value::Integer(a), Value::Integer(b)) => Value::Integer(b.wrapping_sub(*a)),
            (a, b) => Value::Float(b.as_f64().unwrap_or(0.0) - a.as_f64().unwrap_or(0.0)),
        }
    }

    fn elapsed<'p>(&self, points: impl Iterator<Item = &'p Point>) -> Vec<Point> {
        let unit = self.unit().unwrap_or(1);
        let mut out = Vec::new();
        let mut previous: Option<&Point> = None;
        for point in points {
            if let Some(before) = previous {
                let elapsed = point.time.saturating_sub(before.time) / unit;
                out.push(Point::new(point.time, Value::Integer(elapsed)));
            }
            previous = Some(point);
        }
        out
    }

    fn sums<'p>(&self, points: impl Iterator<Item = &'p Point>) -> Vec<Point> {
        let (mut whole, mut sum) = (0_i64, 0.0);
        let next = |point: &Point| {
            let value = match &point.value {
                Value::Integer(value) => {
                    whole = whole.wrapping_add(*value);
                    Value::Integer(whole)
                }
                value => {
                    sum += value.as_f64().unwrap_or(0.0);
                    Value::Float(sum)
                }
            };
            Point::new(point.time, value)
        };
        points.map(next).collect()
    }

    fn averages<'p>(&self, points: impl Iterator<Item = &'p Point>) -> Vec<Point> {
        let Some(Expr::Integer(count)) = self.args.get(1) else { return Vec::new() };
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        let mut kept: VecDeque<f64> = VecDeque::new();
        let (mut sum, mut whole) = (0.0, 0_i64);
        let mut out = Vec::new();
        for point in points {
            let value = point.value.as_f64().unwrap_or(0.0);
            if kept.len() == count {
                let oldest = kept.pop_front().unwrap_or(0.0);
                sum -= oldest;
                whole = whole.wrapping_sub(oldest as i64);
            }
            kept.push_back(value);
            sum += value;
            whole = whole.wrapping_add(value as i64);
            if kept.len() == count {
                let total = if self.is_whole() { whole as f64 } else { sum };
                out.push(Point::new(point.time, Value::Float(total / count as f64)));
            }
        }
        out
    }

    /// The area below the points, by trapezoids that are cut where windows end.
    fn integral<'p>(&self, points: impl Iterator<Item = &'p Point>) -> Vec<Point> {
        let unit = self.unit().unwrap_or(SECOND) as f64;
        let has_windows = !self.windows.interval.is_zero();
        let bounds = |time: i64| {
            let (start, end) = self.windows.around(time);
            if self.direction == Direction::Up { (start, end) } else { (end, start) }
        };
        let mut out = Vec::new();
        let mut previous: Option<(i64, f64)> = None;
        let (mut start, mut end, mut sum) = (0, 0, 0.0);
        for point in points {
            let (time, value) = (point.time, point.value.as_f64().unwrap_or(0.0));
            let Some((mut before, mut height)) = previous else {
                if has_windows {
                    (start, end) = bounds(time);
                }
                previous = Some((time, value));
                continue;
            };
            if before == time {
                previous = Some((time, value));
                continue;
            }
            let is_past = match self.direction {
                Direction::Up => end <= time,
                Direction::Down => time <= end,
            };
            if has_windows && is_past {
                if before != end {
                    let at_end = linear(end, before, time, height, value);
                    sum += 0.5 * (at_end + height) * (end.wrapping_sub(before) as f64 / unit);
                    (before, height) = (end, at_end);
                }
                out.push(Point::new(start, Value::Float(sum)));
                (start, end) = bounds(time);
                sum = 0.0;
            }
            sum += 0.5 * (value + height) * (time.wrapping_sub(before) as f64 / unit);
            previous = Some((time, value));
        }
        // A last point at the very start of a window has no area.
        if previous.is_some_and(|(time, _)| time != start) {
            out.push(Point::new(start, Value::Float(sum)));
        }
        out
    }
}

/// The value at `time` of the line through two points.
pub fn linear(time: i64, before: i64, after: i64, low: f64, high: f64) -> f64 {
    let slope = (high - low) / after.wrapping_sub(before) as f64;
    slope * time.wrapping_sub(before) as f64 + low
}
