//! `START`: the segment that the log begins with, so that a lost oldest segment is noticed.
//!
//! ```text
//! START   magic 8 | version u32 | segment u64 | crc32 u32                        24 bytes
//! ```
//!
//! It is replaced before segments are removed and written before the first one is created: what is
//! below it is a leftover, and the first segment there is none above it. A damaged one costs only
//! that knowledge.

use crate::error::{Error, Result};
use codec::{Reader, crc32, put_u32, put_u64};
use std::path::Path;
use vfs::Vfs;

/// The file's name.
pub const START_NAME: &str = "START";
const MAGIC: [u8; 8] = *b"QUIPUWST";
const VERSION: u32 = 1;
const SIZE: usize = 24;

/// What a log's directory says about its first segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogStart {
    /// Nothing, as in new directories and in those of earlier versions.
    #[default]
    Unknown,
    /// Its number; those below it are not needed.
    Known(u64),
    /// Bytes that nobody wrote: the first segment there is taken for it, and the file written anew.
    Damaged,
}

/// Why bytes are no such file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StartError {
    Damaged,
    UnknownVersion(u32),
}

pub(crate) fn encode(segment: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    put_u32(&mut bytes, VERSION);
    put_u64(&mut bytes, segment);
    let crc = crc32(&bytes);
    put_u32(&mut bytes, crc);
    assert_eq!(bytes.len(), SIZE);
    bytes
}

pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<u64, StartError> {
    let (version, segment, crc) = parse(bytes).map_err(|_| StartError::Damaged)?;
    // First the checksum: damaged bytes may name any version. Its place is for ever.
    if bytes.len() != SIZE || crc32(&bytes[..SIZE - 4]) != crc {
        return Err(StartError::Damaged);
    }
    if version != VERSION {
        return Err(StartError::UnknownVersion(version));
    }
    match segment <= crate::format::SEGMENT_MAX {
        true => Ok(segment),
        false => Err(StartError::Damaged),
    }
}

fn parse(bytes: &[u8]) -> std::result::Result<(u32, u64, u32), codec::Error> {
    let mut reader = Reader::new(bytes);
    if reader.slice(MAGIC.len())? != MAGIC {
        return Err(reader.corrupt("magic"));
    }
    Ok((reader.u32()?, reader.u64()?, reader.u32()?))
}

/// Reads the file of a log's directory. One that cannot be read counts as damaged, but not for want
/// of something that the system lacks just now.
pub(crate) fn read(vfs: &dyn Vfs, directory: &Path) -> Result<LogStart> {
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
        Ok(segment) => Ok(LogStart::Known(segment)),
        Err(StartError::Damaged) => Ok(LogStart::Damaged),
        Err(StartError::UnknownVersion(version)) => {
            Err(Error::UnknownVersion { file: path, version, max: VERSION })
        }
    }
}

/// Replaces the file, durably.
pub(crate) fn write(vfs: &dyn Vfs, directory: &Path, segment: u64) -> Result<()> {
    Ok(vfs::write_atomic(vfs, &directory.join(START_NAME), &encode(segment))?)
}
