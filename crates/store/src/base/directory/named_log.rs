//! Entry of the log in the root manifest, which notices the loss of the log as a whole.
//!
//! The log's own `START` and `END` tell which segments there must be and where they end. If the whole
//! directory is removed, or replaced by an older copy, nothing in it tells. So the root manifest
//! repeats what `START` says, after `START` is durable: a crash leaves an older entry, never one of
//! more than the log has.

use crate::Result;
use crate::base::damage::{Damage, DamagePlace};
use crate::base::file_names::WAL_DIR;
use codec::{Reader, put_varint};
use std::path::Path;
use vfs::Vfs;
use wal::{LogRange, LogStart, Wal};

/// Kinds of entries.
const NONE: u64 = 0;
const WITHOUT_END: u64 = 1;
const WITH_END: u64 = 2;

/// A log that the root manifest names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedLog {
    /// First segment that `START` named.
    pub first: u64,
    /// One past the last segment that `START` named.
    pub end: u64,
    /// Whether there was an `END`.
    pub has_end: bool,
}

impl NamedLog {
    /// The entry of an open log; `None` if its `START` may not be durable.
    pub fn of_open(wal: &Wal) -> Option<NamedLog> {
        let LogRange { first, end } = wal.durable_range()?;
        Some(NamedLog { first, end, has_end: wal.has_end_file() })
    }

    /// The entry of a log that is not open; `None` without a readable `START`.
    ///
    /// # Errors
    /// On I/O errors, and if a later version wrote the log.
    pub fn on_disk(vfs: &dyn Vfs, dir: &Path) -> Result<Option<NamedLog>> {
        let wal_dir = dir.join(WAL_DIR);
        let LogStart::Known(LogRange { first, end }) = wal::read_start(vfs, &wal_dir)? else {
            return Ok(None);
        };
        let has_end = vfs.exists(&wal_dir.join(wal::END_NAME))?;
        Ok(Some(NamedLog { first, end, has_end }))
    }

    /// The later of both entries. Segment numbers only grow.
    pub fn merge(self, other: NamedLog) -> NamedLog {
        NamedLog {
            first: self.first.max(other.first),
            end: self.end.max(other.end),
            has_end: self.has_end || other.has_end,
        }
    }

    /// Damage of a log that is not there, or is older than this entry. A damaged `START` or `END` is
    /// reported by whoever reads the log.
    pub fn damage(&self, vfs: &dyn Vfs, dir: &Path) -> Vec<Damage> {
        let wal_dir = dir.join(WAL_DIR);
        let mut damage = Vec::new();
        let mut add = |name: &str, what: String| {
            damage.push(Damage::of_store(DamagePlace::Log, format!("{WAL_DIR}/{name}"), what));
        };
        match wal::read_start(vfs, &wal_dir) {
            Ok(LogStart::Unknown) => add(wal::START_NAME, self.missing_words(vfs, &wal_dir)),
            Ok(LogStart::Known(range)) if range.end < self.end || range.first < self.first => {
                let what = format!(
                    "it is an older copy: it names segments from {} up to {} (excluded), and MANIFEST \
                     names those from {} up to {}: acknowledged writes are missing",
                    range.first, range.end, self.first, self.end
                );
                add(wal::START_NAME, what);
            }
            _ => {}
        }
        if self.has_end && !vfs.exists(&wal_dir.join(wal::END_NAME)).unwrap_or(true) {
            let what = "the file is missing, though MANIFEST names it: acknowledged writes at the end \
                        of the log may be missing";
            add(wal::END_NAME, what.to_string());
        }
        damage
    }

    /// Words for a `START` that is missing.
    fn missing_words(&self, vfs: &dyn Vfs, wal_dir: &Path) -> String {
        let name = |segment: u64| wal::segment_name(segment);
        let is_missing = |segment: u64| !vfs.exists(&wal_dir.join(name(segment))).unwrap_or(true);
        // The last one is never removed before another is named.
        let last = self.end.checked_sub(1).filter(|last| self.first <= *last);
        let segments = match last {
            Some(last) if is_missing(last) => {
                format!(
                    ", and segments from {} to {}, of which the last is missing, too",
                    name(self.first),
                    name(last)
                )
            }
            Some(last) => format!(", and segments from {} to {}", name(self.first), name(last)),
            None => String::new(),
        };
        format!(
            "the file is missing, though MANIFEST names it{segments}: acknowledged writes may be missing"
        )
    }
}

/// Appends the entry to the body of the manifest.
pub fn encode(log: Option<NamedLog>, body: &mut Vec<u8>) {
    let Some(NamedLog { first, end, has_end }) = log else { return put_varint(body, NONE) };
    put_varint(body, if has_end { WITH_END } else { WITHOUT_END });
    put_varint(body, first);
    put_varint(body, end);
}

/// Reads the entry.
pub fn decode(reader: &mut Reader<'_>) -> std::result::Result<Option<NamedLog>, codec::Error> {
    let kind = reader.varint()?;
    if kind == NONE {
        return Ok(None);
    }
    let log =
        NamedLog { first: reader.varint()?, end: reader.varint()?, has_end: kind == WITH_END };
    match kind <= WITH_END && log.first <= log.end {
        true => Ok(Some(log)),
        false => Err(reader.corrupt("no log")),
    }
}
