//! A start makes a damaged or missing manifest of a partition again: nothing is lost, writes go on.

use crate::damaged::{
    self, FIRST, SECOND, SECOND_MONTH, TURN, answers, check_repaired, copy, cut, flip, partial,
    remove, repair, settled, small_store, try_open,
};
use crate::stores;
use model::TimeRange;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vfs::{SimVfs, Vfs};

fn manifest_of(month: &str) -> PathBuf {
    Path::new(month).join("MANIFEST")
}

fn zero(disk: &SimVfs, path: &Path) {
    let size = disk.size(path).unwrap() as usize;
    damaged::write(disk, path, &vec![0; size]);
}

/// What can happen to a manifest.
const DAMAGES: [fn(&SimVfs, &Path); 5] = [
    |disk, path| remove(disk, path),
    |disk, path| flip(disk, path, 0.1),
    |disk, path| flip(disk, path, 0.9),
    |disk, path| cut(disk, path, 0.5),
    zero,
];

/// All float samples and what an answer says is missing; opens a copy of the disk.
fn answer(disk: &SimVfs) -> (BTreeMap<(String, i64), u64>, Vec<String>) {
    partial(&stores::open(&copy(disk), stores::config()), TimeRange::ALL)
}

fn write_more(disk: &SimVfs) {
    let store = stores::open(disk, stores::config());
    damaged::append(&store, 0..40, TURN + 900 * SECOND);
    store.flush().unwrap();
    damaged::append(&store, 35..45, TURN + 910 * SECOND);
}

/// The same disk after more was written to the second month.
fn written_more(disk: &SimVfs) -> SimVfs {
    let disk = copy(disk);
    write_more(&disk);
    settled(&disk)
}

#[test]
fn a_damaged_manifest_costs_nothing_and_writes_go_on() {
    let whole = small_store(1);
    let (truth, later) = (answer(&whole), written_more(&whole));
    let (later, later_truth) = (answer(&later), answers(&later).unwrap());
    assert_eq!((truth.1.len(), later.1.len()), (0, 0));
    for (idx, damage) in DAMAGES.iter().enumerate() {
        for month in [FIRST, SECOND_MONTH] {
            let disk = copy(&whole);
            damage(&disk, &manifest_of(month));
            let disk = settled(&disk);
            // The second time, too: a deletion may be undone until a repair accepts it.
            for _ in 0..2 {
                let (found, said) = answer(&disk);
                assert_eq!(found, truth.0, "damage {idx}: {month}");
                assert!(said[0].contains("MANIFEST"), "{said:?}");
                let store = stores::open(&disk, stores::config());
                assert_eq!(store.damaged_partitions(), []);
                let is_manifest = |one: &store::Damage| one.file.ends_with("MANIFEST");
                assert!(store.damage().iter().any(is_manifest), "{:?}", store.damage());
            }
            let disk = written_more(&disk);
            assert_eq!(answer(&disk).0, later.0, "damage {idx}: {month}");
            let report = damaged::verify(&disk);
            assert_eq!(report.problem_count(), 1, "{:?}", report.problems);
            let (_, lost) = repair(&disk).unwrap();
            check_repaired(&disk, &later_truth, &lost, month);
            assert_eq!(answer(&disk), later, "damage {idx}: {month}");
        }
    }
}

#[test]
fn a_start_that_dies_while_it_makes_a_manifest_again_is_followed_by_another() {
    let whole = small_store(2);
    let truth = answer(&whole).0;
    flip(&whole, &manifest_of(SECOND_MONTH), 0.5);
    let whole = settled(&whole);
    let mut deaths = 0;
    for operation in 1.. {
        let dying = copy(&whole);
        dying.fail_after(operation);
        let opened = try_open(&dying);
        let is_done = opened.is_ok();
        drop(opened);
        assert_eq!(answer(&dying.crash()).0, truth, "died at operation {operation}");
        if is_done {
            break;
        }
        deaths += 1;
    }
    assert!(3 < deaths, "{deaths}");
}

/// The numbers of lost series must not be given to others: this takes a repair.
#[test]
fn a_manifest_is_not_made_again_without_all_of_the_index() {
    for newest in [false, true] {
        let disk = small_store(3);
        remove(&disk, &manifest_of(SECOND_MONTH));
        let index = format!("{SECOND_MONTH}/index");
        let last = disk.list(Path::new(&index)).unwrap().len() - 1;
        let segment = damaged::nth(&disk, &index, if newest { last } else { 0 });
        remove(&disk, &segment);
        let disk = settled(&disk);
        let store = stores::open(&disk, stores::config());
        assert_eq!(store.damaged_partitions().len(), 1);
        assert!(!disk.exists(&manifest_of(SECOND_MONTH)).unwrap(), "nothing is changed");
    }
}
