//! What the writer reads from: the memory index, or segments that are to become one.
//!
//! Ids are the piece's own; cursors give them in the order of their strings.

use super::strings::StringsCursor;
use super::{Lists, Segment};
use crate::entity::{BlockRef, EntityId};
use crate::error::{Result, corrupt};
use crate::format::{HASH_SIZE, Section};
use crate::memory::MemoryIndex;
use crate::memory::dictionary::Dictionary;
use crate::subset::SlotBits;
use std::ops::Range;

/// A set of strings with ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Names of tags.
    TagNames,
    /// Names of metrics.
    MetricNames,
    /// Values of one tag, by the piece's id of the tag.
    Values(u32),
}

/// A block of a piece.
pub(crate) struct PieceBlock {
    /// The piece's number of it.
    pub number: u32,
    pub block: BlockRef,
    /// The slots that hold an entity.
    pub live: SlotBits,
}

/// A source of entities.
pub(crate) trait Piece {
    /// The ids that the piece may hold.
    fn entities(&self) -> Range<EntityId>;
    /// The ordinals that the piece may hold.
    fn series(&self) -> Range<u32>;
    /// How many ids a space has: all are below.
    fn id_count(&self, space: Space) -> Result<u32>;
    /// The strings of a space in their order.
    fn cursor(&self, space: Space) -> Result<PieceCursor<'_>>;
    fn group_count(&self) -> u32;
    /// Name ids and tag ids of a group.
    fn group_lists(&self, group: u32) -> Result<(Vec<u32>, Vec<u32>)>;
    /// The blocks of a group, by increasing entity.
    fn group_blocks(&self, group: u32) -> Result<Vec<PieceBlock>>;
    /// Group and number of a block.
    fn locate(&self, block: &BlockRef) -> Result<(u32, u32)>;
    /// Writes the value ids of a block's first `out.len()` slots for the tag at `position`.
    fn column_ids(&self, block: u32, position: usize, out: &mut [u32]) -> Result<()>;
    /// Appends the table of entities, hash above id, in any order.
    fn hashes(&self, out: &mut Vec<u64>) -> Result<()>;
}

/// Walks over a space in the order of its strings.
pub(crate) enum PieceCursor<'a> {
    Memory { dictionary: &'a Dictionary, space: u32, ids: Vec<u32>, position: usize },
    Segment(StringsCursor<'a>),
}

impl PieceCursor<'_> {
    /// The string under the cursor, and its id.
    pub(crate) fn current(&self) -> Option<(&[u8], u32)> {
        match self {
            PieceCursor::Memory { dictionary, space, ids, position } => {
                let id = *ids.get(*position)?;
                Some((dictionary.get_bytes(*space, id), id))
            }
            PieceCursor::Segment(cursor) => cursor.current(),
        }
    }

    pub(crate) fn advance(&mut self) -> Result<()> {
        match self {
            PieceCursor::Memory { position, .. } => {
                *position += 1;
                Ok(())
            }
            PieceCursor::Segment(cursor) => cursor.advance(),
        }
    }
}

impl Piece for MemoryIndex {
    fn entities(&self) -> Range<EntityId> {
        self.entities_start()..self.next_entity()
    }

    fn series(&self) -> Range<u32> {
        self.series_start()..self.next_series()
    }

    fn id_count(&self, space: Space) -> Result<u32> {
        Ok(self.dictionary().count(memory_space(space)))
    }

    fn cursor(&self, space: Space) -> Result<PieceCursor<'_>> {
        let (dictionary, space) = (self.dictionary(), memory_space(space));
        Ok(PieceCursor::Memory { dictionary, space, ids: dictionary.sorted(space), position: 0 })
    }

    fn group_count(&self) -> u32 {
        self.group_len()
    }

    fn group_lists(&self, group: u32) -> Result<(Vec<u32>, Vec<u32>)> {
        Ok((self.names(group).to_vec(), self.tags(group).to_vec()))
    }

    fn group_blocks(&self, group: u32) -> Result<Vec<PieceBlock>> {
        Ok(self.blocks_of_group(group).collect())
    }

    fn locate(&self, block: &BlockRef) -> Result<(u32, u32)> {
        self.locate_block(block.entity_start).ok_or_else(|| corrupt("block of a match"))
    }

    fn column_ids(&self, block: u32, position: usize, out: &mut [u32]) -> Result<()> {
        self.copy_column(block, position, out);
        Ok(())
    }

    fn hashes(&self, out: &mut Vec<u64>) -> Result<()> {
        self.copy_hashes(out);
        Ok(())
    }
}

fn memory_space(space: Space) -> u32 {
    use crate::memory::dictionary::{METRIC_NAMES, TAG_NAMES, values_of};
    match space {
        Space::TagNames => TAG_NAMES,
        Space::MetricNames => METRIC_NAMES,
        Space::Values(tag) => values_of(tag),
    }
}

impl Piece for Segment {
    fn entities(&self) -> Range<EntityId> {
        Segment::entities(self)
    }

    fn series(&self) -> Range<u32> {
        Segment::series(self)
    }

    fn id_count(&self, space: Space) -> Result<u32> {
        match space {
            Space::TagNames => Ok(self.tag_names()?.count()),
            Space::MetricNames => Ok(self.metric_names()?.count()),
            Space::Values(tag) => Ok(self.values(tag)?.count()),
        }
    }

    fn cursor(&self, space: Space) -> Result<PieceCursor<'_>> {
        let strings = match space {
            Space::TagNames => self.tag_names()?,
            Space::MetricNames => self.metric_names()?,
            Space::Values(tag) => self.values(tag)?,
        };
        Ok(PieceCursor::Segment(strings.cursor(0)?))
    }

    fn group_count(&self) -> u32 {
        self.counts().group_count
    }

    fn group_lists(&self, group: u32) -> Result<(Vec<u32>, Vec<u32>)> {
        let mut lists = Lists::default();
        self.lists(&self.group_record(group)?, &mut lists)?;
        let (name_count, tag_count) =
            (self.id_count(Space::MetricNames)?, self.id_count(Space::TagNames)?);
        if lists.names.iter().any(|id| name_count <= *id)
            || lists.tags.iter().any(|id| tag_count <= *id)
            || !lists.tags.is_sorted_by(|a, b| a < b)
        {
            return Err(corrupt("lists of a group"));
        }
        Ok((lists.names, lists.tags))
    }

    fn group_blocks(&self, group: u32) -> Result<Vec<PieceBlock>> {
        let record = self.group_record(group)?;
        let numbers = record.block_start..record.block_start + record.block_count;
        numbers
            .map(|number| {
                let block = self.block_record(number)?;
                let live = self.live_bits(&block)?;
                Ok(PieceBlock { number, block: self.block_ref(&block, &record)?, live })
            })
            .collect()
    }

    fn locate(&self, block: &BlockRef) -> Result<(u32, u32)> {
        let number = self.block_number(block.entity_start)?;
        let number = number.ok_or_else(|| corrupt("block of a match"))?;
        Ok((self.block_record(number)?.group, number))
    }

    fn column_ids(&self, number: u32, position: usize, out: &mut [u32]) -> Result<()> {
        let block = self.block_record(number)?;
        let group = self.group_record(block.group)?;
        let column = self.column(&group, number, &block, position)?;
        let mut ids = [0; crate::BLOCK_SLOTS_MAX];
        let ids = &mut ids[..usize::from(block.len)];
        column.decode(ids);
        let ids = ids.get(..out.len()).ok_or_else(|| corrupt("length of a block"))?;
        out.copy_from_slice(ids);
        Ok(())
    }

    fn hashes(&self, out: &mut Vec<u64>) -> Result<()> {
        let directory_size = self.bucket_count() * 4 + 4;
        let entries = self.section(Section::Hashes)?.get(directory_size..);
        let entries = entries.ok_or_else(|| corrupt("size of the hashes"))?;
        for entry in entries.as_chunks::<HASH_SIZE>().0 {
            out.push(u64::from_le_bytes(*entry).rotate_left(32));
        }
        Ok(())
    }
}
