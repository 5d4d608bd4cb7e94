//! Replaces a small file so that a crash leaves either the old or the new one, whole.
//!
//! ```text
//! write NAME.tmp ─► sync it ─► rename to NAME ─► sync the directory
//! ```

use crate::Vfs;
use crate::error::{Error, Result};
use std::io;
use std::path::{Path, PathBuf};

/// What a file that is being prepared is called: its final name and this.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// Gives `path` the content `bytes`, atomically and durably.
///
/// There may be only one writer of `path` at a time. What an earlier, interrupted call left
/// behind is removed.
///
/// # Errors
/// When any step fails. If it was the last one (the directory's sync), `path` has the new content
/// for now, and a crash may bring back the old one.
pub fn write_atomic(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = temporary_of(path)?;
    if vfs.exists(&temporary)? {
        vfs.remove(&temporary)?;
    }
    let mut file = vfs.create(&temporary)?;
    file.append(bytes)?;
    file.sync()?;
    assert_eq!(file.size(), bytes.len() as u64);
    drop(file);
    vfs.rename(&temporary, path)?;
    vfs.sync_dir(directory_of(path))
}

/// The directory a file is in; the current one for a bare name.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn temporary_of(path: &Path) -> Result<PathBuf> {
    let Some(name) = path.file_name() else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file");
        return Err(Error::new("write", path, source));
    };
    let mut name = name.to_os_string();
    name.push(TEMPORARY_SUFFIX);
    Ok(path.with_file_name(name))
}
