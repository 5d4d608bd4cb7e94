//! What background jobs do with the store.

use crate::compact::MergeEffort;
use crate::jobs::{Job, Load};
use crate::store::{Store, lock};
use crate::{Error, Result};
use std::sync::atomic::Ordering;

impl Store {
    /// What [`crate::jobs::choose`] looks at.
    pub(crate) fn load(&self, round: u64) -> Load {
        let now = self.vfs.now();
        let dirty_since = |p: &std::sync::Arc<crate::partition::Partition>| {
            let state = p.read();
            state.dirty_from.map(|_| state.dirty_since_ns)
        };
        let oldest = self.all_partitions().iter().filter_map(dirty_since).min();
        Load {
            head_size: self.head_size(),
            flush_size: self.flush_size(),
            wal_size: self.wal.size(),
            wal_flush_size: self.config.wal_size_max / 2,
            dirty_age_ns: oldest.map_or(0, |since| now.saturating_sub(since)),
            dirty_age_ns_max: self.config.flush_age_ns_max,
            round,
        }
    }

    /// Does one job.
    pub(crate) fn run_job(&self, job: Job) -> Result<()> {
        match job {
            Job::Flush => self.flush(),
            Job::Expire => self.expire(),
            Job::PrepareTurn => self.prepare_turn().map_err(|error| self.latch_if_failed(error)),
            Job::Merge => self.merge_as_needed(),
            Job::Scrub => self.scrub_round(),
        }
    }

    /// Does all merges that pay, as the background does.
    ///
    /// # Errors
    /// On I/O errors; the parts are then as they were.
    pub fn merge_as_needed(&self) -> Result<()> {
        for partition in self.all_partitions() {
            while self.merge_partition(&partition, MergeEffort::AsNeeded)? {}
        }
        Ok(())
    }

    /// Counts and keeps the failure of a job, for people.
    pub(crate) fn note_job_failure(&self, job: Job, error: &Error) {
        self.counters.job_failures.fetch_add(1, Ordering::Relaxed);
        *lock(&self.last_failure) = Some(format!("{job:?}: {error}"));
    }
}
