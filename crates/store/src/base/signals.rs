//! What the parts of a store tell its background threads: that there is work, and that it is over.

use crate::base::locks::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Threads that wait for a ring.
pub(crate) const THREADS: usize = 2;

/// The signals of one store.
#[derive(Default)]
pub(crate) struct Signals {
    /// One for each thread: a bell that two wait for may be heard by the wrong one.
    bells: [Arc<Bell>; THREADS],
    is_stopping: Arc<AtomicBool>,
}

#[derive(Default)]
struct Bell {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

/// What one thread hears.
pub(crate) struct Listener {
    bell: Arc<Bell>,
    is_stopping: Arc<AtomicBool>,
}

impl Signals {
    /// Asks for a round now.
    pub fn wake(&self) {
        for bell in &self.bells {
            *lock(&bell.is_rung) = true;
            bell.rung.notify_all();
        }
    }

    /// Whether [`Signals::stop`] was called; long work looks now and then, and gives up.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Tells everybody to end.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.wake();
    }

    /// What the thread of this number hears. It does not hold the store.
    pub fn listener(&self, thread: usize) -> Listener {
        let (bell, is_stopping) = (Arc::clone(&self.bells[thread]), Arc::clone(&self.is_stopping));
        Listener { bell, is_stopping }
    }
}

impl Listener {
    /// Waits for a ring, so long at most; `false` when it is over.
    pub fn wait(&self, longest: Duration) -> bool {
        let bell = &self.bell;
        let wait = bell.rung.wait_timeout_while(lock(&bell.is_rung), longest, |is_rung| !*is_rung);
        let (mut is_rung, _) = wait.unwrap_or_else(|poisoned| poisoned.into_inner());
        *is_rung = false;
        !self.is_stopping.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_hears_its_own_bell() {
        let signals = Signals::default();
        signals.wake();
        // The one that is quicker takes its ring, and not the other's.
        *lock(&signals.bells[1].is_rung) = false;
        assert!(*lock(&signals.bells[0].is_rung));
    }
}
