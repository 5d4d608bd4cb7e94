//! The log that several consumers share: it hands each its records when it opens, and is cut where
//! none of them needs it any more.
//!
//! ```text
//! look (each consumer reads its own files) ─► declare ─► Log::open: replay by kind
//!     ─► attach (each says from now on what it needs) ─► append ... save, cut ... append
//!
//! cut:   segments   7      8      9      10 (current)
//!        series            ├──────needs──────►
//!        keys                     ├───needs──►
//!                   gone   └ kept from the oldest need on
//! ```
//!
//! What holds:
//! - Segments are removed here and nowhere else, up to the oldest need at most.
//! - A consumer that has not said yet what it needs needs everything.
//! - A consumer that is off needs everything from its first record on, however often the log opens.
//! - A log with a record of a kind that nobody knows does not open, and nothing has changed.

use crate::config::WalConfig;
use crate::consumers::{Consumers, Off, UnknownKind};
use crate::error::{Error, Result};
use crate::segments::{RecordRef, first_segment};
use crate::writer::Wal;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use vfs::Vfs;

/// Says the oldest segment with a record that its consumer has nowhere else; `None` if there is none.
///
/// It is asked by whoever cuts the log, and has to know of every record of its consumer that the log
/// took before it is asked: most simply it takes the lock under which they are appended. A segment
/// that was current before an append is never too high for that record.
pub type NeededFrom = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// An open log and those who share it.
pub struct Log {
    wal: Arc<Wal>,
    attached: Vec<Attached>,
    off: Vec<Off>,
    /// Held while segments are removed: one at a time.
    cutting: Mutex<()>,
}

/// A consumer of an open log.
struct Attached {
    name: &'static str,
    /// Not there until it has been told.
    needed_from: OnceLock<NeededFrom>,
}

/// What keeps the log from being shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The consumer with the oldest need.
    pub consumer: &'static str,
    /// The first segment that it needs.
    pub segment: u64,
    /// Bytes of the log from there on.
    pub size: u64,
}

impl Log {
    /// Opens the log in `directory`, which is created if need be: hands every consumer its records,
    /// in order, and is ready to append. Until a consumer is attached ([`Log::attach`]) nothing is
    /// cut.
    ///
    /// The caller holds the lock of the data directory for as long as the log lives.
    ///
    /// # Errors
    /// [`Error::UnknownKind`] when a record belongs to nobody, before anything has changed; when a
    /// segment is missing or corrupt, when a consumer refuses a record, or on I/O errors. An
    /// unfinished write at the very end is no error: see [`Wal::recovery`]. Without room to make the
    /// end of the log durable the log opens, latched.
    pub fn open(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        config: WalConfig,
        mut consumers: Consumers<'_>,
    ) -> Result<Log> {
        vfs.create_dir_all(directory)?;
        let next_segment_min = config.next_segment_min.max(consumers.next_segment_min());
        let config = WalConfig { next_segment_min, ..config };
        // From the very first one on, whatever the declared ones need: others may be off.
        let from = first_segment(vfs.as_ref(), directory)?.unwrap_or(next_segment_min);
        let mut on_record = |record: RecordRef<'_>| consumers.dispatch(&record);
        let opened = Wal::open(vfs, directory, config, from, &mut on_record);
        let mut wal = opened.map_err(name_unknown_kind)?;
        wal.kinds = consumers.kinds();
        let attached = |name| Attached { name, needed_from: OnceLock::new() };
        Ok(Log {
            wal: Arc::new(wal),
            attached: consumers.names().into_iter().map(attached).collect(),
            off: consumers.into_off(),
            cutting: Mutex::new(()),
        })
    }

    /// What records are appended to. Its holder must not outlive the log.
    pub fn wal(&self) -> &Arc<Wal> {
        &self.wal
    }

    /// Tells from now on what a declared consumer needs. What it captures lives as long as the log.
    ///
    /// # Panics
    /// When nobody of this name was declared, or it is attached already.
    pub fn attach(&self, name: &str, needed_from: NeededFrom) {
        let attached = self.attached.iter().find(|one| one.name == name);
        let attached = attached.unwrap_or_else(|| panic!("{name} was not declared"));
        let is_first = attached.needed_from.set(needed_from).is_ok();
        assert!(is_first, "{name} is attached twice");
    }

    /// Removes the segments that no consumer needs, for a consumer that has saved what they hold.
    /// Returns what is needed of those before the current segment, if anything is. Waits until what
    /// is removed has been written; never called under a lock that a [`NeededFrom`] takes.
    ///
    /// # Errors
    /// When the log is latched, or a file cannot be removed; calling again is fine.
    pub fn cut(&self) -> Result<Option<Pin>> {
        let _one = self.cutting.lock().unwrap_or_else(PoisonError::into_inner);
        // Before anybody is asked: all that is in earlier segments was appended before.
        let current = self.wal.stats().segment;
        let need = self.oldest_need(current);
        self.wal.remove_before(need.map_or(current, |(_, segment)| segment))?;
        Ok(need.map(|need| self.pin_of(need)))
    }

    /// The oldest need of a segment before the current one, and whose it is.
    pub fn pin(&self) -> Option<Pin> {
        self.oldest_need(self.wal.stats().segment).map(|need| self.pin_of(need))
    }

    /// The consumers that are switched off and have records in the log.
    pub fn off(&self) -> &[Off] {
        &self.off
    }

    /// Takes no more records, and writes and syncs what is pending: the end of all that share it.
    /// Calling again is fine.
    ///
    /// # Errors
    /// [`Error::Latched`] when not all that was appended is durable.
    pub fn close(&self) -> Result<()> {
        self.wal.close()
    }

    /// The oldest need below `current`.
    fn oldest_need(&self, current: u64) -> Option<(&'static str, u64)> {
        let attached = self.attached.iter().filter_map(|one| Some((one.name, one.needed()?)));
        let off = self.off.iter().map(|off| (off.consumer, off.from_segment));
        let older = attached.chain(off).filter(|(_, segment)| *segment < current);
        older.min_by_key(|(_, segment)| *segment)
    }

    fn pin_of(&self, (consumer, segment): (&'static str, u64)) -> Pin {
        Pin { consumer, segment, size: self.wal.size_from(segment) }
    }
}

impl Attached {
    fn needed(&self) -> Option<u64> {
        self.needed_from.get().map_or(Some(0), |needed_from| needed_from())
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.attached.iter().map(|one| one.name).collect();
        write!(f, "Log({:?} of {names:?}, off {:?})", self.wal, self.off)
    }
}

/// A refusal for a record's kind, under its own name.
fn name_unknown_kind(error: Error) -> Error {
    match error {
        Error::Replay { file, offset, source } => match source.downcast::<UnknownKind>() {
            Ok(unknown) => Error::UnknownKind { kind: unknown.0, file, offset },
            Err(source) => Error::Replay { file, offset, source },
        },
        other => other,
    }
}
