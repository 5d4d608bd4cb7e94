//! Time ranges, closed at both ends, in nanoseconds: the shape every protocol's `start` and `end` have.

use crate::sample::{NANOS_PER_DAY, NANOS_PER_MILLI, Timestamp};

/// All instants `t` with `start <= t <= end`. Empty when `end < start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First instant inside.
    pub start: Timestamp,
    /// Last instant inside.
    pub end: Timestamp,
}

impl TimeRange {
    /// Every instant there is.
    pub const ALL: TimeRange = TimeRange { start: i64::MIN, end: i64::MAX };

    /// The range from `start` to `end`, both included.
    pub fn new(start: Timestamp, end: Timestamp) -> TimeRange {
        TimeRange { start, end }
    }

    /// Whether no instant is inside.
    pub fn is_empty(&self) -> bool {
        self.end < self.start
    }

    /// Whether `timestamp` is inside.
    pub fn contains(&self, timestamp: Timestamp) -> bool {
        self.start <= timestamp && timestamp <= self.end
    }

    /// Whether some instant is inside both.
    pub fn overlaps(&self, other: &TimeRange) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Whether every instant of `other` is inside `self`.
    pub fn covers(&self, other: &TimeRange) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The instants inside both; empty when they do not overlap.
    pub fn intersect(&self, other: &TimeRange) -> TimeRange {
        TimeRange { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    /// The first and the last whole millisecond inside. A millisecond whose first nanoseconds are outside
    /// is outside.
    pub fn whole_millis(&self) -> (i64, i64) {
        let is_cut = self.start.rem_euclid(NANOS_PER_MILLI) != 0;
        let first = self.start.div_euclid(NANOS_PER_MILLI) + i64::from(is_cut);
        (first, self.end.div_euclid(NANOS_PER_MILLI))
    }

    /// The UTC days touched, as day numbers since the epoch, first and last.
    pub fn days(&self) -> (i32, i32) {
        (day_of(self.start), day_of(self.end))
    }
}

/// The UTC day number since the epoch that `timestamp` falls in; fits `i32` for every `i64`.
pub fn day_of(timestamp: Timestamp) -> i32 {
    timestamp.div_euclid(NANOS_PER_DAY) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_millisecond_that_is_cut_is_outside() {
        assert_eq!(TimeRange::new(1, 1_999_999).whole_millis(), (1, 1));
        assert_eq!(TimeRange::new(-1_000_000, 0).whole_millis(), (-1, 0));
        assert_eq!(TimeRange::ALL.whole_millis(), (-9_223_372_036_854, 9_223_372_036_854));
    }
}
