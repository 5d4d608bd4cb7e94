//! Counters of a keyspace.

/// Counters since the start, or since the file they come from was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct KvStats {
    /// Keys that were added.
    pub added: u64,
    /// Keys that expired.
    pub expired: u64,
    /// Lookups that found a key.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
    /// Values read from disk.
    pub cold_reads: u64,
    /// Hot keys that gave way to others.
    pub cooled: u64,
    /// Segments whose live records compaction moved to others.
    pub compacted: u64,
    /// Segments that were copied with their values coded.
    pub coded: u64,
    /// Large values that were written down while commands went on.
    pub frozen: u64,
    /// Changes since the start.
    pub changes: u64,
    /// `changes` when the last durable checkpoint began.
    pub saved_changes: u64,
    /// Corrupt records that reads found.
    pub rotten: u64,
    /// Durable checkpoints.
    pub checkpoints: u64,
    /// Time that they took, in nanoseconds.
    pub checkpoint_ns: u64,
    /// Segments that were removed.
    pub removed_segments: u64,
    /// Bytes of removed segments.
    pub removed_size: u64,
}
