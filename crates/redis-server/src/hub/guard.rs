//! The mutex of the hub, and the order of locks.
//!
//! Locks are taken in this order: keys, hub, outboxes. A thread that holds the hub never waits for
//! the keys.
//!
//! Scripts add the engine (`scripting`), which is locked after the keys. A command that runs a script
//! locks the engine while it holds keys and hub, and releases the hub while Lua runs
//! ([`HubGuard::unlock_while`]). Each command of the script locks the hub again, and releases it
//! before Lua goes on. Engine and hub are thus taken in both orders. This cannot deadlock, because
//! only a thread that holds the keys takes both. A thread that holds the engine without the keys, as
//! the load of a dump does, must not wait for keys or hub.

use super::Hub;
use parking_lot::{Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};

/// The hub, for one thread at a time. A panic of that thread leaves it usable.
pub struct HubMutex(Mutex<Hub>);

/// The locked hub. Dropping it unlocks.
pub struct HubGuard<'h>(MutexGuard<'h, Hub>);

impl HubMutex {
    /// Makes an unlocked mutex.
    pub fn new(hub: Hub) -> HubMutex {
        HubMutex(Mutex::new(hub))
    }

    /// Waits for the hub.
    #[inline]
    pub fn lock(&self) -> HubGuard<'_> {
        HubGuard(self.0.lock())
    }
}

impl HubGuard<'_> {
    /// Unlocks the hub while `work` runs, so that other threads can use it, and waits for it behind
    /// that, even if `work` panics. The hub may have changed in the meantime.
    pub fn unlock_while<T>(&mut self, work: impl FnOnce() -> T) -> T {
        MutexGuard::unlocked(&mut self.0, work)
    }
}

impl Deref for HubGuard<'_> {
    type Target = Hub;

    #[inline]
    fn deref(&self) -> &Hub {
        &self.0
    }
}

impl DerefMut for HubGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Hub {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread::scope;

    fn rejected(hub: &HubMutex) -> u64 {
        hub.lock().stats.rejected_count
    }

    #[test]
    fn other_threads_use_the_hub_while_it_is_unlocked() {
        let hub = HubMutex::new(Hub::default());
        let mut guard = hub.lock();
        guard.stats.rejected_count = 1;
        let seen = guard.unlock_while(|| {
            let other = scope(|scope| {
                let change = || {
                    let mut other = hub.lock();
                    other.stats.rejected_count += 1;
                    other.stats.rejected_count
                };
                scope.spawn(change).join().expect("no panic")
            });
            // The same thread may lock it, too, as the commands of a script do.
            hub.lock().stats.rejected_count += 1;
            other
        });
        assert_eq!((seen, guard.stats.rejected_count), (2, 3));
        assert!(hub.0.try_lock().is_none(), "the hub is locked again");
        drop(guard);
        assert_eq!(rejected(&hub), 3);
    }

    #[test]
    fn panic_of_unlocked_work_locks_the_hub_again_and_frees_it() {
        let hub = HubMutex::new(Hub::default());
        let mut guard = hub.lock();
        let work = || guard.unlock_while(|| panic!("expected"));
        assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
        assert!(hub.0.try_lock().is_none(), "the hub is locked again");
        guard.stats.rejected_count = 7;
        drop(guard);
        assert_eq!(rejected(&hub), 7);
    }

    #[test]
    fn panic_of_a_thread_with_the_hub_frees_it_for_others() {
        let hub = HubMutex::new(Hub::default());
        let panicked = scope(|scope| {
            let fail = || {
                let mut guard = hub.lock();
                guard.stats.rejected_count = 1;
                guard.unlock_while(|| {
                    let _of_a_command = hub.lock();
                    panic!("expected");
                });
            };
            scope.spawn(fail).join().is_err()
        });
        assert!(panicked);
        assert_eq!(rejected(&hub), 1);
    }
}
