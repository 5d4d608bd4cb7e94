//! Room on disk: what counts no more gives it back, whatever rotted or cannot be read beside it.

use crate::rig::{DATA, Rig};
use kv::cold::{MANIFEST_NAME, Manifest};
use kv::kv::KEYS_DIR;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::sim::{Call, Errno};
use vfs::{SimVfs, Vfs};

const KEYS: u32 = 200;

fn disk() -> SimVfs {
    let disk = SimVfs::new(3);
    disk.set_now(1_700_000_000_000_000_000);
    disk
}

fn set(rig: &Rig, key: u32, letter: u8) {
    let value = [letter; 100];
    rig.run(0, &[b"set", format!("k{key}").as_bytes(), &value]).expect("a good disk");
}

/// A keyspace with many segments on disk, each with one key of some that still counts.
fn sparse(disk: &SimVfs) -> Rig {
    let rig = Rig::open_as(Arc::new(disk.clone()), Path::new(DATA), |config| kv::KvConfig {
        checkpoint_log_size: 64 << 10,
        is_compressed: false,
        ..config
    });
    let rig = rig.expect("a new directory");
    (0..KEYS).for_each(|key| set(&rig, key, b'a'));
    rig.kv.checkpoint().expect("a good disk");
    (0..KEYS).filter(|key| key % 4 != 0).for_each(|key| set(&rig, key, b'b'));
    rig.kv.checkpoint().expect("a good disk");
    rig
}

/// The segments on disk, in order.
fn segments(disk: &SimVfs) -> Vec<PathBuf> {
    let files = disk.files().into_iter().map(|(path, _)| path);
    files.filter(|path| path.extension().is_some_and(|end| end == "cold")).collect()
}

fn is_drawn_together(rig: &Rig) -> bool {
    let stats = rig.kv.lock().cold_stats();
    // What rotted keeps its room.
    stats.size * 10 <= stats.live_size * 16
}

#[test]
fn a_rotten_record_keeps_no_other_segment_from_giving_room_back() {
    let disk = disk();
    let rig = sparse(&disk);
    assert!(!is_drawn_together(&rig));
    // The first record: what follows it is found by its size.
    let rotten = segments(&disk).remove(0);
    disk.flip_bit(&rotten, 40, 0).expect("there");
    for _ in 0..KEYS {
        rig.kv.keep().expect("a good disk");
    }
    rig.kv.checkpoint().expect("a good disk");
    assert!(is_drawn_together(&rig), "{:?}", rig.kv.lock().cold_stats());
    let compacted = rig.kv.lock().stats.compacted;
    rig.kv.keep().expect("a good disk");
    assert_eq!(rig.kv.lock().stats.compacted, compacted, "the rotten one is left alone");
    let news = rig.kv.lock().take_rotten_news();
    assert_eq!(news.len(), 1, "{news:?}");
    assert!(news[0].contains(&*rotten.to_string_lossy()) && news[0].contains("1 keys"), "{news:?}");
    let read = |key: u32| rig.kv.lock().value(0, format!("k{key}").as_bytes()).map(|v| v.is_some());
    assert!(read(0).is_err(), "the rotten one");
    assert!((1..KEYS).all(|key| read(key) == Ok(true)));
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let disk = disk();
    let rig = Rig::open(&disk).expect("a new directory");
    set(&rig, 0, b'a');
    assert_eq!(rig.kv.write_refusal(), None);
    disk.set_free_space(1000);
    let is_refused = |key: &u32| rig.run(0, &[b"set", format!("k{key}").as_bytes(), b"v"]).is_err();
    assert!((1..100).any(|key| is_refused(&key)), "the disk is full");
    let refusal = rig.kv.write_refusal().expect("the log waits");
    assert!(refusal.contains("free some disk space"), "{refusal}");
    assert_eq!(rig.kv.failure(), None);
    disk.set_free_space(1 << 30);
    rig.kv.sync_log().expect("there is room");
    assert_eq!(rig.kv.write_refusal(), None);
    set(&rig, 200, b'b');
    let before = rig.map();
    drop(rig);
    assert_eq!(Rig::open(&disk.crash()).expect("whole").map(), before);
}

#[test]
fn a_segment_that_cannot_be_read_keeps_the_log_from_nothing() {
    let disk = disk();
    let rig = sparse(&disk);
    // The next one that is gone through as a whole.
    disk.fail_call(Call::ReadAt, 0, Errno::Io);
    let failed = rig.kv.keep();
    assert!(failed.is_err(), "it is said");
    let mut logged = 0;
    for key in 0..2000 {
        set(&rig, key % KEYS, b'c');
        disk.fail_call(Call::ReadAt, 0, Errno::Io);
        drop(rig.kv.keep());
        logged = rig.kv.logged_size().max(logged);
    }
    assert!(logged < 100 << 10, "{logged} bytes of log: checkpoints go on");
    disk.set_plan(&vfs::sim::FaultPlan::default());
    disk.advance(61_000_000_000);
    for _ in 0..KEYS {
        rig.kv.keep().expect("a good disk");
    }
    rig.kv.checkpoint().expect("a good disk");
    assert!(is_drawn_together(&rig), "{:?}", rig.kv.lock().cold_stats());
}

#[test]
fn a_large_value_gives_its_room_back_whatever_small_ones_came_with_it() {
    let disk = disk();
    let rig = Rig::open_as(Arc::new(disk.clone()), Path::new(DATA), |config| kv::KvConfig {
        segment_size: 64 << 10,
        checkpoint_log_size: 1 << 20,
        is_compressed: false,
        ..config
    });
    let rig = rig.expect("a new directory");
    for round in 0..10_u8 {
        for key in 0..100_u32 {
            let name = format!("small:{round}:{key}");
            rig.run(0, &[b"set", name.as_bytes(), b"1"]).expect("a good disk");
        }
        rig.run(0, &[b"set", b"large", &vec![b'a' + round; 200 << 10]]).expect("a good disk");
        rig.kv.checkpoint().expect("a good disk");
    }
    for _ in 0..20 {
        rig.kv.keep().expect("a good disk");
    }
    rig.kv.checkpoint().expect("a good disk");
    let size: u64 = segments(&disk).iter().map(|path| disk.size(path).expect("there")).sum();
    assert!(size < 300 << 10, "{size} bytes for 200 KiB and 1,000 counters");
}

#[test]
fn segments_are_numbered_from_the_beginning_after_the_last_number() {
    let disk = disk();
    let open = || Rig::open(&disk).expect("whole");
    let rig = open();
    (0..20).for_each(|key| set(&rig, key, b'a'));
    rig.kv.checkpoint().expect("a good disk");
    rig.close().expect("a good disk");
    drop(rig);
    let dir = Path::new(DATA).join(KEYS_DIR);
    let manifest = Manifest::read(&disk, &dir).expect("whole").expect("there");
    let next_segment = kv::index::SEGMENT_MAX - 2;
    Manifest { next_segment, ..manifest }.write(&disk, &dir).expect("a good disk");
    for round in 0..6_u32 {
        let rig = open();
        (10..30).for_each(|key| set(&rig, key, b'b' + (round as u8)));
        rig.kv.checkpoint().expect("a good disk");
        let before = rig.map();
        assert_eq!(before.len(), 30);
        let died = disk.kill();
        assert_eq!(Rig::open(&died).expect("whole").map(), before, "round {round}");
        let report = kv::verify::verify(&disk, Path::new(DATA)).expect("listable").expect("keys");
        assert_eq!(report.problems, Vec::new());
        rig.close().expect("a good disk");
    }
    let path = dir.join(MANIFEST_NAME);
    assert!(disk.exists(&path).expect("listable"));
    let manifest = Manifest::read(&disk, &dir).expect("whole").expect("there");
    let numbers: Vec<u32> = manifest.segments.iter().map(|one| one.number).collect();
    assert!(numbers.iter().any(|number| *number < 1000) && manifest.next_segment < 1000);
}
