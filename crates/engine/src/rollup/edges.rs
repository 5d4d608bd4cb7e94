//! Windows with values at their edges: `anchored` and `smoothed`.
//!
//! ```text
//!              lookback   (     window     ]   lookback
//!   samples    .    a     |   b      c     |   d
//!   anchored        a ----|-> b      c                   a is taken for the value at the start
//!   smoothed        a ---(a..b)  b   c  (c..d)--- d      both ends are interpolated
//! ```
//!
//! Differences over such windows need no extrapolation: neighbouring windows share their edges, so
//! their increases add up.

use super::{Rollup, counter};
use crate::error::{QueryError, Result};
use crate::gap::ABSENT;
use crate::time::{Reference, to_ns};
use model::TimeRange;
use promql::Edges;

/// The functions that know `anchored` windows, by name, and those that know `smoothed` ones.
const ANCHORED: [&str; 5] = ["changes", "delta", "increase", "rate", "resets"];
const SMOOTHED: [&str; 3] = ["delta", "increase", "rate"];

/// Fails when a function does not know windows with such edges.
pub(crate) fn check_edges(function: &str, edges: Edges) -> Result<()> {
    let known: &[&str] = match edges {
        Edges::Samples => return Ok(()),
        Edges::Anchored => &ANCHORED,
        Edges::Smoothed => &SMOOTHED,
    };
    if known.contains(&function) {
        return Ok(());
    }
    Err(QueryError::Execution(format!(
        "{} modifier can only be used with: {} - not with {function}",
        edges.as_str(),
        known.join(", ")
    )))
}

/// Where windows with values at their edges are, and how far around them samples count.
#[derive(Clone, Copy)]
pub(crate) struct EdgedWindows {
    pub edges: Edges,
    pub reference: Reference,
    pub range_ms: i64,
    pub lookback_ms: i64,
}

/// One window: the samples of `first..=last` make it; those at the ends may lie outside.
struct Window<'a> {
    times: &'a [i64],
    values: &'a [f64],
    start: i64,
    end: i64,
    first: usize,
    last: usize,
    is_smoothed: bool,
}

impl EdgedWindows {
    fn lookahead_ns(&self) -> i64 {
        if self.edges == Edges::Smoothed { to_ns(self.lookback_ms) } else { 0 }
    }

    /// The time that samples of any window can have, for the source.
    pub fn time_range(&self) -> TimeRange {
        let behind = to_ns(self.range_ms).saturating_add(to_ns(self.lookback_ms));
        let start = to_ns(self.reference.first_ms).saturating_sub(behind);
        let end = to_ns(self.reference.last_ms()).saturating_add(self.lookahead_ns());
        TimeRange::new(start.saturating_add(1), end)
    }

    /// The samples around the window of a step, without stale markers.
    pub fn around(&self, step: usize, times: &[i64]) -> std::ops::Range<usize> {
        let end = self.reference.at_ns(step);
        let start = end.saturating_sub(to_ns(self.range_ms));
        let from = start.saturating_sub(to_ns(self.lookback_ms));
        let until = end.saturating_add(self.lookahead_ns());
        let low = times.partition_point(|time| *time <= from);
        low..times.partition_point(|time| *time <= until).max(low)
    }

    /// The window of a step, if it has a sample that is not before it.
    fn window<'a>(&self, step: usize, times: &'a [i64], values: &'a [f64]) -> Option<Window<'a>> {
        let around = self.around(step, times);
        let (times, values) = (&times[around.clone()], &values[around]);
        let end = self.reference.at_ns(step);
        let start = end.saturating_sub(to_ns(self.range_ms));
        let mut last = times.len().checked_sub(1)?;
        let first = times[..last].partition_point(|time| *time <= start).saturating_sub(1);
        let is_smoothed = self.edges == Edges::Smoothed;
        if is_smoothed {
            last = times[..last].partition_point(|time| *time < end);
        }
        if times[last] <= start {
            return None;
        }
        Some(Window { times, values, start, end, first, last, is_smoothed })
    }

    /// Writes the value of every step to `row`.
    pub fn fill(&self, rollup: Rollup, times: &[i64], values: &[f64], row: &mut [f64]) {
        let range_seconds = self.range_ms as f64 / 1000.0;
        for (step, out) in row.iter_mut().enumerate() {
            let window = self.window(step, times, values);
            let value = window.and_then(|window| match rollup {
                Rollup::Changes => Some(counter::changes(&window.values[window.first..])),
                Rollup::Resets => Some(counter::resets(&window.values[window.first..])),
                Rollup::Rate => window.difference(true).map(|whole| whole / range_seconds),
                _ => window.difference(rollup == Rollup::Increase),
            });
            *out = value.unwrap_or(ABSENT);
        }
    }

    /// The samples of the first step's window, with one at each edge.
    pub fn samples(&self, times: &[i64], values: &[f64]) -> (Vec<i64>, Vec<f64>) {
        let Some(window) = self.window(0, times, values) else {
            return (Vec::new(), Vec::new());
        };
        let inside = window.inside();
        let mut edged = (vec![window.start], vec![window.left(false)]);
        edged.0.extend_from_slice(&window.times[inside.clone()]);
        edged.1.extend_from_slice(&window.values[inside]);
        edged.0.push(window.end);
        edged.1.push(window.right(false));
        edged
    }

    /// Writes what lies between the samples around each step to `row`; the last sample goes on.
    pub fn interpolate(&self, times: &[i64], values: &[f64], row: &mut [f64]) {
        for (step, out) in row.iter_mut().enumerate() {
            let around = self.around(step, times);
            let (times, values) = (&times[around.clone()], &values[around]);
            let at = self.reference.at_ns(step);
            let next = times.partition_point(|time| *time < at);
            *out = match next.checked_sub(1) {
                _ if times.get(next) == Some(&at) => values[next],
                None => ABSENT,
                Some(before) if next == times.len() => values[before],
                Some(before) => between(times, values, before, at, false),
            };
        }
    }
}

impl Window<'_> {
    /// The value at the start. A counter that fell began again at zero.
    fn left(&self, is_counter: bool) -> f64 {
        if self.is_smoothed && self.times[self.first] < self.start {
            return between(self.times, self.values, self.first, self.start, is_counter);
        }
        self.values[self.first]
    }

    /// The value at the end.
    fn right(&self, is_counter: bool) -> f64 {
        if self.is_smoothed && 0 < self.last && self.end < self.times[self.last] {
            return between(self.times, self.values, self.last - 1, self.end, is_counter);
        }
        self.values[self.last]
    }

    /// The samples strictly between the edges.
    fn inside(&self) -> std::ops::Range<usize> {
        let low = self.first + usize::from(self.times[self.first] <= self.start);
        let high = self.last + usize::from(self.times[self.last] < self.end);
        low..high.max(low)
    }

    /// What lies between the values at the edges, unless all samples are after the window.
    fn difference(&self, is_counter: bool) -> Option<f64> {
        if self.is_smoothed && self.end < self.times[self.first] {
            return None;
        }
        let (left, right) = (self.left(is_counter), self.right(is_counter));
        let mut difference = right - left;
        if is_counter {
            // Before a reset, the counter had reached what it fell from.
            let mut before = left;
            for value in self.values[self.inside()].iter().chain([&right]) {
                if *value < before {
                    difference += before;
                }
                before = *value;
            }
        }
        Some(difference)
    }
}

/// The value at a moment between the samples `before` and the next one.
fn between(times: &[i64], values: &[f64], before: usize, at: i64, is_counter: bool) -> f64 {
    let (mut from, to) = (values[before], values[before + 1]);
    if is_counter && to < from {
        from = 0.0;
    }
    let (passed, whole) = (at - times[before], times[before + 1] - times[before]);
    from + (to - from) * passed as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(edges: Edges) -> EdgedWindows {
        let reference = Reference { first_ms: 100_000, step_ms: 1_000, len: 1 };
        EdgedWindows { edges, reference, range_ms: 60_000, lookback_ms: 30_000 }
    }

    #[track_caller]
    fn check(edges: Edges, rollup: Rollup, points: &[(i64, f64)], expected: f64) {
        let (times, values): (Vec<i64>, Vec<f64>) =
            points.iter().map(|(second, value)| (to_ns(second * 1000), *value)).unzip();
        let mut row = [0.0];
        windows(edges).fill(rollup, &times, &values, &mut row);
        assert_eq!(row[0].to_bits(), expected.to_bits(), "{} for {expected}", row[0]);
    }

    #[test]
    fn edges_are_taken_or_interpolated() {
        // The window is (40 s, 100 s], samples count from 10 s on.
        let points = [(30, 1.0), (50, 3.0), (90, 5.0), (110, 9.0)];
        check(Edges::Anchored, Rollup::Delta, &points, 4.0);
        check(Edges::Smoothed, Rollup::Delta, &points, 5.0);
        check(Edges::Anchored, Rollup::Changes, &points, 2.0);
        check(Edges::Anchored, Rollup::Increase, &[(30, 5.0), (50, 2.0), (90, 4.0)], 4.0);
        check(Edges::Smoothed, Rollup::Increase, &[(30, 5.0), (50, 2.0), (90, 4.0)], 3.0);
        check(Edges::Anchored, Rollup::Delta, &[(30, 5.0)], ABSENT);
        check(Edges::Anchored, Rollup::Delta, &[(50, 5.0)], 0.0);
        check(Edges::Smoothed, Rollup::Delta, &[(110, 5.0)], ABSENT);
        check(Edges::Smoothed, Rollup::Delta, &[(5, 5.0), (135, 6.0)], ABSENT);
    }

    #[test]
    fn functions_know_their_edges() {
        assert!(check_edges("resets", Edges::Anchored).is_ok());
        assert!(check_edges("resets", Edges::Smoothed).is_err());
        assert!(check_edges("deriv", Edges::Samples).is_ok());
    }
}
