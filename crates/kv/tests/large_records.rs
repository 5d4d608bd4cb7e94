//! Records of the log that are too large for one: a lost piece costs its record, and no other.

use crate::rig::{DATA, Rig};
use std::path::Path;
use vfs::{SimVfs, Vfs};
use wal::kinds::KIND_KEYS;

const LOG: &str = "/data/wal";
/// Keys of the transaction, which takes several pieces.
const KEYS: usize = 12;

fn set(key: &str, value: &[u8]) -> (u8, Vec<Vec<u8>>) {
    (0, vec![b"set".to_vec(), key.as_bytes().to_vec(), value.to_vec()])
}

/// A transaction in pieces between two commands, all in the log alone.
fn filled() -> SimVfs {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new directory");
    rig.run(0, &[b"set", b"before", b"1"]).expect("a good disk");
    let all: Vec<_> = (0..KEYS).map(|n| set(&format!("multi:{n}"), &[b'x'; 80])).collect();
    rig.run_all(&all).expect("a good disk");
    rig.run(0, &[b"set", b"after", b"1"]).expect("a good disk");
    rig.log.close().expect("a good disk");
    disk
}

/// Takes the record at a place out of the first segment, as a repair of the log does.
fn take_out(disk: &SimVfs, place: usize) {
    let segment = wal::first_segment(disk, Path::new(LOG)).expect("a log").expect("a log");
    let mut at = 0;
    let written = wal::rewrite(disk, Path::new(LOG), segment, &mut |record| {
        let is_it = record.kind == KIND_KEYS && at == place;
        at += usize::from(record.kind == KIND_KEYS);
        if is_it { wal::Kept::Not } else { wal::Kept::Whole }
    });
    let path = Path::new(LOG).join(wal::segment_name(segment));
    disk.rename(&written.expect("a log"), &path).expect("a good disk");
    disk.sync_dir(Path::new(LOG)).expect("a good disk");
}

fn records(disk: &SimVfs) -> usize {
    let mut count = 0;
    let counted = wal::inspect(disk, Path::new(LOG), &mut |found| {
        count += usize::from(matches!(found, wal::Found::Record(one) if one.kind == KIND_KEYS));
    });
    counted.expect("a log");
    count
}

#[test]
fn a_lost_piece_costs_its_record_and_no_other() {
    let count = records(&filled());
    assert!(5 < count, "{count}");
    for place in 1..count - 1 {
        let disk = filled();
        take_out(&disk, place);
        let report = kv::verify::verify(&disk, Path::new(DATA)).expect("listable").expect("keys");
        assert_eq!(report.problems, Vec::new());
        assert_eq!(report.left_out.len(), 1, "{:?}", report.left_out);
        assert!(report.left_out[0].1.contains("record 2 of keys"), "{:?}", report.left_out);
        let rig = Rig::open(&disk).expect("it opens");
        let names: Vec<_> = rig.map().into_keys().map(|(_, key)| key).collect();
        assert_eq!(names, [b"after".to_vec(), b"before".to_vec()], "without record {place}");
        // It goes on from there.
        rig.run(0, &[b"set", b"more", b"1"]).expect("a good disk");
        rig.close().expect("a good disk");
        drop(rig);
        assert_eq!(Rig::open(&disk).expect("it opens").map().len(), 3);
    }
}

#[test]
fn a_large_record_that_is_whole_is_replayed() {
    let disk = filled();
    let report = kv::verify::verify(&disk, Path::new(DATA)).expect("listable").expect("keys");
    assert_eq!((report.problems, report.left_out), (Vec::new(), Vec::new()));
    assert_eq!(Rig::open(&disk).expect("it opens").map().len(), KEYS + 2);
}
