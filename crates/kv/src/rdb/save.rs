//! Values, written.

use super::kind;
use super::packed::Listpack;
use super::stream;
use crate::number::{double_text, parse_i64};
use crate::value::{Hash, List, Set, Str, Value, Zset};

/// Bytes of a list's node; a longer element has one for itself.
const NODE_SIZE_MAX: usize = 8 << 10;

/// Who is to read what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Whoever knows all that there is.
    Newest,
    /// Redis 7.0, whose fields of hashes do not expire.
    Redis7,
}

/// Appends type and value. None for a type that Redis itself does not have.
pub fn value(out: &mut Vec<u8>, value: &Value, reader: Reader) -> Option<()> {
    match value {
        Value::Str(inner) => {
            out.push(kind::STRING);
            put_str(out, inner);
        }
        Value::List(inner) => list(out, inner),
        Value::Set(inner) => set(out, inner),
        Value::Hash(inner) => hash(out, inner, reader),
        Value::Zset(inner) => zset(out, inner),
        Value::Stream(inner) => {
            out.push(kind::STREAM_2);
            stream::save(out, inner);
        }
        Value::Bloom(_) | Value::Series(_) => return None,
    }
    Some(())
}

/// A length.
pub fn put_length(out: &mut Vec<u8>, length: u64) {
    match (u32::try_from(length), length) {
        (Ok(_), 0..=63) => out.push(length as u8),
        (Ok(_), 64..=16_383) => out.extend([0x40 | (length >> 8) as u8, length as u8]),
        (Ok(length), _) => {
            out.push(0x80);
            out.extend(length.to_be_bytes());
        }
        (Err(_), _) => {
            out.push(0x81);
            out.extend(length.to_be_bytes());
        }
    }
}

/// Bytes with their size.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes, as a number if they spell a short one.
fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    match parse_i64(bytes).and_then(|int| i32::try_from(int).ok()) {
        Some(int) => {
            let le = int.to_le_bytes();
            let size = match int {
                -128..=127 => 0,
                -32768..=32767 => 1,
                _ => 2,
            };
            out.push(0xc0 | size);
            out.extend(&le[..1 << size]);
        }
        None => put_bytes(out, bytes),
    }
}

fn put_str(out: &mut Vec<u8>, string: &Str) {
    string.with_bytes(|bytes| put_string(out, bytes));
}

fn list(out: &mut Vec<u8>, list: &List) {
    /// As [`super::load`] has it.
    const PLAIN: u8 = 1;
    const PACKED: u8 = 2;
    out.push(kind::LIST_QUICKLIST_2);
    let (mut nodes, mut count) = (Vec::new(), 0);
    let mut pack = Listpack::default();
    let mut end = |pack: &mut Listpack, nodes: &mut Vec<u8>| {
        if !pack.is_empty() {
            nodes.push(PACKED);
            put_bytes(nodes, &std::mem::take(pack).finish());
            count += 1;
        }
    };
    let mut plain_count = 0;
    for element in list.iter_from(0) {
        if NODE_SIZE_MAX < pack.size() + element.len() {
            end(&mut pack, &mut nodes);
        }
        if NODE_SIZE_MAX < element.len() {
            nodes.push(PLAIN);
            put_bytes(&mut nodes, element);
            plain_count += 1;
        } else {
            pack.push(element);
        }
    }
    end(&mut pack, &mut nodes);
    put_length(out, count + plain_count);
    out.append(&mut nodes);
}

fn set(out: &mut Vec<u8>, set: &Set) {
    if set.encoding() == "intset" {
        let mut ints: Vec<i64> = set.iter().filter_map(parse_i64).collect();
        ints.sort_unstable();
        out.push(kind::SET_INTSET);
        put_bytes(out, &intset(&ints));
        return;
    }
    out.push(kind::SET);
    put_length(out, set.len() as u64);
    set.iter().for_each(|member| put_string(out, member));
}

fn intset(ints: &[i64]) -> Vec<u8> {
    let fits = |min: i64, max: i64| ints.iter().all(|int| (min..=max).contains(int));
    let width: u8 = match () {
        () if fits(i64::from(i16::MIN), i64::from(i16::MAX)) => 2,
        () if fits(i64::from(i32::MIN), i64::from(i32::MAX)) => 4,
        () => 8,
    };
    let mut bytes = vec![width, 0, 0, 0];
    bytes.extend(u32::try_from(ints.len()).unwrap_or(u32::MAX).to_le_bytes());
    for int in ints {
        bytes.extend(&int.to_le_bytes()[..usize::from(width)]);
    }
    bytes
}

fn hash(out: &mut Vec<u8>, hash: &Hash, reader: Reader) {
    if let (Some(first), Reader::Newest) = (hash.next_expiry(), reader) {
        return expiring(out, hash, first);
    }
    if hash.encoding().starts_with("listpack") {
        let mut pack = Listpack::default();
        for (field, value) in hash.stored() {
            pack.push(field);
            pack.push(value);
        }
        out.push(kind::HASH_LISTPACK);
        put_bytes(out, &pack.finish());
        return;
    }
    out.push(kind::HASH);
    put_length(out, hash.stored_len() as u64);
    for (field, value) in hash.stored() {
        put_string(out, field);
        put_string(out, value);
    }
}

fn expiring(out: &mut Vec<u8>, hash: &Hash, first: i64) {
    out.push(kind::HASH_EXPIRING);
    out.extend(first.to_le_bytes());
    put_length(out, hash.stored_len() as u64);
    for (field, value) in hash.stored() {
        let after = hash.expiry_of(field).map(|at| at.saturating_sub(first).saturating_add(1));
        put_length(out, after.and_then(|after| u64::try_from(after).ok()).unwrap_or(0));
        put_string(out, field);
        put_string(out, value);
    }
}

fn zset(out: &mut Vec<u8>, zset: &Zset) {
    let all = 0..zset.len();
    if zset.encoding() == "listpack" {
        let mut pack = Listpack::default();
        zset.each(all, false, |member, score| {
            pack.push(member);
            pack.push(double_text(score).as_bytes());
        });
        out.push(kind::ZSET_LISTPACK);
        put_bytes(out, &pack.finish());
        return;
    }
    out.push(kind::ZSET_2);
    put_length(out, zset.len() as u64);
    zset.each(all, true, |member, score| {
        put_string(out, member);
        out.extend(score.to_bits().to_le_bytes());
    });
}
