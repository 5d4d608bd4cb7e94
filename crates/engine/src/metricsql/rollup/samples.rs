//! What is done to a series' samples before any window is looked at.

use super::window::seconds;
use model::sample::{NANOS_PER_MILLI, is_stale_marker};

/// The samples of one series as the kernels see them; the memory is used again for the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    /// Milliseconds since the epoch, oldest first.
    pub timestamps: Vec<i64>,
    /// A value for each timestamp.
    pub values: Vec<f64>,
    /// The times in nanoseconds that `timestamps` were made of, if no sample was left out.
    whole_ns: Vec<i64>,
}

impl Samples {
    /// Takes samples with times in nanoseconds. NaN is no value; a stale marker is one only for
    /// the functions that look for them. Tells whether the timestamps are those that were there
    /// before: series that were scraped together share theirs.
    pub fn load(&mut self, timestamps_ns: &[i64], values: &[f64], keeps_stale: bool) -> bool {
        self.values.clear();
        let is_whole = !timestamps_ns.is_empty()
            && !values.iter().fold(false, |found, value| found | value.is_nan());
        if is_whole && self.whole_ns == timestamps_ns {
            self.values.extend_from_slice(values);
            return true;
        }
        self.whole_ns.clear();
        if is_whole {
            self.whole_ns.extend_from_slice(timestamps_ns);
        }
        self.timestamps.clear();
        for (at, value) in timestamps_ns.iter().zip(values) {
            if !value.is_nan() || (keeps_stale && is_stale_marker(*value)) {
                self.timestamps.push(at.div_euclid(NANOS_PER_MILLI));
                self.values.push(*value);
            }
        }
        false
    }
}

/// A change of all values of a series.
pub(super) type Change = fn(&[i64], &mut [f64]);

/// A fall by less than this part of the value is a counter's correction, not its restart.
const RESET_SHARE: f64 = 8.0;

/// Makes a counter grow for ever. Behind a gap longer than `gap_max_ms` it begins anew.
pub(super) fn remove_resets(timestamps: &[i64], values: &mut [f64], gap_max_ms: Option<i64>) {
    let Some(mut previous) = values.first().copied() else { return };
    let mut correction = 0.0;
    for idx in 1..values.len() {
        let raw = values[idx];
        let fall = previous - raw;
        if 0.0 < fall {
            // After a small fall the counter goes on from where it was.
            correction += if fall * RESET_SHARE < previous { fall } else { previous };
        }
        previous = raw;
        let gap_ms = timestamps[idx] - timestamps[idx - 1];
        if gap_max_ms.is_some_and(|limit| limit < gap_ms) {
            correction = 0.0;
            continue;
        }
        values[idx] = raw + correction;
        // Rounding must not make a new reset; NaN, where there were infinities, stays.
        if values[idx] < values[idx - 1] {
            values[idx] = values[idx - 1];
        }
    }
}

/// Makes each value the distance to the next one; the last repeats the one before it.
pub(super) fn to_deltas(_timestamps: &[i64], values: &mut [f64]) {
    let mut delta = 0.0;
    for idx in 1..values.len() {
        delta = values[idx] - values[idx - 1];
        values[idx - 1] = delta;
    }
    if let Some(last) = values.last_mut() {
        *last = delta;
    }
}

/// Makes each value the slope to the next one, per second; the last repeats the one before it.
pub(super) fn to_slopes(timestamps: &[i64], values: &mut [f64]) {
    let (Some(mut from), Some(mut level)) = (timestamps.first().copied(), values.first().copied())
    else {
        return;
    };
    let mut slope = 0.0;
    for idx in 1..values.len() {
        // Samples of one moment have no slope between them.
        if timestamps[idx] != from {
            slope = (values[idx] - level) / seconds(timestamps[idx] - from);
            (from, level) = (timestamps[idx], values[idx]);
        }
        values[idx - 1] = slope;
    }
    if let Some(last) = values.last_mut() {
        *last = slope;
    }
}

/// Makes each value the seconds since the sample before; the first repeats the second.
pub(super) fn to_intervals(timestamps: &[i64], values: &mut [f64]) {
    let mut previous = f64::NAN;
    for (at, value) in timestamps.iter().zip(values.iter_mut()) {
        // The times are rounded, not their distance: so are the numbers to compare with.
        *value = seconds(*at) - previous;
        previous = seconds(*at);
    }
    if let [first, second, ..] = values {
        *first = *second;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_resets(values: &[f64], gap_max_ms: Option<i64>, expected: &[f64]) {
        let timestamps: Vec<i64> = (0..values.len() as i64).map(|idx| idx * idx * 10).collect();
        let mut grown = values.to_vec();
        remove_resets(&timestamps, &mut grown, gap_max_ms);
        assert_eq!(grown, expected);
    }

    #[test]
    fn counters_grow_for_ever() {
        check_resets(&[], None, &[]);
        check_resets(&[5.0, 7.0, 1.0, 2.0, 0.0], None, &[5.0, 7.0, 8.0, 9.0, 9.0]);
        check_resets(&[100.0, 90.0, 95.0], None, &[100.0, 100.0, 105.0]);
        check_resets(&[5.0, 1.0, 2.0, 3.0], Some(20), &[5.0, 6.0, 2.0, 3.0]);
    }

    #[test]
    fn derived_values() {
        let mut values = [1.0, 3.0, 7.0];
        to_deltas(&[0, 1, 2], &mut values);
        assert_eq!(values, [2.0, 4.0, 4.0]);
        let mut values = [1.0, 3.0, 9.0, 7.0];
        to_slopes(&[0, 1000, 1000, 3000], &mut values);
        assert_eq!(values, [2.0, 2.0, 2.0, 2.0]);
        let mut values = [9.0, 9.0, 9.0];
        to_intervals(&[1000, 2000, 4000], &mut values);
        assert_eq!(values, [1.0, 1.0, 2.0]);
        let mut values = [1.0];
        to_slopes(&[0], &mut values);
        assert_eq!(values, [0.0]);
    }

    #[test]
    fn markers_are_loaded_for_those_who_look_for_them() {
        let values = [1.0, f64::NAN, model::sample::stale_marker()];
        let mut samples = Samples::default();
        samples.load(&[1_999_999, 2_000_000, -1], &values, true);
        assert_eq!(samples.timestamps, [1, -1]);
        samples.load(&[1_999_999, 2_000_000, -1], &values, false);
        assert_eq!(samples.values, [1.0]);
    }
}
