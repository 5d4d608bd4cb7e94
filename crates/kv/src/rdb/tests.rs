use super::*;
use crate::value::list::End;
use crate::value::stream::{BlockLimits, Group, Id, pack};
use crate::value::{Hash, List, Set, Stored as _, Str, Stream, Zset};

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
        let restored = restore(&payload).expect("own payload");
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
            assert_eq!(restore(&broken).err(), Some(Refusal::Frame));
        }
        // With a checksum that holds, anything may come.
        let body = &payload[..payload.len() - FOOTER_SIZE];
        let step = body.len() / 60 + 1;
        for at in (0..body.len()).step_by(step) {
            for bits in [0x01, 0x80, 0xff] {
                let mut broken = body.to_vec();
                broken[at] ^= bits;
                seal(&mut broken);
                if let Ok(value) = restore(&broken) {
                    assert!(dump(&value).is_some());
                }
            }
            let mut cut = body[..at].to_vec();
            seal(&mut cut);
            assert!(restore(&cut).is_err());
        }
    }
    assert_eq!(restore(b"").err(), Some(Refusal::Frame));
}

fn seal(body: &mut Vec<u8>) {
    body.extend(VERSION_MAX.to_le_bytes());
    let crc = crc64(0, body);
    body.extend(crc.to_le_bytes());
}
