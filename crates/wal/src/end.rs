//! `END`: up to where each segment is known to be synced, noted apart from the segments themselves.
//!
//! ```text
//! END   magic 8 | version u32 | count u32 | { segment u64 | nonce u64 | size u64 } * count | crc32 u32
//! ```
//!
//! A segment that comes back shorter, cut between two groups, cannot be told from one that was never
//! longer: each of its records is sound. So the size that was synced is noted here, at most a second
//! later, and whenever a segment is begun or removed. It is noted after the sync, and its name is not
//! made durable: a crash may leave an older note, never one of more than the log has. What cannot be
//! written is noted the next time.

use crate::error::{Error, Result};
use crate::format::Header;
use codec::{Reader, crc32, put_u32, put_u64};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vfs::Vfs;
use vfs::atomic::TEMPORARY_SUFFIX;

/// The file's name.
pub const END_NAME: &str = "END";
const MAGIC: [u8; 8] = *b"QUIPUWEN";
const VERSION: u32 = 1;
/// Bytes of a segment in the file.
const ENTRY_SIZE: usize = 24;
/// Maximum time between a sync and its note.
pub(crate) const NOTE_INTERVAL: Duration = Duration::from_secs(1);

/// Synced size of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncedEnd {
    /// That of the segment's header: a segment that was written again has another.
    pub(crate) nonce: u64,
    pub(crate) size: u64,
}

/// By segment.
pub(crate) type SyncedEnds = BTreeMap<u64, SyncedEnd>;

/// Bytes of a segment that had been synced and are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostEnd {
    /// The segment.
    pub segment: u64,
    /// End of its sound records, in bytes.
    pub offset: u64,
    /// End of the records at the last sync, in bytes.
    pub end: u64,
}

/// Compares a segment whose sound records end at `size` with its note.
pub(crate) fn lost_end(ends: &SyncedEnds, header: &Header, size: u64) -> Option<LostEnd> {
    let noted = ends.get(&header.segment).filter(|noted| noted.nonce == header.nonce)?;
    let (segment, offset, end) = (header.segment, size, noted.size);
    (size < end).then_some(LostEnd { segment, offset, end })
}

fn encode(ends: &SyncedEnds) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    put_u32(&mut bytes, VERSION);
    put_u32(&mut bytes, ends.len() as u32);
    for (segment, end) in ends {
        put_u64(&mut bytes, *segment);
        put_u64(&mut bytes, end.nonce);
        put_u64(&mut bytes, end.size);
    }
    let crc = crc32(&bytes);
    put_u32(&mut bytes, crc);
    bytes
}

/// Decodes the notes; `Err(None)` for corrupt bytes, `Err(Some)` for a later version.
fn decode(bytes: &[u8]) -> std::result::Result<SyncedEnds, Option<u32>> {
    let (covered, crc) = bytes.split_last_chunk::<4>().ok_or(None)?;
    if !covered.starts_with(&MAGIC) || crc32(covered) != u32::from_le_bytes(*crc) {
        return Err(None);
    }
    let mut reader = Reader::new(&covered[MAGIC.len()..]);
    let version = reader.u32().map_err(|_| None)?;
    if version != VERSION {
        return Err(Some(version));
    }
    let count = reader.u32().map_err(|_| None)? as usize;
    if reader.remaining() != count * ENTRY_SIZE {
        return Err(None);
    }
    let entry = |reader: &mut Reader<'_>| {
        let segment = reader.u64()?;
        Ok((segment, SyncedEnd { nonce: reader.u64()?, size: reader.u64()? }))
    };
    let entries = (0..count).map(|_| entry(&mut reader));
    entries.collect::<std::result::Result<_, codec::Error>>().map_err(|_| None)
}

/// Reads the notes of a log's directory; none without a file.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::UnknownVersion`], and on I/O errors.
pub(crate) fn read(vfs: &dyn Vfs, directory: &Path) -> Result<SyncedEnds> {
    let path = directory.join(END_NAME);
    if !vfs.exists(&path)? {
        return Ok(SyncedEnds::new());
    }
    decode(&vfs.read(&path)?).map_err(|version| match version {
        Some(version) => Error::UnknownVersion { file: path, version, max: VERSION },
        None => Error::Corrupt { file: path, offset: 0, what: "what the log says about its end" },
    })
}

/// The file of an open log.
pub(crate) struct EndFile {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    state: Mutex<State>,
    /// Whether something was synced that is not noted.
    is_dirty: AtomicBool,
    /// Whether it is to be noted now: a segment was left.
    is_due: AtomicBool,
    /// Held while the file is replaced.
    writing: Mutex<()>,
}

struct State {
    ends: SyncedEnds,
    /// When the file was last written, since the start of the clock.
    written_at: Duration,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EndFile {
    /// The file of a log that was just opened, with these segments.
    pub(crate) fn new(vfs: Arc<dyn Vfs>, directory: PathBuf, ends: SyncedEnds) -> EndFile {
        let state = Mutex::new(State { ends, written_at: vfs.elapsed() });
        let (is_dirty, is_due, writing) = Default::default();
        EndFile { vfs, directory, state, is_dirty, is_due, writing }
    }

    /// Notes, in memory, that a segment is synced up to there.
    pub(crate) fn note(&self, header: Header, size: u64) {
        let end = SyncedEnd { nonce: header.nonce, size };
        lock(&self.state).ends.insert(header.segment, end);
        self.set_dirty();
    }

    /// Writes the file durably if there is none, so that a missing one is a loss from now on. Returns
    /// whether it is there.
    pub(crate) fn ensure_exists(&self) -> bool {
        let path = self.directory.join(END_NAME);
        let is_there = || self.vfs.exists(&path).unwrap_or(false);
        if is_there() {
            return true;
        }
        self.set_dirty();
        self.write();
        is_there() && self.vfs.sync_dir(&self.directory).is_ok()
    }

    /// Forgets the segments that are removed.
    pub(crate) fn forget_before(&self, segment: u64) {
        let mut state = lock(&self.state);
        state.ends = state.ends.split_off(&segment);
        drop(state);
        self.set_dirty();
    }

    /// Lets the next call of [`EndFile::write`] write.
    pub(crate) fn set_dirty(&self) {
        self.is_dirty.store(true, Ordering::Release);
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty.load(Ordering::Acquire)
    }

    /// Lets the next call of [`EndFile::write_if_due`] write.
    pub(crate) fn set_due(&self) {
        self.is_due.store(true, Ordering::Release);
    }

    /// Writes the notes if they are older than they may be.
    pub(crate) fn write_if_due(&self) {
        let age = self.vfs.elapsed().saturating_sub(lock(&self.state).written_at);
        let is_due = self.is_due.swap(false, Ordering::AcqRel);
        if self.is_dirty() && (is_due || NOTE_INTERVAL <= age) {
            self.write();
        }
    }

    /// Writes the notes. A failure costs the note, and nothing else: it is tried again.
    pub(crate) fn write(&self) {
        let _one = lock(&self.writing);
        if !self.is_dirty.swap(false, Ordering::AcqRel) {
            return;
        }
        let bytes = {
            let mut state = lock(&self.state);
            state.written_at = self.vfs.elapsed();
            encode(&state.ends)
        };
        if self.replace(&bytes).is_err() {
            self.set_dirty();
        }
    }

    fn replace(&self, bytes: &[u8]) -> vfs::Result<()> {
        let path = self.directory.join(END_NAME);
        let temporary = self.directory.join(format!("{END_NAME}{TEMPORARY_SUFFIX}"));
        if self.vfs.exists(&temporary)? {
            self.vfs.remove(&temporary)?;
        }
        let mut file = self.vfs.create(&temporary)?;
        file.append(bytes)?;
        file.sync()?;
        self.vfs.rename(&temporary, &path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_and_damage_is_noticed() {
        let ends: SyncedEnds = [(3, 4, 5), (u64::MAX, 7, u64::MAX)]
            .into_iter()
            .map(|(segment, nonce, size)| (segment, SyncedEnd { nonce, size }))
            .collect();
        for ends in [SyncedEnds::new(), ends] {
            let bytes = encode(&ends);
            assert_eq!(decode(&bytes), Ok(ends));
            for idx in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[idx] ^= 1;
                assert_eq!(decode(&damaged), Err(None), "byte {idx}");
                assert_eq!(decode(&bytes[..idx]), Err(None), "cut at {idx}");
            }
        }
        let mut later = MAGIC.to_vec();
        put_u32(&mut later, 2);
        let crc = crc32(&later);
        put_u32(&mut later, crc);
        assert_eq!(decode(&later), Err(Some(2)));
    }
}
