//! Aggregates that need no order: samples go into their windows one series after the other.

use crate::ast::DataType;
use crate::eval::point::{Direction, Point};
use crate::eval::window::Windows;
use crate::value::Value;
use std::cmp::Ordering;

/// What is worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    Count,
    Sum,
    Mean,
    Min,
    Max,
    First,
    Last,
    Spread,
}

impl Fold {
    /// The function of that name.
    pub fn parse(name: &str) -> Option<Fold> {
        Some(match name {
            "count" => Fold::Count,
            "sum" => Fold::Sum,
            "mean" => Fold::Mean,
            "min" => Fold::Min,
            "max" => Fold::Max,
            "first" => Fold::First,
            "last" => Fold::Last,
            "spread" => Fold::Spread,
            _ => return None,
        })
    }
}

/// One window.
#[derive(Clone, Copy, Debug)]
struct Cell {
    start: i64,
    end: i64,
    count: u64,
    sum: f64,
    whole: i64,
    /// The sample that was picked, or the least; and the greatest.
    time: i64,
    value: f64,
    greatest: f64,
    /// Whether there were other values at the time of the first or last sample.
    has_tie: bool,
}

/// The windows of a group, by their start.
#[derive(Debug, Default)]
pub struct Cells {
    cells: Vec<Cell>,
    /// Where the last sample went.
    last: usize,
}

impl Cells {
    /// How many windows there are.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether more than one value is the first or last.
    pub fn has_tie(&self) -> bool {
        self.cells.iter().any(|cell| cell.has_tie)
    }

    fn find(&mut self, windows: &Windows, time: i64) -> &mut Cell {
        let is_in = |cell: &Cell| cell.start <= time && time < cell.end;
        if !self.cells.get(self.last).is_some_and(is_in) {
            self.last = match self.cells.get(self.last + 1) {
                Some(next) if is_in(next) => self.last + 1,
                _ => self.look_up(windows, time),
            };
        }
        &mut self.cells[self.last]
    }

    fn look_up(&mut self, windows: &Windows, time: i64) -> usize {
        let at = self.cells.partition_point(|cell| cell.end <= time);
        if self.cells.get(at).is_some_and(|cell| cell.start <= time) {
            return at;
        }
        let last = at.checked_sub(1).map(|last| (self.cells[last].start, self.cells[last].end));
        let next = last.and_then(|last| windows.next(last, time));
        let (start, end) = next.unwrap_or_else(|| windows.around(time));
        let cell = Cell {
            start,
            end: end.max(time.saturating_add(1)),
            count: 0,
            sum: 0.0,
            whole: 0,
            time: 0,
            value: 0.0,
            greatest: 0.0,
            has_tie: false,
        };
        self.cells.insert(at, cell);
        at
    }

    /// Adds samples, oldest first.
    pub fn add(&mut self, fold: Fold, windows: &Windows, times: &[i64], values: &[f64]) {
        let mut at = 0;
        while at < times.len() {
            if values[at].is_nan() {
                at += 1;
                continue;
            }
            let cell = self.find(windows, times[at]);
            let end = at + count_before(&times[at..], cell.end);
            cell.add(fold, &times[at..end], &values[at..end]);
            at = end;
        }
    }

    /// The windows' values.
    pub fn points(self, fold: Fold, kind: DataType, direction: Direction) -> Vec<Point> {
        let cells = self.cells.into_iter().filter(|cell| cell.count != 0);
        let mut points: Vec<Point> = cells.map(|cell| cell.point(fold, kind)).collect();
        if direction == Direction::Down {
            points.reverse();
        }
        points
    }
}

/// How many sorted times are before `end`: of few samples the first step finds it.
fn count_before(times: &[i64], end: i64) -> usize {
    let mut step = 8;
    let mut start = 0;
    while times.get(start + step).is_some_and(|time| *time < end) {
        start += step;
        step *= 2;
    }
    let last = times.len().min(start + step);
    let rest = &times[start..last];
    match step {
        8 => start + rest.iter().take_while(|time| **time < end).count(),
        _ => start + rest.partition_point(|time| *time < end),
    }
}

impl Cell {
    fn add(&mut self, fold: Fold, times: &[i64], values: &[f64]) {
        let samples = || times.iter().zip(values).filter(|(_, value)| !value.is_nan());
        match fold {
            Fold::Count => self.count += samples().count() as u64,
            Fold::Sum | Fold::Mean => {
                for (_, value) in samples() {
                    self.count += 1;
                    self.sum += value;
                    self.whole = self.whole.wrapping_add(*value as i64);
                }
            }
            Fold::Spread => {
                for (_, value) in samples() {
                    let is_first = self.count == 0;
                    self.count += 1;
                    self.value = if is_first { *value } else { self.value.min(*value) };
                    self.greatest = if is_first { *value } else { self.greatest.max(*value) };
                }
            }
            Fold::Min => self.add_best(fold, samples(), |value, best| value < best),
            Fold::Max => self.add_best(fold, samples(), |value, best| best < value),
            Fold::First | Fold::Last => {
                for (time, value) in samples() {
                    if self.count != 0 {
                        let is_other = *value != self.value;
                        match time.cmp(&self.time) {
                            Ordering::Equal => self.has_tie |= is_other,
                            order if order.is_lt() == (fold == Fold::First) => self.has_tie = false,
                            _ => {}
                        }
                    }
                    if self.count == 0 || self.is_better(fold, *time, *value) {
                        (self.time, self.value) = (*time, *value);
                    }
                    self.count += 1;
                }
            }
        }
    }

    /// Adds the least or greatest of samples, oldest first.
    fn add_best<'s>(
        &mut self,
        fold: Fold,
        samples: impl Iterator<Item = (&'s i64, &'s f64)>,
        is_better: impl Fn(f64, f64) -> bool,
    ) {
        let is_first = self.count == 0;
        let mut best: Option<(i64, f64)> = None;
        for (time, value) in samples {
            self.count += 1;
            // The oldest of equal values counts.
            if best.is_none_or(|(_, best)| is_better(*value, best)) {
                best = Some((*time, *value));
            }
        }
        if let Some((time, value)) = best
            && (is_first || self.is_better(fold, time, value))
        {
            (self.time, self.value) = (time, value);
        }
    }

    fn is_better(&self, fold: Fold, time: i64, value: f64) -> bool {
        match fold {
            Fold::Min => value < self.value || (value == self.value && time < self.time),
            Fold::Max => self.value < value || (value == self.value && time < self.time),
            Fold::First => time < self.time || (time == self.time && self.value < value),
            _ => self.time < time || (time == self.time && self.value < value),
        }
    }

    fn point(&self, fold: Fold, kind: DataType) -> Point {
        let is_whole = matches!(kind, DataType::Integer | DataType::Unsigned);
        let (time, value) = match fold {
            Fold::Count => (self.start, Value::Integer(self.count as i64)),
            Fold::Sum if is_whole => (self.start, Value::Integer(self.whole)),
            Fold::Sum => (self.start, Value::Float(self.sum)),
            Fold::Mean if is_whole => {
                (self.start, Value::Float(self.whole as f64 / self.count as f64))
            }
            Fold::Mean => (self.start, Value::Float(self.sum / self.count as f64)),
            Fold::Spread => (self.start, Value::of_sample(self.greatest - self.value, kind)),
            _ => (self.time, Value::of_sample(self.value, kind)),
        };
        Point::new(time, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_an_end_are_counted() {
        for len in 0..70 {
            let times: Vec<i64> = (0..len).map(|at| at * 2).collect();
            for end in -1..=2 * len + 1 {
                let expected = times.partition_point(|time| *time < end);
                assert_eq!(count_before(&times, end), expected, "{len} {end}");
            }
        }
    }
}
