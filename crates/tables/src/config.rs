//! How tables are kept.

use std::time::Duration;

/// Settings of tables.
#[derive(Clone, Debug)]
pub struct TablesConfig {
    /// Bytes that all tables together may take in memory, about: beyond it they do not grow. Tables
    /// that are there open, however large they are.
    pub memory_max: u64,
    /// Bytes that are logged before there is a checkpoint, at least: half of what tables take, if that
    /// is more, so that a checkpoint writes no more than twice what was logged.
    pub checkpoint_log_size: u64,
    /// Segments of the log that others fill before there is a checkpoint of what little was logged, so
    /// that the log can be cut.
    pub checkpoint_segments: u64,
    /// How often the keeper looks for work.
    pub keeper_interval: Duration,
    /// How long the keeper leaves a disk alone on which a checkpoint failed.
    pub retry_interval: Duration,
    /// Whether a thread keeps the tables; tests call [`crate::Tables::keep`] themselves.
    pub background: bool,
}

impl Default for TablesConfig {
    fn default() -> TablesConfig {
        TablesConfig {
            memory_max: 1 << 30,
            checkpoint_log_size: 64 << 20,
            checkpoint_segments: 4,
            keeper_interval: Duration::from_secs(1),
            retry_interval: Duration::from_secs(30),
            background: true,
        }
    }
}
