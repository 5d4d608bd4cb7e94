//! Which names may be in which directory, and what the others are.
//!
//! A file that no manifest names is *left over* when there is proof that nothing needs it: its
//! number was never given to a manifest, the manifest says that it may go, or its name says that it
//! was never finished. Any other is an *orphan*: nobody reads it, and nobody knows why.

use super::Snapshots;
use super::side::SIDE_FILES;
use crate::base::file_names::{
    CORRUPT_SUFFIX, INDEX_DIR, PARTITION_MANIFEST, PARTITIONS_DIR, PARTS_DIR, SNAPSHOTS_DIR,
    WAL_DIR,
};
use crate::base::period::Period;
use crate::partition::disk::manifest::Manifest;
use index::parse_segment_name;
use std::path::Path;
use vfs::Vfs;

/// The folder that repair moves damaged pieces to.
pub const DAMAGED_DIR: &str = "damaged";
/// How deep directories are followed when sizes are summed.
const DEPTH_MAX: usize = 8;

/// What a name in a directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stray {
    /// What belongs there.
    Known,
    /// Something that costs nothing, and what it is.
    Leftover(&'static str),
    /// Something that should not be there, and what it is.
    Orphan(&'static str),
}

/// Endings, or middles, that say what a file is.
fn by_name(name: &str) -> Option<Stray> {
    if name.ends_with(CORRUPT_SUFFIX) {
        return Some(Stray::Orphan("was set aside as corrupt"));
    }
    if name.ends_with(vfs::atomic::TEMPORARY_SUFFIX) {
        return Some(Stray::Leftover("was being written when the process ended; it goes"));
    }
    if name.ends_with(".partial") {
        return Some(Stray::Leftover("is a snapshot that was not finished; it goes"));
    }
    if name.ends_with(".deleted") || name.contains(".deleted-") {
        return Some(Stray::Leftover("was deleted and is on its way out"));
    }
    name.contains(".dropped-").then_some(Stray::Leftover("was dropped and is on its way out"))
}

/// A name in the data directory.
pub fn in_store(name: &str) -> Stray {
    // Of other consumers of the log, who look after theirs.
    const OTHERS: [&str; 3] = [wal::kinds::KEYS, wal::kinds::TABLES, wal::kinds::SCHEMA];
    const KNOWN: [&str; 4] = [PARTITIONS_DIR, SNAPSHOTS_DIR, WAL_DIR, vfs::LOCK_FILE];
    if OTHERS.contains(&name)
        || KNOWN.contains(&name)
        || SIDE_FILES.iter().any(|side| side.path == name)
    {
        return Stray::Known;
    }
    if name == DAMAGED_DIR {
        return Stray::Leftover("holds what repairs have moved aside");
    }
    by_name(name).unwrap_or(Stray::Leftover("is not of the store"))
}

/// A name in the directory of the partitions that is none of theirs.
pub fn in_partitions(name: &str) -> Stray {
    let unknown = match Period::parse(name) {
        Some(_) => Stray::Orphan("is a partition of another length than the others"),
        None => Stray::Orphan("is no partition"),
    };
    by_name(name).unwrap_or(unknown)
}

/// A name among the snapshots.
pub fn in_snapshots(name: &str) -> Stray {
    by_name(name).unwrap_or(Stray::Known)
}

/// A name in a partition's directory.
pub fn in_partition(name: &str) -> Stray {
    if [PARTITION_MANIFEST, PARTS_DIR, INDEX_DIR].contains(&name) {
        return Stray::Known;
    }
    by_name(name).unwrap_or(Stray::Leftover("is not of the store"))
}

/// A name in the log's directory.
pub fn in_log(name: &str) -> Stray {
    let is_side = |path: &str| path.strip_prefix("wal/").is_some_and(|side| side == name);
    if name.ends_with(".wal") || SIDE_FILES.iter().any(|side| is_side(side.path)) {
        return Stray::Known;
    }
    by_name(name).unwrap_or(Stray::Leftover("is not of the store"))
}

/// A name in the folder of a partition's parts.
pub fn in_parts(name: &str, manifest: &Manifest) -> Stray {
    let Some(number) = Manifest::part_number(name) else {
        return by_name(name).unwrap_or(Stray::Leftover("is not of the store"));
    };
    if manifest.parts.iter().any(|part| part.file == number) {
        return Stray::Known;
    }
    if manifest.sequence_next <= number {
        return Stray::Leftover("was left by a crash: its number was never given to a manifest");
    }
    if manifest.unvouched.contains(&Manifest::part_file(number)) {
        return Stray::Leftover("was left by a crash: the manifest says that it may go");
    }
    Stray::Orphan("is an orphan: the manifest does not name it")
}

/// A name in the folder of a partition's index segments.
pub fn in_index(name: &str, manifest: &Manifest) -> Stray {
    let Some((entities, sequence)) = parse_segment_name(name) else {
        return by_name(name).unwrap_or(Stray::Leftover("is not of the store"));
    };
    if manifest.segments.iter().any(|segment| segment.name == name) {
        return Stray::Known;
    }
    let named = || manifest.segments.iter().filter_map(|one| parse_segment_name(&one.name));
    if named().all(|(_, newest)| newest < sequence) {
        return Stray::Leftover("was left by a crash: it is younger than all in the manifest");
    }
    if manifest.unvouched.contains(&Manifest::segment_file(name)) {
        return Stray::Leftover("was left by a crash: the manifest says that it may go");
    }
    let is_in_newer = named().any(|(others, newer)| {
        sequence <= newer && others.start <= entities.start && entities.end <= others.end
    });
    match is_in_newer {
        true => Stray::Leftover("was left by a crash: a merged segment took its place"),
        false => Stray::Orphan("is an orphan: the manifest does not name it"),
    }
}

/// Bytes that a walk will read, about.
pub fn size_of_store(vfs: &dyn Vfs, dir: &Path, snapshots: Snapshots) -> u64 {
    let mut folders = vec![PARTITIONS_DIR, WAL_DIR];
    if snapshots == Snapshots::Check {
        folders.push(SNAPSHOTS_DIR);
    }
    folders.iter().map(|folder| size_below(vfs, &dir.join(folder), DEPTH_MAX)).sum()
}

fn size_below(vfs: &dyn Vfs, path: &Path, depth: usize) -> u64 {
    match vfs.list(path) {
        Ok(names) if 0 < depth => {
            names.iter().map(|name| size_below(vfs, &path.join(name), depth - 1)).sum()
        }
        Ok(_) => 0,
        Err(_) => vfs.size(path).unwrap_or(0),
    }
}
