//! What the retention keeps: from which instant on samples count, by a clock that is trusted.
//!
//! Queries, writes and merges ask here and nowhere else, so that one instant holds for all of them.
//! It never goes back while the store is open, but with the clock ([`crate::partition::retention::retention_clock`]), and
//! how far it has come is told to caches of answers. What is older is dropped by [`crate::background::expire`].

pub(crate) mod retention_clock;

use crate::Result;
use crate::base::ground::Ground;
use crate::partition::changes::ChangeClock;
use crate::partition::retention::retention_clock::{ClockRecord, RetentionClock};
use model::TimeRange;
use std::sync::Arc;

/// What is kept.
pub(crate) struct Retention {
    ground: Arc<Ground>,
    /// The time that is gone by.
    clock: RetentionClock,
    /// What readers have missed.
    changes: Arc<ChangeClock>,
}

impl Retention {
    /// From what the clock's file said, and from the newest sample.
    pub fn new(
        ground: Arc<Ground>,
        changes: Arc<ChangeClock>,
        record: Option<ClockRecord>,
        newest: Option<i64>,
    ) -> Retention {
        let wait_ns = ground.config.retention_clock_wait_ns;
        let clock = RetentionClock::new(wait_ns, record, newest, ground.vfs.as_ref());
        Retention { ground, clock, changes }
    }

    /// Whether anything is too old ever.
    pub fn is_on(&self) -> bool {
        self.ground.config.retention_ns.is_some()
    }

    /// The instants that queries may see.
    pub fn kept_span(&self) -> TimeRange {
        let Some(kept) = self.ground.config.retention_ns else { return TimeRange::ALL };
        let start = self.clock.now(self.ground.vfs.as_ref()).saturating_sub(kept);
        self.changes.note_hidden(start);
        TimeRange::new(start, i64::MAX)
    }

    /// The instants that samples may have: from the retention's edge to a bit into the future.
    pub fn accepted_span(&self) -> TimeRange {
        let latest = self.clock.latest(self.ground.vfs.as_ref());
        let future = self.ground.config.future_ns_max;
        TimeRange::new(self.kept_span().start, latest.saturating_add(future))
    }

    /// What merges leave out: all before this instant.
    pub fn keep_from(&self) -> Option<i64> {
        self.is_on().then(|| self.kept_span().start)
    }

    /// How far the wall clock is ahead of the time that the retention goes by, and how long it will
    /// be until it is believed, nanoseconds; `None` when it is.
    pub fn clock_waits(&self) -> Option<(i64, i64)> {
        if self.is_on() { self.clock.waiting(self.ground.vfs.as_ref()) } else { None }
    }

    /// The time that is gone by, whether anything is too old ever or not.
    pub fn trusted_now(&self) -> i64 {
        self.clock.now(self.ground.vfs.as_ref())
    }

    /// Keeps what the retention trusts over a restart, if it is time.
    pub fn write_clock_if_due(&self) -> Result<()> {
        match self.clock.is_write_due(self.ground.vfs.as_ref()) {
            true => self.write_clock(),
            false => Ok(()),
        }
    }

    /// Keeps what the retention trusts over a restart.
    pub fn write_clock(&self) -> Result<()> {
        if !self.is_on() {
            return Ok(());
        }
        let written = self.clock.write(self.ground.vfs.as_ref(), &self.ground.dir);
        written.map_err(|error| self.ground.health.latch_if_failed(error))
    }
}
