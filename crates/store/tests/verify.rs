//! What verification says of each kind of damage that leaves every checksum right: things that do
//! not agree with each other. And what it says of sound stores and snapshots.
//!
//! Damage that checksums tell is in `repair.rs`.

use crate::damaged::{
    DATA, FIRST, SECOND_MONTH, answers, check_repaired, flip, nth, repair, small_store, verify,
    write,
};
use crate::stores;
use std::path::Path;
use std::sync::Arc;
use store::inside::Manifest;
use store::{Snapshots, VerifyReport};
use vfs::{SimVfs, Vfs};
use wal::Kept;

/// What becomes of a record, and what is said of it.
type Case = (fn(wal::RecordRef<'_>) -> Kept, &'static str);

#[track_caller]
fn expect(report: &VerifyReport, words: &str) {
    let is_said = report.problems.iter().any(|problem| problem.contains(words));
    assert!(is_said, "{words:?} is not in {:#?}", report.problems);
}

/// Changes the manifest of a month.
fn edit(disk: &SimVfs, month: &str, change: impl FnOnce(&mut Manifest)) {
    let mut manifest = Manifest::read(disk, Path::new(month)).unwrap().unwrap();
    change(&mut manifest);
    manifest.write(disk, Path::new(month)).unwrap();
}

/// Writes the first segment of the log again.
fn edit_log(disk: &SimVfs, change: impl Fn(wal::RecordRef<'_>) -> Kept) {
    let dir = Path::new("/data/wal");
    let segment = wal::first_segment(disk, dir).unwrap().unwrap();
    let written = wal::rewrite(disk, dir, segment, &mut |record| change(record)).unwrap();
    disk.rename(&written, &dir.join(wal::segment_name(segment))).unwrap();
    disk.sync_dir(dir).unwrap();
}

#[test]
fn a_sound_store_and_its_snapshots_are_clean() {
    let disk = small_store(1);
    let report = verify(&disk);
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.notes, Vec::<String>::new());
    assert!(1000 < report.samples && 10 < report.files && 0 < report.series, "{report:?}");

    let store = stores::open(&disk, stores::config());
    let name = store.create_snapshot().unwrap();
    drop(store);
    let snapshot = Path::new("/data/snapshots").join(name);
    assert!(!disk.exists(&snapshot.join("wal")).unwrap());
    let report = store::verify(Arc::new(disk.clone()), &snapshot, &mut |_| ()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    flip(&disk, &nth(&disk, snapshot.join("partitions/2020-02/parts").to_str().unwrap(), 0), 0.4);
    let with = |snapshots| {
        store::verify_with(Arc::new(disk.clone()), Path::new(DATA), snapshots, &mut |_| ()).unwrap()
    };
    assert_eq!(with(Snapshots::Skip).problem_count(), 1, "it is a link to the store's own file");
    expect(&with(Snapshots::Check), "/data/snapshots");
}

#[test]
fn progress_reaches_its_end() {
    let disk = small_store(1);
    let (mut files, mut last) = (0, 0);
    let mut on_progress = |progress: &store::Progress<'_>| {
        assert!(last <= progress.done && progress.done <= progress.total, "{progress:?}");
        (files, last) = (files + 1, progress.done);
    };
    let report = store::verify(Arc::new(disk), Path::new(DATA), &mut on_progress).unwrap();
    assert_eq!(report.files, files);
}

#[test]
fn no_store_and_a_store_in_use_cannot_be_verified() {
    let disk = SimVfs::new(1);
    disk.create_dir_all(Path::new(DATA)).unwrap();
    let try_it = |disk: &SimVfs| {
        store::verify(Arc::new(disk.clone()), Path::new(DATA), &mut |_| ()).unwrap_err().to_string()
    };
    assert!(try_it(&disk).contains("holds no store"));
    let disk = small_store(1);
    let _store = stores::open(&disk, stores::config());
    assert!(try_it(&disk).contains("lock"), "{}", try_it(&disk));
}

#[test]
fn a_segment_that_the_manifest_forgot() {
    let disk = small_store(1);
    let truth = answers(&disk).unwrap();
    edit(&disk, SECOND_MONTH, |manifest| drop(manifest.segments.remove(0)));
    let report = verify(&disk);
    expect(&report, ".seg: is an orphan: the manifest does not name it");
    expect(&report, ".part: has samples of ");
    expect(&report, "that the index does not know");
    expect(&report, "a row of unknown entity");
    let (_, lost) = repair(&disk).unwrap();
    check_repaired(&disk, &truth, &lost, "forgotten segment");
}

#[test]
fn samples_in_a_dead_slot() {
    let disk = small_store(1);
    let truth = answers(&disk).unwrap();
    let folder = Path::new(SECOND_MONTH).join("index");
    let manifest = Manifest::read(&disk, Path::new(SECOND_MONTH)).unwrap().unwrap();
    let index = index::Index::open(Arc::new(disk.clone()), &folder, &manifest.segments).unwrap();
    let block = index.blocks().unwrap().into_iter().find(|block| 3 < block.len).unwrap();
    let without = index.merge_job(0..1).run(Some(&|entity| entity == block.entity_start + 1));
    let entry = without.unwrap().entry();
    edit(&disk, SECOND_MONTH, |manifest| manifest.segments[0] = entry);
    expect(&verify(&disk), "that the index does not know");
    let (_, lost) = repair(&disk).unwrap();
    let found = check_repaired(&disk, &truth, &lost, "dead slot");
    assert!(found.len() < truth.len());
    assert!(lost.iter().any(|one| one.text.contains("whose labels are lost")));
}

#[test]
fn parts_that_changed_places() {
    let disk = small_store(1);
    let truth = answers(&disk).unwrap();
    let parts = format!("{FIRST}/parts");
    let (first, second) = (nth(&disk, &parts, 0), nth(&disk, &parts, 1));
    let (one, two) = (disk.read(&first).unwrap(), disk.read(&second).unwrap());
    write(&disk, &first, &two);
    write(&disk, &second, &one);
    expect(&verify(&disk), ".part: says that its order is 2, the manifest 1");
    let (_, lost) = repair(&disk).unwrap();
    let found = check_repaired(&disk, &truth, &lost, "changed places");
    assert_eq!((found.len(), lost.len()), (truth.len(), 0));
}

#[test]
fn a_part_of_another_month() {
    let disk = small_store(1);
    let foreign = disk.read(&nth(&disk, &format!("{FIRST}/parts"), 0)).unwrap();
    write(&disk, &nth(&disk, &format!("{SECOND_MONTH}/parts"), 0), &foreign);
    expect(&verify(&disk), "has samples outside of 2020-03: from ");
    repair(&disk).unwrap();
    assert_eq!(verify(&disk).problems, Vec::<String>::new());
    answers(&disk).unwrap();
}

#[test]
fn records_of_the_log_that_make_no_sense() {
    let cases: [Case; 3] = [
        (|_| Kept::Changed(vec![0xff; 12]), "does not decode"),
        (
            |record| Kept::Changed(record.payload[..record.payload.len() - 1].to_vec()),
            "rows do not decode",
        ),
        (
            // The month, no registrations, nanoseconds, a row of an entity far away.
            |record| {
                let month = &record.payload[..2];
                Kept::Changed([month, &[0, 0, 0xfc, 0xff, 0xff, 0x0f, 0, 2, 2]].concat())
            },
            "a row of unknown entity 8388607 of 2020-03",
        ),
    ];
    for (change, words) in cases {
        let disk = small_store(1);
        edit_log(&disk, change);
        let report = verify(&disk);
        expect(&report, words);
        expect(&report, ".wal: the record at byte 32: ");
        let (_, lost) = repair(&disk).unwrap();
        assert!(lost.iter().any(|one| one.text.contains(words)), "{lost:?}");
        assert_eq!(verify(&disk).problems, Vec::<String>::new());
        answers(&disk).unwrap();
    }
}

#[test]
fn a_manifest_that_breaks_the_rules() {
    let disk = small_store(1);
    let truth = answers(&disk).unwrap();
    // Written byte by byte: the store refuses to write such a one.
    let path = Path::new(FIRST).join("MANIFEST");
    let mut bytes = disk.read(&path).unwrap();
    let body = bytes.len() - 4;
    // magic, month (two bytes), wal_from, sequence_next, count of parts, then file, order, applied
    // of the first.
    assert_eq!(bytes[11..16], [3, 2, 1, 1, 1]);
    bytes[11] = 2;
    let crc = codec::crc32(&bytes[..body]);
    bytes[body..].copy_from_slice(&crc.to_le_bytes());
    write(&disk, &path, &bytes);
    expect(&verify(&disk), "MANIFEST: is corrupt at byte");
    expect(&verify(&disk), "a part of a later number");
    let (_, lost) = repair(&disk).unwrap();
    let found = check_repaired(&disk, &truth, &lost, "rules");
    assert_eq!(found.len(), truth.len());
}
