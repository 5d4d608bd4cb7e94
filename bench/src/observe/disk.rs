//! The size of a directory, as `du` counts it.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What lies below a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct DiskUse {
    /// Sum of the files' sizes.
    pub apparent_bytes: u64,
    /// Space they take on the disk, directories included.
    pub allocated_bytes: u64,
    /// How many files there are.
    pub files: u64,
}

/// Adds up everything below `dir`; several links to one file count once. Files that vanish while
/// we look, as a merge's inputs do, are left out.
pub fn measure(dir: &Path) -> DiskUse {
    let mut disk = DiskUse::default();
    let mut seen = HashSet::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(path) = pending.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            disk.allocated_bytes += metadata.blocks() * 512;
            let Ok(entries) = fs::read_dir(&path) else { continue };
            pending.extend(entries.flatten().map(|entry| entry.path()));
        } else if metadata.nlink() == 1 || seen.insert((metadata.dev(), metadata.ino())) {
            disk.apparent_bytes += metadata.len();
            disk.allocated_bytes += metadata.blocks() * 512;
            disk.files += 1;
        }
    }
    disk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_count_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("a"), vec![1; 10_000]).unwrap();
        fs::write(dir.path().join("sub/b"), vec![1; 100]).unwrap();
        fs::hard_link(dir.path().join("a"), dir.path().join("sub/c")).unwrap();
        let disk = measure(dir.path());
        assert_eq!((disk.apparent_bytes, disk.files), (10_100, 2));
    }
}
