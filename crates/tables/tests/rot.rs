//! Bits that flip, files that end early, vanish or change places: tables open as they were, or say what
//! is wrong; never with something else in them.
//!
//! `SEED=n` chooses other pieces of rot.

use crate::rig::{DATA, Rig, create, insert, row};
use rng::Random;
use std::path::{Path, PathBuf};
use vfs::sim::Rot;
use vfs::{SimVfs, Vfs};

/// A directory with a checkpoint, and a log behind it.
fn disk() -> (SimVfs, Rig) {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new disk");
    let rows = |from: i64| (from..from + 20).map(|id| row(id, &format!("name {id}"))).collect();
    rig.tables.apply(vec![create("a"), create("b"), insert("a", rows(0))]).expect("a good disk");
    rig.tables.apply(vec![insert("b", rows(0))]).expect("a good disk");
    // So that the checkpoint cuts the log.
    rig.log.wal().rotate();
    rig.tables.checkpoint().expect("a good disk");
    (0..6).for_each(|n| {
        rig.tables.apply(vec![insert("a", rows(100 + 20 * n))]).expect("a good disk");
    });
    (disk, rig)
}

fn files(disk: &SimVfs, dir: &str) -> Vec<(PathBuf, u64)> {
    let dir = Path::new(dir);
    let names = disk.list(dir).expect("it is there");
    let paths = names.iter().map(|name| dir.join(name));
    paths.map(|path| (path.clone(), disk.size(&path).expect("it is there"))).collect()
}

/// Whether the log is hit, whose damage the store verifies.
fn rot_is_of_log(rot: &Rot) -> bool {
    matches!(rot, Rot::Flip { path, .. } if path.starts_with("/data/wal"))
}

#[test]
fn whatever_rots_is_said() {
    let (good, rig) = disk();
    let expected = rig.map();
    rig.log.close().expect("a good disk");
    drop(rig);
    let mut dice = Random::seeded(1);
    let mut refused = 0;
    for _ in 0..400 {
        let disk = good.crash();
        let rot = match dice.below(4) {
            // What else may happen to a log is the log's to notice.
            0 => {
                let (path, size) = dice.pick(&files(&disk, "/data/wal")).clone();
                Rot::Flip { path, offset: dice.below(size), bit: dice.below(8) as u8 }
            }
            _ => Rot::draw(&mut dice, &files(&disk, "/data/tables")),
        };
        disk.rot(&rot).expect("a file");
        let verified = tables::verify::verify(&disk, DATA.as_ref(), "/data/wal".as_ref());
        let problems = verified.expect("it is there").expect("it is there").problems;
        match Rig::open(&disk) {
            Ok(rig) => {
                assert!(rig.map() == expected, "{rot:?}");
                // One of the manifest's two files may be damaged.
                let is_of_manifest = |(path, _): &(PathBuf, String)| {
                    path.file_name()
                        .is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST"))
                };
                assert!(problems.iter().all(is_of_manifest), "{rot:?}: {problems:?}");
            }
            Err(_) => {
                assert!(!problems.is_empty() || rot_is_of_log(&rot), "{rot:?}");
                refused += 1;
            }
        }
    }
    // The copy of the manifest makes good for one file of three.
    assert!(150 < refused, "{refused} of 400");
}

#[test]
fn verification_names_what_is_wrong() {
    let (good, rig) = disk();
    drop(rig);
    #[track_caller]
    fn check(disk: &SimVfs, file: &str, words: &str) {
        let report = tables::verify::verify(disk, DATA.as_ref(), "/data/wal".as_ref());
        let problems = report.expect("it is there").expect("it is there").problems;
        let is_said =
            |(path, what): &(PathBuf, String)| path.ends_with(file) && what.contains(words);
        assert!(problems.iter().any(is_said), "{problems:?}");
        let error = Rig::open(disk).err().expect("it does not open").to_string();
        assert!(error.contains(words), "{error}");
    }
    let rotten = |rot: Rot| {
        let disk = good.kill();
        // Else the other file of the manifest makes good what is wrong with the first one.
        disk.remove(Path::new("/data/tables/MANIFEST.copy")).expect("there");
        disk.rot(&rot).expect("a file");
        disk
    };
    let table = PathBuf::from("/data/tables/0000000000.table");
    let manifest = PathBuf::from("/data/tables/MANIFEST");
    let other = PathBuf::from("/data/tables/0000000001.table");
    let flip = |path: &PathBuf| Rot::Flip { path: path.clone(), offset: 30, bit: 3 };
    check(&rotten(flip(&table)), "0000000000.table", "checksum of a block");
    check(&rotten(flip(&manifest)), "MANIFEST", "the checksum does not hold");
    check(&rotten(Rot::Drop { path: manifest }), "MANIFEST", "is missing, though there is");
    check(&rotten(Rot::Drop { path: table.clone() }), "0000000000.table", "0000000000.table");
    check(&rotten(Rot::Swap { path: table, other }), "0000000000.table", "is file 1 of table");
    // The checkpoint as a whole.
    let disk = good.kill();
    disk.remove_dir_all(Path::new("/data/tables")).expect("a good disk");
    check(&disk, "0000000001.wal", "where 1 comes next");
}
