//! Damage in the files of a new backup.
//!
//! Files that the backup before has are not looked at: it has their bytes from when they were checked.
//! A damaged file goes into the manifest without its identity, so that the next backup reads and checks
//! it again and reports it once more.

use influx_schema::records::verify as schema;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use store::{BackupFile, Finding};
use vfs::RealVfs;

/// Damaged files that are named.
const SHOWN_MAX: usize = 20;
/// The inode of a file whose identity is not known; no file has it.
const NO_INODE: u64 = 0;

/// Paths of the files whose pieces are not known yet.
pub fn changed(files: &[BackupFile]) -> HashSet<PathBuf> {
    let unknown = files.iter().filter(|file| file.pieces.is_empty());
    unknown.map(|file| PathBuf::from(&file.path)).collect()
}

/// Decodes the changed files of a snapshot, and all schema records, keys or tables if a file of those has
/// changed.
///
/// # Errors
/// When the snapshot holds no store.
pub fn find(folder: &Path, changed: &HashSet<PathBuf>) -> anyhow::Result<Vec<Finding>> {
    let vfs = Arc::new(RealVfs::new());
    let is_changed = |path: &Path| {
        let below = path.strip_prefix(folder);
        below.is_ok_and(|below| changed.contains(below))
    };
    let mut problems = store::verify_changed(vfs.clone(), folder, &is_changed)?.problems;
    let has_changed = |part: &str| changed.iter().any(|path| path.starts_with(part));
    let finding = |(file, what)| Finding { file, what };
    let whole = |error: &dyn std::error::Error| Finding {
        file: folder.to_path_buf(),
        what: error.to_string(),
    };
    if has_changed(wal::kinds::KEYS) {
        match kv::verify::verify(vfs.as_ref(), folder) {
            Ok(keys) => {
                problems.extend(keys.into_iter().flat_map(|keys| keys.problems).map(finding));
            }
            Err(error) => problems.push(whole(&error)),
        }
    }
    if has_changed(wal::kinds::SCHEMA) {
        match schema::verify(vfs.as_ref(), folder, &folder.join(store::WAL_DIR)) {
            Ok(schema) => {
                problems.extend(schema.into_iter().flat_map(|schema| schema.problems).map(finding));
            }
            Err(error) => problems.push(whole(&error)),
        }
    }
    if has_changed(wal::kinds::TABLES) {
        match tables::verify::verify(vfs.as_ref(), folder, &folder.join(store::WAL_DIR)) {
            Ok(tables) => {
                problems.extend(tables.into_iter().flat_map(|tables| tables.problems).map(finding));
            }
            Err(error) => problems.push(whole(&error)),
        }
    }
    Ok(problems)
}

/// Takes the identity of damaged files away; of a file that is missing that of what is beside it.
pub fn forget_identity(folder: &Path, problems: &[Finding], files: &mut [BackupFile]) {
    for Finding { file: path, .. } in problems {
        let Ok(below) = path.strip_prefix(folder) else { continue };
        for ancestor in below.ancestors() {
            let mut is_found = false;
            for file in files.iter_mut().filter(|file| Path::new(&file.path).starts_with(ancestor))
            {
                file.inode = NO_INODE;
                is_found = true;
            }
            if is_found {
                break;
            }
        }
    }
}

/// Prints the damage in a backup; exit code 1 if there is some.
pub fn report(id: &str, problems: &[Finding]) -> ExitCode {
    if problems.is_empty() {
        return ExitCode::SUCCESS;
    }
    for problem in problems.iter().take(SHOWN_MAX) {
        eprintln!("quipu: damaged: {problem}");
    }
    eprintln!(
        "quipu: backup {id} has {} damaged places: it lacks what they held. Stop the server and run \
         quipu verify --repair; earlier backups may have what is lost",
        problems.len()
    );
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_lose_their_identity() {
        let file = |path: &str| BackupFile {
            path: path.to_string(),
            size: 1,
            modified: 1,
            inode: 7,
            pieces: vec![],
        };
        let paths = ["partitions/a/MANIFEST", "partitions/a/parts/1.part", "partitions/b/MANIFEST"];
        let inodes = |damaged: &str| {
            let mut files = paths.map(file);
            let finding = Finding { file: PathBuf::from(damaged), what: String::new() };
            forget_identity(Path::new("/s"), &[finding], &mut files);
            files.map(|file| file.inode)
        };
        assert_eq!(inodes("/s/partitions/a/parts/1.part"), [7, 0, 7]);
        assert_eq!(inodes("/s/partitions/b/index/1.seg"), [7, 7, 0], "a file that is missing");
        assert_eq!(inodes("/elsewhere"), [7, 7, 7]);
    }
}
