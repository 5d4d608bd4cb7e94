//! What checkpoints leave in the directory and in the log, and snapshots.

use crate::rig::{DATA, Rig, config, create, insert, row};
use std::path::Path;
use std::sync::Arc;
use tables::{Change, RowId, TablesConfig};
use vfs::{SimVfs, Vfs};

fn list(disk: &SimVfs) -> Vec<String> {
    disk.list(Path::new("/data/tables")).expect("it is there")
}

#[test]
fn only_tables_that_changed_are_written_again() {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new disk");
    assert!(!disk.exists(Path::new("/data/tables")).expect("a good disk"), "nothing yet");
    rig.tables.checkpoint().expect("a good disk");
    assert!(!disk.exists(Path::new("/data/tables")).expect("a good disk"), "nothing to save");
    rig.tables.apply(vec![create("a"), create("b")]).expect("a good disk");
    rig.tables.checkpoint().expect("a good disk");
    assert_eq!(list(&disk), ["0000000000.table", "0000000001.table", "MANIFEST", "MANIFEST.copy"]);
    rig.tables.apply(vec![insert("a", vec![row(1, "x")])]).expect("a good disk");
    rig.tables.checkpoint().expect("a good disk");
    assert_eq!(list(&disk), ["0000000001.table", "0000000002.table", "MANIFEST", "MANIFEST.copy"]);
    rig.tables.checkpoint().expect("a good disk");
    assert_eq!(list(&disk), ["0000000001.table", "0000000002.table", "MANIFEST", "MANIFEST.copy"]);
    // Also after a restart, which replays nothing then.
    rig.close().expect("a good disk");
    drop(rig);
    let rig = Rig::open(&disk).expect("a good disk");
    assert_eq!(rig.tables.logged_size(), 0);
    rig.tables.apply(vec![Change::Drop { table: "a".into() }]).expect("a good disk");
    rig.tables.checkpoint().expect("a good disk");
    assert_eq!(list(&disk), ["0000000001.table", "MANIFEST", "MANIFEST.copy"]);
}

#[test]
fn the_log_is_cut_behind_checkpoints() {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new disk");
    rig.tables.apply(vec![create("t")]).expect("a good disk");
    for id in 0..200 {
        let text = "x".repeat(100);
        rig.tables.apply(vec![insert("t", vec![row(id, &format!("{id}{text}"))])]).expect("good");
    }
    assert!(20_000 < rig.log.wal().size());
    assert_eq!(rig.log.pin().map(|pin| pin.consumer), Some("tables"));
    rig.tables.keep().expect("a good disk");
    assert!(rig.log.wal().size() < 5_000, "{}", rig.log.wal().size());
    assert_eq!(rig.log.pin(), None);
}

#[test]
fn little_that_is_logged_does_not_hold_the_log_for_ever() {
    let disk = SimVfs::new(1);
    let config = TablesConfig { checkpoint_log_size: 1 << 30, ..config() };
    let rig = Rig::open_in(Arc::new(disk), Path::new(DATA), config).expect("a new disk");
    rig.tables.apply(vec![create("t")]).expect("a good disk");
    for id in 0..3 {
        rig.tables.apply(vec![insert("t", vec![row(id, &id.to_string())])]).expect("a good disk");
        rig.tables.keep().expect("a good disk");
        assert!(0 < rig.tables.logged_size(), "after {id}");
        rig.log.wal().rotate();
    }
    rig.tables.keep().expect("a good disk");
    assert_eq!(rig.tables.logged_size(), 0);
}

#[test]
fn a_snapshot_is_tables_of_its_own() {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new disk");
    let to = Path::new("/snapshot");
    rig.tables.snapshot(to).expect("nothing to do");
    assert!(!disk.exists(to).expect("a good disk"));
    rig.tables.apply(vec![create("t"), create("u")]).expect("a good disk");
    rig.tables.checkpoint().expect("a good disk");
    rig.tables.apply(vec![insert("t", vec![row(1, "x"), row(2, "y")])]).expect("a good disk");
    disk.create_dir_all(to).expect("a good disk");
    rig.tables.snapshot(to).expect("a good disk");
    let at_snapshot = rig.map();
    rig.tables.apply(vec![Change::Delete { table: "t".into(), rows: vec![RowId(0)] }]).unwrap();
    rig.tables.checkpoint().expect("a good disk");
    let copy = Rig::open_in(Arc::new(disk.crash()), to, config()).expect("it opens");
    assert_eq!(copy.map(), at_snapshot);
    // It goes its own way.
    copy.tables.apply(vec![insert("t", vec![row(3, "z")])]).expect("a good disk");
    copy.tables.checkpoint().expect("a good disk");
    assert_eq!(copy.map()["t"].1.len(), 3);
    assert_eq!(rig.map()["t"].1.len(), 1);
}

#[test]
fn a_row_number_never_comes_again() {
    let disk = SimVfs::new(1);
    let mut rig = Rig::open(&disk).expect("a new disk");
    rig.tables.apply(vec![create("t"), insert("t", vec![row(1, "x"), row(2, "y")])]).unwrap();
    rig.tables.apply(vec![Change::Truncate { table: "t".into() }]).expect("a good disk");
    for expected in [2, 3, 4] {
        rig.tables.apply(vec![insert("t", vec![row(1, "x")])]).expect("a good disk");
        let numbers: Vec<u64> = rig.map()["t"].1.keys().copied().collect();
        assert_eq!(numbers, [expected]);
        let rows = vec![RowId(expected)];
        rig.tables.apply(vec![Change::Delete { table: "t".into(), rows }]).expect("a good disk");
        if expected == 3 {
            rig.tables.checkpoint().expect("a good disk");
        }
        drop(rig);
        rig = Rig::open(&disk).expect("a good disk");
    }
    // Nor does a table's.
    let id = rig.tables.get("t").expect("it is there").id();
    rig.tables.apply(vec![Change::Drop { table: "t".into() }]).expect("a good disk");
    rig.tables.checkpoint().expect("a good disk");
    drop(rig);
    let rig = Rig::open(&disk).expect("a good disk");
    rig.tables.apply(vec![create("t")]).expect("a good disk");
    assert!(id < rig.tables.get("t").expect("it is there").id());
}
