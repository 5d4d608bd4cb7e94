//! All background work there is: a thread that flushes, expires and prepares partitions, and one
//! that merges and scrubs.
//!
//! It holds the store weakly between rounds, so a store that is dropped without `close` ends it too.

use crate::store::{Store, lock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
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
    PrepareTurn,
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
    jobs.extend([Job::Merge, Job::PrepareTurn, Job::Scrub]);
    // In the first round, too: a shorter retention may have come with the start.
    if load.round % RETENTION_ROUNDS == 1 {
        jobs.push(Job::Expire);
    }
    jobs
}

/// The thread's handle.
#[derive(Default)]
pub struct Jobs {
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// One for each thread: a bell that two wait for may be heard by the wrong one.
    bells: [Arc<Bell>; THREADS.len()],
    is_stopping: Arc<AtomicBool>,
}

/// The threads: one that flushes and expires, one that merges and scrubs.
const THREADS: [(&str, &[Job]); 2] = [
    ("quipu-flush", &[Job::Flush, Job::Expire, Job::PrepareTurn]),
    ("quipu-merge", &[Job::Merge, Job::Scrub]),
];

#[derive(Default)]
struct Bell {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

impl Jobs {
    /// Starts the threads.
    pub fn start(&self, store: &Arc<Store>) {
        for ((name, wanted), bell) in THREADS.iter().zip(&self.bells) {
            let (store, bell) = (Arc::downgrade(store), Arc::clone(bell));
            let is_stopping = Arc::clone(&self.is_stopping);
            let builder = std::thread::Builder::new().name(name.to_string());
            let thread = builder.spawn(move || run(&store, &bell, &is_stopping, wanted));
            lock(&self.threads).push(thread.expect("the system has room for a thread"));
        }
    }

    /// Asks for a round now.
    pub fn wake(&self) {
        for bell in &self.bells {
            *lock(&bell.is_rung) = true;
            bell.rung.notify_all();
        }
    }

    /// Whether [`Jobs::stop`] was called; long work looks now and then.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Ends the threads and waits for what they are doing.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.wake();
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // Jobs do not panic outwards; the others are still to be joined if one does.
            drop(thread.join());
        }
    }
}

impl Bell {
    /// Waits for a ring, a round's time at most.
    fn wait(&self) {
        let wait = self.rung.wait_timeout_while(lock(&self.is_rung), ROUND, |is_rung| !*is_rung);
        let (mut is_rung, _) = wait.unwrap_or_else(|poisoned| poisoned.into_inner());
        *is_rung = false;
    }
}

fn run(store: &Weak<Store>, bell: &Bell, is_stopping: &AtomicBool, wanted: &[Job]) {
    for round in 1.. {
        bell.wait();
        if is_stopping.load(Ordering::Acquire) {
            return;
        }
        let Some(store) = store.upgrade() else { return };
        for job in choose(&store.load(round)).into_iter().filter(|job| wanted.contains(job)) {
            if store.is_latched() {
                continue;
            }
            store.run_guarded(job);
        }
        store.check_disk();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_hears_its_own_bell() {
        let jobs = Jobs::default();
        jobs.wake();
        // The one that is quicker takes its ring, and not the other's.
        *lock(&jobs.bells[1].is_rung) = false;
        assert!(*lock(&jobs.bells[0].is_rung));
    }

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
            let threads = THREADS.iter().filter(|(_, jobs)| jobs.contains(&job)).count();
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
        assert_eq!(choose(&calm), [Job::Merge, Job::PrepareTurn, Job::Scrub]);
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
