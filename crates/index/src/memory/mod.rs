//! The mutable end of the index: what was registered since the last freeze.
//!
//! ```text
//! group    (list of metric names, list of tag names)
//!   └─ block   up to 1,024 slots: ids, one column of value ids per tag name
//! dictionary   strings <-> ids          cells   the columns' value ids, 0, 1, 2 or 4 bytes a slot
//! entities     hash of an entity -> id, checked against the real strings
//! ```
//!
//! There are no postings of values: a search tests columns, at a nanosecond a slot or less, after
//! whole groups are ruled out by their names, or found by a rare one. That is quick enough for the half a million entities
//! that gather before they are frozen into a segment.
//! There is no heap object per series, entity or string either: all lists are shared.

mod answers;
mod cells;
mod chains;
pub(crate) mod dictionary;
pub(crate) mod ids;
pub(crate) mod log;
mod register;
mod replay;
pub(crate) mod search;
mod source;
mod tagged;

use crate::entity::{BlockRef, EntityId, hash_strings};
use crate::error::Result;
use crate::narrow::to_u16;
use crate::subset::BlockMatch;
use cells::{CellPool, Column};
use chains::{Chains, NONE};
use dictionary::{Dictionary, METRIC_NAMES, TAG_NAMES, values_of, widen};
use hashbrown::HashTable;
use model::{LabelsBuilder, METRIC_NAME};

/// Registrations that no segment holds yet. See the module's head.
#[derive(Default)]
pub struct MemoryIndex {
    /// The first entity that this index may hold.
    entities_start: EntityId,
    /// The first ordinal that this index may hold.
    series_start: u32,
    /// The first entity of the next block.
    next_entity: EntityId,
    /// The first ordinal of the next block.
    next_series: u32,
    dictionary: Dictionary,
    /// Lists of name ids and tag ids; groups hold ranges of it.
    lists: Vec<u32>,
    /// From names to places in `lists`.
    chains: Chains,
    /// By increasing `list_start`.
    groups: Vec<Group>,
    /// Indexes into `groups`, by the hash of both lists.
    group_table: HashTable<u32>,
    /// By increasing `entity_start`.
    blocks: Vec<Block>,
    /// Columns of all blocks; a block holds a range of as many as its group has tags.
    columns: Vec<Column>,
    cells: CellPool,
    /// Entities by [`crate::entity::EntityHash::entity`], and those of several metrics also by
    /// [`crate::entity::EntityHash::tags_only`].
    entities: HashTable<HashedEntity>,
    /// Groups of entities registered lately, by the hash of their metrics: of these the names of
    /// the tags need not be hashed.
    recent_groups: [u32; RECENT_GROUPS],
    entity_count: u64,
    series_count: u64,
}

/// Metrics that come by turns, as of a host that is scraped, and are found at once.
const RECENT_GROUPS: usize = 32;

#[derive(Clone, Copy)]
struct HashedEntity {
    hash: u32,
    entity: EntityId,
}

/// Entities with the same list of metric names and the same list of tag names.
struct Group {
    /// Where the name ids start in `lists`; the tag ids follow them.
    list_start: u32,
    name_count: u32,
    tag_count: u32,
    hash: u32,
    /// The first and the last block, [`NONE`] for none.
    first_block: u32,
    last_block: u32,
    block_count: u32,
}

struct Block {
    entity_start: EntityId,
    series_start: u32,
    capacity: u16,
    len: u16,
    group: u32,
    /// The group's next block, or [`NONE`].
    next: u32,
    /// Where the block's columns start in `columns`, from the first entity on.
    columns_start: u32,
}

impl MemoryIndex {
    /// An empty index whose ids continue where segments end.
    pub fn new(next_entity: EntityId, next_series: u32) -> MemoryIndex {
        MemoryIndex {
            entities_start: next_entity,
            series_start: next_series,
            next_entity,
            next_series,
            ..Default::default()
        }
    }

    /// The entity with exactly these metric names and tags.
    pub fn find_entity(&self, entity: &crate::NewEntity<'_>) -> Option<EntityId> {
        let hash = entity.hash.entity();
        let found = self.entities.find(widen(hash), |one| {
            one.hash == hash && {
                let (block, slot) = self.place(one.entity);
                self.names_are(&self.groups[block.group as usize], entity.names)
                    && self.tags_are(block, slot, entity.tags)
            }
        })?;
        Some(found.entity)
    }

    /// The series of an entity of one metric as one column of another entity, of several metrics.
    pub fn find_column(&self, entity: &crate::NewEntity<'_>) -> Option<(EntityId, u16)> {
        let [name] = entity.names else { return None };
        let hash = entity.hash.tags_only();
        let mut column = None;
        let found = self.entities.find(widen(hash), |one| {
            one.hash == hash && {
                let (block, slot) = self.place(one.entity);
                let mut names = self.names(block.group).iter();
                let is_name =
                    |id: &u32| self.dictionary.get_bytes(METRIC_NAMES, *id) == name.as_bytes();
                column = names.position(is_name);
                column.is_some() && self.tags_are(block, slot, entity.tags)
            }
        })?;
        Some((found.entity, to_u16(column?)))
    }

    fn names_are(&self, group: &Group, names: &[&str]) -> bool {
        let ids = &self.lists[group.list_start as usize..][..group.name_count as usize];
        ids.len() == names.len()
            && ids
                .iter()
                .zip(names)
                .all(|(id, name)| self.dictionary.get_bytes(METRIC_NAMES, *id) == name.as_bytes())
    }

    fn tags_are(&self, block: &Block, slot: usize, tags: &[(&str, &str)]) -> bool {
        let ids = self.tags(block.group);
        let columns = &self.columns[block.columns_start as usize..][..ids.len()];
        ids.len() == tags.len()
            && ids.iter().zip(columns).zip(tags).all(|((id, column), (name, value))| {
                let value_id = self.cells.get(*column, slot);
                self.dictionary.get_bytes(values_of(*id), value_id) == value.as_bytes()
                    && self.dictionary.get_bytes(TAG_NAMES, *id) == name.as_bytes()
            })
    }

    /// Name ids of a group, in the order of its columns.
    pub(crate) fn names(&self, group: u32) -> &[u32] {
        let group = &self.groups[group as usize];
        &self.lists[group.list_start as usize..][..group.name_count as usize]
    }

    /// Tag ids of a group, in the order of the tags' names.
    pub(crate) fn tags(&self, group: u32) -> &[u32] {
        let group = &self.groups[group as usize];
        &self.lists[(group.list_start + group.name_count) as usize..][..group.tag_count as usize]
    }

    fn group_hash(names: &[&str], tag_names: &[&str]) -> u32 {
        let names_hash = hash_strings(names.len() as u64, names.iter().copied());
        (hash_strings(names_hash, tag_names.iter().copied()) >> 32) as u32
    }

    /// Block and slot of an entity that exists.
    fn place(&self, entity: EntityId) -> (&Block, usize) {
        let block = &self.blocks[self.block_idx_of(entity).expect("a registered entity")];
        (block, (entity - block.entity_start) as usize)
    }

    fn block_idx_of(&self, entity: EntityId) -> Option<usize> {
        let after = self.blocks.partition_point(|block| block.entity_start <= entity);
        let block = self.blocks.get(after.checked_sub(1)?)?;
        (entity - block.entity_start < u32::from(block.capacity)).then_some(after - 1)
    }

    fn block_ref(&self, block: &Block) -> BlockRef {
        BlockRef {
            entity_start: block.entity_start,
            series_start: block.series_start,
            capacity: u32::from(block.capacity),
            len: u32::from(block.len),
            columns: self.groups[block.group as usize].name_count,
        }
    }

    /// The block that an entity lives in.
    pub fn block_of(&self, entity: EntityId) -> Option<BlockRef> {
        let block = &self.blocks[self.block_idx_of(entity)?];
        (entity - block.entity_start < u32::from(block.len)).then(|| self.block_ref(block))
    }

    /// The block that an ordinal lives in.
    pub fn block_of_ordinal(&self, ordinal: u32) -> Option<BlockRef> {
        let after = self.blocks.partition_point(|block| block.series_start <= ordinal);
        let block = self.block_ref(self.blocks.get(after.checked_sub(1)?)?);
        (ordinal < block.series_end()).then_some(block)
    }

    /// All blocks, by increasing ids.
    pub fn blocks(&self) -> impl Iterator<Item = BlockRef> + '_ {
        self.blocks.iter().map(|block| self.block_ref(block))
    }

    /// Appends the labels of a series to `out`, the metric's name included, in no order.
    pub fn labels(
        &self,
        block: &BlockRef,
        column: u16,
        slot: u16,
        out: &mut LabelsBuilder,
    ) -> Result<()> {
        let (block, slot) = self.place(block.entity_start + u32::from(slot));
        self.block_labels(block, column, slot, out);
        Ok(())
    }

    /// The same of a series of a match.
    pub(crate) fn match_labels(
        &self,
        found: &BlockMatch,
        column: u16,
        slot: u16,
        out: &mut LabelsBuilder,
    ) {
        self.block_labels(self.matched_block(found), column, usize::from(slot), out);
    }

    fn block_labels(&self, block: &Block, column: u16, slot: usize, out: &mut LabelsBuilder) {
        let name = self.names(block.group)[usize::from(column)];
        out.push(METRIC_NAME, self.dictionary.get(METRIC_NAMES, name));
        for (tag, column) in self.tags_with_columns(block) {
            let value = self.cells.get(column, slot);
            out.push(
                self.dictionary.get(TAG_NAMES, tag),
                self.dictionary.get(values_of(tag), value),
            );
        }
    }

    fn tags_with_columns(&self, block: &Block) -> impl Iterator<Item = (u32, Column)> + '_ {
        let tags = self.tags(block.group);
        let columns = &self.columns[block.columns_start as usize..][..tags.len()];
        tags.iter().copied().zip(columns.iter().copied())
    }

    /// The first entity that this index may hold.
    pub fn entities_start(&self) -> EntityId {
        self.entities_start
    }

    /// The entity that the next block starts with.
    pub fn next_entity(&self) -> EntityId {
        self.next_entity
    }

    /// The ordinal that the next block starts with.
    pub fn next_series(&self) -> u32 {
        self.next_series
    }

    /// How many entities are registered.
    pub fn entity_count(&self) -> u64 {
        self.entity_count
    }

    /// How many series they have.
    pub fn series_count(&self) -> u64 {
        self.series_count
    }

    /// Whether nothing is registered.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Bytes of memory held.
    pub fn memory_size(&self) -> usize {
        size_of::<MemoryIndex>()
            + self.dictionary.memory_size()
            + self.cells.memory_size()
            + self.chains.memory_size()
            + 4 * self.lists.capacity()
            + size_of::<Group>() * self.groups.capacity()
            + size_of::<Block>() * self.blocks.capacity()
            + size_of::<Column>() * self.columns.capacity()
            + self.group_table.allocation_size()
            + self.entities.allocation_size()
    }
}
