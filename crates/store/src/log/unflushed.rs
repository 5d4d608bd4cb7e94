//! From where on the log has records of a partition that no part holds.
//!
//! ```text
//! log segments   3   4   5   6   7
//!                    └ flushing_from: a flush writes what is in 4 to 6
//!                                └ dirty_from: what came since, wal_next: the manifest will say 7
//! ```
//!
//! - The log keeps all from the older of both on, so what a flush that fails did not write stays.
//! - `wal_next` and `head_end` are of one moment, taken under the partition's lock: what the next
//!   manifest leaves to the log and what it does not are told apart by either.

/// What of the log no part holds.
#[derive(Default)]
pub(crate) struct Unflushed {
    /// Log segment of the oldest record that no part holds yet, and no flush is about to.
    dirty_from: Option<u64>,
    /// Log segment from which a flush in progress protects the log.
    flushing_from: Option<u64>,
    /// Log segment that the manifest of the flush in progress will start from.
    wal_next: u64,
    /// Rows taken from this number on are not for the flush in progress.
    head_end: u64,
    /// Wall clock of the arrival of the oldest record that no part holds.
    since_ns: i64,
}

impl Unflushed {
    /// Whether parts hold all.
    pub fn is_none(&self) -> bool {
        self.dirty_from.is_none() && self.flushing_from.is_none()
    }

    /// Notes that a record is about to be appended to the log, or later than it goes on now.
    pub fn note_record(&mut self, wal: &wal::Wal, now_ns: i64) {
        if self.dirty_from.is_none() {
            self.dirty_from = Some(wal.stats().segment);
            self.since_ns = now_ns;
        }
    }

    /// Notes that a record of this segment was replayed.
    pub fn note_replayed(&mut self, segment: u64, now_ns: i64) {
        if self.is_none() {
            self.since_ns = now_ns;
        }
        let dirty_from = *self.dirty_from.get_or_insert(segment);
        assert!(dirty_from <= segment, "the log is replayed from its start");
    }

    /// The oldest log segment with a record that is not in a part.
    pub fn log_needed_from(&self) -> Option<u64> {
        self.flushing_from.into_iter().chain(self.dirty_from).min()
    }

    /// When the oldest record came that is not in a part.
    pub fn since(&self) -> Option<i64> {
        self.log_needed_from().map(|_| self.since_ns)
    }

    /// A flush begins: it writes rows taken before `head_end`, and what comes from now on is in the
    /// segment `wal_next` or later ones.
    pub fn begin_flush(&mut self, wal_next: u64, head_end: u64) {
        self.flushing_from = self.flushing_from.or(self.dirty_from);
        self.dirty_from = None;
        assert!(self.flushing_from.is_none_or(|from| from <= wal_next), "the log was rotated");
        assert!(self.wal_next <= wal_next, "the log goes on");
        assert!(self.head_end <= head_end, "rows are numbered in the order of arrival");
        (self.wal_next, self.head_end) = (wal_next, head_end);
    }

    /// The segment that the log counts from once the flush in progress is done.
    pub fn wal_next(&self) -> u64 {
        self.wal_next
    }

    /// Whether rows taken with this number are for the flush in progress.
    pub fn is_flushing(&self, number: u64) -> bool {
        number < self.head_end
    }

    /// The flush is done.
    pub fn end_flush(&mut self) {
        let is_later = self.dirty_from.is_none_or(|from| self.wal_next <= from);
        assert!(is_later, "what came since the flush began is behind the rotation");
        self.flushing_from = None;
    }

    /// The partition is gone, and needs nothing of the log.
    pub fn clear(&mut self) {
        (self.dirty_from, self.flushing_from) = (None, None);
    }
}
