//! The windows of steps: which samples of a series each sees.

use crate::time::{Reference, to_ns};
use model::TimeRange;

/// The windows of all steps as index ranges into one list of timestamps.
pub(crate) struct Windows {
    reference: Reference,
    range_ns: i64,
    /// The timestamps that `bounds` are for.
    timestamps: Vec<i64>,
    /// Per step, first index inside and first index after.
    bounds: Vec<(u32, u32)>,
    is_valid: bool,
}

impl Windows {
    pub fn new(reference: Reference, range_ms: i64) -> Windows {
        Windows {
            reference,
            range_ns: to_ns(range_ms),
            timestamps: Vec::new(),
            bounds: vec![(0, 0); reference.len],
            is_valid: false,
        }
    }

    /// The windows of the given timestamps, which are increasing.
    pub fn of(&mut self, timestamps: &[i64]) -> &[(u32, u32)] {
        if self.is_valid && self.timestamps == timestamps {
            return &self.bounds;
        }
        let (mut low, mut high) = (0usize, 0usize);
        for (step, bound) in self.bounds.iter_mut().enumerate() {
            let end = self.reference.at_ns(step);
            let start = end.saturating_sub(self.range_ns);
            while high < timestamps.len() && timestamps[high] <= end {
                high += 1;
            }
            while low < high && timestamps[low] <= start {
                low += 1;
            }
            *bound = (low as u32, high as u32);
        }
        self.timestamps.clear();
        self.timestamps.extend_from_slice(timestamps);
        self.is_valid = true;
        &self.bounds
    }

    /// The time that samples of any window can have, for the source.
    pub fn time_range(&self) -> TimeRange {
        let start = to_ns(self.reference.first_ms).saturating_sub(self.range_ns);
        TimeRange::new(start.saturating_add(1), to_ns(self.reference.last_ms()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_open_on_the_left() {
        let reference = Reference { first_ms: 10, step_ms: 10, len: 3 };
        let mut windows = Windows::new(reference, 10);
        let timestamps: Vec<i64> = [0, 5, 10, 15, 20].iter().map(|ms| to_ns(*ms)).collect();
        assert_eq!(windows.of(&timestamps), [(1, 3), (3, 5), (5, 5)]);
        assert_eq!(windows.of(&timestamps), [(1, 3), (3, 5), (5, 5)], "again");
        assert_eq!(windows.of(&timestamps[1..]), [(0, 2), (2, 4), (4, 4)], "another list");
        assert_eq!(windows.time_range(), TimeRange::new(1, to_ns(30)));
    }
}
