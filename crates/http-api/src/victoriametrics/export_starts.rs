//! Start timestamps of the series that are exported as JSON lines.
//!
//! They are series of their own, which stand in another order: one is read when its series is, so
//! that those of one series at most are in memory. Where no series has any nothing is looked for.

use crate::http::partial::Partial;
use app::App;
use model::{Labels, Matcher, TimeRange};
use net::failure::Failure;
use std::collections::HashMap;
use store::{SelectLimits, Selection};

/// Those of all selected series.
pub struct Starts {
    selection: Selection,
    /// By the fingerprint of whose they are, which they are.
    by_series: HashMap<u128, usize>,
}

/// Those of one series, by time.
#[derive(Default)]
pub struct SeriesStarts {
    times: Vec<i64>,
    /// As many, in milliseconds.
    starts_ms: Vec<i64>,
}

impl Starts {
    /// Finds them; `None` when there are none.
    pub fn find(
        app: &App,
        partial: &Partial,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Option<Starts>, Failure> {
        let selection = partial.noting(app).select_starts(sets, range, limits)?;
        if selection.is_empty() {
            return Ok(None);
        }
        let mut by_series = HashMap::with_capacity(selection.len());
        selection.read_labels(0..selection.len(), None, &mut |idx, labels| {
            by_series.insert(store::series_of_starts(&labels).fingerprint(), idx);
        })?;
        Ok(Some(Starts { selection, by_series }))
    }

    /// Whether any of these series has some.
    pub fn has_any(&self, series: &[Labels]) -> bool {
        series.iter().any(|labels| self.by_series.contains_key(&labels.fingerprint()))
    }

    /// Reads those of one series.
    pub fn read(&self, labels: &Labels) -> store::Result<SeriesStarts> {
        let mut found = SeriesStarts::default();
        if let Some(&idx) = self.by_series.get(&labels.fingerprint()) {
            self.selection.read(idx..idx + 1, &mut |_, times, millis| {
                found.times = times.to_vec();
                // Whole numbers that float64 has exactly.
                found.starts_ms = millis.iter().map(|millis| *millis as i64).collect();
            })?;
        }
        Ok(found)
    }
}

impl SeriesStarts {
    /// One for each of the samples at `times`, which rise; 0 for none. Empty when there are none.
    pub fn at(&self, times: &[i64]) -> Vec<i64> {
        if self.times.is_empty() {
            return Vec::new();
        }
        let mut next = 0;
        let start_at = |time: &i64| {
            next += self.times[next..].iter().take_while(|one| *one < time).count();
            let is_its = self.times.get(next) == Some(time);
            if is_its { self.starts_ms[next] } else { 0 }
        };
        times.iter().map(start_at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_find_their_own() {
        let starts = SeriesStarts { times: vec![2, 4, 7], starts_ms: vec![20, 40, 70] };
        assert_eq!(starts.at(&[1, 2, 3, 4, 5, 7, 9]), [0, 20, 0, 40, 0, 70, 0]);
        assert_eq!(starts.at(&[7]), [70]);
        assert!(SeriesStarts::default().at(&[1, 2]).is_empty());
    }
}
