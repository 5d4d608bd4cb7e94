//! Staleness: which sample an instant selector sees at a step, and where a series has ended.
//!
//! The newest sample of the window that the lookback gives counts; if that is a stale marker, the
//! series has ended and there is none. Of range selectors the markers are left out.

use crate::error::Result;
use crate::gap::{ABSENT, is_absent};
use crate::rows::RowMaker;
use crate::step_samples::Tally;
use crate::windows::Windows;

/// The newest value of each window. A stale marker is a gap as it stands.
pub(crate) struct NewestRows<'c> {
    pub windows: Windows,
    pub tally: Option<Tally<'c>>,
}

impl RowMaker for NewestRows<'_> {
    fn make(&mut self, timestamps: &[i64], values: &[f64], row: &mut [f64]) -> Result<()> {
        for (value, (low, high)) in row.iter_mut().zip(self.windows.of(timestamps)) {
            *value = if low < high { values[*high as usize - 1] } else { ABSENT };
        }
        if let Some(tally) = self.tally {
            tally.add_newest(row, &[]);
        }
        Ok(())
    }
}

/// Samples without the stale markers among them; borrows when there are none, as is usual.
#[derive(Default)]
pub(crate) struct StaleFilter {
    timestamps: Vec<i64>,
    values: Vec<f64>,
}

impl StaleFilter {
    pub fn apply<'a>(
        &'a mut self,
        timestamps: &'a [i64],
        values: &'a [f64],
    ) -> (&'a [i64], &'a [f64]) {
        // All are looked at, several at once: to stop at the first takes longer where there is none.
        if !values.iter().fold(false, |found, value| found | is_absent(*value)) {
            return (timestamps, values);
        }
        self.timestamps.clear();
        self.values.clear();
        for (timestamp, value) in timestamps.iter().zip(values) {
            if !is_absent(*value) {
                self.timestamps.push(*timestamp);
                self.values.push(*value);
            }
        }
        (&self.timestamps, &self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_markers_are_filtered() {
        let mut filter = StaleFilter::default();
        assert_eq!(filter.apply(&[1, 2], &[3.0, 4.0]), (&[1, 2][..], &[3.0, 4.0][..]));
        assert_eq!(filter.apply(&[1, 2], &[ABSENT, 4.0]), (&[2][..], &[4.0][..]));
    }
}
