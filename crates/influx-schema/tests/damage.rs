//! Damage to the files of schema records and to their records in the log: it costs what it hits, is
//! listed, found by a check, and gone after a repair.

use crate::rig::{DATA, KINDS, Map, Rig, open_store, records_of};
use influx_schema::records::{Change, Key, repair, verify};
use std::path::{Path, PathBuf};
use store::Need;
use vfs::{SimVfs, Vfs};

const MAIN: &str = "/data/schema/records";
const COPY: &str = "/data/schema/records.copy";
/// Words for a part of what is lost with both files.
const LOST: &str = "InfluxDB's databases and retention policies";

fn put(number: u32) -> [Change; 1] {
    [Change::put(Key::String { number }, format!("text {number}"))]
}

/// Records 1 to 3 are in the files, 4 to 6 in the log alone.
fn written() -> (SimVfs, Map) {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new disk");
    (1..=3).for_each(|number| rig.put(&put(number)).expect("a good disk"));
    rig.log.wal().rotate();
    rig.records.checkpoint().expect("a good disk");
    (4..=6).for_each(|number| rig.put(&put(number)).expect("a good disk"));
    let map = rig.map();
    drop(rig);
    (disk.kill(), map)
}

fn problems(disk: &SimVfs) -> Vec<(PathBuf, String)> {
    let data = Path::new(DATA);
    let report = verify::verify(disk, data, &data.join("wal")).expect("it is read");
    report.expect("there are records").problems
}

fn repair(disk: &SimVfs) -> (Vec<String>, Vec<String>) {
    let data = Path::new(DATA);
    let plan = repair::plan(disk, data, &data.join("wal")).expect("it is read").expect("damage");
    plan.apply(disk).expect("a good disk");
    (plan.steps().to_vec(), plan.losses().to_vec())
}

#[test]
fn damage_to_one_file_loses_nothing_and_is_reported() {
    for path in [MAIN, COPY].map(Path::new) {
        let (disk, truth) = written();
        assert_eq!(problems(&disk), []);
        disk.flip_bit(path, 20, 1).expect("there");
        let found = problems(&disk);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0 == path && found[0].1.contains("the other copy of it is used"));

        let started = disk.kill();
        let rig = Rig::open(&started).expect("it opens");
        assert_eq!(rig.map(), truth);
        let damage = rig.records.take_damage();
        assert_eq!(damage.len(), 1, "{damage:?}");
        assert_eq!(
            (damage[0].samples, Path::new(DATA).join(&damage[0].file)),
            (Some(0), path.into())
        );
        drop(rig);
        assert_eq!(problems(&started), [], "a start writes both again");

        let (steps, losses) = repair(&disk);
        assert!(steps.len() == 2 && losses.is_empty(), "{steps:?} {losses:?}");
        assert_eq!(problems(&disk), []);
        assert_eq!(Rig::open(&disk).expect("it opens").map(), truth, "after a repair");
    }
}

#[test]
fn damage_to_both_files_costs_them_and_not_the_log() {
    let (disk, truth) = written();
    [MAIN, COPY].iter().for_each(|path| disk.flip_bit(Path::new(path), 20, 1).expect("there"));
    let of_log: Map = truth.clone().into_iter().filter(|(_, value)| **value > *"text 3").collect();
    assert!(problems(&disk).iter().any(|(_, what)| what.contains(LOST)));

    let started = disk.kill();
    let rig = Rig::open(&started).expect("it opens");
    assert_eq!(rig.map(), of_log);
    assert!(rig.records.take_damage().iter().any(|one| one.what.contains(LOST)));
    rig.put(&put(7)).expect("it goes on");
    rig.close().expect("a good disk");
    drop(rig);
    assert_eq!(problems(&started).len(), 2, "files that were set aside");
    let rig = Rig::open(&started).expect("it opens");
    assert_eq!((rig.map().len(), rig.records.take_damage().len()), (4, 0));
    drop(rig);

    for disk in [disk, started] {
        let (_, losses) = repair(&disk);
        assert!(losses.iter().any(|loss| loss.contains(LOST)), "{losses:?}");
        assert_eq!(problems(&disk), []);
        let kept = |name: &str| disk.list(Path::new(name)).expect("a folder");
        let folders = kept("/data/damaged");
        let aside = Path::new("/data/damaged").join(&folders[0]).join("schema");
        assert_eq!(disk.list(&aside).expect("a folder").len(), 2, "nothing is deleted");
        let rig = Rig::open(&disk).expect("it opens");
        assert!(of_log.iter().all(|(key, value)| rig.map().get(key) == Some(value)));
        assert_eq!(rig.records.take_damage(), []);
    }
}

#[test]
fn lost_record_of_the_log_is_reported_until_a_repair() {
    let (disk, truth) = written();
    // As after a repair of the log that left a damaged record out: a sound one with a later number.
    let mut consumers = wal::Consumers::default();
    consumers.declare(wal::Consumer {
        name: wal::kinds::SCHEMA,
        kinds: &[wal::kinds::KIND_SCHEMA],
        replay_from: 0,
        next_segment_min: 0,
        take: Box::new(|_| Ok(())),
    });
    let config = wal::WalConfig { committer: wal::Committer::Waiter, ..wal::WalConfig::default() };
    let vfs: std::sync::Arc<dyn Vfs> = std::sync::Arc::new(disk.clone());
    let log = wal::Log::open(vfs, Path::new("/data/wal"), config, consumers).expect("it opens");
    let later = b"\x09\x01\x01\x0fstring\x0000000009\x01x";
    for payload in [&later[..], b"\x0a\x01\x09"] {
        let lsn = log.wal().append(wal::kinds::KIND_SCHEMA, payload).expect("a good disk");
        log.wal().wait_durable(lsn).expect("a good disk");
    }
    drop(log);
    let found = problems(&disk);
    assert!(found.len() == 2 && found[0].1.contains("changes 7 to 8 are missing"), "{found:?}");
    let started = disk.kill();
    let rig = Rig::open(&started).expect("it opens");
    assert_eq!(rig.map().len(), truth.len() + 1);
    let damage = rig.records.take_damage();
    assert!(
        damage.len() == 2 && damage.iter().all(|one| one.file == "schema/records"),
        "{damage:?}"
    );
    drop(rig);
    let (_, losses) = repair(&disk);
    assert_eq!(losses.len(), 2, "{losses:?}");
    assert_eq!(problems(&disk), []);
    let rig = Rig::open(&disk).expect("it opens");
    assert_eq!((rig.map().len(), rig.records.take_damage().len()), (truth.len() + 1, 0));
    rig.put(&put(10)).expect("it goes on");
}

#[test]
fn scrub_finds_damage_and_the_next_checkpoint_mends_it() {
    for (paths, damage_count) in [(&[MAIN][..], 1), (&[COPY], 1), (&[MAIN, COPY], 2)] {
        let (disk, truth) = written();
        let rig = Rig::open(&disk).expect("it opens");
        rig.records.scrub().expect("a good disk");
        assert_eq!(rig.records.take_damage(), []);
        paths.iter().for_each(|path| disk.flip_bit(Path::new(path), 20, 1).expect("there"));
        rig.records.scrub().expect("a good disk");
        let damage = rig.records.take_damage();
        assert_eq!(damage.len(), damage_count, "{damage:?}");
        assert!(damage.iter().all(|one| one.samples == Some(0)), "the records in memory are whole");
        rig.records.keep().expect("a good disk");
        assert_eq!(problems(&disk), []);
        drop(rig);
        assert_eq!(Rig::open(&disk).expect("it opens").map(), truth);
    }
}

#[test]
fn newer_file_or_record_opens_nothing_and_changes_nothing() {
    let (disk, _) = written();
    let body = b"QPSCHEM2what a newer program writes";
    let newer = [&body[..], &codec::crc32(body).to_le_bytes()].concat();
    for path in [MAIN, COPY].map(Path::new) {
        let disk = disk.kill();
        vfs::write_atomic(&disk, path, &newer).expect("written");
        let refused = Rig::open(&disk).err().expect("refused").to_string();
        assert!(refused.contains("version 2"), "{refused}");
        assert!(repair::plan(&disk, Path::new(DATA), Path::new("/data/wal")).is_err());
    }
}

#[test]
fn lost_files_of_a_store_are_named_and_numbers_of_strings_stay_reserved() {
    for has_manifest in [true, false] {
        let disk = SimVfs::new(1);
        let opened = open_store(&disk).expect("a new disk");
        opened.schema.begin().expect("a good disk");
        opened.store.reserve_string_numbers(1).expect("a good disk");
        opened.schema.put(&put(1)).expect("a good disk");
        opened.close().expect("a good disk");
        drop(opened);
        let disk = disk.kill();
        assert!(open_store(&disk.kill()).expect("it opens").store.damage().is_empty());
        [MAIN, COPY].iter().for_each(|path| disk.remove(Path::new(path)).expect("there"));
        if !has_manifest {
            disk.remove(Path::new("/data/MANIFEST")).expect("there");
        }
        for start in 0..2 {
            let opened = open_store(&disk).expect("it opens");
            let damage = opened.store.damage();
            let is_named = damage.iter().any(|one| one.file == "schema/records");
            assert!(is_named, "start {start}, {has_manifest}: {damage:?}");
            assert!(opened.store.has(Need::Schema));
            assert!(1 <= opened.store.reserved_string_number().expect("reserved"));
            assert!(records_of(&opened).is_empty());
            opened.close().expect("a good disk");
        }
    }
}

#[test]
fn snapshot_has_all_records_and_the_feature_flag() {
    let disk = SimVfs::new(1);
    let opened = open_store(&disk).expect("a new disk");
    let mut link = |to: &Path| {
        // The first record comes while the snapshot is made.
        opened.schema.put(&put(1)).expect("a good disk");
        opened.schema.snapshot(to).expect("a good disk");
        Ok(())
    };
    let name = opened.store.create_snapshot_with(None, &mut link).expect("a good disk");
    opened.schema.put(&put(2)).expect("a good disk");
    let snapshot = Path::new("/data/snapshots").join(name);
    let copied = disk.kill();
    let vfs: std::sync::Arc<dyn Vfs> = std::sync::Arc::new(copied);
    let config = crate::rig::store_config();
    let found =
        influx_schema::records::OpenedStore::open(vfs, &snapshot, config).expect("it opens");
    assert_eq!(records_of(&found).len(), 1);
    assert!(found.store.has(Need::Schema), "older programs refuse it");
    assert_eq!(KINDS.len(), 5);
}
