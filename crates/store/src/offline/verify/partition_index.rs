//! What a partition's index knows, for those who check parts and log against it: the segments that
//! can be read, and the registrations of the log behind them.

use crate::Result;
use index::{BlockRef, MemoryIndex, NewEntity, Segment};
use model::{Labels, LabelsBuilder, METRIC_NAME};
use roaring::RoaringBitmap;
use std::ops::Range;
use std::sync::Arc;

/// What the index says of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityFate {
    /// In this block, and alive.
    Live(BlockRef),
    /// In this block, in a slot that is dead: its samples were deleted.
    Dead(BlockRef),
    /// Dead with its whole block, or never known.
    Unknown,
    /// Where the index cannot be read.
    Unreadable,
}

/// The index of one partition.
pub struct PartitionIndex {
    /// Records of the log in segments before this one are in parts.
    pub wal_from: u64,
    /// By increasing entities.
    segments: Vec<Arc<Segment>>,
    /// Entities whose segments cannot be read.
    unreadable: Vec<Range<u32>>,
    /// What the log registers.
    pub memory: MemoryIndex,
    /// Ordinals of the living series of the segments.
    pub live: RoaringBitmap,
}

impl PartitionIndex {
    /// The index of a partition without segments.
    pub fn empty() -> PartitionIndex {
        PartitionIndex::new(Vec::new(), Vec::new(), 0)
    }

    /// An index that nothing is known of.
    pub fn unknown() -> PartitionIndex {
        PartitionIndex::new(Vec::new(), std::iter::once(0..u32::MAX).collect(), 0)
    }

    /// The index of these segments, which are sound.
    pub fn new(
        mut segments: Vec<Arc<Segment>>,
        unreadable: Vec<Range<u32>>,
        wal_from: u64,
    ) -> PartitionIndex {
        segments.sort_by_key(|segment| segment.entities().start);
        let last = segments.last();
        let known_end = last.map_or(0, |segment| segment.entities().end);
        let next_entity = unreadable.iter().map(|range| range.end).fold(known_end, u32::max);
        let next_series = last.map_or(0, |segment| segment.series().end);
        let mut live = RoaringBitmap::new();
        for segment in &segments {
            // What does not hold is found by who verifies the segment.
            live |= segment.live_ordinals().unwrap_or_default();
        }
        let memory = MemoryIndex::new(next_entity, next_series);
        PartitionIndex { wal_from, segments, unreadable, memory, live }
    }

    /// The first entity that no segment holds.
    pub fn frozen_end(&self) -> u32 {
        self.memory.entities_start()
    }

    /// Whether some segments cannot be read.
    pub fn is_partly_unreadable(&self) -> bool {
        !self.unreadable.is_empty()
    }

    /// What the index says of an entity.
    ///
    /// # Errors
    /// When a segment turns out to be corrupt.
    pub fn fate_of(&self, entity: u32) -> Result<EntityFate> {
        if self.unreadable.iter().any(|range| range.contains(&entity)) {
            return Ok(EntityFate::Unreadable);
        }
        if self.frozen_end() <= entity {
            let block = self.memory.block_of(entity);
            return Ok(block.map_or(EntityFate::Unknown, EntityFate::Live));
        }
        let Some(segment) = self.segments.iter().find(|s| s.entities().contains(&entity)) else {
            return Ok(EntityFate::Unknown);
        };
        if let Some(block) = segment.block_of(entity)? {
            return Ok(EntityFate::Live(block));
        }
        Ok(segment.block_around(entity)?.map_or(EntityFate::Unknown, EntityFate::Dead))
    }

    /// The block of a part's slice, as the segments have it.
    ///
    /// # Errors
    /// When a segment turns out to be corrupt.
    pub fn block_of_ordinal(&self, ordinal: u32) -> Result<Option<(&Arc<Segment>, BlockRef)>> {
        let Some(segment) = self.segments.iter().find(|s| s.series().contains(&ordinal)) else {
            return Ok(None);
        };
        Ok(segment.block_of_ordinal(ordinal)?.map(|block| (segment, block)))
    }

    /// Appends the labels of a series of the segments; `None` when there is none of that number.
    ///
    /// # Errors
    /// When a segment turns out to be corrupt.
    pub fn labels(&self, ordinal: u32, out: &mut LabelsBuilder) -> Result<Option<()>> {
        if !self.live.contains(ordinal) {
            return Ok(None);
        }
        let Some((segment, block)) = self.block_of_ordinal(ordinal)? else { return Ok(None) };
        let (column, slot) = block.place(ordinal);
        segment.labels(&block, column, slot, out)?;
        Ok(Some(()))
    }

    /// The ordinals of a series in the segments, by its labels.
    pub fn series_of(&self, labels: &Labels) -> RoaringBitmap {
        let names = [labels.metric_name()];
        let tags: Vec<(&str, &str)> =
            labels.iter().filter(|(name, _)| *name != METRIC_NAME).collect();
        let entity = NewEntity::new(&names, &tags);
        let mut ordinals = RoaringBitmap::new();
        for segment in &self.segments {
            let alone = segment.find_entity(&entity).ok().flatten().map(|found| (found, 0));
            let among = segment.find_column(&entity).ok().flatten();
            for (found, column) in alone.into_iter().chain(among) {
                if let Ok(Some(block)) = segment.block_of(found) {
                    ordinals.insert(block.ordinal(column, block.slot(found)));
                }
            }
        }
        ordinals
    }

    /// The series of all segments.
    pub fn series_count(&self) -> u64 {
        self.segments.iter().map(|segment| segment.series_count()).sum()
    }
}
