//! Streams against plain lists.

use super::*;
use crate::Value;

fn id(ms: u64) -> Id {
    Id { ms, seq: 0 }
}

fn sample() -> Stream {
    let mut stream = Stream::default();
    for n in 1..=250 {
        let text = n.to_string();
        stream.push(id(n), &pack(&[b"field", text.as_bytes()]), BlockLimits::default());
    }
    stream.remove(id(120));
    stream.add_group(b"g", Group::new(id(3), Some(3)));
    stream.change_group(b"g", |group, _| {
        group.see(b"alice", 7);
        group.see(b"bob", 8);
        group.assign(id(1), b"alice", 7, 1);
        group.assign(id(2), b"bob", 8, 2);
        group.assign(id(1), b"bob", 9, 3);
    });
    stream
}

#[test]
fn blocks_ranges_and_trims() {
    let mut stream = sample();
    assert_eq!((stream.entries.len(), stream.entries.block_count()), (249, 3));
    let ids: Vec<u64> = stream.entries.range(id(118), id(122)).map(|(id, _)| id.ms).collect();
    assert_eq!(ids, [118, 119, 121, 122]);
    let ids: Vec<u64> = stream.entries.range(id(99), id(102)).rev().map(|(id, _)| id.ms).collect();
    assert_eq!(ids, [102, 101, 100, 99]);
    assert_eq!(stream.entries.range(id(9), id(2)).count(), 0);
    assert_eq!(stream.entries.trim(Keep::Len(100), true, None), 100);
    assert_eq!(stream.entries.trim(Keep::Len(100), true, Some(10)), 0);
    assert_eq!(stream.entries.trim(Keep::From(id(119)), false, None), 18);
    assert_eq!(stream.entries.first_id(), Some(id(119)));
    assert_eq!(stream.entries.trim(Keep::Len(0), false, None), 131);
    assert_eq!((stream.entries.first_id(), stream.entries.size()), (None, 0));
}

#[test]
fn what_is_written_is_read() {
    let stream = sample();
    let size = stream.heap_size();
    let value = stream.into_value();
    let mut encoded = Vec::new();
    value.encode(&mut encoded);
    let decoded = Value::decode(&encoded).expect("own encoding");
    let mut again = Vec::new();
    decoded.encode(&mut again);
    assert_eq!(encoded, again);
    let stream = Stream::of(&decoded).expect("a stream");
    assert_eq!(stream.heap_size(), size);
    assert_eq!((stream.max_deleted_id, stream.entries_added), (id(120), 250));
    let group = stream.group(b"g").expect("a group");
    assert_eq!(group.consumer(b"bob").map(|bob| bob.pending.len()), Some(2));
    assert_eq!(group.consumer(b"alice").map(|alice| alice.pending.len()), Some(0));
    assert_eq!(group.pending()[&id(1)].count, 3);
}

#[test]
fn broken_bytes_are_errors() {
    let mut encoded = Vec::new();
    sample().into_value().encode(&mut encoded);
    for size in 0..encoded.len() {
        assert!(Value::decode(&encoded[..size]).is_err());
    }
    for at in 0..encoded.len() {
        for bit in [0x01, 0x10, 0x80] {
            let mut broken = encoded.clone();
            broken[at] ^= bit;
            if let Ok(value) = Value::decode(&broken) {
                value.encode(&mut Vec::new());
            }
        }
    }
}
