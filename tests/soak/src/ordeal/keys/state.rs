//! All keys of a database as a client sees them, and whether two databases are alike.

use super::replies::is_alike;
use anyhow::{Result, bail};
use quipu_bench::resp::{Reply, RespClient, Words, words};
use std::collections::BTreeMap;
use std::time::Duration;

/// Milliseconds that may lie between two moments at which the same command was done.
const SLACK_MS: i64 = 600_000;
/// How long keys may stay that expire within moments.
const BRIEF: Duration = Duration::from_secs(5);

/// By key, what reads it and what was read.
pub type State = BTreeMap<Vec<u8>, Vec<(Words, Reply)>>;

/// Reads all keys of the connection's database but those that expire within moments, which must be
/// gone.
///
/// # Errors
/// When the server cannot be asked or such a key stays.
pub fn read(client: &mut RespClient) -> Result<State> {
    let keys = lasting_keys(client)?;
    let types: Vec<Words> = keys.iter().map(|key| words(&[b"TYPE", key.as_slice()])).collect();
    let types = client.pipeline(&types)?;
    let mut reads: Vec<Vec<Words>> = Vec::new();
    for (key, kind) in keys.iter().zip(&types) {
        reads.push(reads_of(client, key, kind)?);
    }
    let mut replies = client.pipeline(&reads.concat())?.into_iter();
    let mut state = State::new();
    for (key, reads) in keys.into_iter().zip(reads) {
        let count = reads.len();
        state.insert(key, reads.into_iter().zip(replies.by_ref().take(count)).collect());
    }
    Ok(state)
}

fn lasting_keys(client: &mut RespClient) -> Result<Vec<Vec<u8>>> {
    let start = std::time::Instant::now();
    loop {
        let Reply::List(_, found) = client.call(&["KEYS", "*"])? else { bail!("KEYS fails") };
        let keys = found.into_iter().filter_map(|key| match key {
            Reply::Bulk(key) => Some(key),
            _ => None,
        });
        let mut keys: Vec<Vec<u8>> = keys.collect();
        match keys.iter().find(|key| key.starts_with(b"brief:")) {
            None => {
                keys.sort();
                return Ok(keys);
            }
            Some(key) if BRIEF < start.elapsed() => {
                bail!("{} does not expire", key.escape_ascii())
            }
            Some(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// What reads a key of that type.
fn reads_of(client: &mut RespClient, key: &[u8], kind: &Reply) -> Result<Vec<Words>> {
    let Reply::Line(b'+', kind) = kind else { bail!("TYPE fails: {}", kind.shown()) };
    let texts: &[&str] = match kind.as_slice() {
        b"string" => &["GET k"],
        b"list" => &["LRANGE k 0 -1"],
        b"set" => &["SMEMBERS k"],
        b"hash" => &["HGETALL k"],
        b"zset" => &["ZRANGE k 0 -1 WITHSCORES"],
        b"stream" => &["XRANGE k - +", "XINFO STREAM k FULL COUNT 0"],
        b"MBbloom--" => &["BF.INFO k"],
        other => bail!("an unknown type {}", other.escape_ascii()),
    };
    let word = |word: &str| if word == "k" { key.to_vec() } else { word.into() };
    let mut reads: Vec<Words> = Vec::new();
    reads.push(words(&[b"TYPE", key]));
    reads.push(words(&[b"PEXPIRETIME", key]));
    reads.extend(texts.iter().map(|text| text.split(' ').map(word).collect()));
    match kind.as_slice() {
        b"hash" => reads.push(field_times(client, key)?),
        b"MBbloom--" => reads.extend(pieces(client, key)?),
        _ => {}
    }
    Ok(reads)
}

/// What reads when the fields of a hash expire.
fn field_times(client: &mut RespClient, key: &[u8]) -> Result<Words> {
    let Reply::List(_, fields) = client.call(&[b"HKEYS", key])? else { bail!("HKEYS fails") };
    let mut fields: Words = fields
        .into_iter()
        .filter_map(|field| match field {
            Reply::Bulk(field) => Some(field),
            _ => None,
        })
        .collect();
    fields.sort();
    let count = fields.len().to_string();
    let mut read = words(&[b"HPEXPIRETIME", key, b"FIELDS", count.as_bytes()]);
    read.append(&mut fields);
    Ok(read)
}

/// What reads the pieces of a bloom filter.
fn pieces(client: &mut RespClient, key: &[u8]) -> Result<Vec<Words>> {
    let mut cursor = b"0".to_vec();
    let mut reads = Vec::new();
    loop {
        let read = words(&[b"BF.SCANDUMP", key, &cursor]);
        let reply = client.call(&read)?;
        reads.push(read);
        let Reply::List(_, parts) = &reply else { bail!("BF.SCANDUMP: {}", reply.shown()) };
        match parts.first() {
            Some(Reply::Int(0)) => return Ok(reads),
            Some(Reply::Int(next)) => cursor = next.to_string().into_bytes(),
            _ => bail!("BF.SCANDUMP: {}", reply.shown()),
        }
    }
}

/// The first difference between two states.
pub fn difference(found: &State, expected: &State) -> Option<String> {
    for (key, reads) in expected {
        let Some(found) = found.get(key) else {
            return Some(format!("{} is missing", key.escape_ascii()));
        };
        for ((read, found), (expected_read, expected)) in found.iter().zip(reads) {
            if read != expected_read || !is_same(read, found, expected) {
                let what = quipu_bench::resp::shown(read);
                let (found, expected) = (found.shown(), expected.shown());
                return Some(format!("{what}:\n  found    {found}\n  expected {expected}"));
            }
        }
        if found.len() != reads.len() {
            return Some(format!("{} has another size", key.escape_ascii()));
        }
    }
    let more = found.keys().find(|key| !expected.contains_key(*key))?;
    Some(format!("{} should not be there", more.escape_ascii()))
}

fn is_same(read: &[Vec<u8>], found: &Reply, expected: &Reply) -> bool {
    match (found, expected) {
        (Reply::Int(found), Reply::Int(expected)) if read[0] == b"PEXPIRETIME" => {
            is_same_time(*found, *expected)
        }
        (Reply::List(_, found), Reply::List(_, expected)) if read[0] == b"HPEXPIRETIME" => {
            let is_same = |(found, expected): (&Reply, &Reply)| match (found, expected) {
                (Reply::Int(found), Reply::Int(expected)) => is_same_time(*found, *expected),
                _ => false,
            };
            found.len() == expected.len() && found.iter().zip(expected).all(is_same)
        }
        _ => is_alike(read, &[], found, expected),
    }
}

fn is_same_time(found: i64, expected: i64) -> bool {
    found == expected || 0 < found && 0 < expected && (found - expected).abs() < SLACK_MS
}
