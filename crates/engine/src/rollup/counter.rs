//! Differences: `rate`, `increase`, `delta`, `irate`, `idelta`, `changes`, `resets`.

use crate::gap::ABSENT;
use crate::time::seconds;

/// `rate`, `increase` and `delta`: the difference of a window's last and first samples, drawn out
/// to the window's bounds where the samples nearly reach them.
pub(crate) struct Extrapolation {
    /// A fall is a reset to zero.
    pub is_counter: bool,
    /// The result is per second.
    pub is_rate: bool,
    /// The window's length.
    pub range_seconds: f64,
}

impl Extrapolation {
    /// The value of the window `(start, end]`.
    pub fn apply(&self, times: &[i64], values: &[f64], start: i64, end: i64) -> f64 {
        let (&[first_time, .., last_time], &[first, .., last]) = (times, values) else {
            return ABSENT;
        };
        let mut difference = last - first;
        if self.is_counter {
            // Before a reset, the counter had reached what it fell from.
            for pair in values.windows(2).filter(|pair| pair[1] < pair[0]) {
                difference += pair[0];
            }
        }
        // A counter that began within the window was zero before: the part of the samples' time
        // that lies between.
        let share_to_zero =
            (self.is_counter && 0.0 < difference && 0.0 <= first).then(|| first / difference);
        difference * self.factor((first_time, last_time, times.len()), (start, end), share_to_zero)
    }

    /// As [`Extrapolation::apply`] for samples that have start timestamps, or 0 for none: what the
    /// first sample counted since a start within the window belongs to it, too.
    pub fn apply_with_starts(
        &self,
        (times, values, starts): (&[i64], &[f64], &[i64]),
        start: i64,
        end: i64,
    ) -> f64 {
        let (first_time, last_time) = (times[0], times[times.len() - 1]);
        let mut difference = values[values.len() - 1] - values[0];
        for idx in 1..times.len() {
            let started = |idx: usize| Started { at: times[idx], start: starts[idx] };
            if values[idx] < values[idx - 1] || started(idx).is_reset_after(started(idx - 1)) {
                difference += values[idx - 1];
            }
        }
        if let Some(began) = since_start(starts[0], first_time, start) {
            let sampled = (first_time, last_time, times.len());
            return (difference + values[0]) * self.factor_since(began, sampled, end);
        }
        if times.len() < 2 {
            return ABSENT;
        }
        let share_to_zero = (0.0 < difference && 0.0 <= values[0]).then(|| values[0] / difference);
        difference * self.factor((first_time, last_time, times.len()), (start, end), share_to_zero)
    }

    /// As [`Extrapolation::factor`] for samples that count since `began`, within the window and
    /// before the first of them: only to the right is anything guessed.
    pub fn factor_since(
        &self,
        began: i64,
        (first_time, last_time, len): (i64, i64, usize),
        end: i64,
    ) -> f64 {
        let spacing = match len {
            0 | 1 => 0.0,
            _ => seconds(last_time - first_time) / (len - 1) as f64,
        };
        let sampled = seconds(last_time - began);
        let mut to_end = seconds(end - last_time);
        if spacing * 1.1 <= to_end {
            to_end = spacing / 2.0;
        }
        let mut factor = (sampled + to_end) / sampled;
        if self.is_rate {
            factor /= self.range_seconds;
        }
        factor
    }

    /// What the difference between the first and the last of `len` samples is multiplied by for the
    /// window `(start, end]`. A counter was zero so many times the samples' time before the first.
    #[inline(always)]
    pub fn factor(
        &self,
        (first_time, last_time, len): (i64, i64, usize),
        (start, end): (i64, i64),
        share_to_zero: Option<f64>,
    ) -> f64 {
        let sampled = seconds(last_time - first_time);
        let spacing = sampled / (len - 1) as f64;
        // A bound further away than this is where the series begins or ends, within the window.
        let threshold = spacing * 1.1;
        let mut to_start = seconds(first_time - start);
        let mut to_end = seconds(end - last_time);
        if threshold <= to_start {
            to_start = spacing / 2.0;
        }
        // A counter was never below zero.
        if let Some(share) = share_to_zero {
            let to_zero = sampled * share;
            if to_zero < to_start {
                to_start = to_zero;
            }
        }
        if threshold <= to_end {
            to_end = spacing / 2.0;
        }
        let mut factor = (sampled + to_start + to_end) / sampled;
        if self.is_rate {
            factor /= self.range_seconds;
        }
        factor
    }
}

/// The start timestamp of a window's first sample, if it lies between the window's `start`, which
/// does not belong to it, and the sample.
pub(crate) fn since_start(began: i64, first_time: i64, start: i64) -> Option<i64> {
    (began != 0 && start < began && began < first_time).then_some(began)
}

/// `irate`.
pub(crate) fn instant_rate([(t0, v0), (t1, v1)]: [(i64, f64); 2]) -> f64 {
    let difference = if v1 < v0 { v1 } else { v1 - v0 };
    difference / seconds(t1 - t0)
}

/// `idelta`.
pub(super) fn instant_delta([(_, v0), (_, v1)]: [(i64, f64); 2]) -> f64 {
    v1 - v0
}

/// `changes`: a NaN after a NaN is no change.
pub(super) fn changes(values: &[f64]) -> f64 {
    let is_change = |pair: &&[f64]| pair[0] != pair[1] && !(pair[0].is_nan() && pair[1].is_nan());
    values.windows(2).filter(is_change).count() as f64
}

/// `resets`.
pub(super) fn resets(values: &[f64]) -> f64 {
    values.windows(2).filter(|pair| pair[1] < pair[0]).count() as f64
}

/// The time and the start timestamp of a sample.
#[derive(Clone, Copy)]
pub(crate) struct Started {
    pub at: i64,
    pub start: i64,
}

impl Started {
    /// Whether a sample counts from zero after the one before it, by its start timestamp.
    pub fn is_reset_after(self, before: Started) -> bool {
        // One that is not before its own sample says nothing: it is wrong, or OTel's "unknown".
        if self.start == 0 || self.at <= self.start || self.start < before.at {
            return false;
        }
        // At the sample before it is a delta, or a cumulative counter whose start was unknown then.
        before.at < self.start || (before.start != 0 && before.start < before.at)
    }

    /// Whether it claims what the sample before it counted already.
    pub fn overlaps(self, before: Started) -> bool {
        self.start != 0 && self.start < before.at && self.start != before.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gap::is_absent;
    use crate::time::to_ns;

    fn increase(points: &[(i64, f64)], start_s: i64, end_s: i64) -> f64 {
        let (times, values): (Vec<i64>, Vec<f64>) =
            points.iter().map(|(t, v)| (to_ns(t * 1000), *v)).unzip();
        let range_seconds = (end_s - start_s) as f64;
        Extrapolation { is_counter: true, is_rate: false, range_seconds }.apply(
            &times,
            &values,
            to_ns(start_s * 1000),
            to_ns(end_s * 1000),
        )
    }

    #[test]
    fn samples_that_nearly_reach_the_bounds_are_drawn_out_to_them() {
        // Sampled for 40 s of a window of 60 s, 10 s missing at each end, 20 s between samples.
        let points = [(10, 100.0), (30, 120.0), (50, 140.0)];
        assert_eq!(increase(&points, 0, 60), 60.0);
        // The start is 30 s away, which is more than 22 s: half a spacing is added.
        assert_eq!(increase(&points, -20, 60), 60.0);
        // The counter was zero 5 s before its first sample.
        let points = [(10, 5.0), (30, 25.0), (50, 45.0)];
        assert_eq!(increase(&points, 0, 60), 55.0);
    }

    #[test]
    fn resets_count_what_was_lost() {
        let points = [(0, 10.0), (20, 5.0), (40, 15.0), (60, 1.0)];
        // 10 -> (reset) 5 -> 15 -> (reset) 1 is a growth of 5 + 10 + 1.
        assert_eq!(increase(&points, 0, 60), 16.0);
        assert!(is_absent(increase(&points[..1], 0, 60)));
        assert_eq!(resets(&[10.0, 5.0, 15.0, 1.0]), 2.0);
        assert_eq!(changes(&[1.0, 1.0, 2.0, f64::NAN, f64::NAN, 1.0]), 3.0);
    }
}
