//! An aggregation that another database makes itself of the samples that it has.
//!
//! `max by (host) (max_over_time(x[5m]))` over samples that are all elsewhere needs no samples to come:
//! a number for each group and step does. So it is where everything that their windows see is before
//! `until`, and nothing of it is here; steps behind those may see what is here alone:
//!
//! ```text
//! elsewhere   x x x x x x x x x
//! here                          ┊ z z z z z
//! windows     ---- ---- ----    ┊  ----  ----
//! steps       made elsewhere  until  made here
//! ```
//!
//! A window over both sides needs samples from there. They come in blocks of hours, which hold what the
//! other steps see as well: then samples are asked for, for all steps.

use model::sample::NANOS_PER_MILLI;
use model::{Labels, TimeRange, Timestamp};

/// How the samples of a window become a number. Sums and counts are none of them: others count samples
/// that came twice, and here the time of each is once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowFold {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Their mean.
    Avg,
    /// The newest.
    Last,
}

/// How the numbers that a group's series have at a step become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesFold {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Their sum.
    Sum,
    /// Their mean.
    Avg,
    /// How many there are.
    Count,
    /// One.
    Group,
}

/// What is made of the series that a selector finds: a number for each group and step, of the samples
/// later than the step's moment less the window and not later than that moment.
#[derive(Clone, Copy, Debug)]
pub struct Fold<'a> {
    /// Of the samples of a window.
    pub window: WindowFold,
    /// How long windows are, in milliseconds; positive.
    pub window_ms: i64,
    /// Of the series of a group.
    pub series: SeriesFold,
    /// The labels that make a group. The metric's name is one where it is among them.
    pub by: &'a [String],
    /// The first moment, in milliseconds.
    pub start_ms: i64,
    /// Between moments; positive.
    pub step_ms: i64,
    /// How many; at least one.
    pub len: usize,
}

/// A group's numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedRow {
    /// The labels that make it one.
    pub labels: Labels,
    /// A number for each step; NaN where there is none.
    pub values: Vec<f64>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded {
    /// So many steps from the first one on are done; at least one.
    pub steps: usize,
    /// All groups that have numbers there, sorted by labels, each once.
    pub rows: Vec<FoldedRow>,
}

impl Fold<'_> {
    /// The moment of a step, in milliseconds.
    pub fn at_ms(&self, step: usize) -> i64 {
        self.start_ms.saturating_add(self.step_ms.saturating_mul(step as i64))
    }

    /// The first steps of it.
    pub(crate) fn first(self, steps: usize) -> Self {
        debug_assert!(0 < steps && steps <= self.len);
        Fold { len: steps, ..self }
    }

    /// The steps behind the first ones.
    pub(crate) fn from(self, steps: usize) -> Self {
        debug_assert!(steps < self.len);
        Fold { start_ms: self.at_ms(steps), len: self.len - steps, ..self }
    }

    /// The time that its windows see.
    pub(crate) fn range(&self) -> TimeRange {
        let start = nanos(self.start_ms.saturating_sub(self.window_ms)).saturating_add(1);
        TimeRange::new(start, nanos(self.at_ms(self.len - 1)))
    }

    /// How many steps, from the first one on, see nothing from a time on.
    pub(crate) fn steps_before(&self, time: Timestamp) -> usize {
        let (mut done, mut end) = (0, self.len);
        while done < end {
            let middle = done + (end - done) / 2;
            match nanos(self.at_ms(middle)) < time {
                true => done = middle + 1,
                false => end = middle,
            }
        }
        done
    }
}

fn nanos(millis: i64) -> Timestamp {
    millis.saturating_mul(NANOS_PER_MILLI)
}

/// Rows as they count: sorted by labels, each group once, with a value for each step and one at least.
///
/// # Errors
/// In words, what cannot be: it is not believed.
pub(crate) fn checked(mut rows: Vec<FoldedRow>, fold: &Fold<'_>) -> Result<Vec<FoldedRow>, String> {
    rows.retain(|row| row.values.iter().any(|value| !value.is_nan()));
    rows.sort_by(|a, b| a.labels.cmp(&b.labels));
    if rows.windows(2).any(|pair| pair[0].labels == pair[1].labels) {
        return Err("a group that is there twice".to_string());
    }
    let is_one = |name: &str| fold.by.iter().any(|one| one == name);
    for row in &rows {
        if row.values.len() != fold.len || !row.labels.iter().all(|(name, _)| is_one(name)) {
            return Err("groups and steps that were not asked for".to_string());
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(by: &[String]) -> Fold<'_> {
        let (window, series) = (WindowFold::Max, SeriesFold::Sum);
        Fold { window, window_ms: 60, series, by, start_ms: 1_000, step_ms: 100, len: 5 }
    }

    #[test]
    fn steps_that_see_nothing_from_a_time_on() {
        let fold = fold(&[]);
        assert_eq!(fold.range(), TimeRange::new(940_000_001, 1_400_000_000));
        for (time, steps) in [
            (i64::MIN, 0),
            (1_000_000_000, 0),
            (1_000_000_001, 1),
            (1_399_999_999, 4),
            (1_400_000_000, 4),
            (1_400_000_001, 5),
            (i64::MAX, 5),
        ] {
            assert_eq!(fold.steps_before(time), steps, "{time}");
        }
        assert_eq!(fold.first(2).range().end, 1_100_000_000);
        assert_eq!(fold.from(2).range(), TimeRange::new(1_140_000_001, 1_400_000_000));
    }

    #[test]
    fn rows_that_nobody_asked_for_are_not_believed() {
        let by = ["a".to_string()];
        let fold = fold(&by);
        let row = |name: &str, value: &str, len: usize| FoldedRow {
            labels: Labels::from_pairs(&[(name, value)]),
            values: vec![1.0; len],
        };
        let good = checked(vec![row("a", "2", 5), row("a", "1", 5)], &fold).expect("rows");
        assert!(good.is_sorted_by(|a, b| a.labels < b.labels));
        let gaps = FoldedRow { values: vec![f64::NAN; 5], ..row("a", "1", 5) };
        assert_eq!(checked(vec![gaps], &fold), Ok(Vec::new()));
        for bad in [
            vec![row("a", "1", 4)],
            vec![row("b", "1", 5)],
            vec![row("a", "1", 5), row("a", "2", 5), row("a", "1", 5)],
        ] {
            assert!(checked(bad.clone(), &fold).is_err(), "{bad:?}");
        }
    }
}
