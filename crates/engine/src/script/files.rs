//! The scripts of a directory, for every runner in the same order.

use std::path::{Path, PathBuf};

/// The scripts of a directory with their paths, by name.
///
/// # Errors
/// When the directory, or one of them, cannot be read.
#[expect(clippy::disallowed_methods, reason = "scripts are part of the sources, no data")]
pub fn scripts_in(directory: &Path) -> std::io::Result<Vec<(PathBuf, String)>> {
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "test") {
            let text = std::fs::read_to_string(&path)?;
            scripts.push((path, text));
        }
    }
    scripts.sort();
    Ok(scripts)
}
