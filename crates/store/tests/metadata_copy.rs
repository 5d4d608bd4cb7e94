//! Damage to `DATA/metadata` or to `DATA/metadata.copy`: one of them costs nothing, is reported, and
//! is written again by a start, a flush or a repair. Damage to both names what is lost.

use crate::damaged::{
    self, DATA, SECOND, TURN, copy, flip, remove, repair, settled, verify, write,
};
use crate::stores;
use model::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Store, StoreConfig};
use vfs::{SimVfs, Vfs};

const MAIN: &str = "/data/metadata";
const COPY: &str = "/data/metadata.copy";
/// Words for a part of what is lost with both files.
const LOST: &str = "InfluxDB's databases and retention policies with their defaults";

type Entries = Vec<(String, String)>;
/// Does something to a file.
type Damage<'a> = Box<dyn Fn(&SimVfs, &Path) + 'a>;

fn help(metric: &str, help: &str) -> Metadata {
    Metadata { metric: metric.into(), help: help.into(), ..Metadata::default() }
}

fn entries(store: &Store) -> Entries {
    let metrics = store.metadata(None, usize::MAX).into_iter();
    metrics.map(|entry| (entry.metric, entry.help)).collect()
}

/// Entries of a copy of the disk, so that nothing changes.
fn entries_on(disk: &SimVfs) -> Entries {
    entries(&stores::open(&copy(disk), stores::config()))
}

/// A store whose files were written twice and are not in the log any more, and one of the first
/// write.
fn written() -> (SimVfs, SimVfs) {
    let disk = SimVfs::new(1);
    disk.set_now(TURN);
    let store = stores::open(&disk, stores::config());
    store.put_metadata(&[help("default", "autogen"), help("other", "x")]).unwrap();
    damaged::append(&store, 0..3, TURN);
    store.flush().unwrap();
    let older = settled(&disk);
    store.put_metadata(&[help("default", "p"), help("m", "h")]).unwrap();
    damaged::append(&store, 0..3, TURN + SECOND);
    store.close().unwrap();
    drop(store);
    (settled(&disk), older)
}

fn is_twice(disk: &SimVfs) -> bool {
    let bytes = |path: &str| disk.read(Path::new(path)).unwrap();
    bytes(MAIN) == bytes(COPY)
}

/// Everything that can happen to a file, by name.
fn damages(older: &SimVfs) -> Vec<(&'static str, Damage<'_>)> {
    let size = |disk: &SimVfs, path: &Path| disk.size(path).unwrap();
    vec![
        ("flip of the version", Box::new(|disk, path| disk.flip_bit(path, 7, 0).unwrap())),
        ("flip of the generation", Box::new(|disk, path| disk.flip_bit(path, 8, 1).unwrap())),
        ("flip", Box::new(|disk, path| flip(disk, path, 0.6))),
        ("flip of the checksum", Box::new(|disk, path| flip(disk, path, 0.99))),
        ("half", Box::new(move |disk, path| disk.truncate(path, size(disk, path) / 2).unwrap())),
        ("empty", Box::new(|disk, path| disk.truncate(path, 0).unwrap())),
        (
            "zeros",
            Box::new(move |disk, path| write(disk, path, &vec![0; size(disk, path) as usize])),
        ),
        ("removed", Box::new(remove)),
        ("older", Box::new(|disk, path| write(disk, path, &older.read(path).unwrap()))),
    ]
}

#[test]
fn damage_to_one_file_loses_nothing_and_is_reported() {
    let (disk, older) = written();
    let truth = entries_on(&disk);
    assert!(truth.contains(&("default".to_string(), "p".to_string())), "{truth:?}");
    assert_eq!(truth.len(), 3);
    for path in [MAIN, COPY].map(Path::new) {
        let name = path.file_name().unwrap().to_str().unwrap();
        for (damage, make) in damages(&older) {
            let what = format!("{name}: {damage}");
            let damaged = copy(&disk);
            make(&damaged, path);
            let damaged = settled(&damaged);
            // A crash leaves the copy behind, too: that is no damage.
            let is_crash = (path, damage) == (Path::new(COPY), "older");
            let report = verify(&damaged);
            let found = if is_crash { &report.notes } else { &report.problems };
            assert!(found.iter().any(|one| one.file == *path), "{what}: {report:?}");
            assert_eq!(report.problem_count(), u64::from(!is_crash), "{what}: {report:?}");

            let started = copy(&damaged);
            let store = stores::open(&started, stores::config());
            assert_eq!(entries(&store), truth, "{what}: after a start");
            let noted: Vec<_> =
                store.damage().into_iter().map(|one| (one.file, one.samples)).collect();
            let expected = (!is_crash).then(|| (name.to_string(), Some(0)));
            assert_eq!(noted, Vec::from_iter(expected), "{what}");
            assert!(is_twice(&started), "{what}: a start writes both again");
            store.close().unwrap();
            drop(store);
            let report = verify(&started);
            assert_eq!(report.problems, Vec::<String>::new(), "{what}");
            let is_said = |one: &store::Finding| one.contains("has been written again");
            assert_eq!(report.notes.iter().any(is_said), !is_crash, "{what}: {report:?}");
            let store = stores::open(&settled(&started), stores::config());
            assert_eq!((entries(&store), store.damage()), (truth.clone(), Vec::new()), "{what}");

            let (steps, lost) = repair(&damaged).unwrap();
            assert_eq!((steps.len(), lost.len()), (usize::from(!is_crash), 0), "{what}: {steps:?}");
            assert_eq!(is_twice(&damaged), !is_crash, "{what}: a repair writes both again");
            assert_eq!(verify(&damaged).problems, Vec::<String>::new(), "{what}");
            assert_eq!(entries_on(&damaged), truth, "{what}: after a repair");
        }
    }
}

#[test]
fn repair_keeps_the_damaged_file() {
    let (disk, _) = written();
    flip(&disk, Path::new(MAIN), 0.6);
    let bytes = disk.read(Path::new(MAIN)).unwrap();
    repair(&disk).unwrap();
    let is_kept = |path: &PathBuf| path.ends_with("metadata") && disk.read(path).unwrap() == bytes;
    let kept = damaged::files(&disk, "/data/damaged").into_iter().filter(is_kept).count();
    assert_eq!(kept, 1);
}

#[test]
fn damage_to_both_files_names_what_is_lost() {
    let (disk, older) = written();
    let is_loss = |damage: &str| damage != "older";
    for (first, damage_main) in damages(&older) {
        for (second, damage_copy) in damages(&older) {
            if !is_loss(first) || !is_loss(second) {
                continue;
            }
            let what = format!("{first}, {second}");
            let damaged = copy(&disk);
            damage_main(&damaged, Path::new(MAIN));
            damage_copy(&damaged, Path::new(COPY));
            let damaged = settled(&damaged);
            let report = verify(&damaged);
            assert!(report.problems.iter().any(|one| one.contains(LOST)), "{what}: {report:?}");
            let started = copy(&damaged);
            for start in 0..3 {
                let store = stores::open(&started, stores::config());
                assert_eq!(entries(&store), Entries::new(), "{what}");
                let is_named =
                    |one: &store::Damage| one.file == "metadata" && one.samples.is_none();
                assert!(store.damage().iter().any(is_named), "{what}, start {start}");
                assert!(store.damage().iter().any(|one| one.what.contains(LOST)), "{what}");
                store.close().unwrap();
            }
            let (_, lost) = repair(&damaged).unwrap();
            assert!(lost.iter().any(|one| one.text.contains(LOST)), "{what}: {lost:?}");
            // The start has named it.
            repair(&started).unwrap();
            for disk in [damaged, started] {
                assert_eq!(verify(&disk).problems, Vec::<String>::new(), "{what}");
                let store = stores::open(&disk, stores::config());
                assert_eq!(store.damage(), [], "{what}: accepted");
            }
        }
    }
}

/// Writes and flushes on a disk that dies after some operations, or on one that does not die.
fn live(disk: &SimVfs, last: &str) -> Result<(), store::Error> {
    let store = Store::open(Arc::new(disk.clone()), Path::new(DATA), stores::config())?;
    store.put_metadata(&[help("default", last), help(last, "")])?;
    store.close()
}

#[test]
fn crash_at_each_step_of_a_write_loses_no_entry() {
    for writes_before in 0..3 {
        let disk = SimVfs::new(1);
        disk.set_now(TURN);
        drop(stores::open(&disk, stores::config()));
        for write in 0..writes_before {
            live(&disk, &format!("p{write}")).unwrap();
        }
        let disk = settled(&disk);
        // Acknowledged, and in the log alone.
        let store = stores::open(&disk, stores::config());
        store.put_metadata(&[help("default", "last")]).unwrap();
        drop(store);
        let truth = entries_on(&disk);
        for death in 0.. {
            let dying = copy(&disk);
            dying.fail_after(death);
            let is_dead = live(&dying, "more").is_err();
            for after in [dying.crash(), dying.kill()] {
                check_after_crash(
                    &after,
                    &truth,
                    &format!("{writes_before} writes, death {death}"),
                );
            }
            if !is_dead {
                assert!(10 < death, "a write has more steps");
                break;
            }
        }
    }
}

/// No crash is taken for damage, and the entries are there, also with one of the files damaged.
#[track_caller]
fn check_after_crash(disk: &SimVfs, truth: &Entries, what: &str) {
    let disk = settled(disk);
    assert_eq!(verify(&disk).problems, Vec::<String>::new(), "{what}");
    let check = |disk: &SimVfs, what: &str| {
        let found = entries_on(disk);
        let is_there = |one: &(String, String)| found.contains(one) || one.0 == "default";
        assert!(truth.iter().all(is_there), "{what}: {found:?}");
        let default = found.iter().find(|one| one.0 == "default").map(|one| one.1.as_str());
        assert!(default.is_some_and(|one| ["last", "more"].contains(&one)), "{what}: {found:?}");
    };
    check(&disk, what);
    for path in [MAIN, COPY].map(Path::new) {
        if disk.exists(path).unwrap() {
            let flipped = copy(&disk);
            flip(&flipped, path, 0.7);
            let removed = copy(&disk);
            remove(&removed, path);
            let is_other_there =
                [MAIN, COPY].iter().all(|path| disk.exists(Path::new(path)).unwrap());
            if is_other_there {
                check(&settled(&flipped), &format!("{what}, {} damaged", path.display()));
                check(&settled(&removed), &format!("{what}, {} removed", path.display()));
            }
        }
    }
    let store = stores::open(&disk, stores::config());
    assert_eq!(store.damage(), [], "{what}");
    store.close().unwrap();
    let is_written = [MAIN, COPY].iter().all(|path| disk.exists(Path::new(path)).unwrap());
    assert!(is_written && is_twice(&disk), "{what}");
}

/// Replaces the files by the one of an earlier version, which has no generation and no copy.
fn downgrade(disk: &SimVfs) {
    let bytes = disk.read(Path::new(MAIN)).unwrap();
    let generation = 1;
    let body = &bytes[8 + generation..bytes.len() - 4];
    let old = [b"QPMETAD1", body, &codec::crc32(body).to_le_bytes()].concat();
    write(disk, Path::new(MAIN), &old);
    remove(disk, Path::new(COPY));
}

#[test]
fn stores_of_earlier_versions_open_and_get_a_copy() {
    let (disk, _) = written();
    let truth = entries_on(&disk);
    downgrade(&disk);
    let disk = settled(&disk);
    assert_eq!(verify(&disk).problems, Vec::<String>::new());
    // On a full disk, too: the first flush writes the copy.
    let full = copy(&disk);
    full.take_room(0);
    let store = stores::open(&full, stores::config());
    assert_eq!((entries(&store), store.damage()), (truth.clone(), Vec::new()));
    full.give_room();
    store.flush().unwrap();
    assert!(is_twice(&full));
    drop(store);

    let store = stores::open(&disk, stores::config());
    assert_eq!((entries(&store), store.damage()), (truth.clone(), Vec::new()));
    assert!(is_twice(&disk));
    drop(store);
    remove(&disk, Path::new(MAIN));
    assert_eq!(entries_on(&settled(&disk)), truth);
}

#[test]
fn damage_under_a_running_server_is_mended_by_the_next_flush() {
    let day = 86_400 * SECOND;
    let config = || StoreConfig { scrub_interval_ns: day, ..stores::config() };
    let scrub = |store: &Store, disk: &SimVfs| {
        disk.advance(2 * day as u64);
        while 0 < store.scrub_some(u64::MAX) {}
    };
    for (damaged, count) in [(&[MAIN][..], 1), (&[COPY], 1), (&[MAIN, COPY], 2)] {
        let (disk, _) = written();
        let store = stores::open(&disk, config());
        let truth = entries(&store);
        damaged.iter().for_each(|path| flip(&disk, Path::new(path), 0.6));
        scrub(&store, &disk);
        scrub(&store, &disk);
        let noted = store.damage();
        assert_eq!(noted.len(), count, "{noted:?}");
        assert!(noted.iter().all(|one| one.samples == Some(0)), "the table in memory is whole");
        store.flush().unwrap();
        assert!(is_twice(&disk), "{damaged:?}");
        scrub(&store, &disk);
        assert_eq!(store.damage(), [], "{damaged:?}");
        drop(store);
        assert_eq!(entries_on(&settled(&disk)), truth);
    }
}

#[test]
fn snapshots_have_both_files() {
    let (disk, _) = written();
    let store = stores::open(&disk, stores::config());
    let truth = entries(&store);
    let name = store.create_snapshot().unwrap();
    let snapshot = Path::new("/data/snapshots").join(name);
    for file in ["metadata", "metadata.copy"] {
        let disk = disk.kill();
        disk.remove(&snapshot.join(file)).unwrap();
        let store = Store::open(Arc::new(disk), &snapshot, stores::config()).unwrap();
        assert_eq!(entries(&store), truth, "without {file}");
    }
}
