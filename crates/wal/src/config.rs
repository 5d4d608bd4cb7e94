//! Sizes and limits of the log.

use crate::format::{self, RECORD_SIZE_MAX};

/// Who writes and syncs what was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committer {
    /// A thread of the log, at once.
    Thread,
    /// Whoever calls [`crate::Wal::wait_durable`], inside that call: for tests that need every
    /// run to do the same operations in the same order.
    Waiter,
}

/// How a log is kept.
#[derive(Clone, Debug)]
pub struct WalConfig {
    /// A segment is left when the next record would make it larger. A record larger than this
    /// has a segment of its own. At most 1 GiB.
    pub segment_size_max: u64,
    /// Bytes that may wait for the disk, room that was reserved included; beyond it
    /// [`crate::Error::Busy`]. Twice as much may be in memory: one group is being written while the
    /// next gathers.
    pub pending_size_max: usize,
    /// Payload of the largest record, at most [`RECORD_SIZE_MAX`].
    pub record_size_max: usize,
    /// Records go to segments of this number and above, whatever is there: what the store has
    /// written down elsewhere about lower ones is about others.
    pub next_segment_min: u64,
    /// Who writes.
    pub committer: Committer,
}

impl Default for WalConfig {
    fn default() -> WalConfig {
        WalConfig {
            // Small enough that a flush frees most of the log, large enough that the three syncs
            // which begin a segment are rare: at 100 MB/s once in 0.6 s.
            segment_size_max: 64 << 20,
            pending_size_max: 64 << 20,
            record_size_max: RECORD_SIZE_MAX,
            next_segment_min: 0,
            committer: Committer::Thread,
        }
    }
}

impl WalConfig {
    pub(crate) fn check(&self) {
        assert!(self.segment_size_max <= SEGMENT_SIZE_LIMIT, "offsets must fit 32 bits");
        assert!(format::HEADER_SIZE < self.segment_size_max);
        assert!(0 < self.pending_size_max);
        assert!(self.record_size_max <= RECORD_SIZE_MAX);
    }
}

/// The largest setting of [`WalConfig::segment_size_max`].
const SEGMENT_SIZE_LIMIT: u64 = 1 << 30;

// A record's checksum covers its offset as 32 bits.
const _: () = assert!(
    SEGMENT_SIZE_LIMIT + (RECORD_SIZE_MAX + format::RECORD_HEADER_SIZE) as u64 <= u32::MAX as u64
);
