//! High-water mark of the numbers of the string dictionary, kept apart from the dictionary.
//!
//! Samples of string fields are numbers of the dictionary in the schema records. A number that was given to
//! a second string would turn stored strings into others, so a dictionary that is lost, damaged or
//! replaced by an older copy must not start again from 1. Numbers are therefore reserved in this
//! file before a sample has them, and every start continues above the reserved ones.
//!
//! The root manifest has the last reserved number, too. The larger of both counts, so the loss of this
//! file, or an older copy of one of the two, does not lower it.

use crate::Result;
use crate::base::directory::root_manifest::Contents;
use crate::base::directory::side_file::SideFile;
use crate::base::file_names::STRINGS_FILE;
use crate::base::ground::Ground;
use crate::base::locks::lock;
use codec::{Reader, put_varint};
use std::path::Path;
use std::sync::Mutex;
use vfs::Vfs;

const MAGIC: &[u8; 8] = b"QPSTRNG2";
/// Numbers that are reserved beyond those needed, which saves writes of the file.
const RESERVE: u32 = 1024;

/// Last reserved number of the open store, as its file says; `None` if that is missing or damaged.
#[derive(Debug)]
pub struct StringNumbers {
    in_file: Mutex<Option<u32>>,
}

impl StringNumbers {
    /// Reads the file, and notes its number in the root manifest. Opening the store has reported
    /// damage already. If the manifest cannot be written, the next reservation writes it.
    pub fn open(ground: &Ground) -> StringNumbers {
        let Ground { vfs, dir, root, .. } = ground;
        let in_file = read(vfs.as_ref(), dir).ok().flatten();
        if let Some(number) = in_file {
            let _ = root.raise_string_number(vfs.as_ref(), dir, number);
        }
        StringNumbers { in_file: Mutex::new(in_file) }
    }

    /// Last number that may be in use.
    pub fn reserved(&self, ground: &Ground) -> Option<u32> {
        let in_root = Some(ground.root.string_number()).filter(|number| 0 < *number);
        (*lock(&self.in_file)).max(in_root)
    }

    /// Makes it durable that numbers up to `number` may be in use.
    ///
    /// # Errors
    /// On I/O errors; no sample may then have the number.
    pub fn reserve(&self, number: u32, ground: &Ground) -> Result<()> {
        let Ground { vfs, dir, root, .. } = ground;
        let mut in_file = lock(&self.in_file);
        let in_root = root.string_number();
        if in_file.is_some_and(|end| number <= end) && number <= in_root {
            return Ok(());
        }
        let reserved = in_file.unwrap_or(0).max(in_root);
        let end = if number <= reserved { reserved } else { number.saturating_add(RESERVE) };
        root.raise_string_number(vfs.as_ref(), dir, end)?;
        if *in_file != Some(end) {
            let mut body = Vec::new();
            put_varint(&mut body, u64::from(end));
            file(dir).write(vfs.as_ref(), &body)?;
            *in_file = Some(end);
        }
        Ok(())
    }
}

/// Reads the last reserved number; `None` without a file.
///
/// # Errors
/// [`crate::Error::Corrupt`], [`crate::Error::UnknownVersion`], and I/O errors.
pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<u32>> {
    let file = file(dir);
    let Some(body) = file.read(vfs)? else { return Ok(None) };
    let mut reader = Reader::new(&body);
    let number = reader.varint().map_err(|error| file.undecodable(&error))?;
    let number = u32::try_from(number).ok().filter(|_| reader.is_empty());
    let what = codec::Error { offset: 0, what: "no number of a string" };
    number.map(Some).ok_or_else(|| file.undecodable(&what))
}

/// Whether numbers of strings may be in use in a store that is not open.
pub fn is_used(vfs: &dyn Vfs, dir: &Path) -> bool {
    let in_root = Contents::read(vfs, dir).ok().flatten();
    in_root.is_some_and(|contents| 0 < contents.string_number)
        || vfs.exists(&dir.join(STRINGS_FILE)).unwrap_or(false)
}

fn file(dir: &Path) -> SideFile {
    SideFile { path: dir.join(STRINGS_FILE), magic: MAGIC }
}
