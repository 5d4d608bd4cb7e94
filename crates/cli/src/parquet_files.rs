//! Parquet files of a directory and of those within it.

use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};

/// Directories within each other.
const DEPTH_MAX: usize = 32;

/// Finds files, but those that are hidden or being written. No link is followed out of the directory.
///
/// # Errors
/// When a directory cannot be read.
pub fn collect(name: &Path, depth: usize, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let shown = || name.display().to_string();
    if depth == 0 && !name.is_dir() {
        files.push(name.to_path_buf());
        return Ok(());
    }
    if DEPTH_MAX < depth {
        bail!("{}: more than {DEPTH_MAX} directories within each other", name.display());
    }
    for entry in std::fs::read_dir(name).with_context(shown)? {
        let entry = entry.with_context(shown)?;
        let kind = entry.file_type()?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let path = entry.path();
        if kind.is_dir() && !is_hidden {
            collect(&path, depth + 1, files)?;
        } else if kind.is_file()
            && !is_hidden
            && path.extension().is_some_and(|end| end == "parquet")
        {
            files.push(path);
        }
    }
    Ok(())
}
