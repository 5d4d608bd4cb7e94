//! Counters since start, for the server's metrics.

use std::sync::atomic::AtomicU64;

/// What the store counts.
#[derive(Default)]
pub struct Counters {
    /// Samples taken.
    pub samples_appended: AtomicU64,
    /// Rows refused.
    pub rows_rejected: AtomicU64,
    /// Flushes done.
    pub flushes: AtomicU64,
    /// Merges done.
    pub merges: AtomicU64,
    /// Merges left out because the disk had no room for them.
    pub merges_without_room: AtomicU64,
    /// Parts in which damage was met, and side files.
    pub corrupt_parts: AtomicU64,
    /// Samples replayed from the log at start.
    pub samples_replayed: AtomicU64,
}
