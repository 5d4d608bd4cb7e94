//! Registration: a new entity gets the next slot of its group's open block.
//!
//! What can be refused is refused before anything changes, and the log record is appended in the
//! same call, so the log and the memory never disagree.

use super::cells::Column;
use super::dictionary::{METRIC_NAMES, TAG_NAMES, values_of, widen};
use super::log::{Placement, put_block, put_block_like, put_entity};
use super::{Block, Group, HashedEntity, MemoryIndex, NONE, RECENT_GROUPS};
use crate::entity::{EntityHash, EntityId, NewEntity, next_capacity};
use crate::error::{Error, Result};
use crate::narrow::{low_half, to_u16, to_u32};

impl MemoryIndex {
    /// Gives an entity that the index does not know its id, and appends to `log` what
    /// [`MemoryIndex::replay`] needs to do the same again.
    ///
    /// # Errors
    /// [`Error::InvalidEntity`], [`Error::Full`] when ids are used up, and [`Error::MemoryFull`];
    /// then neither the index nor the log has changed.
    pub fn register(&mut self, entity: &NewEntity<'_>, log: &mut Vec<u8>) -> Result<EntityId> {
        entity.check()?;
        debug_assert!(self.find_entity(entity).is_none(), "registered twice: {entity:?}");
        self.check_room(entity)?;
        let log_size = log.len();
        let place = low_half(entity.hash.names) as usize % RECENT_GROUPS;
        let group = match self.recent_groups[place] {
            recent if self.is_of_group(entity, recent) => recent,
            _ => self.group_of(entity)?,
        };
        self.recent_groups[place] = group;
        let block_idx = match self.open_block_of(group) {
            Some(block_idx) => block_idx,
            None => self.register_block(group, entity, log)?,
        };
        let id =
            self.add_entity(block_idx, &entity.hash, entity.tags.iter().map(|(_, value)| *value));
        put_entity(log, id, entity.tags);
        debug_assert!(log.len() - log_size <= entity.registration_size_max());
        Ok(id)
    }

    /// Whether an entity is of this group, if there is such a group.
    fn is_of_group(&self, entity: &NewEntity<'_>, group_idx: u32) -> bool {
        let Some(group) = self.groups.get(group_idx as usize) else { return false };
        let tag_names = entity.tags.iter().map(|(name, _)| *name);
        group.tag_count as usize == entity.tags.len()
            && self.names_are(group, entity.names)
            && self.tag_names_are(group_idx, tag_names)
    }

    fn group_of(&mut self, entity: &NewEntity<'_>) -> Result<u32> {
        let tag_names: Vec<&str> = entity.tags.iter().map(|(name, _)| *name).collect();
        if let Some(group) = self.find_group(entity.names, &tag_names) {
            return Ok(group);
        }
        check_names_unique(entity.names)?;
        Ok(self.add_group(entity.names, &tag_names))
    }

    /// Whether strings and cells of one more entity fit, whatever it is.
    fn check_room(&self, entity: &NewEntity<'_>) -> Result<()> {
        let names: usize = entity.names.iter().map(|name| name.len()).sum();
        let tags: usize = entity.tags.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.check_room_for(names + tags, entity.tags.len())
    }

    pub(super) fn check_room_for(&self, text_size: usize, tag_count: usize) -> Result<()> {
        if !self.dictionary.has_room(text_size) {
            let max = super::dictionary::TEXT_SIZE_MAX as u64;
            return Err(Error::MemoryFull { what: "bytes of the label dictionary", max });
        }
        if !self.cells.has_room(tag_count * 4 * crate::BLOCK_SLOTS_MAX) {
            return Err(Error::MemoryFull { what: "cells of the memory index", max: 1 << 32 });
        }
        Ok(())
    }

    pub(super) fn find_group(&self, names: &[&str], tag_names: &[&str]) -> Option<u32> {
        let hash = MemoryIndex::group_hash(names, tag_names);
        let found = self.group_table.find(widen(hash), |idx| {
            let group = &self.groups[*idx as usize];
            group.hash == hash
                && self.names_are(group, names)
                && group.tag_count as usize == tag_names.len()
                && self.tag_names_are(*idx, tag_names.iter().copied())
        })?;
        Some(*found)
    }

    /// Whether these, as many as the group has, are its tags' names.
    fn tag_names_are<'a>(&self, group: u32, names: impl Iterator<Item = &'a str>) -> bool {
        let mut pairs = self.tags(group).iter().zip(names);
        pairs.all(|(id, name)| self.dictionary.get_bytes(TAG_NAMES, *id) == name.as_bytes())
    }

    pub(super) fn add_group(&mut self, names: &[&str], tag_names: &[&str]) -> u32 {
        let hash = MemoryIndex::group_hash(names, tag_names);
        let list_start = to_u32(self.lists.len());
        for name in names {
            let id = self.dictionary.intern(METRIC_NAMES, name);
            self.lists.push(id);
            self.chains.push_name(id);
        }
        for name in tag_names {
            let id = self.dictionary.intern(TAG_NAMES, name);
            self.lists.push(id);
            self.chains.push_tag(id);
        }
        let idx = to_u32(self.groups.len());
        self.groups.push(Group {
            list_start,
            name_count: to_u32(names.len()),
            tag_count: to_u32(tag_names.len()),
            hash,
            first_block: NONE,
            last_block: NONE,
            block_count: 0,
        });
        let groups = &self.groups;
        self.group_table.insert_unique(widen(hash), idx, |idx| widen(groups[*idx as usize].hash));
        idx
    }

    fn open_block_of(&self, group: u32) -> Option<usize> {
        let last = self.groups[group as usize].last_block as usize;
        let block = self.blocks.get(last)?;
        (block.len < block.capacity).then_some(last)
    }

    fn register_block(
        &mut self,
        group: u32,
        entity: &NewEntity<'_>,
        log: &mut Vec<u8>,
    ) -> Result<usize> {
        let names = entity.names;
        let Group { block_count, first_block, .. } = self.groups[group as usize];
        let capacity = next_capacity(block_count, names.len());
        let placement =
            Placement { entity_start: self.next_entity, series_start: self.next_series, capacity };
        check_ids_left(&placement, names.len())?;
        match self.blocks.get(first_block as usize) {
            Some(first) => put_block_like(log, placement, first.entity_start),
            None => put_block(log, placement, names, entity.tags.iter().map(|(name, _)| *name)),
        }
        Ok(self.add_block(group, &placement))
    }

    pub(super) fn add_block(&mut self, group_idx: u32, placement: &Placement) -> usize {
        assert!(self.next_entity <= placement.entity_start, "ids only grow");
        assert!(self.next_series <= placement.series_start, "ids only grow");
        let block_idx = self.blocks.len();
        let group = &mut self.groups[group_idx as usize];
        match self.blocks.get_mut(group.last_block as usize) {
            Some(last) => last.next = to_u32(block_idx),
            None => group.first_block = to_u32(block_idx),
        }
        group.last_block = to_u32(block_idx);
        group.block_count += 1;
        self.next_entity = placement.entity_start + placement.capacity;
        self.next_series = placement.series_start + placement.capacity * group.name_count;
        self.blocks.push(Block {
            entity_start: placement.entity_start,
            series_start: placement.series_start,
            capacity: to_u16(placement.capacity as usize),
            len: 0,
            group: group_idx,
            next: NONE,
            columns_start: 0,
        });
        block_idx
    }

    /// Fills the next slot of a block. `values` has one value per tag of the block's group.
    pub(super) fn add_entity<'a>(
        &mut self,
        block_idx: usize,
        hash: &EntityHash,
        values: impl Iterator<Item = &'a str>,
    ) -> EntityId {
        let Block { entity_start, capacity, len, group, columns_start, .. } =
            self.blocks[block_idx];
        let group = &self.groups[group as usize];
        let (name_count, tags_start) = (group.name_count, group.list_start + group.name_count);
        let slot = usize::from(len);
        assert!(len < capacity, "the block is full");
        let columns_start = match slot {
            0 => self.columns.len(),
            _ => columns_start as usize,
        };
        for (idx, value) in values.enumerate() {
            let tag = self.lists[tags_start as usize + idx];
            let id = self.dictionary.intern(values_of(tag), value);
            if slot == 0 {
                self.columns.push(Column::constant(id));
            } else {
                let column = &mut self.columns[columns_start + idx];
                self.cells.push(column, slot, usize::from(capacity), id);
            }
        }
        let entity = entity_start + u32::from(len);
        self.insert_hashed(hash.entity(), entity);
        if 1 < name_count {
            self.insert_hashed(hash.tags_only(), entity);
        }
        self.blocks[block_idx].columns_start = to_u32(columns_start);
        self.blocks[block_idx].len += 1;
        self.entity_count += 1;
        self.series_count += u64::from(name_count);
        entity
    }

    fn insert_hashed(&mut self, hash: u32, entity: EntityId) {
        let one = HashedEntity { hash, entity };
        self.entities.insert_unique(widen(hash), one, |one| widen(one.hash));
    }
}

pub(super) fn check_names_unique(names: &[&str]) -> Result<()> {
    if names.len() == 1 {
        return Ok(());
    }
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err(Error::InvalidEntity("repeated metric name")),
        false => Ok(()),
    }
}

/// The last id of either kind is never given out, so ends of ranges fit as well.
pub(super) fn check_ids_left(placement: &Placement, columns: usize) -> Result<()> {
    let series = u64::from(placement.capacity) * columns as u64;
    if u64::from(u32::MAX) <= u64::from(placement.entity_start) + u64::from(placement.capacity) {
        return Err(Error::Full { what: "entity ids of the partition", max: u64::from(u32::MAX) });
    }
    if u64::from(u32::MAX) <= u64::from(placement.series_start) + series {
        return Err(Error::Full { what: "ordinals of the partition", max: u64::from(u32::MAX) });
    }
    Ok(())
}
