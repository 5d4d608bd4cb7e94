//! Checkpoints that clients ask for.

use kv::Kv;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// Checkpoints that somebody asked for.
#[derive(Debug, Default)]
pub struct Saving {
    /// When the last one was done, in seconds since the epoch.
    pub at_s: AtomicI64,
    /// Changes of keys until then.
    pub changes: AtomicU64,
    /// How many were done.
    pub count: AtomicU64,
    /// Whether one is being made.
    pub is_on: AtomicBool,
}

impl Saving {
    /// Makes one.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn save(&self, kv: &Kv, changes: u64) -> Result<(), kv::Error> {
        self.is_on.store(true, Relaxed);
        let done = kv.checkpoint();
        self.is_on.store(false, Relaxed);
        if done.is_ok() {
            self.at_s.store(kv.now_ms() / 1000, Relaxed);
            self.changes.store(changes, Relaxed);
            self.count.fetch_add(1, Relaxed);
        }
        done
    }
}
