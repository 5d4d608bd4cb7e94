//! Locks of what is valid whatever a panicking thread left.

use std::sync::{Mutex, MutexGuard};

/// Locks a mutex whose content is valid whatever a panicking thread left.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
