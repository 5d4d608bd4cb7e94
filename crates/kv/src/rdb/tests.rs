//! Values there and back, and what Redis itself wrote.

use super::*;
use crate::value::list::End;
use crate::value::stream::{BlockLimits, Group, Id, pack};
use crate::value::{Hash, List, Set, Stored as _, Str, Stream, Zset};

/// No bound on values.
const SIZE_MAX: usize = usize::MAX;

fn samples() -> Vec<Value> {
    let texts: Vec<String> = (0..600).map(|n| format!("member {n}")).collect();
    let mut values: Vec<Value> = ["", "12", "-129", "70000", "99999999999", "text"]
        .iter()
        .map(|text| Str::new(text.as_bytes()).into_value())
        .collect();
    for count in [3, 600] {
        let (mut list, mut ints, mut set) = (List::default(), Set::default(), Set::default());
        let (mut hash, mut zset, mut stream) =
            (Hash::default(), Zset::default(), Stream::default());
        let mut expiring = Hash::default();
        for (n, text) in (0i32..).zip(&texts[..count]) {
            list.push(End::Right, text.as_bytes());
            ints.insert((n * 1000).to_string().as_bytes());
            set.insert(text.as_bytes());
            hash.insert(text.as_bytes(), b"7");
            expiring.insert(text.as_bytes(), b"");
            zset.insert(text.as_bytes(), f64::from(n) / 3.0);
            let id = Id { ms: 5 + u64::from(n.unsigned_abs()) / 2, seq: u64::from(n % 2 == 1) };
            let fields: [&[u8]; 2] = [if n % 7 == 0 { b"odd" } else { b"field" }, text.as_bytes()];
            stream.push(id, &pack(&fields), BlockLimits::default());
        }
        list.push(End::Left, &vec![b'x'; 100_000]);
        expiring.set_expiry(b"member 0", Some(1_900_000_000_000));
        expiring.set_expiry(b"member 2", Some(1_900_000_000_777));
        stream.remove(Id { ms: 5, seq: 1 });
        stream.add_group(b"g", Group::new(Id { ms: 6, seq: 0 }, None));
        stream.change_group(b"g", |group, _| {
            group.see(b"c", 17);
            group.assign(Id { ms: 5, seq: 0 }, b"c", 16, 3);
        });
        values.extend([list.into_value(), ints.into_value(), set.into_value()]);
        values.extend([hash.into_value(), zset.into_value(), stream.into_value()]);
        values.push(expiring.into_value());
    }
    values
}

/// What can be compared, whatever order is kept within.
fn shape(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Set(set) => {
            let mut members: Vec<&[u8]> = set.iter().collect();
            members.sort_unstable();
            out.extend(members.concat());
        }
        Value::Hash(hash) => {
            let mut fields: Vec<_> = hash.iter().map(|(f, v)| (f, v, hash.expiry_of(f))).collect();
            fields.sort_unstable();
            out.extend(format!("{fields:?}").as_bytes());
        }
        Value::Str(_) => value.encode(&mut out),
        Value::Stream(stream) => {
            let entries: Vec<_> = stream.entries.range(Id::MIN, Id::MAX).collect();
            out.extend(format!("{entries:?} {:?}", stream.groups()).as_bytes());
            let ends = (stream.last_id, stream.max_deleted_id, stream.entries_added);
            out.extend(format!("{ends:?}").as_bytes());
        }
        Value::List(list) => out.extend(list.iter_from(0).flatten()),
        Value::Zset(zset) => {
            zset.each(0..zset.len(), false, |member, score| {
                out.extend(format!("{member:?}{score}").as_bytes());
            });
        }
        Value::Bloom(_) | Value::Series(_) => {}
    }
    out
}

#[test]
fn what_is_dumped_is_restored() {
    for value in samples() {
        let payload = dump(&value).expect("a type of Redis");
        let restored = restore(&payload, SIZE_MAX).expect("own payload");
        assert_eq!(restored.type_name(), value.type_name());
        assert!(shape(&restored) == shape(&value), "{}", value.type_name());
    }
}

#[test]
fn broken_payloads_are_refused() {
    for value in samples() {
        let payload = dump(&value).expect("a type of Redis");
        for at in [0, payload.len() / 2, payload.len() - 1] {
            let mut broken = payload.clone();
            broken[at] ^= 0x10;
            assert_eq!(restore(&broken, SIZE_MAX).err(), Some(Refusal::Frame));
        }
        // With a checksum that holds, anything may come.
        let body = &payload[..payload.len() - FOOTER_SIZE];
        let step = body.len() / 60 + 1;
        for at in (0..body.len()).step_by(step) {
            for bits in [0x01, 0x80, 0xff] {
                let mut broken = body.to_vec();
                broken[at] ^= bits;
                seal(&mut broken);
                if let Ok(value) = restore(&broken, SIZE_MAX) {
                    assert!(dump(&value).is_some());
                }
            }
            let mut cut = body[..at].to_vec();
            seal(&mut cut);
            assert!(restore(&cut, SIZE_MAX).is_err());
        }
    }
    assert_eq!(restore(b"", SIZE_MAX).err(), Some(Refusal::Frame));
}

fn seal(body: &mut Vec<u8>) {
    body.extend(VERSION_MAX.to_le_bytes());
    let crc = crc64(0, body);
    body.extend(crc.to_le_bytes());
}

#[test]
fn a_value_that_takes_more_memory_than_it_may_is_refused_while_it_is_read() {
    for value in samples().iter().filter(|value| 20_000 < value.heap_size()) {
        let payload = dump(value).expect("a type of Redis");
        let size = value.heap_size();
        assert_eq!(restore(&payload, size / 2).err(), Some(Refusal::TooLarge));
        assert!(restore(&payload, 4 * size).is_ok());
    }
}

#[test]
fn few_bytes_that_say_many_are_refused() {
    // Each element is 264 KB in 3 KB.
    let mut packed = vec![0, b'a'];
    (0..1000).for_each(|_| packed.extend([0xe0, 255, 0]));
    let size = 264_001_u32;
    let mut element = vec![0xc3, 0x80];
    element.extend(u32::try_from(packed.len()).unwrap().to_be_bytes());
    element.push(0x80);
    element.extend(size.to_be_bytes());
    element.extend(&packed);
    let mut list = vec![kind::LIST, 50];
    (0..50).for_each(|_| list.extend(&element));
    let payload = framed(list, VERSION);
    assert_eq!(restore(&payload, 4 << 20).err(), Some(Refusal::TooLarge));
    assert!(restore(&payload, 64 << 20).is_ok());
}

#[test]
fn a_piece_has_so_many_elements_at_most() {
    let count = (1 << 22) + 1;
    let mut piece = u32::try_from(2 * count + 7).unwrap().to_le_bytes().to_vec();
    piece.extend([0xff, 0xff]);
    (0..count).for_each(|_| piece.extend([1, 1]));
    piece.push(0xff);
    assert!(packed::listpack(&piece).is_err());
}
