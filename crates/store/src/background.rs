//! What background jobs do with the store.

use crate::jobs::{Job, Load};
use crate::store::{Store, lock};
use crate::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

impl Store {
    /// What [`crate::jobs::choose`] looks at.
    pub(crate) fn load(&self, round: u64) -> Load {
        let now = self.vfs.now();
        let dirty_since = |p: &std::sync::Arc<crate::partition::Partition>| {
            let state = p.read();
            state.log_needed_from().map(|_| state.dirty_since_ns)
        };
        let oldest = self.all_partitions().iter().filter_map(dirty_since).min();
        // While a flush that failed waits to be tried again, only memory can hurry it.
        let oldest = oldest.filter(|_| !self.flush_backoff.is_waiting(self.vfs.elapsed()));
        let log_size = self.wal.size();
        // Another consumer may have let go what it pinned.
        let pinned = self.log_pinned_size.fetch_min(log_size, Ordering::Relaxed).min(log_size);
        Load {
            head_size: self.head_size(),
            flush_size: self.flush_size(),
            wal_size: log_size - pinned,
            wal_flush_size: self.config.wal_size_max / 2,
            // A clock that was set back says nothing: flushed is better.
            dirty_age_ns: oldest.map_or(0, |since| now.saturating_sub(since).saturating_abs()),
            dirty_age_ns_max: self.config.flush_age_ns_max,
            round,
        }
    }

    /// Whether a flush is due.
    pub fn is_flush_due(&self) -> bool {
        crate::jobs::choose(&self.load(0)).contains(&Job::Flush)
    }

    /// Does one job.
    pub(crate) fn run_job(&self, job: Job) -> Result<()> {
        match job {
            Job::Flush => self.flush_or_wait(),
            Job::Expire => self.expire(),
            Job::PrepareTurn => self.prepare_turn().map_err(|error| self.latch_if_failed(error)),
            Job::Merge => self.merge_as_needed(),
            Job::Scrub => self.scrub_round(),
        }
    }

    /// A flush that fails is tried again later each time: with each try the partitions that can be
    /// flushed get another small part.
    fn flush_or_wait(&self) -> Result<()> {
        let flushed = self.flush();
        match &flushed {
            Ok(()) => self.flush_backoff.note_success(),
            Err(_) => self.flush_backoff.note_failure(self.vfs.elapsed()),
        }
        flushed
    }

    /// Does one job and keeps its failure for people. A panic is one, too: what it left half done
    /// nobody knows, so the store takes no more writes until it is opened again.
    pub(crate) fn run_guarded(&self, job: Job) {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run_job(job)));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.note_failure(&format!("{job:?}"), &error),
            Err(panic) => {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
                let reason = format!("{job:?} ended in a panic: {}", words.unwrap_or("no words"));
                self.latch(&reason);
                self.keep_failure(reason);
            }
        }
    }

    /// Counts and keeps a failure of background work, for people.
    pub(crate) fn note_failure(&self, what: &str, error: &Error) {
        self.keep_failure(format!("{what}: {error}"));
    }

    fn keep_failure(&self, text: String) {
        *lock(&self.last_failure) = Some(text);
        self.counters.job_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// How many failures of background work there were, and the last one, if there were more than
    /// `known`: for a log.
    pub fn failures_since(&self, known: u64) -> Option<(u64, String)> {
        let count = self.counters.job_failures.load(Ordering::Relaxed);
        let last = lock(&self.last_failure).clone().unwrap_or_default();
        (known < count).then_some((count, last))
    }
}
