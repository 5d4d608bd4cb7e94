//! Bound on the log that records of keys hold back.

use crate::rig::{DATA, Rig};
use kv::KvConfig;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vfs::SimVfs;

/// Opens the keyspace of a disk, whose own records are never a reason for a checkpoint.
fn open(disk: &SimVfs, size: u64, age: Duration) -> Rig {
    Rig::open_as(Arc::new(disk.clone()), Path::new(DATA), |config| KvConfig {
        checkpoint_log_size: u64::MAX,
        retained_log_size: size,
        retained_log_age: age,
        ..config
    })
    .expect("a good disk")
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_key_holds_the_log_back_for_no_longer_than_its_bounds() {
    for (size, age, is_cut) in
        [(1 << 20, HOUR, false), (1 << 20, Duration::ZERO, true), (1, HOUR, true)]
    {
        let disk = SimVfs::new(1);
        let rig = open(&disk, size, age);
        rig.run(0, &[b"set", b"k", &[b'v'; 200]]).expect("a good disk");
        rig.kv.keep().expect("a good disk");
        assert_eq!(rig.log.pin().is_none() && rig.log.wal().size() == 0, is_cut, "{size} {age:?}");
        let before = rig.map();
        rig.kv.keep().expect("a good disk");
        drop(rig);
        assert_eq!(open(&disk.kill(), size, age).map(), before, "{size} {age:?}");
    }
}

#[test]
fn a_log_that_a_start_replays_counts_for_the_bound() {
    let disk = SimVfs::new(1);
    let rig = open(&disk, 1 << 20, HOUR);
    rig.run(0, &[b"set", b"k", &[b'v'; 3000]]).expect("a good disk");
    drop(rig);
    let rig = open(&disk.kill(), 2000, HOUR);
    rig.kv.keep().expect("a good disk");
    assert_eq!(rig.log.wal().size(), 0, "3,000 bytes are over the bound");
}
