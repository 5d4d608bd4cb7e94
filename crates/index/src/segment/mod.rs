//! The immutable end of the index: one file, read in place.
//!
//! ```text
//! labels ── strings (sorted dictionary per label) ── postings (value -> blocks)
//! groups ── lists (names, tags) ── blocks ── columns ── planes (value ids of the slots)
//! hashes (entity -> id)          entity blocks (id -> block)
//! ```
//!
//! Nothing but the footer is kept in memory: a segment of forty million series opens in the time
//! of one page fault, and the operating system keeps what is used.
//! Sections are not checksummed on open but when they are first touched (`checked`), so rotten bytes
//! give errors; every access is checked against the file's bounds all the same.
//! Blocks are numbered by group, then by entity; groups are in the order of their lists.

mod answers;
mod checked;
mod conditions;
mod dead;
mod dictionaries;
pub(crate) mod entry;
mod find;
pub(crate) mod labels;
pub(crate) mod piece;
pub(crate) mod planes;
pub(crate) mod postings;
pub mod rebuild;
mod search;
mod sizes;
pub(crate) mod strings;
mod tagged;
mod verify;
pub(crate) mod writer;

use crate::entity::{BLOCK_SLOTS_MAX, BlockRef, EntityId};
use crate::error::{Result, corrupt};
use crate::format::{
    BLOCK_SIZE, COLUMN_SIZE, Checks, Counts, ENTITY_BLOCK_SIZE, Footer, GROUP_SIZE, LABEL_SIZE,
    Section, read_frame,
};
use crate::subset::{SLOT_WORDS, SlotBits, full_bits};
use codec::Reader;
use model::limits::FIELDS_PER_LINE_MAX;
use planes::Planes;
use postings::Postings;
use strings::Strings;

/// One segment of an index. Cheap to share, safe to read from many threads.
pub struct Segment {
    name: String,
    bytes: vfs::Bytes,
    footer: Footer,
    checked: checked::Checked,
}

/// A label's place; of the metric's name it is number 0, of the tag of rank `t` number `t + 1`.
struct LabelRecord {
    strings_offset: u64,
    postings_offset: u64,
    value_count: u32,
}

#[derive(Clone, Copy)]
struct GroupRecord {
    /// The group's own number.
    number: u32,
    lists_offset: u64,
    /// Where the group's columns start: tag by tag, each with one record per block.
    column_start: u64,
    block_start: u32,
    block_count: u32,
    /// Live entities.
    entity_count: u32,
    name_count: u16,
    tag_count: u16,
}

#[derive(Clone, Copy)]
struct BlockRecord {
    entity_start: u32,
    series_start: u32,
    group: u32,
    capacity: u16,
    len: u16,
    /// Where the bitmap of live slots is among the planes, or [`ALL_LIVE`].
    live: u64,
}

/// No slot of the block is dead.
const ALL_LIVE: u64 = u64::MAX;

/// A group's lists, decoded.
#[derive(Default)]
struct Lists {
    /// Name ids in the order of the columns.
    names: Vec<u32>,
    /// Tag ids, increasing.
    tags: Vec<u32>,
}

impl Segment {
    /// Opens the bytes of a segment file of this name.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] when the footer is not that of a segment, or of one of another name,
    /// [`crate::Error::UnknownVersion`].
    pub fn open(name: &str, bytes: vfs::Bytes) -> Result<Segment> {
        Segment::open_with(name, bytes, Checks::Enforced)
    }

    pub(crate) fn open_with(name: &str, bytes: vfs::Bytes, checks: Checks) -> Result<Segment> {
        let footer = read_frame(&bytes, checks).map_err(|error| error.in_file(name))?;
        let (name, checked) = (name.to_string(), checked::Checked::new(checks));
        let segment = Segment { name, bytes, footer, checked };
        if checks == Checks::Enforced {
            segment.check_name()?;
        }
        Ok(segment)
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The entities that the segment may hold; others of them never existed or are dropped.
    pub fn entities(&self) -> std::ops::Range<EntityId> {
        self.footer.counts.entities_start..self.footer.counts.next_entity
    }

    /// The ordinals of those entities' series.
    pub fn series(&self) -> std::ops::Range<u32> {
        self.footer.counts.series_start..self.footer.counts.next_series
    }

    /// How many groups and blocks there are.
    pub(crate) fn block_looks(&self) -> u64 {
        u64::from(self.counts().group_count) + u64::from(self.counts().block_count)
    }

    /// How many entities it has.
    pub fn entity_count(&self) -> u64 {
        self.footer.counts.entity_count
    }

    /// How many series they have.
    pub fn series_count(&self) -> u64 {
        self.footer.counts.series_count
    }

    fn counts(&self) -> &Counts {
        &self.footer.counts
    }

    fn record<const SIZE: usize>(&self, section: Section, idx: u64) -> Result<Reader<'_>> {
        let records = self.section(section)?.as_chunks::<SIZE>().0;
        let record = usize::try_from(idx).ok().and_then(|idx| records.get(idx));
        Ok(Reader::new(record.ok_or_else(|| corrupt("number of a record"))?))
    }

    fn label_record(&self, label: u32) -> Result<LabelRecord> {
        let mut reader = self.record::<LABEL_SIZE>(Section::Labels, u64::from(label))?;
        Ok(LabelRecord {
            strings_offset: reader.u64()?,
            postings_offset: reader.u64()?,
            value_count: reader.u32()?,
        })
    }

    fn group_record(&self, group: u32) -> Result<GroupRecord> {
        let mut reader = self.record::<GROUP_SIZE>(Section::Groups, u64::from(group))?;
        let record = GroupRecord {
            number: group,
            lists_offset: reader.u64()?,
            column_start: reader.u64()?,
            block_start: reader.u32()?,
            block_count: reader.u32()?,
            entity_count: reader.u32()?,
            name_count: u16_of(&mut reader)?,
            tag_count: u16_of(&mut reader)?,
        };
        let blocks_end = record.block_start.checked_add(record.block_count);
        if blocks_end.is_none_or(|end| self.counts().block_count < end) {
            return Err(corrupt("blocks of a group"));
        }
        if record.name_count == 0 || FIELDS_PER_LINE_MAX < usize::from(record.name_count) {
            return Err(corrupt("number of metric names"));
        }
        Ok(record)
    }

    fn block_record(&self, block: u32) -> Result<BlockRecord> {
        let mut reader = self.record::<BLOCK_SIZE>(Section::Blocks, u64::from(block))?;
        let record = BlockRecord {
            entity_start: reader.u32()?,
            series_start: reader.u32()?,
            group: reader.u32()?,
            capacity: u16_of(&mut reader)?,
            len: u16_of(&mut reader)?,
            live: reader.u64()?,
        };
        if record.capacity < record.len || BLOCK_SLOTS_MAX < usize::from(record.capacity) {
            return Err(corrupt("capacity of a block"));
        }
        if record.len == 0 {
            return Err(corrupt("empty block"));
        }
        Ok(record)
    }

    /// The block as others see it; checks that its ids do not overflow.
    fn block_ref(&self, block: &BlockRecord, group: &GroupRecord) -> Result<BlockRef> {
        if block.group != group.number {
            return Err(corrupt("group of a block"));
        }
        let capacity = u32::from(block.capacity);
        let columns = u32::from(group.name_count);
        let series_end = block.series_start.checked_add(capacity * columns);
        let entity_end = block.entity_start.checked_add(capacity);
        if series_end.is_none_or(|end| self.counts().next_series < end)
            || entity_end.is_none_or(|end| self.counts().next_entity < end)
            || block.series_start < self.counts().series_start
            || block.entity_start < self.counts().entities_start
        {
            return Err(corrupt("ids of a block"));
        }
        Ok(BlockRef {
            entity_start: block.entity_start,
            series_start: block.series_start,
            capacity,
            len: u32::from(block.len),
            columns,
        })
    }

    /// The slots of a block that are not dead.
    fn live_bits(&self, block: &BlockRecord) -> Result<SlotBits> {
        let mut bits = full_bits(u32::from(block.len));
        if block.live != ALL_LIVE {
            let section = self.section(Section::Planes)?;
            let live = Planes::open(section, block.live, 0, 1, usize::from(block.len))?.equal(1);
            for word in 0..SLOT_WORDS {
                bits[word] &= live[word];
            }
        }
        Ok(bits)
    }

    /// Whether a slot of a block holds an entity.
    fn is_live(&self, block: &BlockRecord, slot: u16) -> Result<bool> {
        if block.len <= slot || block.live == ALL_LIVE {
            return Ok(slot < block.len);
        }
        let byte =
            usize::try_from(block.live).ok().and_then(|o| o.checked_add(usize::from(slot / 8)));
        let planes = self.section(Section::Planes)?;
        let byte = byte.and_then(|at| planes.get(at));
        Ok(byte.ok_or_else(|| corrupt("live slots of a block"))? >> (slot % 8) & 1 == 1)
    }

    /// Decodes the lists of a group.
    fn lists(&self, group: &GroupRecord, lists: &mut Lists) -> Result<()> {
        let section = self.section(Section::Lists)?;
        let start = usize::try_from(group.lists_offset).ok();
        let rest = start.and_then(|start| section.get(start..));
        let mut reader = Reader::new(rest.ok_or_else(|| corrupt("lists of a group"))?);
        lists.names.clear();
        lists.tags.clear();
        for _ in 0..group.name_count {
            lists.names.push(reader.varint_u32()?);
        }
        for _ in 0..group.tag_count {
            lists.tags.push(reader.varint_u32()?);
        }
        Ok(())
    }

    /// The column of a block for the group's tag at `position`.
    #[inline]
    fn column(
        &self,
        group: &GroupRecord,
        block_number: u32,
        block: &BlockRecord,
        position: usize,
    ) -> Result<Planes<'_>> {
        let in_group = block_number
            .checked_sub(group.block_start)
            .filter(|in_group| *in_group < group.block_count)
            .ok_or_else(|| corrupt("block outside its group"))?;
        let idx = (position as u64 * u64::from(group.block_count) + u64::from(in_group))
            .checked_add(group.column_start)
            .ok_or_else(|| corrupt("columns of a group"))?;
        let mut reader = self.record::<COLUMN_SIZE>(Section::Columns, idx)?;
        let (min, place) = (reader.u32()?, reader.u64()?);
        let (offset, width) = (place & (u64::MAX >> 8), (place >> 56) as u32);
        Planes::open(self.section(Section::Planes)?, offset, min, width, usize::from(block.len))
    }

    /// The number of the block that has this entity's slot.
    fn block_number(&self, entity: EntityId) -> Result<Option<u32>> {
        let records = self.section(Section::EntityBlocks)?.as_chunks::<ENTITY_BLOCK_SIZE>().0;
        let start_of =
            |record: &[u8; 8]| u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
        let after = records.partition_point(|record| start_of(record) <= entity);
        let Some(record) = after.checked_sub(1).and_then(|idx| records.get(idx)) else {
            return Ok(None);
        };
        let number = u32::from_le_bytes([record[4], record[5], record[6], record[7]]);
        let block = self.block_record(number)?;
        if block.entity_start != start_of(record) {
            return Err(corrupt("block of an entity"));
        }
        Ok((entity - block.entity_start < u32::from(block.len)).then_some(number))
    }

    /// The block that an entity lives in; `None` when the entity is dead or unknown.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`], as in all methods that read.
    pub fn block_of(&self, entity: EntityId) -> Result<Option<BlockRef>> {
        let found = self.live_block_of(entity);
        self.settle(found)
    }

    fn live_block_of(&self, entity: EntityId) -> Result<Option<BlockRef>> {
        let Some(number) = self.block_number(entity)? else {
            return Ok(None);
        };
        let block = self.block_record(number)?;
        let slot = (entity - block.entity_start) as usize;
        if self.live_bits(&block)?[slot / 64] >> (slot % 64) & 1 == 0 {
            return Ok(None);
        }
        let group = self.group_record(block.group)?;
        self.block_ref(&block, &group).map(Some)
    }

    /// All blocks, by increasing ids.
    ///
    /// # Errors
    /// As [`Segment::block_of`].
    pub fn blocks(&self) -> Result<impl Iterator<Item = Result<BlockRef>> + '_> {
        let records = self.section(Section::EntityBlocks)?.as_chunks::<ENTITY_BLOCK_SIZE>().0;
        Ok(records.iter().map(|record| {
            let number = u32::from_le_bytes([record[4], record[5], record[6], record[7]]);
            let block = self.block_record(number)?;
            let block = self.block_ref(&block, &self.group_record(block.group)?);
            self.settle(block)
        }))
    }

    /// The block that an ordinal lives in.
    ///
    /// # Errors
    /// As [`Segment::block_of`].
    pub fn block_of_ordinal(&self, ordinal: u32) -> Result<Option<BlockRef>> {
        let found = self.block_with(ordinal);
        self.settle(found)
    }

    fn block_with(&self, ordinal: u32) -> Result<Option<BlockRef>> {
        let Some((_, number)) = self.block_from(0, ordinal)? else { return Ok(None) };
        let block = self.block_record(number)?;
        let block = self.block_ref(&block, &self.group_record(block.group)?)?;
        Ok((ordinal < block.series_end()).then_some(block))
    }

    /// The last block, in the order of entities, whose series start at or before `ordinal`: its
    /// place in that order, and its number. Looks from place `first` on and first of all near it.
    fn block_from(&self, first: usize, ordinal: u32) -> Result<Option<(usize, u32)>> {
        let records = self.section(Section::EntityBlocks)?.as_chunks::<ENTITY_BLOCK_SIZE>().0;
        let number_of = |idx: usize| {
            let record = &records[idx];
            u32::from_le_bytes([record[4], record[5], record[6], record[7]])
        };
        let is_before = |idx: usize| -> Result<bool> {
            Ok(self.block_record(number_of(idx))?.series_start <= ordinal)
        };
        let (mut low, mut step) = (first.min(records.len()), 1);
        while low + step <= records.len() && is_before(low + step - 1)? {
            low += step;
            step *= 2;
        }
        let mut high = records.len().min(low + step - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            match is_before(middle)? {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low.checked_sub(1).map(|idx| (idx, number_of(idx))))
    }

    fn metric_names(&self) -> Result<Strings<'_>> {
        self.strings_of(&self.label_record(0)?)
    }

    fn tag_names(&self) -> Result<Strings<'_>> {
        let counts = self.counts();
        Strings::open(
            self.section(Section::Strings)?,
            counts.tag_names_offset,
            counts.label_count - 1,
        )
    }

    /// The values of a tag.
    fn values(&self, tag: u32) -> Result<Strings<'_>> {
        self.strings_of(&self.label_record(tag.saturating_add(1))?)
    }

    fn strings_of(&self, label: &LabelRecord) -> Result<Strings<'_>> {
        Strings::open(self.section(Section::Strings)?, label.strings_offset, label.value_count)
    }

    /// From metric names to groups (label 0), or from a tag's values to blocks.
    fn postings_of(&self, label: &LabelRecord) -> Result<Postings<'_>> {
        Postings::open(self.section(Section::Postings)?, label.postings_offset, label.value_count)
    }

    /// From tag names to groups.
    fn tag_postings(&self) -> Result<Postings<'_>> {
        let counts = self.counts();
        Postings::open(
            self.section(Section::Postings)?,
            counts.tag_postings_offset,
            counts.label_count - 1,
        )
    }
}

fn u16_of(reader: &mut Reader<'_>) -> Result<u16> {
    let bytes = reader.slice(2)?;
    Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
}
