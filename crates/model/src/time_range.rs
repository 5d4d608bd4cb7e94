//! Time ranges, closed at both ends, in nanoseconds: the shape every protocol's `start` and `end` have.

use crate::sample::{NANOS_PER_DAY, Timestamp};

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

    /// The UTC days touched, as day numbers since the epoch, first and last.
    pub fn days(&self) -> (i32, i32) {
        (day_of(self.start), day_of(self.end))
    }
}

/// The UTC day number since the epoch that `timestamp` falls in; fits `i32` for every `i64`.
pub fn day_of(timestamp: Timestamp) -> i32 {
    timestamp.div_euclid(NANOS_PER_DAY) as i32
}
