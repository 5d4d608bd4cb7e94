//! Entities and blocks: the ids that the index gives out and how they relate.
//!
//! ```text
//! block   entity_start 2048  series_start 20480  capacity 1024  columns 10  len 700
//! entity  of slot s              = entity_start + s
//! ordinal of (slot s, column j)  = series_start + j * capacity + s
//! ```
//!
//! `capacity` is a stride and never changes, also when a block stays half empty for ever.

use crate::error::{Error, Result};
use crate::narrow::to_u32;
use model::METRIC_NAME;
use model::limits::FIELDS_PER_LINE_MAX;

/// Number of an entity inside one partition.
pub type EntityId = u32;

/// Slots of the largest block.
pub const BLOCK_SLOTS_MAX: usize = 1024;

/// Tags that one entity may have: far over what doors let in by default.
pub(crate) const TAGS_MAX: usize = 4096;

/// Series of the largest block of more than one slot: keeps wide entities from reserving
/// millions of ordinals for slots that may never come.
pub(crate) const BLOCK_SERIES_MAX: usize = 64 << 10;

/// Capacities of the first blocks of a group; the last one repeats. Odd series waste nothing,
/// a group of a million has blocks of full size almost from the start.
const CAPACITIES: [u32; 5] = [1, 16, 64, 256, 1024];

const _: () = assert!(CAPACITIES[4] as usize == BLOCK_SLOTS_MAX);
const _: () = assert!(BLOCK_SLOTS_MAX <= u16::MAX as usize);
const _: () = assert!(FIELDS_PER_LINE_MAX <= u16::MAX as usize);

/// An entity to look up or to register; its strings are hashed once, when it is made.
#[derive(Clone, Copy, Debug)]
pub struct NewEntity<'a> {
    pub(crate) names: &'a [&'a str],
    pub(crate) tags: &'a [(&'a str, &'a str)],
    pub(crate) hash: EntityHash,
}

impl<'a> NewEntity<'a> {
    /// An entity of these metrics, in the order of its columns and without repeats (an empty name
    /// stands for series that have no `__name__`), and these other labels, by strictly increasing
    /// name, without empty names and values.
    pub fn new(names: &'a [&'a str], tags: &'a [(&'a str, &'a str)]) -> NewEntity<'a> {
        NewEntity { names, tags, hash: EntityHash::of(names, tags) }
    }

    /// An entity of other metrics with the same tags.
    pub fn with_names<'b>(&self, names: &'b [&'b str]) -> NewEntity<'b>
    where
        'a: 'b,
    {
        let hash = EntityHash { names: hash_names(names), ..self.hash };
        NewEntity { names, tags: self.tags, hash }
    }

    /// Checks the rules that cost little: all but the uniqueness of names.
    pub(crate) fn check(&self) -> Result<()> {
        if self.names.is_empty() || FIELDS_PER_LINE_MAX < self.names.len() {
            return Err(Error::InvalidEntity("number of metric names"));
        }
        if TAGS_MAX < self.tags.len() {
            return Err(Error::InvalidEntity("number of tags"));
        }
        let mut previous = "";
        for (name, value) in self.tags {
            if *name <= previous {
                return Err(Error::InvalidEntity("tags are not sorted by name"));
            }
            if value.is_empty() {
                return Err(Error::InvalidEntity("empty tag value"));
            }
            if *name == METRIC_NAME {
                return Err(Error::InvalidEntity("__name__ among the tags"));
            }
            previous = name;
        }
        Ok(())
    }
}

/// Where a block's ids are; a copy, true at the moment it was taken (`len` may grow).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRef {
    /// Entity of slot 0.
    pub entity_start: EntityId,
    /// Ordinal of column 0, slot 0.
    pub series_start: u32,
    /// Slots that ids are reserved for: the stride between columns.
    pub capacity: u32,
    /// Slots in use. Some of them may be dead after a merge that dropped entities.
    pub len: u32,
    /// Metrics of each entity.
    pub columns: u32,
}

impl BlockRef {
    /// The series' number in the partition.
    #[inline]
    pub fn ordinal(&self, column: u16, slot: u16) -> u32 {
        debug_assert!(u32::from(column) < self.columns && u32::from(slot) < self.capacity);
        self.series_start + u32::from(column) * self.capacity + u32::from(slot)
    }

    /// The entity in a slot.
    #[inline]
    pub fn entity(&self, slot: u16) -> EntityId {
        self.entity_start + u32::from(slot)
    }

    /// The slot of an entity of this block.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "less than the capacity, which has a slot's 16 bits"
    )]
    pub fn slot(&self, entity: EntityId) -> u16 {
        debug_assert!(self.entity_start <= entity && entity - self.entity_start < self.capacity);
        (entity - self.entity_start) as u16
    }

    /// Column and slot of an ordinal of this block.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "less than columns and capacity, which have 16 bits"
    )]
    pub fn place(&self, ordinal: u32) -> (u16, u16) {
        let offset = ordinal - self.series_start;
        debug_assert!(offset < self.columns * self.capacity);
        ((offset / self.capacity) as u16, (offset % self.capacity) as u16)
    }

    /// The first ordinal after the block's.
    pub fn series_end(&self) -> u32 {
        self.series_start + self.columns * self.capacity
    }
}

/// The capacity of the next block of a group of `columns` metrics that has `blocks` blocks.
pub(crate) fn next_capacity(blocks: u32, columns: usize) -> u32 {
    let wanted = CAPACITIES[(blocks as usize).min(CAPACITIES.len() - 1)];
    wanted.min(to_u32(BLOCK_SERIES_MAX / columns)).max(1)
}

/// Hashes of an entity; XXH3 with each string's hash as the seed of the next, so that moving a
/// byte from one string to its neighbour gives another hash. They are on disk: see
/// `docs/format/index.md`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntityHash {
    /// Of the tags alone, names and values.
    pub tags: u64,
    /// Of the list of metric names.
    pub names: u64,
}

impl EntityHash {
    pub(crate) fn of(names: &[&str], tags: &[(&str, &str)]) -> EntityHash {
        EntityHash { tags: hash_tags(tags), names: hash_names(names) }
    }

    /// Key of the whole entity in the table of entities.
    pub(crate) fn entity(&self) -> u32 {
        let mixed = (self.tags.rotate_left(23) ^ self.names).wrapping_mul(MIX);
        (mixed >> 32) as u32
    }

    /// Key of the tags alone, under which entities of several metrics are found as well.
    pub(crate) fn tags_only(&self) -> u32 {
        (self.tags.wrapping_mul(MIX) >> 32) as u32
    }
}

const TAGS_SEED: u64 = 0x7461_6773;
const NAMES_SEED: u64 = 0x6e61_6d65;
/// 2^64 divided by the golden ratio, odd: spreads the upper half.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

fn hash_names(names: &[&str]) -> u64 {
    hash_strings(NAMES_SEED, names.iter().copied())
}

fn hash_tags(tags: &[(&str, &str)]) -> u64 {
    hash_strings(TAGS_SEED, tags.iter().flat_map(|(name, value)| [*name, *value]))
}

/// A chained hash of strings.
pub(crate) fn hash_strings<'a>(seed: u64, strings: impl Iterator<Item = &'a str>) -> u64 {
    strings.fold(seed, |hash, string| xxhash_rust::xxh3::xxh3_64_with_seed(string.as_bytes(), hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_grow_and_stay_sane() {
        let grown: Vec<u32> = (0..7).map(|blocks| next_capacity(blocks, 1)).collect();
        assert_eq!(grown, [1, 16, 64, 256, 1024, 1024, 1024]);
        assert_eq!(next_capacity(9, 10), 1024);
        assert_eq!(next_capacity(9, 4096), 16);
        assert_eq!(next_capacity(9, 100_000), 1);
    }

    #[test]
    fn ordinals_and_places_are_inverse() {
        let block =
            BlockRef { entity_start: 5, series_start: 100, capacity: 16, len: 3, columns: 4 };
        for column in 0..4 {
            for slot in 0..16 {
                assert_eq!(block.place(block.ordinal(column, slot)), (column, slot));
                assert_eq!(block.slot(block.entity(slot)), slot);
            }
        }
        assert_eq!(block.series_end(), 164);
    }

    #[test]
    fn hashes_see_string_borders_and_order() {
        let hash = |tags: &[(&str, &str)]| EntityHash::of(&["m"], tags).entity();
        assert_ne!(hash(&[("a", "bc")]), hash(&[("ab", "c")]));
        assert_ne!(hash(&[("a", "b"), ("c", "d")]), hash(&[("c", "d"), ("a", "b")]));
        assert_ne!(
            EntityHash::of(&["m", "n"], &[]).entity(),
            EntityHash::of(&["n", "m"], &[]).entity()
        );
    }
}
