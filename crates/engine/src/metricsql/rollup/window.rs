//! Windows of one series: where they lie among its samples, and what a kernel sees of one.
//!
//! ```text
//!    earlier                       window                     later
//!   ──x──────x──────x──────┊──x──────x──────x──────┊──────x──────x──>
//!                previous  start                  end
//! ```
//!
//! A window holds the samples of `(start, end]`. `previous` and `earlier` are the same sample, the
//! last one that is not behind the start; it is `previous` if it is near enough to be taken for
//! the value at the start, and `earlier` if it only tells that the series had begun.

use crate::time::Grid;

/// One step's samples and what lies around them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<'a> {
    /// Milliseconds since the epoch, oldest first.
    pub timestamps: &'a [i64],
    /// A value for each timestamp.
    pub values: &'a [f64],
    /// Time and value of the sample before the window, if it is near and any sample follows it.
    pub previous: Option<(i64, f64)>,
    /// The value before the window, however long ago.
    pub earlier: Option<f64>,
    /// The value behind the window.
    pub later: Option<f64>,
    /// The window begins behind this millisecond.
    pub start_ms: i64,
    /// The window ends with this millisecond.
    pub end_ms: i64,
    /// The call's scalar arguments at this step.
    pub numbers: [f64; 2],
}

impl Window<'_> {
    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        seconds(self.end_ms - self.start_ms)
    }

    /// What `value` gives for the window, or NaN when it has no sample.
    pub fn unless_empty(&self, value: impl FnOnce(&[f64]) -> f64) -> f64 {
        if self.values.is_empty() { f64::NAN } else { value(self.values) }
    }

    /// The value that stands before the others, and the others: the previous sample's, else the
    /// window's first. `None` when there is neither.
    pub fn split_first(&self) -> Option<(f64, &[f64])> {
        match (self.previous, self.values) {
            (Some((_, value)), values) => Some((value, values)),
            (None, [first, rest @ ..]) => Some((*first, rest)),
            (None, []) => None,
        }
    }
}

/// Milliseconds as seconds.
pub(super) fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

/// How far the windows of one series reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reach {
    /// The windows' length.
    pub window_ms: i64,
    /// How far before a window its previous sample may be.
    pub previous_ms: i64,
    /// How far an earlier sample may be before the window's first, if that is limited.
    pub earlier_ms: Option<i64>,
}

/// The samples of one series, cut into windows once for all steps and kernels.
#[derive(Debug)]
pub(super) struct Cut<'a> {
    /// Milliseconds since the epoch, oldest first.
    pub timestamps: &'a [i64],
    /// A value for each timestamp.
    pub values: &'a [f64],
    /// The windows: index of the first sample inside, and of the first behind.
    pub bounds: &'a [(u32, u32)],
    /// Where the windows end.
    pub grid: Grid,
    /// How far they reach.
    pub reach: Reach,
}

impl Cut<'_> {
    /// What lies in and around the window of a step.
    #[inline]
    pub fn window(&self, step: usize, numbers: [f64; 2]) -> Window<'_> {
        let (low, high) = self.bounds[step];
        let (low, high) = (low as usize, high as usize);
        let end_ms = self.grid.at_ms(step);
        let start_ms = end_ms.saturating_sub(self.reach.window_ms);
        let timestamps = &self.timestamps[low..high];
        let before = low.checked_sub(1).map(|idx| (self.timestamps[idx], self.values[idx]));
        // Differences of infinities are no values.
        let before = before.filter(|(_, value)| !value.is_nan());
        let nearest = start_ms.saturating_sub(self.reach.previous_ms);
        let first_ms = timestamps.first().copied().unwrap_or(start_ms);
        let is_earlier = |at: i64| self.reach.earlier_ms.is_none_or(|limit| first_ms - at < limit);
        Window {
            timestamps,
            values: &self.values[low..high],
            previous: before.filter(|(at, _)| low < self.timestamps.len() && nearest < *at),
            earlier: before.filter(|(at, _)| is_earlier(*at)).map(|(_, value)| value),
            later: self.values.get(high).copied().filter(|value| !value.is_nan()),
            start_ms,
            end_ms,
            numbers,
        }
    }
}

/// Finds the windows of all steps in one walk over the samples.
pub(super) fn cut(grid: Grid, window_ms: i64, timestamps: &[i64], bounds: &mut Vec<(u32, u32)>) {
    bounds.clear();
    let (mut low, mut high) = (0, 0);
    let skip = |mut idx: usize, moment: i64| {
        while idx < timestamps.len() && timestamps[idx] <= moment {
            idx += 1;
        }
        idx
    };
    for step in 0..grid.len {
        let end_ms = grid.at_ms(step);
        low = skip(low, end_ms.saturating_sub(window_ms));
        high = skip(high.max(low), end_ms);
        bounds.push((low as u32, high as u32));
    }
}

/// The gaps that an estimate of the interval between samples looks at.
const GAPS_MAX: usize = 20;

/// The interval between a series' samples, taken from its last gaps: most of them are not longer.
/// `None` when there is no gap with a length.
pub(super) fn sample_interval_ms(timestamps: &[i64]) -> Option<i64> {
    let tail = &timestamps[timestamps.len().saturating_sub(GAPS_MAX + 1)..];
    let gaps: Vec<f64> = tail.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let interval = crate::rollup::quantile(0.6, &gaps, &mut Vec::new()) as i64;
    (0 < interval).then_some(interval)
}

/// The longest gap that is no gap: the interval with room for jitter, of which short intervals
/// have more.
pub(super) fn tolerated_gap_ms(interval_ms: i64) -> i64 {
    let room = match interval_ms {
        ..=2_000 => interval_ms * 4,
        2_001..=4_000 => interval_ms * 2,
        4_001..=8_000 => interval_ms,
        8_001..=16_000 => interval_ms / 2,
        16_001..=32_000 => interval_ms / 4,
        _ => interval_ms / 8,
    };
    interval_ms.saturating_add(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_open_before_and_closed_behind() {
        let mut bounds = Vec::new();
        let grid = Grid { start_ms: 10, step_ms: 10, len: 4 };
        cut(grid, 10, &[0, 5, 10, 20, 25], &mut bounds);
        assert_eq!(bounds, [(1, 3), (3, 4), (4, 5), (5, 5)]);
        cut(grid, 100, &[], &mut bounds);
        assert_eq!(bounds, [(0, 0); 4]);
    }

    #[test]
    fn intervals() {
        assert_eq!(sample_interval_ms(&[]), None);
        assert_eq!(sample_interval_ms(&[5]), None);
        assert_eq!(sample_interval_ms(&[5, 5, 5]), None);
        assert_eq!(sample_interval_ms(&[0, 10, 20, 1000]), Some(203));
        let mut times: Vec<i64> = (0..30).map(|idx| idx * 7_000).collect();
        times.extend((1..=20).map(|idx| 203_000 + idx * 15_000));
        assert_eq!(sample_interval_ms(&times), Some(15_000), "older gaps do not count");
        for (interval, gap) in
            [(1_000, 5_000), (3_000, 9_000), (5_000, 10_000), (15_000, 22_500), (30_000, 37_500)]
        {
            assert_eq!(tolerated_gap_ms(interval), gap);
        }
        assert_eq!(tolerated_gap_ms(60_000), 67_500);
    }
}
