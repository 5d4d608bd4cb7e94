//! All background work there is: a thread that flushes, expires and prepares partitions, and one
//! that merges and scrubs.
//!
//! It holds the store weakly between rounds, so a store that is dropped without `close` ends it too.

use crate::base::locks::lock;
use crate::base::signals::{Listener, Signals, THREADS};
use std::sync::{Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the thread looks when nobody wakes it.
const ROUND: Duration = Duration::from_secs(1);
/// Rounds between looks at retention.
const RETENTION_ROUNDS: u64 = 60;

/// What the thread may be asked to do in a round, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Write the heads to disk.
    Flush,
    /// Join parts of one partition, if the policy finds some.
    Merge,
    /// Drop what is older than the retention.
    Expire,
    /// Make the next partition ready for the series of this one.
    PrepareRollover,
    /// Read what was written long ago, to find rot.
    Scrub,
}

/// What the choice of jobs looks at.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of all heads.
    pub head_size: usize,
    /// Head size that starts a flush.
    pub flush_size: usize,
    /// Bytes of the log.
    pub wal_size: u64,
    /// Log size that starts a flush.
    pub wal_flush_size: u64,
    /// Age of the oldest unflushed sample's arrival, nanoseconds.
    pub dirty_age_ns: i64,
    /// Age that starts a flush.
    pub dirty_age_ns_max: i64,
    /// Rounds since start.
    pub round: u64,
}

/// Decides what to do in this round. Pure.
pub fn choose(load: &Load) -> Vec<Job> {
    let mut jobs = Vec::new();
    if load.flush_size <= load.head_size
        || load.wal_flush_size <= load.wal_size
        || load.dirty_age_ns_max <= load.dirty_age_ns
    {
        jobs.push(Job::Flush);
    }
    jobs.extend([Job::Merge, Job::PrepareRollover, Job::Scrub]);
    // In the first round, too: a shorter retention may have come with the start.
    if load.round % RETENTION_ROUNDS == 1 {
        jobs.push(Job::Expire);
    }
    jobs
}

/// Who has the jobs done.
pub(crate) trait Work: Send + Sync {
    /// What the choice of jobs looks at.
    fn load(&self, round: u64) -> Load;
    /// Does a job and keeps its failure, if it fails, for people.
    fn run(&self, job: Job);
    /// Looks after what every round must.
    fn end_round(&self);
}

/// The threads: one that flushes and expires, one that merges and scrubs.
const JOBS_OF_THREADS: [(&str, &[Job]); THREADS] = [
    ("quipu-flush", &[Job::Flush, Job::Expire, Job::PrepareRollover]),
    ("quipu-merge", &[Job::Merge, Job::Scrub]),
];

/// The threads' handles.
#[derive(Default)]
pub(crate) struct Jobs {
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Jobs {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no room for a thread.
    pub fn start(&self, work: &Weak<dyn Work>, signals: &Signals) -> std::io::Result<()> {
        for (idx, (name, wanted)) in JOBS_OF_THREADS.iter().enumerate() {
            let (work, listener) = (Weak::clone(work), signals.listener(idx));
            let builder = std::thread::Builder::new().name(name.to_string());
            let thread = builder.spawn(move || run(&work, &listener, wanted))?;
            lock(&self.threads).push(thread);
        }
        Ok(())
    }

    /// Waits for the threads to end, which were told to ([`Signals::stop`]), and for what they are
    /// doing.
    pub fn join(&self) {
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // Jobs do not panic outwards; the others are still to be joined if one does.
            drop(thread.join());
        }
    }
}

fn run(work: &Weak<dyn Work>, listener: &Listener, wanted: &[Job]) {
    for round in 1.. {
        if !listener.wait(ROUND) {
            return;
        }
        let Some(work) = work.upgrade() else { return };
        for job in choose(&work.load(round)).into_iter().filter(|job| wanted.contains(job)) {
            work.run(job);
        }
        work.end_round();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_that_is_chosen_has_a_thread_that_does_it() {
        let load = Load {
            head_size: 1,
            flush_size: 1,
            wal_size: 0,
            wal_flush_size: 1,
            dirty_age_ns: 0,
            dirty_age_ns_max: 1,
            round: 1,
        };
        for job in choose(&load) {
            let threads = JOBS_OF_THREADS.iter().filter(|(_, jobs)| jobs.contains(&job)).count();
            assert_eq!(threads, 1, "{job:?}");
        }
    }

    #[test]
    fn any_bound_starts_a_flush() {
        let calm = Load {
            head_size: 9,
            flush_size: 10,
            wal_size: 9,
            wal_flush_size: 10,
            dirty_age_ns: 9,
            dirty_age_ns_max: 10,
            round: 2,
        };
        assert_eq!(choose(&calm), [Job::Merge, Job::PrepareRollover, Job::Scrub]);
        for load in [
            Load { head_size: 10, ..calm },
            Load { wal_size: 10, ..calm },
            Load { dirty_age_ns: 10, ..calm },
        ] {
            assert_eq!(choose(&load)[0], Job::Flush);
        }
        assert_eq!(choose(&Load { round: 61, ..calm }).last(), Some(&Job::Expire));
    }
}
