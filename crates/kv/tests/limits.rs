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
