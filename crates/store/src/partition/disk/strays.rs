//! Files that no manifest names: what may go, and what stays.
//!
//! A crash leaves files behind: outputs that no manifest came to name, inputs that it no longer
//! does. But a manifest that is old, or that rot has cost a line, does not name good files either.
//! So a stray goes only with proof, when the store opens:
//!
//! ```text
//! in the manifest's list of those that may go      ► goes
//! a part whose number was never given out          ► goes
//! an index segment younger than all named ones     ► goes
//! NAME.tmp, of a file that is replaced atomically  ► goes
//! anything else                                    ► stays, and is reported as an orphan
//! ```

use crate::Result;
use crate::base::file_names::{INDEX_DIR, PARTS_DIR};
use crate::partition::disk::manifest::Manifest;
use std::path::{Path, PathBuf};
use vfs::Vfs;

/// What a partition's directory is called once it is dropped: `YYYY-MM`, this, and a number.
pub const DROPPED_INFIX: &str = ".dropped-";
/// What a file being prepared ends in.
const TEMPORARY_SUFFIX: &str = vfs::atomic::TEMPORARY_SUFFIX;

/// What becomes of a file in a partition's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The manifest names it.
    Named,
    /// There is proof that it is not needed.
    Goes,
    /// Nobody knows.
    Orphan,
}

/// Removes what may go from a partition's directory; returns the files that nobody knows. What
/// cannot be removed is listed in the manifest, and its number not given out again.
///
/// # Errors
/// When a directory cannot be listed, or synced after something went.
pub fn clear(vfs: &dyn Vfs, dir: &Path, manifest: &mut Manifest) -> Result<Vec<PathBuf>> {
    let mut orphans = Vec::new();
    let mut left = Vec::new();
    for folder in [PARTS_DIR, INDEX_DIR] {
        let path = dir.join(folder);
        if !vfs.exists(&path)? {
            continue;
        }
        let mut has_gone = false;
        for name in vfs.list(&path)? {
            match fate(folder, &name, manifest) {
                Fate::Named => {}
                Fate::Goes if vfs.remove(&path.join(&name)).is_ok() => has_gone = true,
                Fate::Goes => left.push(format!("{folder}/{name}")),
                Fate::Orphan => orphans.push(path.join(&name)),
            }
        }
        if has_gone {
            vfs.sync_dir(&path)?;
        }
    }
    let numbers = left.iter().filter_map(|file| file.strip_prefix(PARTS_DIR)?.strip_prefix('/'));
    let newest = numbers.filter_map(Manifest::part_number).max();
    if let Some(newest) = newest {
        manifest.sequence_next = manifest.sequence_next.max(newest.saturating_add(1));
    }
    manifest.unvouched = left;
    Ok(orphans)
}

/// Removes directories of dropped partitions.
pub fn clear_dropped(vfs: &dyn Vfs, partitions: &Path) -> Result<()> {
    clear_directories(vfs, partitions, |name| name.contains(DROPPED_INFIX))
}

/// Removes the directories in `folder` that are meant; what cannot be removed stays for the next
/// time. First their names are made durable, by which they are known: of one that has its old name
/// again after a crash nothing may be missing.
pub fn clear_directories(
    vfs: &dyn Vfs,
    folder: &Path,
    is_meant: impl Fn(&str) -> bool,
) -> Result<()> {
    let mut names = vfs.list(folder)?;
    names.retain(|name| is_meant(name));
    if !names.is_empty() {
        vfs.sync_dir(folder)?;
    }
    for name in &names {
        // It only takes room.
        let _ = vfs.remove_dir_all(&folder.join(name));
    }
    Ok(())
}

fn fate(folder: &str, name: &str, manifest: &Manifest) -> Fate {
    let is_named = match folder {
        PARTS_DIR => Manifest::part_number(name)
            .is_some_and(|number| manifest.parts.iter().any(|part| part.file == number)),
        _ => manifest.segments.iter().any(|segment| segment.name == name),
    };
    if is_named {
        return Fate::Named;
    }
    let is_young = match folder {
        PARTS_DIR => {
            Manifest::part_number(name).is_some_and(|number| manifest.sequence_next <= number)
        }
        _ => index::sequence_of(name).is_some_and(|sequence| {
            let named = manifest.segments.iter().filter_map(|one| index::sequence_of(&one.name));
            named.max().is_none_or(|newest| newest < sequence)
        }),
    };
    let is_listed = || manifest.unvouched.contains(&format!("{folder}/{name}"));
    match is_young || name.ends_with(TEMPORARY_SUFFIX) || is_listed() {
        true => Fate::Goes,
        false => Fate::Orphan,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::disk::manifest::PartEntry;
    use index::SegmentEntry;

    #[test]
    fn files_go_only_with_proof() {
        let manifest = Manifest {
            sequence_next: 9,
            parts: vec![PartEntry { file: 3, order: 3, applied: 3 }],
            segments: vec![SegmentEntry::unchecked("00000000-00000010-000002.seg".into())],
            unvouched: vec![
                Manifest::part_file(5),
                Manifest::part_file(3),
                Manifest::segment_file("00000000-00000010-000001.seg"),
            ],
            ..Manifest::default()
        };
        let part = |number| fate(PARTS_DIR, &Manifest::part_name(number), &manifest);
        assert_eq!(part(3), Fate::Named, "though it is listed");
        assert_eq!(part(5), Fate::Goes, "listed");
        assert_eq!((part(8), part(9), part(10)), (Fate::Orphan, Fate::Goes, Fate::Goes));
        let segment = |name| fate(INDEX_DIR, name, &manifest);
        assert_eq!(segment("00000000-00000010-000002.seg"), Fate::Named);
        assert_eq!(segment("00000000-00000010-000001.seg"), Fate::Goes, "listed");
        assert_eq!(segment("00000010-00000020-000002.seg"), Fate::Orphan);
        assert_eq!(segment("00000010-00000020-000003.seg"), Fate::Goes);
        for name in ["x", "0000000000000003.part.corrupt", "a.seg"] {
            assert_eq!(fate(PARTS_DIR, name, &manifest), Fate::Orphan, "{name}");
            assert_eq!(fate(INDEX_DIR, name, &manifest), Fate::Orphan, "{name}");
        }
        assert_eq!(fate(PARTS_DIR, "x.tmp", &manifest), Fate::Goes);
    }
}
