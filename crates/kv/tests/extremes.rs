//! Values at the ends of what their types have, on disk and in the log: all come back bit by bit.

use crate::rig::{DATA, Rig};
use std::path::Path;
use std::sync::Arc;
use vfs::SimVfs;

/// Numbers at the ends of what 8 to 64 bits have, and beside them.
fn integers() -> Vec<String> {
    let ends = [8, 16, 24, 32, 48, 63].into_iter().flat_map(|bits| {
        let end = 1i128 << bits;
        [end - 1, end, end + 1, -end, -end - 1, -end + 1]
    });
    let fitting = ends.filter_map(|number| i64::try_from(number).ok());
    fitting.chain([0, 1, -1]).map(|number| number.to_string()).collect()
}

/// Floats at the ends, subnormal ones, and zeros of both signs.
fn floats() -> Vec<String> {
    let some =
        [f64::MIN_POSITIVE, f64::MAX, 5e-324, 1e308, 0.1, 1.0 / 3.0, 4_503_599_627_370_497.5];
    let both = some.iter().flat_map(|number| [*number, -number]);
    let texts = both.map(|number| format!("{number:?}"));
    texts.chain(["inf", "-inf", "0", "-0"].map(str::to_owned)).collect()
}

fn commands() -> Vec<(u8, Vec<Vec<u8>>)> {
    let mut all: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut add = |words: &[&[u8]]| all.push(words.iter().map(|word| word.to_vec()).collect());
    for (at, number) in integers().iter().enumerate() {
        let (key, number) = (format!("int:{at}").into_bytes(), number.as_bytes());
        add(&[b"set", &key, number]);
        add(&[b"sadd", b"ints", number]);
        add(&[b"sadd", &[b"s", key.as_slice()].concat(), number]);
        add(&[b"rpush", b"list", number, b"", b"x"]);
        add(&[b"hset", b"hash", number, number]);
    }
    for (at, number) in floats().iter().enumerate() {
        add(&[b"zadd", b"scores", number.as_bytes(), format!("m{at}").as_bytes()]);
        add(&[b"hincrbyfloat", b"floats", format!("f{at}").as_bytes(), number.as_bytes()]);
    }
    let sizes =
        [0, 1, 31, 32, 63, 64, 65, 127, 128, 255, 256, 257, 4095, 4096, 16_383, 16_384, 70_000];
    for size in sizes {
        let bytes: Vec<u8> = (0..size).map(|at| (at * 7) as u8).collect();
        let key = format!("bytes:{size}").into_bytes();
        add(&[b"set", &key, &bytes]);
        add(&[b"rpush", b"sizes", &bytes]);
        add(&[b"hset", b"fields", &bytes, &bytes]);
        add(&[b"zadd", b"members", b"0.5", &bytes]);
        add(&[b"sadd", b"texts", &bytes]);
    }
    for id in ["0-1", "1-0", "1-18446744073709551615", "18446744073709551615-18446744073709551615"]
    {
        add(&[b"xadd", b"stream", id.as_bytes(), b"", b"", b"field", b"value"]);
    }
    for (at, time) in
        ["1700000000001", "9223372036854775807", "4611686018427387904"].iter().enumerate()
    {
        let key = format!("until:{at}").into_bytes();
        add(&[b"set", &key, b"v"]);
        add(&[b"pexpireat", &key, time.as_bytes()]);
    }
    all.into_iter().map(|words| (0, words)).collect()
}

#[test]
fn extreme_values_come_back_from_the_log_and_from_disk() {
    let disk = SimVfs::new(1);
    disk.set_now(1_700_000_000_000_000_000);
    let open = |is_compressed: bool| {
        let vfs = Arc::new(disk.clone());
        Rig::open_as(vfs, Path::new(DATA), |config| kv::KvConfig {
            is_compressed,
            memory_max: 64 << 20,
            segment_size: 64 << 10,
            checkpoint_log_size: 1 << 30,
            ..config
        })
        .expect("it opens")
    };
    let rig = open(false);
    for command in commands() {
        rig.run_all(&[command]).expect("a good disk");
    }
    let expected = rig.map();
    assert!(60 < expected.len(), "{}", expected.len());
    drop(rig);
    // From the log, then from plain records, then from coded ones.
    let rig = open(false);
    assert_eq!(rig.map(), expected);
    rig.close().expect("a good disk");
    drop(rig);
    let rig = open(true);
    assert_eq!(rig.map(), expected);
    for _ in 0..20 {
        rig.kv.keep().expect("a good disk");
    }
    rig.close().expect("a good disk");
    drop(rig);
    assert_eq!(open(true).map(), expected);
}
