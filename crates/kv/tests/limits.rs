//! Values that are as large as they may be: they grow no more, and nothing else is lost.

use crate::rig::{Rig, VALUE_SIZE_MAX};
use kv::{Call, Discard, Mode};
use vfs::SimVfs;

const LARGE: [&[&str]; 5] = [
    &["rpush", "l"],
    &["sadd", "e"],
    &["hset", "h", "f"],
    &["zadd", "z", "1"],
    &["xadd", "x", "*", "f"],
];

/// Runs a command and returns whether it was refused.
fn is_refused(rig: &Rig, words: &[&str]) -> bool {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let command = kv::commands::find(words[0]).expect("a command");
    let mut keys = rig.kv.lock();
    let done = Call::run(&mut keys, 0, command, &words, &mut Discard, Mode::Client);
    rig.kv.commit(&mut keys).expect("a good disk");
    done.is_error
}

#[test]
fn what_is_too_large_grows_no_more_and_loses_nothing() {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new directory");
    for words in LARGE {
        for n in 0..2 {
            let element = format!("{n}").repeat(VALUE_SIZE_MAX * 2 / 3);
            // A hash needs another field, too.
            let field = format!("f{n}");
            let mut words: Vec<&str> =
                words.iter().map(|w| if *w == "f" { &*field } else { *w }).collect();
            words.push(&element);
            assert!(!is_refused(&rig, &words), "{}", words[0]);
        }
    }
    for text in ["rpush few a", "sadd fewer a", "xgroup create x g 0"] {
        let words: Vec<&str> = text.split(' ').collect();
        // A group is an addition, too.
        assert_eq!(is_refused(&rig, &words), words[0] == "xgroup", "{text}");
    }
    let before = rig.map();
    for text in [
        "rpush l a",
        "lpush l a",
        "rpushx l a",
        "lset l 0 a",
        "linsert l before a b",
        "rpoplpush few l",
        "lmove few l left left",
        "sadd e a",
        "smove fewer e a",
        "hset h a b",
        "hsetnx h a b",
        "hincrby h a 1",
        "zadd z 1 a",
        "zincrby z 1 a",
        "xadd x * a b",
    ] {
        let words: Vec<&str> = text.split(' ').collect();
        assert!(is_refused(&rig, &words), "{text}");
    }
    assert_eq!(rig.map(), before);
    rig.kv.checkpoint().expect("a good disk");
    assert!(!is_refused(&rig, &["rename", "l", "m"]));
    assert!(!is_refused(&rig, &["lpop", "m"]));
    assert!(!is_refused(&rig, &["rpush", "m", "a"]));
    let before = rig.map();
    rig.kv.sync_log().expect("a good disk");
    drop(rig);
    assert_eq!(Rig::open(&disk.kill()).expect("whole").map(), before);
}

/// A keyspace with eight sets, sorted sets and a list, each of half the size that a value may have.
fn with_many() -> (SimVfs, Rig) {
    let disk = SimVfs::new(2);
    let rig = Rig::open(&disk).expect("a new directory");
    for n in 0..8 {
        let (set, zset) = (format!("s{n}"), format!("z{n}"));
        let member = format!("{n}").repeat(VALUE_SIZE_MAX / 2);
        assert!(!is_refused(&rig, &["sadd", &set, &member]));
        assert!(!is_refused(&rig, &["zadd", &zset, "1", &member]));
    }
    let text = "x".repeat(VALUE_SIZE_MAX / 2);
    for n in ["1", "2", "3"] {
        assert!(!is_refused(&rig, &["set", &format!("large{n}"), &text]));
    }
    assert!(!is_refused(&rig, &["rpush", "l", "1", "2", "3"]));
    (disk, rig)
}

#[test]
fn what_is_made_of_others_is_bounded() {
    let (_disk, rig) = with_many();
    let before = rig.map();
    for text in [
        "sunionstore to s0 s1 s2 s3 s4 s5 s6 s7",
        "sunion s0 s1 s2 s3 s4 s5 s6 s7",
        "zunionstore to 8 z0 z1 z2 z3 z4 z5 z6 z7",
        "zunion 8 z0 z1 z2 z3 z4 z5 z6 z7",
        "zunionstore to 8 s0 s1 s2 s3 z4 z5 z6 z7",
        "sort l by nosort get large* get large* store to",
    ] {
        let words: Vec<&str> = text.split(' ').collect();
        assert!(is_refused(&rig, &words), "{text}");
    }
    assert_eq!(rig.map(), before);
    for text in [
        "sunionstore to s0 s1 s2",
        "zunionstore to 3 z0 z1 z2",
        "sort l by nosort get large* store to",
    ] {
        let words: Vec<&str> = text.split(' ').collect();
        assert!(!is_refused(&rig, &words), "{text}");
    }
}

#[test]
fn times_of_fields_do_not_make_a_hash_larger_than_it_may_be() {
    let disk = SimVfs::new(3);
    let rig = Rig::open(&disk).expect("a new directory");
    let field = "f".repeat(VALUE_SIZE_MAX * 9 / 10);
    assert!(!is_refused(&rig, &["hset", "h", &field, "v"]));
    let before = rig.map();
    assert!(is_refused(&rig, &["hexpire", "h", "100", "fields", "1", &field]));
    assert!(is_refused(&rig, &["hsetex", "h", "ex", "100", "fields", "1", &field, "w"]));
    assert!(is_refused(&rig, &["hsetex", "new", "ex", "100", "fields", "1", &field, "w"]));
    assert_eq!(rig.map(), before);
    assert!(!is_refused(&rig, &["hexpire", "h", "0", "fields", "1", &field]), "it goes at once");
    assert!(!is_refused(&rig, &["hsetex", "h", "ex", "100", "fields", "1", "f", "w"]));
}

#[test]
fn a_value_that_grew_too_large_can_be_moved_and_not_copied() {
    let disk = SimVfs::new(4);
    let rig = Rig::open(&disk).expect("a new directory");
    for size in [VALUE_SIZE_MAX * 9 / 10, VALUE_SIZE_MAX * 2] {
        assert!(!is_refused(&rig, &["rpush", "l", &"x".repeat(size)]));
    }
    assert!(is_refused(&rig, &["copy", "l", "other"]));
    assert!(!is_refused(&rig, &["rename", "l", "m"]));
    assert!(!is_refused(&rig, &["move", "m", "1"]));
    let before = rig.map();
    assert_eq!(before.len(), 1, "it is not lost on its way");
    rig.kv.sync_log().expect("a good disk");
    drop(rig);
    assert_eq!(Rig::open(&disk.kill()).expect("whole").map(), before);
}

#[test]
fn strings_are_bounded_however_they_grow() {
    let disk = SimVfs::new(5);
    let rig = Rig::open(&disk).expect("a new directory");
    for text in [
        "setrange s 536870912 x",
        "setrange s 9223372036854775807 x",
        "setbit s 4294967296 1",
        "bitfield s set u8 4294967296 1",
        "bitfield s set u8 #536870912 1",
    ] {
        let words: Vec<&str> = text.split(' ').collect();
        assert!(is_refused(&rig, &words), "{text}");
    }
    assert!(rig.map().is_empty());
}

#[test]
fn fields_expire_as_late_as_redis_lets_them_and_are_restored() {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new directory");
    assert!(!is_refused(&rig, &["hset", "h", "f", "v"]));
    assert!(is_refused(&rig, &["hpexpireat", "h", "70368744177664", "fields", "1", "f"]));
    assert!(!is_refused(&rig, &["hpexpireat", "h", "70368744177663", "fields", "1", "f"]));
    let payload = {
        let mut keys = rig.kv.lock();
        kv::rdb::dump(keys.value(0, b"h").expect("a good disk").expect("there"))
    };
    let payload = payload.expect("a type of Redis");
    rig.run(0, &[b"restore", b"copy", b"0", &payload]).expect("a good disk");
    let mut keys = rig.kv.lock();
    let hash = keys.get::<kv::value::Hash>(0, b"copy").expect("a hash").expect("there");
    assert_eq!(hash.expiry_of(b"f"), Some(70_368_744_177_663));
}
