//! Repairs: whatever rots, tables open afterwards and verify clean, with what is whole.
//!
//! `SEED=n` chooses other pieces of rot.

use crate::rig::{DATA, Map, Rig, config, create, insert, row};
use rng::Random;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tables::repair::{TablesRepair, plan};
use tables::{Change, RowId, TablesConfig};
use vfs::sim::Rot;
use vfs::{SimVfs, Vfs};
use wal::kinds::KIND_TABLES;

const LOG: &str = "/data/wal";

/// A directory with a checkpoint of two tables, and statements behind it.
fn disk() -> (SimVfs, Map) {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new disk");
    let rows = vec![row(1, "x"), row(2, "y")];
    rig.tables.apply(vec![create("a"), insert("a", rows.clone())]).expect("a good disk");
    rig.tables.apply(vec![create("b"), insert("b", rows)]).expect("a good disk");
    rig.log.wal().rotate();
    rig.tables.checkpoint().expect("a good disk");
    for id in 10..15 {
        let name = id.to_string();
        rig.tables.apply(vec![insert("a", vec![row(id, &name)])]).expect("a good disk");
        rig.tables.apply(vec![insert("b", vec![row(id, &name)])]).expect("a good disk");
    }
    let map = rig.map();
    rig.log.close().expect("a good disk");
    (disk, map)
}

fn planned(disk: &SimVfs) -> Option<TablesRepair> {
    plan(disk, Path::new(DATA), Path::new(LOG)).expect("it can be listed")
}

/// Repairs a disk; what is there then, in how many rows a table.
#[track_caller]
fn repaired(disk: &SimVfs) -> Vec<(String, usize)> {
    let plan = planned(disk).expect("something is damaged");
    assert!(!plan.steps().is_empty());
    // Power fails at some moment, and it is run again.
    let operations = disk.operations();
    disk.fail_after(operations + 12);
    let found = match plan.apply(disk) {
        Ok(_) => disk.crash(),
        Err(_) => {
            let found = disk.crash();
            if let Some(plan) = planned(&found) {
                plan.apply(&found).expect("a good disk");
            }
            found
        }
    };
    assert!(planned(&found).is_none(), "nothing is left to repair");
    let report = tables::verify::verify(&found, Path::new(DATA), Path::new(LOG));
    assert_eq!(report.expect("it is there").expect("it is there").problems, Vec::new());
    let rig = Rig::open(&found).expect("it was repaired");
    // It goes on from there.
    rig.tables.apply(vec![create("after")]).expect("a good disk");
    let map = rig.map();
    drop(rig);
    assert!(Rig::open(&found.crash()).expect("it opens").map() == map);
    let tables = map.into_iter().filter(|(name, _)| name != "after");
    tables.map(|(name, (_, rows))| (name, rows.len())).collect()
}

#[test]
fn what_is_whole_stays() {
    let (good, _) = disk();
    assert!(planned(&good).is_none(), "nothing to repair");
    let names = good.list(Path::new("/data/tables")).expect("it is there");
    assert_eq!(names, ["0000000000.table", "0000000001.table", "MANIFEST", "MANIFEST.copy"]);
    let both = |a: usize, b: usize| vec![("a".to_owned(), a), ("b".to_owned(), b)];
    let flip = |name: &str| {
        let disk = good.kill();
        let path = Path::new("/data/tables").join(name);
        disk.rot(&Rot::Flip { path, offset: 30, bit: 3 }).expect("a file");
        disk
    };
    // One of the two files of the manifest is enough.
    assert_eq!(repaired(&flip("MANIFEST")), both(7, 7));
    assert_eq!(repaired(&flip("MANIFEST.copy")), both(7, 7));
    // Without either all is found in the files.
    let disk = flip("MANIFEST");
    disk.remove(Path::new("/data/tables/MANIFEST.copy")).expect("there");
    assert_eq!(repaired(&disk), both(7, 7));
    // The end of a table's file has its head once more.
    assert_eq!(repaired(&flip("0000000000.table")), both(7, 7));
    // A statement that is lost costs itself alone.
    let disk = good.kill();
    let segment = wal::first_segment(&disk, Path::new(LOG)).expect("a log").expect("a log");
    let mut count = 0;
    let written = wal::rewrite(&disk, Path::new(LOG), segment, &mut |record| {
        count += u32::from(record.kind == KIND_TABLES);
        if count == 3 { wal::Kept::Not } else { wal::Kept::Whole }
    });
    let path = Path::new(LOG).join(wal::segment_name(segment));
    disk.rename(&written.expect("a log"), &path).expect("a good disk");
    disk.sync_dir(Path::new(LOG)).expect("a good disk");
    assert!(Rig::open(&disk).err().expect("a gap").to_string().contains("where 5 comes next"));
    assert_eq!(repaired(&disk), both(6, 7));
}

#[test]
fn rows_of_good_blocks_survive_a_damaged_one() {
    const ROWS: i64 = 4000;
    let disk = SimVfs::new(1);
    let config = TablesConfig { memory_max: 64 << 20, ..config() };
    let rig = Rig::open_in(Arc::new(disk.clone()), Path::new(DATA), config).expect("a new disk");
    let rows = (0..ROWS).map(|id| row(id, &format!("{id} {}", "x".repeat(300)))).collect();
    rig.tables.apply(vec![create("a"), insert("a", rows)]).expect("a good disk");
    rig.log.wal().rotate();
    rig.tables.checkpoint().expect("a good disk");
    // In the log: a lost row that is changed comes back, one that is taken out does not.
    let (changed, gone) = (RowId(1000), RowId(1001));
    let update = Change::Update {
        table: "a".into(),
        rows: vec![(changed, row(1000, "new")), (RowId(1), row(1, "new, too"))],
    };
    rig.tables.apply(vec![update]).expect("it is there");
    let delete = Change::Delete { table: "a".into(), rows: vec![gone, RowId(2)] };
    rig.tables.apply(vec![delete]).expect("it is there");
    rig.tables.apply(vec![insert("a", vec![row(ROWS, "late")])]).expect("a good disk");
    let before = rig.map();
    rig.log.close().expect("a good disk");
    drop(rig);
    // In the second block.
    let path = Path::new("/data/tables/0000000000.table").to_path_buf();
    disk.rot(&Rot::Flip { path, offset: 300_000, bit: 1 }).expect("a file");
    assert!(Rig::open(&disk.kill()).is_err());
    let plan = planned(&disk).expect("something is damaged");
    assert!(plan.losses()[0].contains("rows of table \"a\""), "{:?}", plan.losses());
    plan.apply(&disk).expect("a good disk");
    assert!(planned(&disk).is_none());
    let found = Rig::open(&disk).expect("it was repaired").map();
    let (found, before) = (&found["a"].1, &before["a"].1);
    let count = found.len() as i64;
    assert!(3 * ROWS / 4 - 100 < count && count < ROWS, "{count} rows");
    assert!(found.iter().all(|(id, row)| before.get(id) == Some(row)));
    for id in [changed.0, 1, ROWS as u64] {
        assert_eq!(found.get(&id), before.get(&id), "row {id}");
    }
    assert!(!found.contains_key(&gone.0) && !found.contains_key(&2));
}

#[test]
fn whatever_rots_can_be_repaired() {
    let (good, expected) = disk();
    let mut dice = Random::seeded(1);
    for _ in 0..150 {
        let disk = good.crash();
        let dir = Path::new("/data/tables");
        let names = disk.list(dir).expect("it is there");
        let file = |name: &String| (dir.join(name), disk.size(&dir.join(name)).expect("there"));
        let files: Vec<(PathBuf, u64)> = names.iter().map(file).collect();
        let rot = Rot::draw(&mut dice, &files);
        disk.rot(&rot).expect("a file");
        match Rig::open(&disk.kill()) {
            Ok(rig) => assert!(rig.map() == expected, "{rot:?}"),
            Err(_) => {
                let tables = repaired(&disk);
                // Two rows are in the file, in one block.
                assert!(
                    tables.iter().all(|(_, rows)| [5, 7].contains(rows)),
                    "{rot:?}: {tables:?}"
                );
            }
        }
    }
}
