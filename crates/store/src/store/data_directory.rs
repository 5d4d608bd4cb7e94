//! Tells a data directory of Quipu from an empty one and from a directory of another program.
//!
//! A store is created in an empty directory alone: a misspelled path must not mix its files with those
//! of another database.

use crate::base::directory::{identity, partition_length, root_manifest};
use crate::base::file_names::PARTITIONS_DIR;
use crate::{Error, Result};
use std::path::Path;
use vfs::{LOCK_FILE, Vfs};

/// Names at the top of a data directory; the first two are there before any other file.
const OWN_NAMES: [&str; 5] = [
    PARTITIONS_DIR,
    LOCK_FILE,
    root_manifest::FILE_NAME,
    partition_length::FILE_NAME,
    identity::FILE_NAME,
];
/// Folder of orphaned files at the root of an ext file system.
const LOST_AND_FOUND: &str = "lost+found";
/// Names of foreign files in an error.
const SHOWN_MAX: usize = 3;

/// Contents of a directory that a store is opened in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryState {
    /// Missing or empty.
    Empty,
    /// Holds a store.
    Store,
}

/// Looks at the names in `dir`.
///
/// # Errors
/// [`Error::ForeignDirectory`] when `dir` has files and no store; I/O errors.
pub fn inspect_directory(vfs: &dyn Vfs, dir: &Path) -> Result<DirectoryState> {
    let names = match vfs.list(dir) {
        Ok(names) => names,
        Err(error) if error.is_not_found() => return Ok(DirectoryState::Empty),
        Err(error) => return Err(error.into()),
    };
    if names.iter().any(|name| OWN_NAMES.contains(&name.as_str())) {
        return Ok(DirectoryState::Store);
    }
    let is_foreign = |name: &&String| !name.starts_with('.') && *name != LOST_AND_FOUND;
    let mut foreign: Vec<&str> = names.iter().filter(is_foreign).map(String::as_str).collect();
    if foreign.is_empty() {
        return Ok(DirectoryState::Empty);
    }
    foreign.sort_unstable();
    let mut shown = foreign[..foreign.len().min(SHOWN_MAX)].join(", ");
    if SHOWN_MAX < foreign.len() {
        shown.push_str(", ...");
    }
    Err(Error::ForeignDirectory { directory: dir.to_path_buf(), names: shown })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreConfig};
    use std::sync::Arc;
    use vfs::SimVfs;

    fn open(disk: &SimVfs) -> Result<Arc<Store>> {
        Store::open(Arc::new(disk.clone()), Path::new("/data"), StoreConfig::standard())
    }

    #[test]
    fn directories_of_other_programs_are_refused_unchanged() {
        let disk = SimVfs::new(1);
        let dir = Path::new("/data");
        for name in ["chunks_head", "wal", "01J", "lock"] {
            disk.create_dir_all(&dir.join(name)).expect("a folder");
        }
        let error = open(&disk).err().expect("refused").to_string();
        assert!(
            error.contains("01J, chunks_head, lock, ...") && error.contains("empty"),
            "{error}"
        );
        let mut names = disk.list(dir).expect("a folder");
        names.sort_unstable();
        assert_eq!(names, ["01J", "chunks_head", "lock", "wal"]);
    }

    #[test]
    fn mount_points_are_empty() {
        let disk = SimVfs::new(1);
        let dir = Path::new("/data");
        for name in ["lost+found", ".snapshot"] {
            disk.create_dir_all(&dir.join(name)).expect("a folder");
        }
        assert_eq!(inspect_directory(&disk, dir).expect("readable"), DirectoryState::Empty);
        open(&disk).expect("opens").close().expect("closes");
        assert_eq!(inspect_directory(&disk, dir).expect("readable"), DirectoryState::Store);
        open(&disk).expect("opens again").close().expect("closes");
    }
}
