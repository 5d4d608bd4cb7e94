//! When keys go, and what it costs to know.

use crate::rig::Rig;
use vfs::SimVfs;

const START_MS: i64 = 1_700_000_000_000;

fn open() -> (SimVfs, Rig) {
    let disk = SimVfs::new(1);
    disk.set_now(START_MS * 1_000_000);
    let rig = Rig::open(&disk).expect("a new directory");
    (disk, rig)
}

fn at(ms: i64) -> Vec<u8> {
    (START_MS + ms).to_string().into_bytes()
}

fn key_count(rig: &Rig) -> usize {
    rig.kv.lock().len(0)
}

#[test]
fn a_time_that_is_put_off_again_and_again_costs_nothing() {
    let (disk, rig) = open();
    rig.run(0, &[b"set", b"session", b"x"]).expect("a good disk");
    rig.run(0, &[b"hset", b"hash", b"f", b"x"]).expect("a good disk");
    let before = rig.kv.lock().memory_used();
    for n in 1..5_000 {
        rig.run(0, &[b"pexpireat", b"session", &at(n * 1000)]).expect("a good disk");
    }
    let grown = rig.kv.lock().memory_used() - before;
    assert!(grown < 4 << 10, "{grown} bytes");
    // It is looked at too early, and stays.
    disk.advance(4_998_000 * 1_000_000);
    rig.kv.keep().expect("a good disk");
    assert_eq!(key_count(&rig), 2);
    disk.advance(2_000 * 1_000_000);
    rig.kv.keep().expect("a good disk");
    assert_eq!(key_count(&rig), 1);
}

#[test]
fn keys_that_go_and_come_again_leave_no_entries() {
    let (disk, rig) = open();
    for _ in 0..3_000 {
        for key in 0..40 {
            let key = format!("k{key}").into_bytes();
            rig.run(0, &[b"set", &key, b"x", b"pxat", &at(60_000)]).expect("a good disk");
        }
        rig.run(0, &[b"flushdb"]).expect("a good disk");
    }
    rig.run(0, &[b"set", b"k1", b"x", b"pxat", &at(60_000)]).expect("a good disk");
    rig.kv.keep().expect("a good disk");
    let used = rig.kv.lock().memory_used();
    assert!(used < 64 << 10, "{used} bytes");
    disk.advance(61_000 * 1_000_000);
    rig.kv.keep().expect("a good disk");
    assert_eq!(key_count(&rig), 0);
}

#[test]
fn a_time_that_comes_earlier_is_kept() {
    let (disk, rig) = open();
    rig.run(0, &[b"set", b"k", b"x", b"pxat", &at(90_000)]).expect("a good disk");
    rig.run(0, &[b"pexpireat", b"k", &at(1_000)]).expect("a good disk");
    rig.run(0, &[b"set", b"other", b"x", b"pxat", &at(1_000)]).expect("a good disk");
    rig.run(0, &[b"persist", b"other"]).expect("a good disk");
    rig.run(0, &[b"swapdb", b"0", b"1"]).expect("a good disk");
    disk.advance(2_000 * 1_000_000);
    rig.kv.keep().expect("a good disk");
    assert_eq!(rig.kv.lock().len(1), 1);
}

#[test]
fn the_last_moment_that_can_be_said_is_not_never() {
    let (_, rig) = open();
    let last = i64::MAX.to_string();
    let last = last.as_bytes();
    rig.run(0, &[b"mset", b"a", b"x", b"b", b"x"]).expect("a good disk");
    rig.run(0, &[b"pexpireat", b"a", last]).expect("a good disk");
    rig.run(0, &[b"getex", b"b", b"pxat", last]).expect("a good disk");
    rig.run(0, &[b"set", b"c", b"x", b"pxat", last]).expect("a good disk");
    let map = rig.map();
    assert_eq!(map.len(), 3);
    for ((_, key), (_, expire_ms)) in map {
        assert_eq!(expire_ms, i64::MAX - 1, "{key:?}");
    }
}
