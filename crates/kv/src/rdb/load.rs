//! Values, read: every type in every encoding that it has had.

use super::input::{Failure, Input};
use super::kind;
use super::packed::{self, Element};
use super::stream;
use crate::number::parse_f64;
use crate::value::list::End;
use crate::value::zset::Change;
use crate::value::{Hash, List, Set, Stored, Str, Value, Zset};

/// Elements of a quicklist's node: one as it is, or many packed.
const NODE_PLAIN: u64 = 1;
const NODE_PACKED: u64 = 2;

/// Reads a value of that type; none of a module's type, which is skipped.
///
/// # Errors
/// When the bytes are none.
pub fn value(input: &mut Input<'_>, of: u8) -> Result<Option<Value>, Failure> {
    let value = match of {
        kind::STRING => Str::from_vec(input.string()?).into_value(),
        kind::LIST | kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2 => {
            list(input, of)?.into_value()
        }
        kind::SET | kind::SET_INTSET | kind::SET_LISTPACK => set(input, of)?.into_value(),
        kind::ZSET | kind::ZSET_2 => zset_pairs(input, of)?.into_value(),
        kind::ZSET_ZIPLIST | kind::ZSET_LISTPACK => zset_packed(input, of)?.into_value(),
        kind::HASH => hash_pairs(input)?.into_value(),
        kind::HASH_ZIPMAP | kind::HASH_ZIPLIST | kind::HASH_LISTPACK => {
            hash_packed(input, of)?.into_value()
        }
        kind::HASH_EXPIRING | kind::HASH_EXPIRING_EARLY => expiring_pairs(input, of)?.into_value(),
        kind::HASH_LISTPACK_EXPIRING | kind::HASH_LISTPACK_EXPIRING_EARLY => {
            expiring_packed(input, of)?.into_value()
        }
        kind::HASH_OF_VALKEY => pairs_of_valkey(input)?.into_value(),
        kind::STREAM | kind::STREAM_2 | kind::STREAM_3 => stream::load(input, of)?.into_value(),
        kind::MODULE_2 => {
            skip_module(input)?;
            return Ok(None);
        }
        _ => return Err(input.corrupt("unknown type of value")),
    };
    input.may_take(value.heap_size())?;
    Ok(Some(value))
}

/// Skips what a module wrote.
pub fn skip_module(input: &mut Input<'_>) -> Result<(), Failure> {
    input.length()?;
    while skip_word(input)? {}
    Ok(())
}

/// Passes over a value of that type, whatever is in it.
///
/// # Errors
/// When its frame is none, or the type is not known.
pub fn skip(input: &mut Input<'_>, of: u8) -> Result<(), Failure> {
    match of {
        kind::STRING
        | kind::HASH_ZIPMAP
        | kind::LIST_ZIPLIST
        | kind::SET_INTSET
        | kind::ZSET_ZIPLIST
        | kind::HASH_ZIPLIST
        | kind::HASH_LISTPACK
        | kind::ZSET_LISTPACK
        | kind::SET_LISTPACK
        | kind::HASH_LISTPACK_EXPIRING_EARLY => input.skip_string(),
        kind::HASH_LISTPACK_EXPIRING => {
            input.u64()?;
            input.skip_string()
        }
        kind::STREAM | kind::STREAM_2 | kind::STREAM_3 => stream::skip(input, of),
        kind::MODULE_2 => skip_module(input),
        _ => skip_elements(input, of),
    }
}

/// Passes over elements, one after the other.
fn skip_elements(input: &mut Input<'_>, of: u8) -> Result<(), Failure> {
    if of == kind::HASH_EXPIRING {
        input.u64()?;
    }
    let known = [kind::LIST, kind::SET, kind::LIST_QUICKLIST, kind::LIST_QUICKLIST_2, kind::ZSET];
    let pairs = [
        kind::ZSET_2,
        kind::HASH,
        kind::HASH_EXPIRING,
        kind::HASH_EXPIRING_EARLY,
        kind::HASH_OF_VALKEY,
    ];
    if !known.contains(&of) && !pairs.contains(&of) {
        return Err(input.corrupt("unknown type of value"));
    }
    for _ in 0..input.length()? {
        match of {
            kind::LIST_QUICKLIST_2 | kind::HASH_EXPIRING | kind::HASH_EXPIRING_EARLY => {
                input.length()?;
            }
            _ => {}
        }
        input.skip_string()?;
        match of {
            kind::ZSET => drop(text_score(input)?),
            kind::ZSET_2 => drop(input.u64()?),
            kind::HASH | kind::HASH_EXPIRING | kind::HASH_EXPIRING_EARLY => input.skip_string()?,
            kind::HASH_OF_VALKEY => {
                input.skip_string()?;
                input.u64()?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What words of modules are.
pub mod word {
    pub const END: u64 = 0;
    pub const SIGNED: u64 = 1;
    pub const UNSIGNED: u64 = 2;
    pub const FLOAT: u64 = 3;
    pub const DOUBLE: u64 = 4;
    pub const STRING: u64 = 5;
}

/// Skips a word of a module; whether there was one.
pub fn skip_word(input: &mut Input<'_>) -> Result<bool, Failure> {
    match input.length()? {
        word::END => return Ok(false),
        word::SIGNED | word::UNSIGNED => drop(input.length()?),
        word::FLOAT => drop(input.u32()?),
        word::DOUBLE => drop(input.u64()?),
        word::STRING => input.skip_string()?,
        _ => return Err(input.corrupt("unknown word of a module")),
    }
    Ok(true)
}

fn list(input: &mut Input<'_>, of: u8) -> Result<List, Failure> {
    let mut list = List::default();
    let push_all = |list: &mut List, elements: Vec<Element<'_>>| {
        elements.into_iter().for_each(|element| list.push(End::Right, &element.into_vec()));
    };
    if of == kind::LIST_ZIPLIST {
        push_all(&mut list, packed::ziplist(&input.string()?)?);
        return Ok(list);
    }
    for _ in 0..input.length()? {
        input.may_take(list.heap_size())?;
        match of {
            kind::LIST => list.push(End::Right, &input.string()?),
            kind::LIST_QUICKLIST => push_all(&mut list, packed::ziplist(&input.string()?)?),
            _ => match input.length()? {
                NODE_PLAIN => list.push(End::Right, &input.string()?),
                NODE_PACKED => push_all(&mut list, packed::listpack(&input.string()?)?),
                _ => return Err(input.corrupt("unknown node of a list")),
            },
        }
    }
    Ok(list)
}

fn set(input: &mut Input<'_>, of: u8) -> Result<Set, Failure> {
    let mut set = Set::default();
    let are_new = match of {
        kind::SET_INTSET => {
            let ints = packed::intset(&input.string()?)?;
            ints.iter().all(|int| set.insert(itoa::Buffer::new().format(*int).as_bytes()))
        }
        kind::SET_LISTPACK => {
            let bytes = input.string()?;
            packed::listpack(&bytes)?.into_iter().all(|one| set.insert(&one.into_vec()))
        }
        _ => {
            let mut are_new = true;
            for _ in 0..input.length()? {
                are_new &= set.insert(&input.string()?);
                input.may_take(set.heap_size())?;
            }
            are_new
        }
    };
    match are_new {
        true => Ok(set),
        false => Err(input.corrupt("a member twice")),
    }
}

/// Bytes of memory that a member with its score takes besides its own, about.
const PAIR_COST: usize = 64;

fn zset_pairs(input: &mut Input<'_>, of: u8) -> Result<Zset, Failure> {
    let (mut pairs, mut size) = (Vec::new(), 0_usize);
    for _ in 0..input.length()? {
        let member = input.string()?;
        size += member.len() + PAIR_COST;
        input.may_take(size)?;
        let score = match of {
            kind::ZSET_2 => f64::from_bits(input.u64()?),
            _ => text_score(input)?,
        };
        if score.is_nan() {
            return Err(input.corrupt("a score that is no number"));
        }
        pairs.push((member, score));
    }
    let zset = Zset::from_scores(pairs.iter().map(|(member, score)| (&**member, *score)));
    match zset.len() == pairs.len() {
        true => Ok(zset),
        false => Err(input.corrupt("a member twice")),
    }
}

/// A score as text with its size before it, three sizes being numbers themselves.
fn text_score(input: &mut Input<'_>) -> Result<f64, Failure> {
    let size = match input.u8()? {
        253 => return Ok(f64::NAN),
        254 => return Ok(f64::INFINITY),
        255 => return Ok(f64::NEG_INFINITY),
        size => size,
    };
    let mut text = Vec::new();
    for _ in 0..size {
        text.push(input.u8()?);
    }
    parse_f64(&text).ok_or_else(|| input.corrupt("a score that is no number"))
}

fn zset_packed(input: &mut Input<'_>, of: u8) -> Result<Zset, Failure> {
    let bytes = input.string()?;
    let elements = match of {
        kind::ZSET_ZIPLIST => packed::ziplist(&bytes)?,
        _ => packed::listpack(&bytes)?,
    };
    let mut zset = Zset::default();
    for [member, score] in in_groups(input, elements)? {
        let score = parse_f64(&score.into_vec());
        let score = score.ok_or_else(|| input.corrupt("a score that is no number"))?;
        if zset.insert(&member.into_vec(), score) != Change::Added {
            return Err(input.corrupt("a member twice"));
        }
    }
    Ok(zset)
}

/// Elements, so many at a time.
fn in_groups<'a, const N: usize>(
    input: &Input<'_>,
    elements: Vec<Element<'a>>,
) -> Result<Vec<[Element<'a>; N]>, Failure> {
    let (groups, rest) = elements.as_chunks::<N>();
    match rest.is_empty() {
        true => Ok(groups.to_vec()),
        false => Err(input.corrupt("an element without its like")),
    }
}

fn insert(input: &Input<'_>, hash: &mut Hash, field: &[u8], value: &[u8]) -> Result<(), Failure> {
    match hash.insert(field, value) {
        true => Ok(()),
        false => Err(input.corrupt("a field twice")),
    }
}

fn hash_pairs(input: &mut Input<'_>) -> Result<Hash, Failure> {
    let mut hash = Hash::default();
    for _ in 0..input.length()? {
        let (field, value) = (input.string()?, input.string()?);
        insert(input, &mut hash, &field, &value)?;
        input.may_take(hash.heap_size())?;
    }
    Ok(hash)
}

fn hash_packed(input: &mut Input<'_>, of: u8) -> Result<Hash, Failure> {
    let bytes = input.string()?;
    let elements = match of {
        kind::HASH_ZIPMAP => packed::zipmap(&bytes)?,
        kind::HASH_ZIPLIST => packed::ziplist(&bytes)?,
        _ => packed::listpack(&bytes)?,
    };
    let mut hash = Hash::default();
    for [field, value] in in_groups(input, elements)? {
        insert(input, &mut hash, &field.into_vec(), &value.into_vec())?;
    }
    Ok(hash)
}

fn set_expiry(
    input: &Input<'_>,
    hash: &mut Hash,
    field: &[u8],
    expire_ms: u64,
) -> Result<(), Failure> {
    let expire_ms = i64::try_from(expire_ms).ok().filter(|at| *at <= Hash::EXPIRY_MAX_MS);
    let expire_ms = expire_ms.ok_or_else(|| input.corrupt("an expiry beyond all limits"))?;
    hash.set_expiry(field, Some(expire_ms));
    Ok(())
}

fn expiring_pairs(input: &mut Input<'_>, of: u8) -> Result<Hash, Failure> {
    let is_relative = of == kind::HASH_EXPIRING;
    let first = if is_relative { input.u64()? } else { 0 };
    let mut hash = Hash::default();
    for _ in 0..input.length()? {
        let expiry = input.length()?;
        let (field, value) = (input.string()?, input.string()?);
        insert(input, &mut hash, &field, &value)?;
        input.may_take(hash.heap_size())?;
        match expiry {
            0 => {}
            // One more than what it is after the first.
            _ if is_relative => {
                set_expiry(input, &mut hash, &field, first.saturating_add(expiry - 1))?;
            }
            _ => set_expiry(input, &mut hash, &field, expiry)?,
        }
    }
    Ok(hash)
}

/// Fields, values and when each expires, -1 if never.
fn pairs_of_valkey(input: &mut Input<'_>) -> Result<Hash, Failure> {
    let mut hash = Hash::default();
    for _ in 0..input.length()? {
        let (field, value) = (input.string()?, input.string()?);
        let expire_ms = input.i64()?;
        insert(input, &mut hash, &field, &value)?;
        input.may_take(hash.heap_size())?;
        if expire_ms != -1 {
            // Valkey takes later ones than Redis.
            let expire_ms = u64::try_from(expire_ms.min(Hash::EXPIRY_MAX_MS));
            let expire_ms = expire_ms.map_err(|_| input.corrupt("an expiry that is no time"))?;
            set_expiry(input, &mut hash, &field, expire_ms)?;
        }
    }
    Ok(hash)
}

fn expiring_packed(input: &mut Input<'_>, of: u8) -> Result<Hash, Failure> {
    if of == kind::HASH_LISTPACK_EXPIRING {
        input.u64()?;
    }
    let bytes = input.string()?;
    let mut hash = Hash::default();
    for [field, value, expiry] in in_groups(input, packed::listpack(&bytes)?)? {
        let (field, value) = (field.into_vec(), value.into_vec());
        insert(input, &mut hash, &field, &value)?;
        match expiry.int().and_then(|at| u64::try_from(at).ok()) {
            None => return Err(input.corrupt("an expiry that is no time")),
            Some(0) => {}
            Some(at) => set_expiry(input, &mut hash, &field, at)?,
        }
    }
    Ok(hash)
}
