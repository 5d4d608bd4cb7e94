//! `START`: which segments there must be, so that a lost one is noticed, the oldest and the newest
//! ones, too.
//!
//! ```text
//! START   magic 8 | version u32 | first u64 | end u64 | crc32 u32                32 bytes
//! ```
//!
//! It is replaced before segments are removed and before the first record of a new one: what is below
//! `first` is a leftover, all from there up to `end` have been begun, and only one that is not among
//! them may have a torn header. A damaged one costs only that knowledge.

use crate::error::{Error, Result};
use codec::{Reader, crc32, put_u32, put_u64};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use vfs::Vfs;

/// The file's name.
pub const START_NAME: &str = "START";
const MAGIC: [u8; 8] = *b"QUIPUWST";
const VERSION: u32 = 1;
const SIZE: usize = 32;

/// The segments that a log has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogRange {
    /// The first that is needed; it may not be there yet.
    pub first: u64,
    /// One past the last that was begun; not below `first`.
    pub end: u64,
}

/// What a log's directory says about its segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogStart {
    /// Nothing, as in new directories and in those of earlier versions.
    #[default]
    Unknown,
    /// Those there are; ones below are not needed.
    Known(LogRange),
    /// Bytes that nobody wrote: the segments there are taken for all, and the file written anew.
    Damaged,
}

impl LogStart {
    /// Whether a segment is known to have been begun.
    pub(crate) fn is_begun(self, segment: u64) -> bool {
        matches!(self, LogStart::Known(range) if segment < range.end)
    }
}

/// Why bytes are no such file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StartError {
    Damaged,
    UnknownVersion(u32),
}

pub(crate) fn encode(range: LogRange) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    put_u32(&mut bytes, VERSION);
    put_u64(&mut bytes, range.first);
    put_u64(&mut bytes, range.end);
    let crc = crc32(&bytes);
    put_u32(&mut bytes, crc);
    assert_eq!(bytes.len(), SIZE);
    bytes
}

pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<LogRange, StartError> {
    let (version, range, crc) = parse(bytes).map_err(|_| StartError::Damaged)?;
    // First the checksum: damaged bytes may name any version. Its place is for ever.
    if bytes.len() != SIZE || crc32(&bytes[..SIZE - 4]) != crc {
        return Err(StartError::Damaged);
    }
    if version != VERSION {
        return Err(StartError::UnknownVersion(version));
    }
    match range.first <= range.end && range.end <= crate::format::SEGMENT_MAX + 1 {
        true => Ok(range),
        false => Err(StartError::Damaged),
    }
}

fn parse(bytes: &[u8]) -> std::result::Result<(u32, LogRange, u32), codec::Error> {
    let mut reader = Reader::new(bytes);
    if reader.slice(MAGIC.len())? != MAGIC {
        return Err(reader.corrupt("magic"));
    }
    let version = reader.u32()?;
    let range = LogRange { first: reader.u64()?, end: reader.u64()? };
    Ok((version, range, reader.u32()?))
}

/// Reads the file of a log's directory. One that cannot be read counts as damaged, but not for want
/// of something that the system lacks just now. A directory that is not there says nothing.
///
/// # Errors
/// [`Error::UnknownVersion`], and I/O errors that pass.
pub fn read(vfs: &dyn Vfs, directory: &Path) -> Result<LogStart> {
    let path = directory.join(START_NAME);
    let bytes = match vfs.size(&path) {
        Err(error) if error.is_not_found() => return Ok(LogStart::Unknown),
        Ok(size) if size == SIZE as u64 => vfs.read(&path),
        Ok(_) => return Ok(LogStart::Damaged),
        Err(error) => Err(error),
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) if error.is_passing() => return Err(error.into()),
        Err(_) => return Ok(LogStart::Damaged),
    };
    match decode(&bytes) {
        Ok(range) => Ok(LogStart::Known(range)),
        Err(StartError::Damaged) => Ok(LogStart::Damaged),
        Err(StartError::UnknownVersion(version)) => {
            Err(Error::UnknownVersion { file: path, version, max: VERSION })
        }
    }
}

/// Replaces the file, durably.
pub(crate) fn write(vfs: &dyn Vfs, directory: &Path, range: LogRange) -> vfs::Result<()> {
    vfs::write_atomic(vfs, &directory.join(START_NAME), &encode(range))
}

/// The file of an open log. Whoever removes segments and whoever begins one replace it in turn.
pub(crate) struct StartFile {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    /// What it says. Held while it is replaced.
    range: Mutex<LogRange>,
    on_begun: OnceLock<OnSegmentBegun>,
}

/// Called after a new segment is durable and named by `START`, before its first record, with what
/// `START` says then. It runs on the thread that writes the log, so it must not wait for the log.
pub type OnSegmentBegun = Box<dyn Fn(LogRange) + Send + Sync>;

impl StartFile {
    pub(crate) fn new(vfs: Arc<dyn Vfs>, directory: PathBuf, range: LogRange) -> StartFile {
        StartFile { vfs, directory, range: Mutex::new(range), on_begun: OnceLock::new() }
    }

    /// Notes that a segment has a name and a header, before it gets a record.
    pub(crate) fn note_begun(&self, segment: u64) -> vfs::Result<()> {
        self.replace(|range| LogRange { end: range.end.max(segment + 1), ..range })?;
        if let Some(on_begun) = self.on_begun.get() {
            on_begun(self.range());
        }
        Ok(())
    }

    /// Sets the function that is called for each new segment.
    ///
    /// # Panics
    /// If it is set already.
    pub(crate) fn set_on_begun(&self, on_begun: OnSegmentBegun) {
        assert!(self.on_begun.set(on_begun).is_ok(), "set twice");
    }

    /// Content of the file, which is durable.
    pub(crate) fn range(&self) -> LogRange {
        *self.range.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the segments below are not needed, before they go.
    pub(crate) fn note_first(&self, segment: u64) -> vfs::Result<()> {
        self.replace(|range| LogRange { first: segment, end: range.end.max(segment) })
    }

    fn replace(&self, change: impl Fn(LogRange) -> LogRange) -> vfs::Result<()> {
        let mut range = self.range.lock().unwrap_or_else(PoisonError::into_inner);
        let new = change(*range);
        assert!(range.first <= new.first && range.end <= new.end, "numbers only grow");
        assert!(new.first <= new.end, "what is needed has been begun, or is the next");
        if new != *range {
            write(self.vfs.as_ref(), &self.directory, new)?;
            *range = new;
        }
        Ok(())
    }
}
