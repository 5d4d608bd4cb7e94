//! Times: the grid of steps that an expression is evaluated on, and units.
//!
//! PromQL thinks in milliseconds, the store keeps nanoseconds. Grids are in milliseconds; the
//! bounds of windows are nanoseconds, so samples between two milliseconds are in the right one.

use model::sample::{NANOS_PER_MILLI, NANOS_PER_SECOND};

/// The moments that an expression is evaluated at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// The first moment.
    pub start_ms: i64,
    /// Between moments; positive.
    pub step_ms: i64,
    /// How many; at least one.
    pub len: usize,
}

impl Grid {
    /// One moment.
    pub fn instant(at_ms: i64) -> Grid {
        Grid { start_ms: at_ms, step_ms: 1, len: 1 }
    }

    /// From `start_ms` by `step_ms` up to `end_ms` at most; `None` when that is no moment at all.
    pub fn span(start_ms: i64, end_ms: i64, step_ms: i64) -> Option<Grid> {
        assert!(0 < step_ms);
        if end_ms < start_ms {
            return None;
        }
        let len = (end_ms as i128 - start_ms as i128) / step_ms as i128 + 1;
        Some(Grid { start_ms, step_ms, len: usize::try_from(len).unwrap_or(usize::MAX) })
    }

    /// The moment of step `idx`.
    pub fn at_ms(&self, idx: usize) -> i64 {
        self.start_ms.saturating_add(self.step_ms.saturating_mul(idx as i64))
    }

    /// The grid behind the first `steps` moments; `None` when there are no more.
    pub fn behind(&self, steps: usize) -> Option<Grid> {
        let len = self.len.checked_sub(steps).filter(|len| 0 < *len)?;
        Some(Grid { start_ms: self.at_ms(steps), len, ..*self })
    }

    /// The grid of the first moment alone.
    pub fn first(&self) -> Grid {
        Grid::instant(self.start_ms)
    }
}

/// Where a selector looks from each step of a grid, after `offset` and `@`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    /// The moment looked at from the first step.
    pub first_ms: i64,
    /// How far it moves with each step: the grid's step, or 0 under `@`.
    pub step_ms: i64,
    /// Steps.
    pub len: usize,
}

impl Reference {
    /// The moment looked at from step `idx`, in nanoseconds.
    #[inline]
    pub fn at_ns(&self, idx: usize) -> i64 {
        to_ns(self.at_ms(idx))
    }

    /// The moment looked at from step `idx`.
    #[inline]
    pub fn at_ms(&self, idx: usize) -> i64 {
        self.first_ms.saturating_add(self.step_ms.saturating_mul(idx as i64))
    }

    /// The moment looked at from the last step.
    pub fn last_ms(&self) -> i64 {
        self.at_ms(self.len - 1)
    }
}

/// Milliseconds to nanoseconds; what lies outside the years 1677 to 2262 is moved to their ends.
#[inline]
pub(crate) fn to_ns(ms: i64) -> i64 {
    ms.saturating_mul(NANOS_PER_MILLI)
}

/// Nanoseconds as seconds; whole milliseconds give exactly Prometheus' numbers.
#[inline]
pub(crate) fn seconds(ns: i64) -> f64 {
    if ns % NANOS_PER_MILLI == 0 {
        (ns / NANOS_PER_MILLI) as f64 / 1000.0
    } else {
        ns as f64 / NANOS_PER_SECOND as f64
    }
}

/// The first and last step of a range query, and what lies between steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRange {
    /// First step, in milliseconds since the epoch.
    pub start_ms: i64,
    /// No step is later.
    pub end_ms: i64,
    /// Between steps.
    pub step_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids() {
        assert_eq!(Grid::span(0, 10, 3), Some(Grid { start_ms: 0, step_ms: 3, len: 4 }));
        assert_eq!(Grid::span(5, 5, 3).unwrap().len, 1);
        assert_eq!(Grid::span(5, 4, 3), None);
        assert_eq!(Grid::span(i64::MIN, i64::MAX, 1).unwrap().len, usize::MAX);
        assert_eq!(Grid::span(0, 10, 3).unwrap().at_ms(3), 9);
        assert_eq!(Grid::span(0, 10, 3).unwrap().behind(3), Grid::span(9, 10, 3));
        assert_eq!(Grid::span(0, 10, 3).unwrap().behind(4), None);
    }

    #[test]
    fn units() {
        assert_eq!(to_ns(i64::MAX), i64::MAX);
        assert_eq!(to_ns(-5), -5_000_000);
        assert_eq!(seconds(1_500_000_000), 1.5);
        assert_eq!(seconds(1_609_746_000_123_000_000), 1_609_746_000_123.0 / 1000.0);
        assert_eq!(seconds(1), 1e-9);
    }
}
