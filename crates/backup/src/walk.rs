//! What a snapshot has on disk: its folders and files, with what tells a file that is the same as before.

use super::directory::{modified, of_file};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use store::{BackupFile, is_below};

/// Folders, parents first, and files by path, without their pieces.
#[derive(Default)]
pub struct Found {
    /// Folders.
    pub folders: Vec<String>,
    /// Files.
    pub files: Vec<BackupFile>,
}

/// Looks through a directory.
///
/// # Errors
/// When it cannot be read, or has what is neither file nor folder.
pub fn walk(root: &Path) -> anyhow::Result<Found> {
    let mut found = Found::default();
    walk_into(root, "", &mut found)?;
    found.folders.sort();
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn walk_into(folder: &Path, prefix: &str, found: &mut Found) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).map_err(|error| of_file(error, folder))? {
        let entry = entry.map_err(|error| of_file(error, folder))?;
        let path = entry.path();
        let name = entry.file_name().into_string();
        let name = name.map_err(|_| anyhow::anyhow!("{}: a name is no UTF-8", path.display()))?;
        let below = format!("{prefix}{name}");
        if !is_below(&below) {
            anyhow::bail!("{}: not a name that a backup can have", path.display());
        }
        let metadata = entry.metadata().map_err(|error| of_file(error, &path))?;
        if metadata.is_dir() {
            walk_into(&path, &format!("{below}/"), found)?;
            found.folders.push(below);
        } else if metadata.is_file() {
            found.files.push(BackupFile {
                path: below,
                size: metadata.len(),
                modified: modified(&metadata),
                inode: metadata.ino(),
                pieces: Vec::new(),
            });
        } else {
            anyhow::bail!("{}: neither file nor folder", path.display());
        }
    }
    Ok(())
}
