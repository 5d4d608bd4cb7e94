//! Which series have a sample in the present hour: counted once each, at next to no cost.
//!
//! Row ids grow with time, so one comparison tells a known entity's first row of the hour: the id
//! of its last row is below the one that the hour began with.

use crate::base::period::Period;
use crate::partition::head::arena::NO_ROW;
use hashbrown::HashSet;
use model::sample::NANOS_PER_HOUR;

/// Where the present hour began.
#[derive(Default)]
pub(crate) struct ActiveHour {
    /// Hours since the epoch.
    hour: i64,
    /// An entity whose last row has a lower id has not been counted.
    mark: u32,
    /// The id that the hour before began with.
    mark_before: u32,
    /// Counted series of which values come alone, as (entity, column).
    singles: HashSet<(u32, u16)>,
}

impl ActiveHour {
    /// Begins a new hour if there is one, with the next row's id. In the first hour of a partition
    /// nobody is counted for late samples of the partition before: they are counted in the new one.
    pub fn enter(&mut self, period: Period, now_ns: i64, next_row: u32) {
        let hour = now_ns.div_euclid(NANOS_PER_HOUR);
        if hour != self.hour {
            let is_next = hour == self.hour + 1;
            self.hour = hour;
            let length = period.length();
            let is_rolling_over = period < length.of(now_ns)
                && length.of(now_ns.saturating_sub(NANOS_PER_HOUR)) == period;
            let mark = if is_rolling_over { NO_ROW } else { next_row };
            self.mark_before = if is_next { self.mark } else { mark };
            self.mark = mark;
            self.singles = HashSet::new();
        }
    }

    /// Counts nobody for the rest of the hour: row ids have started again.
    pub fn restart(&mut self) {
        self.mark = NO_ROW;
        self.mark_before = NO_ROW;
    }

    /// Whether anything was appended in this hour or the one before.
    pub fn is_active(&self, now_ns: i64) -> bool {
        now_ns.div_euclid(NANOS_PER_HOUR) <= self.hour + 1
    }

    /// Whether an entity with this last row got it in this hour or the one before.
    pub fn is_recent(&self, last_row: u32) -> bool {
        self.mark_before.max(NO_ROW + 1) <= last_row
    }

    /// Whether an entity with this last row, about to get another, has none of this hour yet.
    #[inline]
    pub fn is_first(&self, last_row: u32) -> bool {
        last_row < self.mark
    }

    /// Notes a series of which values come alone; whether it is the first time in this hour.
    pub fn add_single(&mut self, entity: u32, column: u16) -> bool {
        self.singles.insert((entity, column))
    }
}
