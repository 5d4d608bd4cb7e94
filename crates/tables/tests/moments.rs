//! Repairs of what is not of one moment, or what nobody can read: files of a checkpoint or a repair that
//! was cut short, whose manifest is lost, and records of the log that do not decode.
//!
//! `SEED=n` chooses other histories.

use crate::rig::{DATA, Map, Rig, create, draw_change, insert, row, schema};
use rng::Random;
use std::path::Path;
use tables::repair::{TablesRepair, plan};
use tables::{Change, Error, RowId, Source};
use vfs::{SimVfs, Vfs};
use wal::kinds::KIND_TABLES;

const LOG: &str = "/data/wal";
const TABLES: &str = "/data/tables";
const MANIFESTS: [&str; 2] = ["/data/tables/MANIFEST", "/data/tables/MANIFEST.copy"];

/// A checkpoint of two tables, and five statements on each behind it.
fn disk() -> SimVfs {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new disk");
    for table in ["a", "b"] {
        let changes = vec![create(table), insert(table, vec![row(1, "x")])];
        rig.tables.apply(changes).expect("a good disk");
    }
    rig.tables.checkpoint().expect("a good disk");
    for id in 10..15 {
        for table in ["a", "b"] {
            let rows = vec![row(id, &id.to_string())];
            rig.tables.apply(vec![insert(table, rows)]).expect("a good disk");
        }
    }
    rig.log.close().expect("a good disk");
    disk
}

fn lose_manifest(disk: &SimVfs) {
    for name in MANIFESTS {
        if disk.exists(Path::new(name)).expect("a good disk") {
            disk.remove(Path::new(name)).expect("it is there");
            disk.sync_dir(Path::new(TABLES)).expect("a good disk");
        }
    }
}

fn planned(disk: &SimVfs) -> Option<TablesRepair> {
    plan(disk, Path::new(DATA), Path::new(LOG)).expect("it can be planned")
}

/// Repairs what is damaged; what was lost, and what is there then.
#[track_caller]
fn repaired(disk: &SimVfs) -> (Vec<String>, Map) {
    let mut losses = Vec::new();
    if let Some(plan) = planned(disk) {
        losses = plan.losses().to_vec();
        plan.apply(disk).expect("a good disk");
    }
    assert!(planned(disk).is_none(), "nothing is left to repair");
    let report = tables::verify::verify(disk, Path::new(DATA), Path::new(LOG));
    assert_eq!(report.expect("it is there").expect("it is there").problems, Vec::new());
    let rig = Rig::open(disk).expect("it was repaired");
    let map = rig.map();
    // It goes on from there.
    rig.tables.apply(vec![create("after")]).expect("a good disk");
    let expected = rig.map();
    drop(rig);
    assert!(Rig::open(&disk.crash()).expect("it opens").map() == expected);
    (losses, map)
}

fn counts(map: Map) -> Vec<(String, usize)> {
    map.into_iter().map(|(name, (_, rows))| (name, rows.len())).collect()
}

fn both(a: usize, b: usize) -> Vec<(String, usize)> {
    vec![("a".to_owned(), a), ("b".to_owned(), b)]
}

#[test]
fn a_repair_that_was_cut_short_loses_nothing() {
    let good = disk();
    lose_manifest(&good);
    for power in [SimVfs::kill, SimVfs::crash] {
        for after in 0.. {
            let disk = good.kill();
            let plan = planned(&disk).expect("the manifest is lost");
            disk.fail_after(disk.operations() + after);
            let is_done = plan.apply(&disk).is_ok();
            let (losses, map) = repaired(&power(&disk));
            assert_eq!(counts(map), both(6, 6), "cut short after {after}: {losses:?}");
            if is_done {
                break;
            }
        }
    }
}

#[test]
fn a_checkpoint_that_was_cut_short_loses_nothing_without_its_manifest() {
    for after in 0.. {
        let disk = disk();
        let rig = Rig::open(&disk).expect("a good disk");
        disk.fail_after(disk.operations() + after);
        let is_done = rig.tables.checkpoint().is_ok();
        let found = disk.kill();
        lose_manifest(&found);
        let (losses, map) = repaired(&found);
        assert_eq!(counts(map), both(6, 6), "cut short after {after}: {losses:?}");
        if is_done {
            break;
        }
    }
}

/// The same over all that can be changed: names that go from table to table, tables that come and go.
#[test]
fn whatever_was_cut_short_the_log_has_the_rest() {
    let mut dice = Random::seeded(1);
    for _ in 0..120 {
        let disk = SimVfs::new(dice.next());
        let rig = Rig::open(&disk).expect("a new disk");
        for _ in 0..1 + dice.below(4) {
            for _ in 0..dice.below(25) {
                let mut transaction = rig.tables.begin();
                for _ in 0..1 + dice.below(3) {
                    let map = crate::rig::map_of(transaction.tables());
                    let _ = transaction.apply(vec![draw_change(&mut dice, &map)]);
                }
                rig.tables.commit(transaction).expect("a good disk");
            }
            rig.tables.checkpoint().expect("a good disk");
        }
        for _ in 0..dice.below(25) {
            let _ = rig.tables.apply(vec![draw_change(&mut dice, &rig.map())]);
        }
        let expected = rig.map();
        disk.fail_after(disk.operations() + dice.below(40));
        let is_cut_short = rig.tables.checkpoint().is_err();
        let found = disk.kill();
        let has_files = found.list(Path::new(TABLES)).is_ok_and(|names| names.len() > 1);
        if !has_files {
            continue;
        }
        lose_manifest(&found);
        let (losses, map) = repaired(&found);
        assert!(map == expected, "cut short: {is_cut_short}, {losses:?}");
        // Of what is dropped nothing is named.
        assert!(losses.iter().all(|loss| !loss.starts_with("statement ")), "{losses:?}");
    }
}

#[test]
fn names_that_two_have_cost_no_table() {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new disk");
    rig.tables.apply(vec![create("t"), insert("t", vec![row(1, "x")])]).expect("a good disk");
    rig.tables.checkpoint().expect("a good disk");
    let old = Path::new("/data/tables/0000000000.table");
    let bytes = disk.read(old).expect("it is there");
    rig.log.wal().rotate();
    let from = (0..3).map(Source::Column).collect();
    let (table, name) = ("t".to_owned(), "u".to_owned());
    rig.tables.apply(vec![Change::Alter { table, name, schema: schema(), from }]).expect("free");
    rig.tables.apply(vec![create("t"), insert("t", vec![])]).expect("a good disk");
    rig.tables.apply(vec![Change::Drop { table: "u".into() }]).expect("a good disk");
    rig.close().expect("a good disk");
    drop(rig);
    // The file of the dropped one is there again, and the log does not know it any more.
    vfs::write_atomic(&disk, old, &bytes).expect("a good disk");
    for segment in disk.list(Path::new(LOG)).expect("a log") {
        disk.remove(&Path::new(LOG).join(segment)).expect("a good disk");
    }
    lose_manifest(&disk);
    let (losses, map) = repaired(&disk);
    let expected = [("t".to_owned(), 0), ("t-0".to_owned(), 1)];
    assert_eq!(counts(map), expected, "{losses:?}");
    assert!(losses.iter().any(|loss| loss.contains("is \"t-0\" now")), "{losses:?}");
}

/// Appends a record to a log that is closed.
fn append(disk: &SimVfs, payload: &[u8]) {
    let rig = Rig::open(disk).expect("a good disk");
    rig.log.wal().append_parts(KIND_TABLES, &[payload]).expect("a good disk");
    rig.log.close().expect("a good disk");
}

#[test]
fn records_that_nobody_can_read_are_lost_once() {
    let no_number: &[u8] = &[];
    let cut_short = &[13, 5, 0, 1];
    let no_kind = &[13, 0, 0];
    let no_number_either = &[0x80];
    for payload in [no_number, cut_short, no_kind, no_number_either] {
        for is_manifest_lost in [false, true] {
            let disk = disk();
            append(&disk, payload);
            assert!(Rig::open(&disk).is_err(), "{payload:?}");
            if is_manifest_lost {
                lose_manifest(&disk);
            }
            let (losses, map) = repaired(&disk);
            assert_eq!(counts(map), both(6, 6));
            let loss = losses.last().expect("it is named");
            assert!(loss.contains("statement") && loss.contains("not decode"), "{loss}");
            assert_eq!(losses.len(), 1 + usize::from(is_manifest_lost), "{losses:?}");
        }
    }
}

#[test]
fn records_of_a_newer_program_are_left_to_it() {
    for is_manifest_lost in [false, true] {
        let disk = disk();
        append(&disk, &[13, 8, 0, 1, 2, 3]);
        let error = Rig::open(&disk).err().expect("it is not known").to_string();
        assert!(error.contains("a newer program wrote it"), "{error}");
        if is_manifest_lost {
            lose_manifest(&disk);
        }
        let error = plan(&disk, Path::new(DATA), Path::new(LOG)).err().expect("it is not known");
        assert!(matches!(error, Error::NewerRecord { .. }), "{error}");
        assert!(error.to_string().contains("a newer program wrote it"), "{error}");
    }
}

/// Gives a file another format, with checksums that hold.
fn with_format(bytes: &[u8], format: u8) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[4] = format;
    let (mut at, mut crc) = (8, codec::crc32(&out[..8]));
    while at < out.len() {
        let size: [u8; 4] = out[at..at + 4].try_into().expect("four bytes");
        let end = at + 9 + u32::from_le_bytes(size) as usize;
        crc = codec::crc32(&[&crc.to_le_bytes(), &out[at + 8..end]].concat());
        out[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
        at = end;
    }
    out
}

#[test]
fn files_of_a_newer_program_are_left_to_it() {
    let disk = disk();
    lose_manifest(&disk);
    let path = Path::new("/data/tables/0000000000.table");
    let bytes = disk.read(path).expect("it is there");
    assert_eq!(with_format(&bytes, 2), bytes);
    vfs::write_atomic(&disk, path, &with_format(&bytes, 3)).expect("a good disk");
    let error = plan(&disk, Path::new(DATA), Path::new(LOG)).err().expect("it is not known");
    assert!(matches!(error, Error::Newer { found: 3, known: 2, .. }), "{error}");
    // One that rotted is not taken for it.
    let mut rotten = bytes;
    rotten[4] = 3;
    vfs::write_atomic(&disk, path, &rotten).expect("a good disk");
    let (losses, map) = repaired(&disk);
    // The log happens to have all of it.
    assert_eq!(counts(map), both(6, 6), "{losses:?}");
}

#[test]
fn what_a_table_misses_is_forgotten_once_it_is_dropped() {
    let disk = disk();
    let rig = Rig::open(&disk).expect("a good disk");
    let delete = Change::Delete { table: "a".into(), rows: vec![RowId(1)] };
    rig.tables.apply(vec![delete]).expect("it is there");
    rig.tables.apply(vec![Change::Drop { table: "a".into() }]).expect("it is there");
    rig.log.close().expect("a good disk");
    drop(rig);
    disk.remove(Path::new("/data/tables/0000000000.table")).expect("it is there");
    let plan = planned(&disk).expect("a file is lost");
    assert_eq!(plan.losses(), ["table number 0, which was in 0000000000.table"]);
    let left_out = plan.steps().iter().filter(|step| step.starts_with("leave out")).count();
    assert_eq!(left_out, 6, "{:?}", plan.steps());
    assert_eq!(counts(repaired(&disk).1), [("b".to_owned(), 6)]);
}
