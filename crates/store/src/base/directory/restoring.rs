//! A data directory that a backup is being restored into: until all of it is there, it does not open.
//!
//! The mark is a file of its own, `DATA/RESTORING`, which is there before anything else and goes when
//! everything is on disk. Its text says which backup comes from where.

use crate::{Error, Result};
use std::path::Path;
use vfs::Vfs;

/// The file's name.
pub const MARKER: &str = "RESTORING";
/// Bytes of its text that are looked at.
const TEXT_SIZE_MAX: usize = 4096;

/// What the mark of a directory says; none when the directory has none.
///
/// # Errors
/// On I/O errors.
pub fn restoring(vfs: &dyn Vfs, dir: &Path) -> Result<Option<String>> {
    let file = dir.join(MARKER);
    if !vfs.exists(&file)? {
        return Ok(None);
    }
    let mut bytes = vfs.read(&file)?;
    bytes.truncate(TEXT_SIZE_MAX);
    Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()))
}

/// Marks a directory, durably.
///
/// # Errors
/// On I/O errors.
pub fn begin_restoring(vfs: &dyn Vfs, dir: &Path, text: &str) -> Result<()> {
    Ok(vfs::write_atomic(vfs, &dir.join(MARKER), text.as_bytes())?)
}

/// Takes the mark away: all that the directory is to have is on disk.
///
/// # Errors
/// On I/O errors.
pub fn end_restoring(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    vfs.remove(&dir.join(MARKER))?;
    Ok(vfs.sync_dir(dir)?)
}

/// Refuses a directory that is marked.
pub(crate) fn refuse_restoring(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    match restoring(vfs, dir)? {
        None => Ok(()),
        Some(text) => Err(Error::Invalid(format!(
            "{} is half restored ({text}): run the same quipu backup restore again, which goes on \
             where it stopped, or begin with an empty directory",
            dir.display()
        ))),
    }
}
