//! Windows of histograms with values at their edges: `anchored` and `smoothed`.

use crate::context::Context;
use crate::error::Result;
use crate::histograms::cells::Cell;
use crate::histograms::notes::{Note, Notes};
use crate::histograms::point::{Point, Value, changes, resets, write};
use crate::histograms::rate::{add, subtract};
use crate::histograms::samples::MixedSamples;
use crate::rollup::{EdgedWindows, Rollup};
use crate::time::to_ns;
use histogram::{Histogram, ResetHint};
use promql::Edges;

/// Writes the value of every step: as [`EdgedWindows::fill`] where there may be histograms.
pub(crate) fn fill(
    context: &Context<'_>,
    (windows, rollup): (&EdgedWindows, Rollup),
    samples: &MixedSamples<'_>,
    (row, cells): (&mut [f64], &mut [Cell]),
    notes: &mut Notes,
) -> Result<()> {
    windows.fill(rollup, samples.times, samples.values, row);
    for (step, (value, cell)) in row.iter_mut().zip(cells).enumerate() {
        let around = around(windows, step, samples);
        if !around.histograms.is_empty() {
            context.check()?;
            write(value_of(windows, step, rollup, &around, notes), value, cell);
        }
    }
    Ok(())
}

/// The samples that count for a step.
fn around<'a>(windows: &EdgedWindows, step: usize, samples: &MixedSamples<'a>) -> MixedSamples<'a> {
    let bounds = |times| {
        let range = windows.around(step, times);
        (range.start as u32, range.end as u32)
    };
    samples.window(bounds(samples.times), bounds(samples.histogram_times))
}

fn value_of(
    windows: &EdgedWindows,
    step: usize,
    rollup: Rollup,
    around: &MixedSamples<'_>,
    notes: &mut Notes,
) -> Value {
    let end = windows.reference.at_ns(step);
    let start = end.saturating_sub(to_ns(windows.range_ms));
    match rollup {
        Rollup::Changes => anchored(around, start, changes),
        Rollup::Resets => anchored(around, start, resets),
        _ if !around.times.is_empty() => {
            notes.add(Note::MixedWindow);
            Value::Gap
        }
        _ => {
            let is_smoothed = windows.edges == Edges::Smoothed;
            let is_counter = rollup != Rollup::Delta;
            let window = Window::of(around, (start, end), is_smoothed, is_counter);
            let mut found = window.and_then(|window| window.difference(notes));
            if let Some(found) = found.as_mut() {
                if rollup == Rollup::Rate {
                    found.div(windows.range_ms as f64 / 1000.0);
                }
                found.reset_hint = ResetHint::Gauge;
                found.compact();
            }
            found.into()
        }
    }
}

/// Counts from the newest sample that is not after the start, if there is any after it.
fn anchored<'a>(
    around: &MixedSamples<'a>,
    start: i64,
    count: impl Fn(std::vec::IntoIter<(i64, Point<'a>)>) -> f64,
) -> Value {
    let points: Vec<_> = around.merged().collect();
    let after = points.partition_point(|(time, _)| *time <= start);
    if after == points.len() {
        return Value::Gap;
    }
    let points = points[after.saturating_sub(1)..].to_vec();
    Value::Number(count(points.into_iter()))
}

/// The histograms that make one window; those at the ends may lie outside.
struct Window<'a> {
    times: &'a [i64],
    histograms: &'a [Histogram],
    start: i64,
    end: i64,
    first: usize,
    last: usize,
    is_smoothed: bool,
    is_counter: bool,
}

impl<'a> Window<'a> {
    /// The window, if it has a histogram that is not before it.
    fn of(
        around: &MixedSamples<'a>,
        (start, end): (i64, i64),
        is_smoothed: bool,
        is_counter: bool,
    ) -> Option<Window<'a>> {
        let (times, histograms) = (around.histogram_times, around.histograms);
        let mut last = times.len().checked_sub(1)?;
        let first = times[..last].partition_point(|time| *time <= start).saturating_sub(1);
        if is_smoothed {
            last = times[..last].partition_point(|time| *time < end);
        }
        if times[last] <= start || (is_smoothed && end < times[first]) {
            return None;
        }
        Some(Window { times, histograms, start, end, first, last, is_smoothed, is_counter })
    }

    /// What lies between the values at the edges.
    fn difference(&self, notes: &mut Notes) -> Option<Histogram> {
        let points = &self.histograms[self.first..=self.last];
        for point in points {
            if point.has_custom_bounds() != points[0].has_custom_bounds() {
                notes.add(Note::Incompatible);
                return None;
            }
            if self.is_counter && point.is_gauge() {
                notes.add(Note::NotCounter);
            }
        }
        let left = self.left(notes)?;
        let right = self.right(notes)?;
        let are_gauges = left.is_gauge() && right.is_gauge();
        if !self.is_counter && !are_gauges {
            notes.add(Note::NotGauge);
        }
        let mut found = right.clone();
        subtract(&mut found, &left, notes)?;
        if self.is_counter
            && let Some(lost) = self.lost_by_resets(&left, &right, notes)?
        {
            add(&mut found, &lost, notes)?;
        }
        Some(found)
    }

    /// The value at the start.
    fn left(&self, notes: &mut Notes) -> Option<Histogram> {
        if self.is_smoothed && self.times[self.first] < self.start {
            return self.between(self.first, self.start, notes);
        }
        Some(self.histograms[self.first].clone())
    }

    /// The value at the end.
    fn right(&self, notes: &mut Notes) -> Option<Histogram> {
        if self.is_smoothed && 0 < self.last && self.end < self.times[self.last] {
            return self.between(self.last - 1, self.end, notes);
        }
        Some(self.histograms[self.last].clone())
    }

    /// The value at a moment between the histograms `before` and the next one.
    fn between(&self, before: usize, at: i64, notes: &mut Notes) -> Option<Histogram> {
        let times = (self.times[before], self.times[before + 1]);
        let pair = [&self.histograms[before], &self.histograms[before + 1]];
        interpolate(pair, times, at, self.is_counter, notes)
    }

    /// The sum of what a counter had reached before each reset, if there was one; `None` when that
    /// cannot be added.
    fn lost_by_resets(
        &self,
        left: &Histogram,
        right: &Histogram,
        notes: &mut Notes,
    ) -> Option<Option<Histogram>> {
        let mut next = self.first + 1;
        let mut before = left;
        if self.is_smoothed
            && self.times[self.first] < self.start
            && let Some(after) = self.histograms.get(next)
            && after.is_reset_after(&self.histograms[self.first])
        {
            // The value at the start has this reset in it already.
            before = after;
            next += 1;
        }
        // The value at the end stands for the last one, whose reset hint it has.
        if self.last < next {
            return Some(None);
        }
        let mut lost: Option<Histogram> = None;
        for point in self.histograms[next..self.last].iter().chain([right]) {
            if point.is_reset_after(before) {
                match &mut lost {
                    None => lost = Some(before.clone()),
                    Some(lost) => add(lost, before, notes)?,
                }
            }
            before = point;
        }
        Some(lost)
    }
}

/// The value at a moment within two histograms' times. A counter that fell began again at zero.
fn interpolate(
    [from, to]: [&Histogram; 2],
    (start, end): (i64, i64),
    at: i64,
    is_counter: bool,
    notes: &mut Notes,
) -> Option<Histogram> {
    if at == start || at == end {
        return Some(if at == start { from } else { to }.clone());
    }
    let share = (at - start) as f64 / (end - start) as f64;
    let mut found = to.clone();
    if is_counter && to.is_reset_after(from) {
        found.mul(share);
        return Some(found);
    }
    subtract(&mut found, from, notes)?;
    found.mul(share);
    add(&mut found, from, notes)?;
    Some(found)
}

/// Writes what lies between the samples around each step: as [`EdgedWindows::interpolate`] where
/// there may be histograms.
pub(crate) fn interpolate_steps(
    windows: &EdgedWindows,
    samples: &MixedSamples<'_>,
    (row, cells): (&mut [f64], &mut [Cell]),
    notes: &mut Notes,
) {
    windows.interpolate(samples.times, samples.values, row);
    for (step, (value, cell)) in row.iter_mut().zip(cells).enumerate() {
        let around = around(windows, step, samples);
        if around.histograms.is_empty() {
            continue;
        }
        let found = if around.times.is_empty() {
            at_step(&around, windows.reference.at_ns(step), notes)
        } else {
            notes.add(Note::MixedWindow);
            None
        };
        write(found.into(), value, cell);
    }
}

fn at_step(around: &MixedSamples<'_>, at: i64, notes: &mut Notes) -> Option<Histogram> {
    let (times, histograms) = (around.histogram_times, around.histograms);
    let next = times.partition_point(|time| *time < at);
    if times.get(next) == Some(&at) {
        return Some(histograms[next].clone());
    }
    let before = next.checked_sub(1)?;
    let (from, Some(to)) = (&histograms[before], histograms.get(next)) else {
        // What a hint told of two samples is not so of a value that goes on.
        return Some(Histogram { reset_hint: ResetHint::Unknown, ..histograms[before].clone() });
    };
    if from.has_custom_bounds() != to.has_custom_bounds() {
        notes.add(Note::Incompatible);
        return None;
    }
    let is_counter = !(from.is_gauge() && to.is_gauge());
    interpolate([from, to], (times[before], times[next]), at, is_counter, notes)
}
