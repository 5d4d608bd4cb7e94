//! A small file of a store, beside its partitions: what it is, its body, a checksum. It is read and written whole.
//!
//! ```text
//! magic (8 bytes)   body   crc32 of the body (4 bytes)
//! ```
//!
//! The magic's last byte is the version, a digit. In every version but 1 the checksum covers the
//! magic, too. A later version than ours is not damage: the store does not open, and nothing is
//! changed.

use crate::{Error, Result};
use codec::{Crc32, crc32, put_u32};
use std::path::PathBuf;
use vfs::Vfs;

/// Reads, and once more after a read error: a sector that is lost stays lost.
///
/// # Errors
/// Those of `read`.
pub(crate) fn read_twice<T>(read: &dyn Fn() -> Result<T>) -> Result<T> {
    let again = |error: Error| if error.is_unreadable() { read() } else { Err(error) };
    read().or_else(again)
}

/// A side file, there or not yet.
pub(crate) struct SideFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it starts with: its kind and version.
    pub magic: &'static [u8; 8],
}

impl SideFile {
    /// The body, if there is a file.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::UnknownVersion`], and I/O errors.
    pub fn read(&self, vfs: &dyn Vfs) -> Result<Option<Vec<u8>>> {
        if !vfs.exists(&self.path)? {
            return Ok(None);
        }
        self.body_of(vfs.read(&self.path)?).map(Some)
    }

    /// The body in the bytes of the file.
    ///
    /// # Errors
    /// [`Error::Corrupt`] and [`Error::UnknownVersion`].
    pub fn body_of(&self, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
        let Some(rest) = bytes.strip_prefix(self.magic) else {
            return Err(self.unknown_magic(&bytes));
        };
        let (body, checksum) =
            rest.split_last_chunk::<4>().ok_or_else(|| self.corrupt(bytes.len(), "cut short"))?;
        if self.checksum(body) != u32::from_le_bytes(*checksum) {
            return Err(self.corrupt(bytes.len() - checksum.len(), "checksum mismatch"));
        }
        bytes.truncate(self.magic.len() + body.len());
        bytes.drain(..self.magic.len());
        Ok(bytes)
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// On I/O errors; the file is the old or the new one then.
    pub fn write(&self, vfs: &dyn Vfs, body: &[u8]) -> Result<()> {
        let mut bytes = self.magic.to_vec();
        bytes.extend_from_slice(body);
        put_u32(&mut bytes, self.checksum(body));
        Ok(vfs::write_atomic(vfs, &self.path, &bytes)?)
    }

    fn checksum(&self, body: &[u8]) -> u32 {
        let mut checksum = Crc32::default();
        if self.magic.last() != Some(&b'1') {
            checksum.update(self.magic);
        }
        checksum.update(body);
        checksum.finish()
    }

    /// The error of a body that does not decode, at the file's offset.
    pub fn undecodable(&self, error: &codec::Error) -> Error {
        self.corrupt(self.magic.len() + error.offset, error.what)
    }

    /// A version is believed only if the checksum covers it, as it does in all versions but the
    /// first: a digit that rotted is damage, and costs this file alone.
    fn unknown_magic(&self, bytes: &[u8]) -> Error {
        let [kind @ .., max] = self.magic;
        let version = bytes.strip_prefix(kind).and_then(|rest| rest.first());
        let is_covered = bytes
            .split_last_chunk::<4>()
            .is_some_and(|(covered, checksum)| crc32(covered) == u32::from_le_bytes(*checksum));
        match version {
            Some(version) if is_covered && max < version => Error::UnknownVersion {
                file: self.path.clone(),
                version: char::from(*version).to_string(),
                known: format!("up to {}", char::from(*max)),
            },
            _ => self.corrupt(0, "not what such a file begins with"),
        }
    }

    fn corrupt(&self, offset: usize, what: &str) -> Error {
        Error::Corrupt { file: self.path.clone(), offset: offset as u64, what: what.into() }
    }
}
