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
fn payloads_of_valkey_are_restored() {
    let packed = b"\x10\x13\x13\x00\x00\x00\x02\x00\x84f127\x05\x84v127\x05\xffP\x00\xf4\xd4\x8c\x0c\r\x0b\xe2\x9b";
    let expiring = b"\x16\x01\x02f0\xc04\xdc(\xd9+\xa2\x01\x00\x00P\x00@SdU;hP\x15";
    for (payload, field, expiry) in [
        (&packed[..], b"f127".as_slice(), None),
        (&expiring[..], b"f0".as_slice(), Some(1_796_031_981_788)),
    ] {
        let Ok(Value::Hash(hash)) = restore(payload, SIZE_MAX) else { panic!("a hash") };
        assert_eq!((hash.len(), hash.next_expiry()), (1, expiry));
        assert!(hash.get(field).is_some());
    }
    // Another version of the same numbers is not known.
    let mut later = packed.to_vec();
    later.truncate(packed.len() - FOOTER_SIZE);
    assert_eq!(restore(&framed(later, 81), SIZE_MAX).err(), Some(Refusal::Frame));
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

/// The type of time series as a module's number says it, in that version.
const TSDB: &[u8] = b"TSDB-TYPE";

/// A dump of all kinds of values with keys of modules between them, and how many are of neither.
fn with_modules() -> (Vec<u8>, u64) {
    let number = |version: u64| {
        let bits = |letter: &u8| match letter {
            b'-' => 62,
            _ => u64::from(letter - b'A'),
        };
        TSDB.iter().fold(0, |sum, letter| sum << 6 | bits(letter)) << 10 | version
    };
    let mut file = b"REDIS0099".to_vec();
    let mut count = 0;
    for (at, value) in (0u8..).zip(samples()) {
        let payload = dump(&value).expect("a type of Redis");
        file.extend([word_of_database(), at % 3, payload[0], 1, at]);
        file.extend(&payload[1..payload.len() - FOOTER_SIZE]);
        count += 1;
        file.extend([252, 1, 0, 0, 0, 0, 0, 0, at, kind::MODULE_2, 2, b'k', at, 0x81]);
        file.extend(number(9).to_be_bytes());
        file.extend([1, 0x3f, 2, 0x40, 0x80, 3, 0, 0, 0x80, 0x3f, 4]);
        file.extend(1.5f64.to_le_bytes());
        file.extend([5, 3, b'a', b'b', b'c', 5, 0xc0, 7, 0]);
    }
    file.push(255);
    let crc = crc64(0, &file);
    file.extend(crc.to_le_bytes());
    (file, count)
}

fn word_of_database() -> u8 {
    file::word::DATABASE
}

#[test]
fn values_of_modules_are_found_among_all_others() {
    let (file, count) = with_modules();
    let mut source = file.as_slice();
    let mut modules = Modules::begin(&mut source).unwrap();
    let mut offsets = Vec::new();
    while let Some(key) = modules.next_key().unwrap() {
        assert_eq!((key.module.as_bytes(), key.version), (TSDB, 9));
        assert!(key.expire_ms.is_some() && key.key[0] == b'k' && key.db < 3);
        offsets.push((key.offset, key.db));
        // Whoever has seen enough leaves the rest.
        if key.key[1] % 2 == 0 {
            continue;
        }
        let bytes = |text: &[u8]| ModuleWord::Bytes(text.to_vec());
        let (number, double) = (ModuleWord::Number, ModuleWord::Double);
        for expected in
            [number(63), number(128), double(1.0), double(1.5), bytes(b"abc"), bytes(b"7")]
        {
            assert_eq!(modules.next_word().unwrap(), Some(expected));
        }
        assert_eq!(modules.next_word().unwrap(), None);
        assert_eq!(modules.next_word().unwrap(), None);
    }
    assert_eq!((modules.skipped(), offsets.len() as u64), (count, count));
    for (at, (offset, db)) in offsets.into_iter().enumerate() {
        let mut source = &file[offset as usize..];
        let mut modules = Modules::resume(&mut source, offset, db);
        let key = modules.next_key().unwrap().unwrap();
        assert_eq!((key.key[1] as usize, key.db, key.offset), (at, (at % 3) as u64, offset));
    }
}

#[test]
fn a_damaged_dump_is_said_to_be() {
    let (file, _) = with_modules();
    let walk = |bytes: &[u8]| {
        let mut source = bytes;
        let mut modules = Modules::begin(&mut source)?;
        while let Some(key) = modules.next_key()? {
            assert!(key.offset < bytes.len() as u64);
        }
        Ok::<(), Failure>(())
    };
    walk(&file).unwrap();
    let step = file.len() / 50 + 1;
    for at in (9..file.len()).step_by(step) {
        assert!(walk(&file[..at]).is_err(), "cut at {at}");
        let mut rotten = file.clone();
        rotten[at] ^= 0x10;
        assert!(walk(&rotten).is_err(), "flipped at {at}");
    }
    let mut rotten = file.clone();
    // A letter of a value.
    let at = file.windows(3).rposition(|three| three == b"abc").unwrap();
    rotten[at] = b'x';
    assert!(matches!(walk(&rotten), Err(Failure::Checksum { .. })));
    assert!(matches!(walk(b"REDIS0000"), Err(Failure::Corrupt { .. })));
}

#[test]
fn field_expiries_up_to_the_limit_come_back() {
    let payload = |at: i64| {
        let mut hash = Hash::default();
        for (field, at) in [("first", 1_900_000_000_000), ("last", at)] {
            hash.insert(field.as_bytes(), b"v");
            hash.set_expiry(field.as_bytes(), Some(at));
        }
        dump(&hash.into_value()).expect("a type of Redis")
    };
    for at in [70_368_744_177_662, Hash::SET_EXPIRY_MAX_MS, Hash::EXPIRY_MAX_MS] {
        let Ok(Value::Hash(hash)) = restore(&payload(at), SIZE_MAX) else { panic!("{at}") };
        assert_eq!(hash.expiry_of(b"last"), Some(at));
    }
    let beyond = restore(&payload(Hash::EXPIRY_MAX_MS + 1), SIZE_MAX);
    assert_eq!(beyond.err(), Some(Refusal::Value));
}
