//! Another number of databases for clients: none with keys is taken away, and none is shared with the
//! hidden ones.

use crate::rig::{DATA, Rig};
use kv::{Error, KvConfig};
use std::path::Path;
use std::sync::Arc;
use vfs::SimVfs;

fn open(disk: &SimVfs, databases: usize) -> kv::Result<Rig> {
    let vfs = Arc::new(disk.clone());
    Rig::open_as(vfs, Path::new(DATA), |config| KvConfig { databases, ..config })
}

fn has_key(rig: &Rig, db: u8) -> bool {
    rig.kv.lock().value(db, b"key").expect("it can be read").is_some()
}

fn set(rig: &Rig, db: u8) {
    rig.run(db, &[b"set", b"key", b"value"]).expect("a good disk");
}

#[track_caller]
fn check_refused(disk: &SimVfs, databases: usize, expected: usize) {
    match open(disk, databases) {
        Err(Error::DatabaseInUse { wanted, used }) => {
            assert_eq!((wanted, used), (databases, expected));
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("database {expected} is out of reach"),
    }
}

#[test]
fn databases_with_keys_are_never_taken_away() {
    let disk = SimVfs::new(1);
    let rig = open(&disk, 4).expect("a new directory");
    set(&rig, 3);
    // With a checkpoint, and with the log alone.
    check_refused(&disk.kill(), 3, 3);
    rig.kv.checkpoint().expect("a good disk");
    check_refused(&disk.kill(), 3, 3);
    drop(rig);
    let disk = disk.kill();
    let rig = open(&disk, 8).expect("more of them");
    assert!(has_key(&rig, 3) && !has_key(&rig, 4) && !has_key(&rig, 5));
    [4, 5, 7].iter().for_each(|db| set(&rig, *db));
    drop(rig);
    let disk = disk.kill();
    check_refused(&disk, 4, 7);
    let rig = open(&disk, 8).expect("as many");
    assert!([3, 4, 5, 7].iter().all(|db| has_key(&rig, *db)));
    for db in [4, 5, 7] {
        rig.run(db, &[b"del", b"key"]).expect("a good disk");
    }
    rig.run(3, &[b"swapdb", b"3", b"6"]).expect("a good disk");
    rig.run(3, &[b"swapdb", b"6", b"2"]).expect("a good disk");
    drop(rig);
    let disk = disk.kill();
    let rig = open(&disk, 4).expect("the others are empty");
    assert!(has_key(&rig, 2) && !has_key(&rig, 3));
    rig.close().expect("a good disk");
    drop(rig);
    let report = kv::verify::verify(&disk, Path::new(DATA)).expect("listable").expect("keys");
    assert_eq!(report.problems, Vec::new());
    assert!(has_key(&open(&disk, 254).expect("all of them"), 2));
}
