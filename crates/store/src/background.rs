//! What background jobs do with the store.

use crate::compact::MergeEffort;
use crate::jobs::{Job, Load};
use crate::store::Store;
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
            Job::Merge => {
                for partition in self.all_partitions() {
                    while self.merge_partition(&partition, MergeEffort::AsNeeded)? {}
                }
                Ok(())
            }
        }
    }

    /// A failed flush of the log's data latches the store: what cannot be written must not grow.
    pub(crate) fn note_job_failure(&self, job: Job, error: &Error) {
        *crate::store::lock(&self.last_failure) = Some(format!("{job:?}: {error}"));
        if matches!(error, Error::Io(_)) && job == Job::Flush {
            self.check_disk();
        }
    }

    /// Sets aside the parts in which readers met corrupt bytes.
    pub(crate) fn handle_suspects(&self) {
        for partition in self.all_partitions() {
            for file in partition.take_suspects() {
                if partition.set_aside(self.vfs.as_ref(), file).is_ok() {
                    self.counters.corrupt_parts.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}
