//! Registrations as bytes for the write-ahead log, from which the index is rebuilt after a crash.
//!
//! ```text
//! record = 1 entity_start series_start capacity k {name}*k m {tag name}*m      a new block
//!        | 2 entity_start series_start capacity like_entity_start              ... with known lists
//!        | 3 entity_id m {value}*m                                             the next slot of a block
//! string = size bytes                                                  all numbers are varints
//! ```
//!
//! Replaying records that the index already holds does nothing, so a log may be replayed twice
//! and may start before the newest segment ends.

use crate::entity::{NewEntity, TAGS_MAX};
use crate::error::{Error, Result};
use codec::{Reader, put_varint};
use model::limits::FIELDS_PER_LINE_MAX;

const NEW_BLOCK: u8 = 1;
const NEW_BLOCK_LIKE: u8 = 2;
const ENTITY: u8 = 3;

/// The longest varint of 32 bits, and of a string's size.
const VARINT_SIZE_MAX: usize = 5;

impl NewEntity<'_> {
    /// The most bytes that [`crate::Index::register`] appends to the log for this entity.
    pub fn registration_size_max(&self) -> usize {
        let string = |text: &str| VARINT_SIZE_MAX + text.len();
        // A block of its own, with all its names, and the entity.
        let block = 1 + 5 * VARINT_SIZE_MAX;
        let names: usize = self.names.iter().map(|name| string(name)).sum();
        let tags: usize = self.tags.iter().map(|(name, value)| string(name) + string(value)).sum();
        block + names + tags + 1 + 2 * VARINT_SIZE_MAX
    }
}

/// Where a block is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    pub entity_start: u32,
    pub series_start: u32,
    pub capacity: u32,
}

/// One record.
#[derive(Debug)]
pub(crate) enum Record<'a> {
    Block { placement: Placement, names: Vec<&'a str>, tag_names: Vec<&'a str> },
    BlockLike { placement: Placement, like_entity_start: u32 },
    Entity { entity: u32, values: Vec<&'a str> },
}

pub(crate) fn put_block<'a>(
    out: &mut Vec<u8>,
    placement: Placement,
    names: &[&str],
    tag_names: impl ExactSizeIterator<Item = &'a str>,
) {
    out.push(NEW_BLOCK);
    put_placement(out, placement);
    put_varint(out, names.len() as u64);
    names.iter().for_each(|name| put_string(out, name));
    put_varint(out, tag_names.len() as u64);
    tag_names.for_each(|name| put_string(out, name));
}

pub(crate) fn put_block_like(out: &mut Vec<u8>, placement: Placement, like_entity_start: u32) {
    out.push(NEW_BLOCK_LIKE);
    put_placement(out, placement);
    put_varint(out, u64::from(like_entity_start));
}

pub(crate) fn put_entity(out: &mut Vec<u8>, entity: u32, tags: &[(&str, &str)]) {
    out.push(ENTITY);
    put_varint(out, u64::from(entity));
    put_varint(out, tags.len() as u64);
    tags.iter().for_each(|(_, value)| put_string(out, value));
}

fn put_placement(out: &mut Vec<u8>, placement: Placement) {
    put_varint(out, u64::from(placement.entity_start));
    put_varint(out, u64::from(placement.series_start));
    put_varint(out, u64::from(placement.capacity));
}

fn put_string(out: &mut Vec<u8>, string: &str) {
    put_varint(out, string.len() as u64);
    out.extend_from_slice(string.as_bytes());
}

/// The next record.
pub(crate) fn read_record<'a>(reader: &mut Reader<'a>) -> Result<Record<'a>> {
    match reader.u8()? {
        NEW_BLOCK => {
            let placement = read_placement(reader)?;
            let names = read_strings(reader, FIELDS_PER_LINE_MAX)?;
            let tag_names = read_strings(reader, TAGS_MAX)?;
            Ok(Record::Block { placement, names, tag_names })
        }
        NEW_BLOCK_LIKE => {
            let placement = read_placement(reader)?;
            Ok(Record::BlockLike { placement, like_entity_start: reader.varint_u32()? })
        }
        ENTITY => {
            let entity = reader.varint_u32()?;
            Ok(Record::Entity { entity, values: read_strings(reader, TAGS_MAX)? })
        }
        _ => Err(reader.corrupt("kind of registration").into()),
    }
}

fn read_placement(reader: &mut Reader<'_>) -> Result<Placement> {
    Ok(Placement {
        entity_start: reader.varint_u32()?,
        series_start: reader.varint_u32()?,
        capacity: reader.varint_u32()?,
    })
}

fn read_strings<'a>(reader: &mut Reader<'a>, max: usize) -> Result<Vec<&'a str>> {
    let count = reader.varint_size(max)?;
    (0..count).map(|_| read_string(reader)).collect()
}

fn read_string<'a>(reader: &mut Reader<'a>) -> Result<&'a str> {
    let size = reader.varint_size(reader.remaining())?;
    let bytes = reader.slice(size)?;
    std::str::from_utf8(bytes).map_err(|_| Error::from(reader.corrupt("UTF-8")))
}
