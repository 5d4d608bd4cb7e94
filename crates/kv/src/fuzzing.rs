//! What fuzzers feed with arbitrary bytes; each function panics when something that must hold does
//! not.
//!
//! Checksums keep arbitrary bytes away from most decoders, so they are fed what stands behind the
//! checksum, and good bytes of every type that the input has changes for.

use crate::call::{Call, Mode};
use crate::cold::dictionary::{CODING_DICTIONARY, Dictionaries};
use crate::cold::snapshot::IndexSnapshot;
use crate::cold::{ColdStore, Record, manifest, record};
use crate::commands;
use crate::config::KvConfig;
use crate::effects::decode;
use crate::keyspace::Keyspace;
use crate::rdb;
use crate::reply::Discard;
use crate::value::Value;
use codec::bytes::put_varint;
use codec::checksum::crc32;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use vfs::SimVfs;

const SEED: u64 = 7;
const DATABASES: usize = 2;
/// Milliseconds since the epoch, as of all commands.
const NOW_MS: i64 = 1_700_000_000_000;
/// Commands of one input.
const COMMANDS_MAX: usize = 40;
/// Larger numbers in a command may rightly ask for much memory or time.
const NUMBER_MAX: i64 = 100_000;

/// Commands that make a key of every type and encoding.
const SAMPLES: &[&str] = &[
    "set s text",
    "set i 42",
    "rpush l a b 3 4",
    "sadd e 1 2 3",
    "sadd f a b c",
    "hset h f v g w",
    "hset t f v g w",
    "hpexpireat t 1900000000000 fields 1 f",
    "zadd z 1 a 2.5 b -inf c",
    "xadd x 1-1 f v g w",
    "xadd x 2-1 f v g w",
    "xadd x 3-0 other 1",
    "xdel x 2-1",
    "xgroup create x g 0",
    "xgroup createconsumer x g idle",
    "xreadgroup group g c count 1 streams x >",
    "pfadd p a b c",
    "bf.reserve b 0.01 100",
    "bf.madd b a b c",
    "set d text",
    "pexpireat d 1900000000000",
    "geoadd o 13.36 38.11 palermo 15.08 37.50 catania",
];

fn empty() -> Keyspace {
    let config = KvConfig { databases: DATABASES, ..KvConfig::default() };
    let cold = ColdStore::new(Arc::new(SimVfs::new(SEED)), Path::new("/keys"), &config, 0);
    let mut keys = Keyspace::new(config, cold, SEED);
    keys.set_now(NOW_MS);
    keys
}

/// Runs a command, if it is one. Returns its effects.
fn run(keys: &mut Keyspace, words: &[&[u8]]) -> Vec<u8> {
    let command = words.first().and_then(|name| commands::find(name));
    if let Some(command) = command.filter(|command| command.info.takes(words.len())) {
        Call::run(keys, 0, command, words, &mut Discard, Mode::Inside);
    }
    let effects = keys.effects.bytes().to_vec();
    keys.effects.clear();
    keys.seq += 1;
    effects
}

fn split(line: &[u8]) -> Vec<&[u8]> {
    line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect()
}

/// All keys with their encoded values and expiry.
fn state(keys: &mut Keyspace) -> BTreeMap<(u8, Vec<u8>), (Vec<u8>, i64)> {
    let mut state = BTreeMap::new();
    for db in 0..u8::try_from(DATABASES).expect("few") {
        let mut found: Vec<Vec<u8>> = Vec::new();
        keys.scan(db, 0, usize::MAX, |key, _| found.push(key.to_vec())).expect("in memory");
        for key in found {
            let expire_ms = keys.expire_of(db, &key).expect("in memory").unwrap_or_default();
            let Some(value) = keys.value(db, &key).expect("in memory") else { continue };
            let mut encoded = Vec::new();
            value.encode(&mut encoded);
            state.insert((db, key), (encoded, expire_ms));
        }
    }
    state
}

/// Encoded values of every type.
fn good_values() -> &'static [Vec<u8>] {
    static VALUES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    VALUES.get_or_init(|| {
        let mut keys = empty();
        SAMPLES.iter().for_each(|line| drop(run(&mut keys, &split(line.as_bytes()))));
        state(&mut keys).into_values().map(|(value, _)| value).collect()
    })
}

/// One of some good inputs, as the first byte of `data` says, with changes as the others say: where,
/// and which byte comes there.
fn spoiled(good: &[Vec<u8>], data: &[u8]) -> Option<Vec<u8>> {
    let (first, changes) = data.split_first()?;
    let mut bytes = good.get(usize::from(*first) % good.len().max(1))?.clone();
    for [high, low, byte] in changes.as_chunks::<3>().0 {
        let at = usize::from(u16::from_be_bytes([*high, *low])) % (bytes.len() + 1);
        match bytes.get_mut(at) {
            Some(place) => *place = *byte,
            None => bytes.push(*byte),
        }
    }
    Some(bytes)
}

/// Runs lines as commands; what they log, replayed, gives the same keys.
pub fn fuzz_commands(data: &[u8]) {
    let (mut keys, mut copy) = (empty(), empty());
    copy.is_replaying = true;
    let samples = SAMPLES.iter().map(|line| line.as_bytes());
    let lines = data.split(|byte| *byte == b'\n').filter(|line| is_modest(line));
    for line in samples.chain(lines.take(COMMANDS_MAX)) {
        let words = split(line);
        let number = keys.seq;
        let effects = run(&mut keys, &words);
        if !effects.is_empty() {
            let mut payload = Vec::new();
            put_varint(&mut payload, number);
            payload.extend_from_slice(&effects);
            crate::kv::replay(&mut copy, &payload).expect("just written");
        }
    }
    copy.is_replaying = false;
    let (state, copied) = (state(&mut keys), state(&mut copy));
    for (key, value) in &state {
        let copied = copied.get(key);
        assert!(copied == Some(value), "{key:?} is {value:?}, replayed {copied:?}");
        check_value(&value.0);
    }
    assert!(state.len() == copied.len(), "{} keys, replayed {}", state.len(), copied.len());
}

/// Whether a line asks for nothing that would take long.
fn is_modest(line: &[u8]) -> bool {
    split(line).iter().all(|word| {
        let digits = word.trim_ascii_start().strip_prefix(b"#").unwrap_or(word);
        crate::number::parse_i64(digits)
            .is_none_or(|number| (-NUMBER_MAX..=NUMBER_MAX).contains(&number))
    })
}

/// Takes the bytes for a record of the log, and their changes for those of a good one.
pub fn fuzz_effects(data: &[u8]) {
    static GOOD: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let good = GOOD.get_or_init(|| {
        let mut keys = empty();
        let all = SAMPLES.iter().map(|line| {
            let mut payload = vec![1];
            payload.extend_from_slice(&run(&mut keys, &split(line.as_bytes())));
            payload
        });
        let mut all: Vec<Vec<u8>> = all.collect();
        for value in good_values() {
            let mut effects = crate::effects::Effects::default();
            effects.push(0, &[crate::effects::PUT, b"k", b"-1", value]);
            all.push([&[1], effects.bytes()].concat());
        }
        all
    });
    for payload in std::iter::once(data.to_vec()).chain(spoiled(good, data)) {
        let Ok((_, effects)) = decode(&payload) else { continue };
        let words = effects.iter().flat_map(|effect| &effect.arguments);
        if words.into_iter().all(|word| is_modest(word)) {
            let mut keys = empty();
            keys.is_replaying = true;
            // What is no effect is an error, and leaves keys that can be read.
            let _ = crate::kv::replay(&mut keys, &payload);
            keys.is_replaying = false;
            state(&mut keys);
        }
    }
}

/// What is read as a value is written and read again the same, in both forms.
fn check_value(bytes: &[u8]) {
    let Ok(value) = Value::decode(bytes) else { return };
    let mut encoded = Vec::new();
    value.encode(&mut encoded);
    let again = Value::decode(&encoded).expect("what was written is read");
    let mut twice = Vec::new();
    again.encode(&mut twice);
    assert!(encoded == twice, "a value changes when it is read");
    if let Some(dump) = rdb::dump(&value).filter(|_| !value.is_empty()) {
        rdb::restore(&dump, usize::MAX).expect("what was dumped is restored");
    }
}

/// Takes the bytes for a value, and their changes for those of a good one.
pub fn fuzz_value(data: &[u8]) {
    check_value(data);
    if let Some(bytes) = spoiled(good_values(), data) {
        check_value(&bytes);
    }
}

/// Takes the bytes for a record of a segment behind its checksum.
pub fn fuzz_record(data: &[u8]) {
    static GOOD: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let good = GOOD.get_or_init(|| {
        let heads = good_values().iter().map(|value| {
            let head: &[u8] = &[5, 0, 0, 1, b'k', 0];
            [head, value].concat()
        });
        heads.collect()
    });
    for body in std::iter::once(data.to_vec()).chain(spoiled(good, data)) {
        let bytes = [&[0; 8], body.as_slice()].concat();
        record::place_of(&bytes, 7);
        if let Ok(record) = Record::decode(&bytes, &Dictionaries::default()) {
            assert!(record.key.len() <= body.len());
        }
    }
}

/// Takes the bytes for a whole segment.
pub fn fuzz_segment(data: &[u8]) {
    let mut seen = 0;
    for (offset, raw) in record::walk(data) {
        assert!(seen <= offset && offset + raw.len() <= data.len());
        seen = offset + raw.len();
        record::place_of(raw, 7);
    }
}

/// Takes the bytes for a dictionary, and the rest for what was coded with it.
pub fn fuzz_dictionary(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let (dictionary, coded) = rest.split_at(usize::from(*first).min(rest.len()));
    let mut dictionaries = Dictionaries::default();
    if dictionaries.insert(CODING_DICTIONARY, dictionary).is_ok() {
        let size = usize::from(*first) * 4;
        if let Ok(plain) = dictionaries.decode(CODING_DICTIONARY, coded, size) {
            assert!(plain.len() == size, "a value has the size that its record says");
        }
    }
}

/// Takes the bytes for a manifest between its format and its checksum.
pub fn fuzz_manifest(data: &[u8]) {
    if let Ok(manifest) = manifest::decode(data, manifest::FORMAT) {
        assert!(manifest.segments.len() + manifest.dictionaries.len() <= data.len());
    }
}

/// Takes the bytes for a block of an index, in front of its checksum, and for a whole index.
pub fn fuzz_index(data: &[u8]) {
    const HEAD: &[u8] = b"QPKI\x01\0\0\0";
    const END: &[u8] = &[3, 0, 0, 0, 0, 0];
    let with_checksum = |bytes: &[u8]| [bytes, &crc32(bytes).to_le_bytes()].concat();
    let whole = [HEAD, &with_checksum(data), &with_checksum(END)].concat();
    for bytes in [data, &whole] {
        let mut size = 0;
        let read = IndexSnapshot::parse(bytes, Path::new("index"), |block| {
            size += match block {
                IndexSnapshot::Keys(_, keys) => keys.len() * 12,
                IndexSnapshot::Expiry(_, times) => times.len() * 14,
            };
            Ok(())
        });
        assert!(read.is_err() || size <= bytes.len());
    }
}

/// Takes the bytes for what `DUMP` answers, in front of its version and checksum.
pub fn fuzz_dump(data: &[u8]) {
    static GOOD: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let good = GOOD.get_or_init(|| {
        let values = good_values().iter().filter_map(|value| Value::decode(value).ok());
        let dumps = values.filter_map(|value| rdb::dump(&value));
        dumps.map(|dump| dump[..dump.len() - 10].to_vec()).collect()
    });
    for body in std::iter::once(data.to_vec()).chain(spoiled(good, data)) {
        if let Ok(value) = rdb::restore(&rdb::framed(body, rdb::VERSION_MAX), usize::MAX) {
            let mut encoded = Vec::new();
            value.encode(&mut encoded);
            check_value(&encoded);
        }
    }
}

/// Takes the bytes for a dump file of Redis, and for what follows its header.
pub fn fuzz_dump_file(data: &[u8]) {
    let behind = [b"REDIS0010".as_slice(), data].concat();
    for bytes in [data, &behind] {
        let mut source = bytes;
        let _ = rdb::walk(&mut source, |_, offset| {
            assert!(offset <= bytes.len() as u64);
            Ok::<(), rdb::Failure>(())
        });
        let mut source = bytes;
        let Ok(mut modules) = rdb::Modules::begin(&mut source) else { continue };
        while let Ok(Some(key)) = modules.next_key() {
            assert!(key.offset <= modules.offset() && modules.offset() <= bytes.len() as u64);
            if key.version % 2 == 0 {
                while let Ok(Some(_)) = modules.next_word() {}
            }
        }
    }
}
