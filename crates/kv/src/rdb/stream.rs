//! Streams: listpacks of entries that leave out what they have in common, then groups.
//!
//! ```text
//! node    number of its first entry │ listpack: count │ deleted │ n │ field × n │ 0 │ entry ...
//! entry   flags │ time - first │ number - first │ (n │ field │ value ...) or value × n │ elements
//! ```

use super::input::{Failure, Input};
use super::kind;
use super::packed::{self, Element, Listpack};
use super::save::{put_bytes, put_length};
use crate::value::stream::{BlockLimits, Fields, Group, Id, pack};
use crate::value::{Stored as _, Stream};
use std::collections::BTreeMap;

/// Bytes of memory that a pending entry takes while it is read, about.
const PENDING_COST: usize = 64;
/// Flag of an entry that is gone.
const DELETED: i64 = 1;
/// Flag of an entry with the fields of its node.
const SAME_FIELDS: i64 = 2;

/// Reads a stream of one of three formats, each with more than the one before.
pub fn load(input: &mut Input<'_>, of: u8) -> Result<Stream, Failure> {
    let mut stream = Stream::default();
    for _ in 0..input.length()? {
        let start = input.string()?;
        let start = start.first_chunk::<16>().filter(|_| start.len() == 16);
        let start = start.ok_or_else(|| input.corrupt("a node without its number"))?;
        let bytes = input.string()?;
        let elements = packed::listpack(&bytes)?;
        let loaded = load_node(input, &mut stream, id_of(*start), &elements);
        input.may_take(stream.heap_size())?;
        loaded.ok_or_else(|| input.corrupt("a node that has no entries as it says"))?;
    }
    let len = input.length()?;
    let last_id = Id { ms: input.length()?, seq: input.length()? };
    if len != stream.entries.len() || last_id < stream.last_id {
        return Err(input.corrupt("a stream of another length"));
    }
    stream.last_id = last_id;
    if of != kind::STREAM {
        // The number of the first entry is known.
        input.length()?;
        input.length()?;
        stream.max_deleted_id = Id { ms: input.length()?, seq: input.length()? };
        stream.entries_added = input.length()?;
    }
    for _ in 0..input.length()? {
        let name = input.string()?;
        let group = load_group(input, &stream, of)?;
        input.may_take(stream.heap_size().saturating_add(group.size()))?;
        if !stream.add_group(&name, group) {
            return Err(input.corrupt("a group twice"));
        }
    }
    Ok(stream)
}

/// Passes over a stream.
pub fn skip(input: &mut Input<'_>, of: u8) -> Result<(), Failure> {
    let lengths = |input: &mut Input<'_>, count: u64| -> Result<(), Failure> {
        (0..count).try_for_each(|_| input.length().map(|_| ()))
    };
    for _ in 0..input.length()? {
        input.skip_string()?;
        input.skip_string()?;
    }
    // How long it is, its last number; then its first, the greatest that went, and how many there were.
    lengths(input, if of == kind::STREAM { 3 } else { 8 })?;
    for _ in 0..input.length()? {
        input.skip_string()?;
        lengths(input, if of == kind::STREAM { 2 } else { 3 })?;
        for _ in 0..input.length()? {
            // A number and a time.
            input.skip(24)?;
            input.length()?;
        }
        for _ in 0..input.length()? {
            input.skip_string()?;
            // When it was seen, and when it was active.
            input.skip(if of == kind::STREAM_3 { 16 } else { 8 })?;
            let pending = input.length()?;
            for _ in 0..pending {
                input.skip(16)?;
            }
        }
    }
    Ok(())
}

/// Sixteen bytes, highest first.
fn id_of(bytes: [u8; 16]) -> Id {
    let number = u128::from_be_bytes(bytes);
    Id { ms: (number >> 64) as u64, seq: number as u64 }
}

fn id_bytes(id: Id) -> [u8; 16] {
    (u128::from(id.ms) << 64 | u128::from(id.seq)).to_be_bytes()
}

/// Takes elements off the front.
fn take<'a, 'b>(rest: &mut &'b [Element<'a>], count: usize) -> Option<&'b [Element<'a>]> {
    let (taken, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    Some(taken)
}

fn take_int(rest: &mut &[Element<'_>]) -> Option<i64> {
    take(rest, 1)?[0].int()
}

fn load_node(
    input: &Input<'_>,
    stream: &mut Stream,
    start: Id,
    elements: &[Element<'_>],
) -> Option<()> {
    let mut rest = elements;
    let count = take_int(&mut rest)?;
    let deleted = take_int(&mut rest)?;
    let field_count = usize::try_from(take_int(&mut rest)?).ok()?;
    let fields = take(&mut rest, field_count)?;
    take_int(&mut rest)?;
    let (mut live, mut gone) = (0, 0);
    // Names that entries have in common are theirs each, here: they may be long.
    while !rest.is_empty() && input.has_room_for(stream.heap_size()) {
        let flags = take_int(&mut rest)?;
        let ms = start.ms.wrapping_add_signed(take_int(&mut rest)?);
        let seq = start.seq.wrapping_add_signed(take_int(&mut rest)?);
        let mut words: Vec<Vec<u8>> = Vec::new();
        if flags & SAME_FIELDS != 0 {
            let values = take(&mut rest, fields.len())?;
            for (field, value) in fields.iter().zip(values) {
                words.extend([field.clone().into_vec(), value.clone().into_vec()]);
            }
        } else {
            let count = usize::try_from(take_int(&mut rest)?).ok()?.checked_mul(2)?;
            words.extend(take(&mut rest, count)?.iter().cloned().map(Element::into_vec));
        }
        take_int(&mut rest)?;
        if flags & DELETED != 0 {
            gone += 1;
            continue;
        }
        let id = Id { ms, seq };
        if id <= stream.last_id {
            return None;
        }
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        stream.push(id, &pack(&words), BlockLimits::default());
        live += 1;
    }
    (live == count && gone == deleted).then_some(())
}

fn load_group(input: &mut Input<'_>, stream: &Stream, of: u8) -> Result<Group, Failure> {
    let last_id = Id { ms: input.length()?, seq: input.length()? };
    let read = match of {
        kind::STREAM => stream.position().entries_up_to(last_id),
        // All bits set: not known.
        _ => Some(input.length()?).filter(|read| *read != u64::MAX),
    };
    let mut group = Group::new(last_id, read);
    let mut pending = BTreeMap::new();
    for _ in 0..input.length()? {
        let id = id_of(input.array()?);
        let (delivered_ms, count) = (input.i64()?, input.length()?);
        input.may_take(pending.len() * PENDING_COST)?;
        if pending.insert(id, (delivered_ms, count)).is_some() {
            return Err(input.corrupt("an entry pending twice"));
        }
    }
    for _ in 0..input.length()? {
        let name = input.string()?;
        let seen_ms = input.i64()?;
        if !group.see(&name, seen_ms) {
            return Err(input.corrupt("a consumer twice"));
        }
        input.may_take(group.size())?;
        if of == kind::STREAM_3 {
            let active_ms = input.i64()?;
            if active_ms != -1 {
                group.activate(&name, active_ms);
            }
        }
        for _ in 0..input.length()? {
            let id = id_of(input.array()?);
            let found = pending.remove(&id);
            let (delivered_ms, count) =
                found.ok_or_else(|| input.corrupt("an entry that is not pending"))?;
            group.assign(id, &name, delivered_ms, count);
        }
    }
    match pending.is_empty() {
        true => Ok(group),
        false => Err(input.corrupt("an entry pending with nobody")),
    }
}

/// Appends a stream, in the second format.
pub fn save(out: &mut Vec<u8>, stream: &Stream) {
    put_length(out, stream.entries.block_count() as u64);
    for block in stream.entries.blocks() {
        let entries: Vec<(Id, &[u8])> = block.collect();
        let Some((start, first)) = entries.first() else { continue };
        put_bytes(out, &id_bytes(*start));
        put_bytes(out, &node(*start, first, &entries));
    }
    let ids =
        [stream.last_id, stream.entries.first_id().unwrap_or_default(), stream.max_deleted_id];
    put_length(out, stream.entries.len());
    for id in ids {
        put_length(out, id.ms);
        put_length(out, id.seq);
    }
    put_length(out, stream.entries_added);
    put_length(out, stream.groups().len() as u64);
    for (name, group) in stream.groups() {
        put_bytes(out, name);
        save_group(out, group);
    }
}

fn node(start: Id, first: &[u8], entries: &[(Id, &[u8])]) -> Vec<u8> {
    let names: Vec<&[u8]> = Fields::new(first).step_by(2).collect();
    let int = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let mut pack = Listpack::default();
    pack.push_int(int(entries.len()));
    pack.push_int(0);
    pack.push_int(int(names.len()));
    names.iter().for_each(|name| pack.push(name));
    pack.push_int(0);
    for (id, entry) in entries {
        let is_same = Fields::new(entry).step_by(2).eq(names.iter().copied());
        let fields = Fields::new(entry);
        let count = fields.len() / 2;
        pack.push_int(if is_same { SAME_FIELDS } else { 0 });
        pack.push_int(id.ms.wrapping_sub(start.ms).cast_signed());
        pack.push_int(id.seq.wrapping_sub(start.seq).cast_signed());
        if is_same {
            fields.skip(1).step_by(2).for_each(|value| pack.push(value));
            pack.push_int(int(count + 3));
        } else {
            pack.push_int(int(count));
            fields.for_each(|word| pack.push(word));
            pack.push_int(int(2 * count + 4));
        }
    }
    pack.finish()
}

fn save_group(out: &mut Vec<u8>, group: &Group) {
    put_length(out, group.last_id.ms);
    put_length(out, group.last_id.seq);
    put_length(out, group.entries_read.unwrap_or(u64::MAX));
    put_length(out, group.pending().len() as u64);
    for (id, pending) in group.pending() {
        out.extend(id_bytes(*id));
        out.extend(pending.delivered_ms.to_le_bytes());
        put_length(out, pending.count);
    }
    put_length(out, group.consumers().len() as u64);
    for (name, consumer) in group.consumers() {
        put_bytes(out, name);
        out.extend(consumer.seen_ms.to_le_bytes());
        put_length(out, consumer.pending.len() as u64);
        consumer.pending.iter().for_each(|id| out.extend(id_bytes(*id)));
    }
}
