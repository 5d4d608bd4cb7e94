//! From a part's last bytes to its directory.

use super::corrupt;
use crate::base::narrow::to_usize;
use crate::part::directory::Directory;
use crate::part::format::{self, Encoding, HEADER_SIZE, TRAILER_SIZE};
use crate::{Error, Result};
use codec::{Reader, crc32};
use std::path::Path;

/// The directory of a part. It has a checksum and all that the header says, so the header only counts
/// where there is no directory: what a newer program wrote is not taken for rot.
pub(super) fn open_directory(bytes: &[u8], name: &Path) -> Result<Directory> {
    let unknown = |version: String| Error::UnknownVersion {
        file: name.to_path_buf(),
        version,
        known: format!("{} with flags {:#x}", format::VERSION, Encoding::KNOWN_FLAGS),
    };
    let (offset, directory) = match directory_bytes(bytes) {
        Ok(found) => found,
        Err(error) => {
            return Err(match version_of(bytes) {
                Some(version) if version != format::VERSION => unknown(version.to_string()),
                _ => corrupt(name, error.offset as u64, error.what),
            });
        }
    };
    if let Some(flags) = directory.first_chunk().map(|flags| u32::from_le_bytes(*flags))
        && Encoding::from_flags(flags).is_none()
    {
        return Err(unknown(format!("{} with flags {flags:#x}", format::VERSION)));
    }
    Directory::decode(directory, offset)
        .map_err(|error| corrupt(name, offset + error.offset as u64, error.what))
}

/// What the header says, if it is one.
fn version_of(bytes: &[u8]) -> Option<u32> {
    let rest = bytes.strip_prefix(&format::MAGIC)?;
    rest.first_chunk().map(|version| u32::from_le_bytes(*version))
}

/// Where the directory is, and its bytes, which are as they were written.
fn directory_bytes(bytes: &[u8]) -> std::result::Result<(u64, &[u8]), codec::Error> {
    let fail = |offset, what| codec::Error { offset, what };
    let end = bytes.len();
    if end < HEADER_SIZE + TRAILER_SIZE {
        return Err(fail(end, "a header and a trailer"));
    }
    let trailer_start = end - TRAILER_SIZE;
    let mut trailer = Reader::new(&bytes[trailer_start..]);
    let (offset, size, checksum) = (trailer.u64()?, trailer.u64()?, trailer.u32()?);
    if trailer.slice(8)? != format::END_MAGIC {
        return Err(fail(trailer_start, "a trailer's magic number"));
    }
    let sizes_agree = HEADER_SIZE as u64 <= offset
        && offset.checked_add(size).is_some_and(|sum| sum == trailer_start as u64);
    if !sizes_agree {
        return Err(fail(trailer_start, "a directory before the trailer"));
    }
    let start = to_usize(offset);
    let directory = &bytes[start..trailer_start];
    if crc32(directory) != checksum {
        return Err(fail(start, "checksum of the directory"));
    }
    Ok((offset, directory))
}
