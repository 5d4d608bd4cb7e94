//! What a snapshot has in its tail is kept by whoever repairs it before its first checkpoint.

use crate::replay::open_with_checkpoint_under;
use crate::rig::{Map, Rig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::{SimVfs, Vfs};

const SNAPSHOT: &str = "/snapshot";
/// What came while the snapshot was made: all of it is in the tail.
const MEANWHILE: &[&str] = &["rename l m", "set new x", "rpush m b", "zadd z 2 b", "append new y"];

/// A disk with a snapshot that has a tail, and what the snapshot holds.
fn snapshot() -> (SimVfs, Map) {
    let disk = SimVfs::new(4);
    let rig = open_with_checkpoint_under(&disk, MEANWHILE);
    rig.kv.snapshot(Path::new(SNAPSHOT)).expect("a good disk");
    let map = rig.map();
    drop(rig);
    let copy = disk.crash();
    let (_, size) = file(&copy, "tail");
    assert!(50 < size, "there is a tail, of {size} bytes");
    (copy, map)
}

/// The file of the snapshot with that ending, and its size.
fn file(disk: &SimVfs, end: &str) -> (PathBuf, u64) {
    let is_it =
        |path: &Path| path.starts_with(SNAPSHOT) && path.extension().is_some_and(|one| one == end);
    let found = disk.files().into_iter().find(|(path, _)| is_it(path));
    found.unwrap_or_else(|| panic!("no file .{end}"))
}

fn problems(disk: &SimVfs) -> Vec<(PathBuf, String)> {
    let report = kv::verify::verify(disk, Path::new(SNAPSHOT)).expect("listable").expect("keys");
    report.problems
}

/// Repairs the snapshot and returns what it holds then.
fn repaired(disk: &SimVfs, what: &str) -> Map {
    assert_ne!(problems(disk), Vec::new(), "{what}");
    let plan = kv::repair::plan(disk, Path::new(SNAPSHOT)).expect("listable");
    let plan = plan.unwrap_or_else(|| panic!("{what}: nothing to repair"));
    let folder = plan.apply(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let tail = |path: &Path| path.starts_with(&folder) && path.to_string_lossy().contains(".tail");
    assert!(disk.files().iter().any(|(path, _)| tail(path)), "{what}: the old tail moves aside");
    clean_map(disk, what)
}

/// What a snapshot holds that verifies clean, opened twice.
fn clean_map(disk: &SimVfs, what: &str) -> Map {
    assert_eq!(problems(disk), Vec::new(), "{what}, repaired");
    assert!(kv::repair::plan(disk, Path::new(SNAPSHOT)).expect("listable").is_none(), "{what}");
    let open = || Rig::open_in(Arc::new(disk.clone()), Path::new(SNAPSHOT)).expect("whole");
    let map = open().map();
    let again = open();
    assert_eq!(again.map(), map, "{what}");
    again.close().expect("a good disk");
    map
}

#[test]
fn a_repair_keeps_the_tail_of_a_snapshot() {
    let (disk, before) = snapshot();
    for end in ["index", "MANIFEST"] {
        let rotten = disk.kill();
        let path = match end {
            "index" => file(&rotten, end).0,
            _ => Path::new(SNAPSHOT).join("keys").join(end),
        };
        rotten.flip_bit(&path, 20, 1).expect("there");
        let mut found = repaired(&rotten, end);
        // Made of all records: the name before the tail renamed it is another key, which it takes out.
        found.retain(|key, _| before.contains_key(key));
        assert_eq!(found, before, "{end}");
    }
}

#[test]
fn a_rotten_record_costs_its_key_and_not_the_tail() {
    let (disk, before) = snapshot();
    let (path, size) = file(&disk, "cold");
    let mut kept = 0;
    for offset in (8..size).step_by(16) {
        let rotten = disk.kill();
        rotten.flip_bit(&path, offset, 1).expect("there");
        if problems(&rotten).is_empty() {
            continue;
        }
        let found = repaired(&rotten, &format!("at {offset}"));
        let new = (0, b"new".to_vec());
        assert_eq!(found.get(&new), before.get(&new), "at {offset}: it is in the tail alone");
        kept += 1;
    }
    assert!(0 < kept);
}

#[test]
fn of_a_rotten_tail_what_stands_before_the_damage_is_kept() {
    let (disk, before) = snapshot();
    let (path, size) = file(&disk, "tail");
    let mut most = 0;
    for offset in 8..size {
        let (flipped, cut) = (disk.kill(), disk.kill());
        flipped.flip_bit(&path, offset, (offset % 8) as u8).expect("there");
        cut.truncate(&path, offset).expect("there");
        for (rotten, what) in [(flipped, "flipped"), (cut, "cut")] {
            let found = repaired(&rotten, &format!("{what} at {offset}"));
            most = most
                .max(found.iter().filter(|(key, value)| before.get(*key) == Some(value)).count());
        }
    }
    assert_eq!(most, before.len(), "damage at the end costs nothing");
}

#[test]
fn a_repair_that_dies_is_done_again() {
    let (disk, before) = snapshot();
    disk.flip_bit(&file(&disk, "index").0, 20, 1).expect("there");
    let plan = |disk: &SimVfs| kv::repair::plan(disk, Path::new(SNAPSHOT)).expect("listable");
    let mut deaths = 0;
    for operation in 1.. {
        let dying = disk.kill();
        let planned = plan(&dying).expect("damage");
        dying.fail_after(operation);
        let applied = planned.apply(&dying);
        let after = dying.crash();
        if let Some(again) = plan(&after) {
            again.apply(&after).expect("a good disk");
        }
        let mut found = clean_map(&after, &format!("died at operation {operation}"));
        found.retain(|key, _| before.contains_key(key));
        assert_eq!(found, before, "died at operation {operation}");
        if applied.is_ok() {
            break;
        }
        deaths += 1;
    }
    assert!(10 < deaths, "{deaths}");
}
