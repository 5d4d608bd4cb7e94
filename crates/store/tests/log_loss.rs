//! Loss of the log as a whole, of `START` or `END`, and an older copy of its directory: `DATA/MANIFEST`
//! names the log, so a start and `verify` report it, and segment numbers are never used again.

use crate::damaged::{
    self, DATA, SECOND, TURN, answers, copy, remove, repair, settled, try_open, verify,
};
use crate::stores;
use std::path::{Path, PathBuf};
use store::{DamagePlace, Store};
use vfs::{SimVfs, Vfs};

const WAL: &str = "/data/wal";

/// A killed store: one flushed part, and acknowledged rows in two segments of the log. Also a copy of
/// the log from before the last segment was begun.
fn killed() -> (SimVfs, Vec<(PathBuf, Vec<u8>)>) {
    let disk = SimVfs::new(1);
    disk.set_now(TURN);
    let store = stores::open(&disk, stores::config());
    damaged::append(&store, 0..3, TURN);
    store.flush().unwrap();
    damaged::append(&store, 0..3, TURN + SECOND);
    drop(store);
    let older = settled(&disk);
    let files = names(&older).into_iter().map(|path| (path.clone(), older.read(&path).unwrap()));
    let files = files.collect();
    let store = stores::open(&disk, stores::config());
    damaged::append(&store, 0..3, TURN + 2 * SECOND);
    drop(store);
    (settled(&disk), files)
}

fn names(disk: &SimVfs) -> Vec<PathBuf> {
    disk.list(Path::new(WAL)).unwrap().iter().map(|name| Path::new(WAL).join(name)).collect()
}

fn remove_all(disk: &SimVfs, is_removed: impl Fn(&Path) -> bool) {
    names(disk).iter().filter(|path| is_removed(path)).for_each(|path| remove(disk, path));
}

fn restore(disk: &SimVfs, files: &[(PathBuf, Vec<u8>)]) {
    remove_all(disk, |_| true);
    for (path, bytes) in files {
        vfs::write_atomic(disk, path, bytes).unwrap();
    }
}

/// Files of the log that a store reports as damaged.
fn damaged_files(store: &Store) -> Vec<String> {
    let damage = store.damage().into_iter().filter(|one| one.place == DamagePlace::Log);
    damage.map(|one| one.file).collect()
}

/// Checks that the loss is reported, that no segment number is used twice, and that a repair accepts
/// the loss.
fn check_reported(disk: &SimVfs, what: &str, files: &[&str], last: u64) {
    let disk = settled(disk);
    for file in files {
        let problems = verify(&disk).problems;
        let is_named = problems.iter().any(|one| one.file.ends_with(file));
        assert!(is_named, "{what}: {file}: {problems:?}");
    }
    let repaired = copy(&disk);
    let (_, lost) = repair(&repaired).unwrap();
    assert!(!lost.is_empty(), "{what}");
    assert_eq!(verify(&repaired).problems, Vec::<String>::new(), "{what}");
    for disk in [disk, repaired] {
        let is_repaired = verify(&disk).problem_count() == 0;
        let store = try_open(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        let reported = damaged_files(&store);
        if is_repaired {
            assert_eq!(reported, Vec::<String>::new(), "{what}: accepted");
        } else {
            assert_eq!(reported, files, "{what}");
        }
        assert!(store.damage().iter().all(|one| one.samples.is_none()), "{what}: unknown");
        damaged::append(&store, 0..3, TURN + 3 * SECOND);
        drop(store);
        let newest = names(&disk).iter().filter_map(|path| segment(path)).max();
        assert!(newest.is_some_and(|newest| last < newest), "{what}: {newest:?} after {last}");
        let truth = answers(&settled(&disk)).unwrap();
        let is_new = |(_, time): &&(_, i64)| *time == TURN + 3 * SECOND;
        assert!(truth.keys().any(|sample| is_new(&sample)), "{what}: writes go on");
        assert_eq!(verify(&settled(&disk)).problems, Vec::<String>::new(), "{what}: reported once");
    }
}

fn segment(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".wal")?.parse().ok()
}

#[test]
fn loss_of_the_log_is_reported_and_no_segment_number_is_used_again() {
    let (disk, older) = killed();
    assert_eq!(verify(&disk).problems, Vec::<String>::new());
    let last = names(&disk).iter().filter_map(|path| segment(path)).max().unwrap();
    let both: &[&str] = &["wal/START", "wal/END"];

    let damaged = copy(&disk);
    damaged.remove_dir_all(Path::new(WAL)).unwrap();
    damaged.sync_dir(Path::new(DATA)).unwrap();
    check_reported(&damaged, "directory removed", both, last);

    let damaged = copy(&disk);
    remove_all(&damaged, |_| true);
    check_reported(&damaged, "directory emptied", both, last);

    let damaged = copy(&disk);
    remove_all(&damaged, |path| !path.ends_with("END"));
    check_reported(&damaged, "segments and START removed", &both[..1], last);

    for (name, file) in [("START", &both[..1]), ("END", &both[1..])] {
        let damaged = copy(&disk);
        remove_all(&damaged, |path| path.ends_with(name));
        check_reported(&damaged, name, file, last);
        assert_eq!(
            answers(&damaged).unwrap(),
            answers(&disk).unwrap(),
            "{name}: no sample is lost"
        );
    }

    let damaged = copy(&disk);
    restore(&damaged, &older);
    check_reported(&damaged, "older copy", &both[..1], last);
}

#[test]
fn loss_of_the_log_is_reported_after_a_clean_stop_and_in_a_new_store() {
    for is_closed in [true, false] {
        let disk = SimVfs::new(2);
        disk.set_now(TURN);
        let store = stores::open(&disk, stores::config());
        damaged::append(&store, 0..3, TURN);
        if is_closed {
            store.close().unwrap();
        }
        drop(store);
        let disk = settled(&disk);
        assert_eq!(verify(&disk).problems, Vec::<String>::new());
        remove_all(&disk, |_| true);
        check_reported(&disk, "emptied", &["wal/START", "wal/END"], 0);
    }
}

#[test]
fn crash_never_leaves_a_manifest_that_names_more_than_the_log_has() {
    for seed in 0..60 {
        let disk = SimVfs::new(seed);
        disk.set_now(TURN);
        for round in 0..4 {
            let store = try_open(&disk).unwrap();
            assert_eq!(damaged_files(&store), Vec::<String>::new(), "seed {seed}");
            for step in 0..3 {
                let time = TURN + (round * 3 + step) * SECOND;
                damaged::append(&store, 0..2, time);
                if (seed as i64 + round + step) % 3 == 0 {
                    store.flush().unwrap();
                }
                let crashed = disk.crash();
                assert_eq!(verify(&crashed).problems, Vec::<String>::new(), "seed {seed}");
            }
        }
    }
}
