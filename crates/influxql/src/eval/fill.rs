//! Windows without samples.

use super::functions::stream_functions::linear;
use super::point::{Direction, Point};
use super::window::Windows;
use super::{Evaluator, Result, point_cost};
use crate::ast::{DataType, Fill};
use crate::time::TIME_MIN;
use crate::value::Value;

/// How windows are filled.
pub struct Filling<'a> {
    pub fill: Fill,
    pub windows: &'a Windows,
    pub direction: Direction,
    /// The type of the values.
    pub kind: DataType,
    /// How many values stand beside each.
    pub aux_len: usize,
}

/// The number of `fill(number)`.
pub fn number_of(fill: Fill, kind: DataType) -> Option<Value> {
    let (value, whole) = match fill {
        Fill::Number(value) => (value, value as i64),
        Fill::Integer(value) => (value as f64, value),
        _ => return None,
    };
    Some(match (kind, fill) {
        // No measurement has the field.
        (DataType::Unknown, _) => return None,
        (DataType::Integer | DataType::Unsigned, _) => Value::Integer(whole),
        // A number is no string.
        (DataType::String | DataType::Tag, _) => Value::text(""),
        (DataType::Boolean, Fill::Integer(_)) => Value::Integer(whole),
        _ => Value::Float(value),
    })
}

impl Filling<'_> {
    /// All windows from the first to the last, of points that are labelled with their windows.
    pub fn apply(&self, evaluator: &Evaluator<'_>, points: Vec<Point>) -> Result<Vec<Point>> {
        let Some(first) = points.first() else { return Ok(points) };
        let windows = self.windows;
        let is_up = self.direction == Direction::Up;
        let (from, to) = match self.direction {
            Direction::Up => (windows.start, windows.end),
            Direction::Down => (windows.end, windows.start),
        };
        let (mut time, end) = (windows.around(from).0, windows.around(to).0);
        if time == TIME_MIN {
            time = windows.around(first.time).0;
        }
        let has_end = is_up || end != TIME_MIN;
        let mut offset = windows.zone_offset(time);
        let mut out = Vec::with_capacity(points.len());
        let is_kept = matches!(self.fill, Fill::Previous | Fill::Linear);
        let mut previous: Option<Point> = None;
        let mut rest = points.into_iter().peekable();
        loop {
            let is_inside = if is_up { time <= end } else { has_end && end <= time };
            match rest.peek() {
                None if !is_inside => return Ok(out),
                Some(point) if self.direction.order(point.time, time).is_le() => {
                    let point = rest.next().unwrap_or_default();
                    if is_kept {
                        previous = Some(point.clone());
                    }
                    out.push(point);
                }
                next => {
                    let value = self.value(time, previous.as_ref(), next);
                    let aux = vec![Value::Null; self.aux_len];
                    out.push(Point { time, value, aux });
                }
            }
            evaluator.count(point_cost(self.aux_len))?;
            let step = windows.interval.duration;
            time = if is_up { time.saturating_add(step) } else { time.saturating_sub(step) };
            if windows.zone.is_some() {
                let now = windows.zone_offset(time.saturating_sub(1));
                let change = offset - now;
                if change != 0 && change.abs() < step {
                    time = time.saturating_add(change);
                }
                offset = now;
            }
        }
    }

    fn value(&self, time: i64, previous: Option<&Point>, next: Option<&Point>) -> Value {
        let before = previous.filter(|point| !point.value.is_null());
        match self.fill {
            Fill::Null | Fill::None => Value::Null,
            Fill::Previous => before.map_or(Value::Null, |point| point.value.clone()),
            Fill::Linear => match (before, next) {
                (Some(before), Some(next)) => self.between(time, before, next),
                _ => Value::Null,
            },
            _ if self.kind == DataType::Boolean => Value::Boolean(false),
            fill => number_of(fill, self.kind).unwrap_or_default(),
        }
    }

    fn between(&self, time: i64, before: &Point, next: &Point) -> Value {
        let step = self.windows.interval.duration;
        let (time, from, to) = (time / step, before.time / step, next.time / step);
        if let (Value::Integer(low), Value::Integer(high)) = (&before.value, &next.value) {
            // The rise is exact, the sum is a float's.
            let rise = high.wrapping_sub(*low) as f64 / to.wrapping_sub(from) as f64;
            let value = rise * time.wrapping_sub(from) as f64 + *low as f64;
            return Value::of_sample(value, self.kind);
        }
        let (Some(low), Some(high)) = (before.value.as_f64(), next.value.as_f64()) else {
            return Value::Null;
        };
        match self.kind {
            DataType::Boolean => Value::Null,
            kind => Value::of_sample(linear(time, from, to, low, high), kind),
        }
    }
}
