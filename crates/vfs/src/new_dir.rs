//! Directories that nobody has used before.

use crate::{Result, Vfs};
use std::path::{Path, PathBuf};

/// Makes a directory of that name in another, or of that name and a number where there is one.
///
/// # Errors
/// On I/O errors.
pub fn create_new_dir(vfs: &dyn Vfs, parent: &Path, name: &str) -> Result<PathBuf> {
    let mut path = parent.join(name);
    for number in 2u64.. {
        if !vfs.exists(&path)? {
            break;
        }
        path = parent.join(format!("{name}-{number}"));
    }
    vfs.create_dir_all(&path)?;
    Ok(path)
}
