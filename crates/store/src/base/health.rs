//! Whether the store may be written to, and what went wrong in the background.
//!
//! - The latch closes once, by the first reason, and opens only with the store: a disk that has
//!   failed is built upon no more.
//! - Writes are also off while the disk is nearly full; that comes and goes.

use crate::base::locks::lock;
use crate::{Error, Result};
use model::size::format_size;
use std::sync::Mutex;

/// The health of an open store.
#[derive(Default)]
pub(crate) struct Health {
    /// Why writes are refused until the store is opened again.
    latch: Mutex<Option<String>>,
    /// Why writes are refused at the moment.
    low_disk: Mutex<Option<String>>,
    failures: Mutex<Failures>,
}

/// Failures of background work since start.
#[derive(Clone, Default)]
struct Failures {
    count: u64,
    last: Option<String>,
}

impl Health {
    /// Turns the store read-only until it is opened again.
    pub fn latch(&self, reason: &str) {
        lock(&self.latch).get_or_insert_with(|| reason.to_string());
    }

    /// Turns the store read-only, until it is opened again, when the disk can no longer be trusted:
    /// a write or sync failed, so nobody knows what the disk holds, and building on it (a manifest
    /// on top of one that may be there) could lose what was acknowledged. A full disk is no such
    /// failure where nothing named was touched: it passes once there is room.
    pub fn latch_if_failed(&self, error: Error) -> Error {
        if error.leaves_disk_in_doubt() {
            self.latch(&error.to_string());
        }
        error
    }

    pub fn is_latched(&self) -> bool {
        lock(&self.latch).is_some()
    }

    /// Refuses to change anything on a disk that has failed.
    pub fn check_disk_is_trusted(&self) -> Result<()> {
        refuse_for(lock(&self.latch).as_ref())
    }

    /// Refuses writes: the disk has failed, or is nearly full.
    pub fn check_writable(&self) -> Result<()> {
        self.check_disk_is_trusted()?;
        refuse_for(lock(&self.low_disk).as_ref())
    }

    /// Why writes are refused, if they are.
    pub fn read_only_reason(&self) -> Option<String> {
        lock(&self.latch).clone().or_else(|| lock(&self.low_disk).clone())
    }

    /// Refuses writes while less than `min` bytes are `free` on the disk. `held` says what takes room
    /// and does not go by itself.
    pub fn set_free_space(&self, free: u64, min: u64, held: Option<String>) {
        *lock(&self.low_disk) = (free < min).then(|| {
            let held = held.map_or(String::new(), |held| format!(". {held}"));
            format!(
                "{} are free on the disk, {} must be (free-disk-min); free some, or lower \
                 --free-disk-min{held}",
                format_size(free),
                format_size(min)
            )
        });
    }

    /// Counts and keeps a failure of background work, for people.
    pub fn note_failure(&self, what: &str, error: &Error) {
        self.keep_failure(format!("{what}: {error}"));
    }

    /// As [`Health::note_failure`], in words.
    pub fn keep_failure(&self, text: String) {
        let mut failures = lock(&self.failures);
        failures.count += 1;
        failures.last = Some(text);
    }

    /// How many failures of background work there were, and the last one.
    pub fn failures(&self) -> (u64, Option<String>) {
        let Failures { count, last } = lock(&self.failures).clone();
        (count, last)
    }
}

fn refuse_for(reason: Option<&String>) -> Result<()> {
    match reason {
        Some(reason) => Err(Error::ReadOnly { reason: reason.clone() }),
        None => Ok(()),
    }
}
