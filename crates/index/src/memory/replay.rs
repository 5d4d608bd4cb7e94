//! Replay: applies the records of [`super::log`], which come from a disk and may be anything.

use super::MemoryIndex;
use super::dictionary::{METRIC_NAMES, TAG_NAMES};
use super::log::{Placement, Record, read_record};
use super::register::{check_ids_left, check_names_unique};
use crate::entity::{BLOCK_SERIES_MAX, BLOCK_SLOTS_MAX, EntityHash, EntityId, NewEntity};
use crate::error::{Error, Result};
use codec::Reader;

impl MemoryIndex {
    /// Applies registrations again. Records of blocks and entities that are already here, or
    /// below [`MemoryIndex::entities_start`] and so in segments, are skipped.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first record that does not decode or contradicts the index;
    /// the records before it are applied. [`Error::Full`] and [`Error::MemoryFull`] as in [`MemoryIndex::register`].
    pub fn replay(&mut self, registrations: &[u8]) -> Result<()> {
        let mut reader = Reader::new(registrations);
        while !reader.is_empty() {
            let offset = reader.offset() as u64;
            self.replay_record(&mut reader).map_err(|error| match error {
                Error::InvalidEntity(what) | Error::Corrupt { what, .. } => {
                    Error::Corrupt { file: "registrations".to_string(), offset, what }
                }
                other => other,
            })?;
        }
        Ok(())
    }

    /// As [`MemoryIndex::replay`], but leaves out what does not apply and goes on behind it, as far
    /// as records decode. Appends what applies to `kept`; returns the first error.
    pub fn replay_what_applies(
        &mut self,
        registrations: &[u8],
        kept: &mut Vec<u8>,
    ) -> Option<Error> {
        let mut reader = Reader::new(registrations);
        let mut first_error = None;
        while !reader.is_empty() {
            let start = reader.offset();
            let record = match read_record(&mut reader) {
                Ok(record) => record,
                Err(error) => return Some(first_error.unwrap_or(error)),
            };
            match self.apply(record) {
                Ok(()) => kept.extend_from_slice(&registrations[start..reader.offset()]),
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        first_error
    }

    fn replay_record(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let record = read_record(reader)?;
        self.apply(record)
    }

    fn apply(&mut self, record: Record<'_>) -> Result<()> {
        match record {
            Record::Block { placement, names, tag_names } => {
                self.replay_block(&placement, &names, &tag_names)
            }
            Record::BlockLike { placement, like_entity_start } => {
                self.replay_block_like(&placement, like_entity_start)
            }
            Record::Entity { entity, .. } if entity < self.entities_start => Ok(()),
            Record::Entity { entity, values } => self.replay_entity(entity, &values),
        }
    }

    fn replay_block(
        &mut self,
        placement: &Placement,
        names: &[&str],
        tag_names: &[&str],
    ) -> Result<()> {
        if placement.entity_start < self.entities_start {
            return Ok(());
        }
        check_lists(names, tag_names)?;
        if placement.entity_start < self.next_entity {
            return self.check_block(placement, names, tag_names);
        }
        self.check_placement(placement, names.len())?;
        let size = names.iter().chain(tag_names).map(|name| name.len()).sum();
        self.check_room_for(size, tag_names.len())?;
        let group = match self.find_group(names, tag_names) {
            Some(group) => group,
            None => {
                check_names_unique(names)?;
                self.add_group(names, tag_names)
            }
        };
        self.add_block(group, placement);
        Ok(())
    }

    fn replay_block_like(&mut self, placement: &Placement, like: EntityId) -> Result<()> {
        if placement.entity_start < self.entities_start {
            return Ok(());
        }
        let like_idx = self
            .block_idx_of(like)
            .filter(|idx| self.blocks[*idx].entity_start == like)
            .ok_or(Error::InvalidEntity("block like an unknown one"))?;
        let group = self.blocks[like_idx].group;
        let (name_count, tag_count) = (self.names(group).len(), self.tags(group).len());
        if placement.entity_start < self.next_entity {
            return match self.find_block(placement) {
                Some(found) if self.blocks[found].group == group => Ok(()),
                _ => Err(Error::InvalidEntity("block elsewhere than before")),
            };
        }
        self.check_placement(placement, name_count)?;
        self.check_room_for(0, tag_count)?;
        self.add_block(group, placement);
        Ok(())
    }

    /// Checks that a block which is already here is the one of the record.
    fn check_block(&self, placement: &Placement, names: &[&str], tag_names: &[&str]) -> Result<()> {
        let group = self.find_group(names, tag_names);
        match self.find_block(placement) {
            Some(found) if Some(self.blocks[found].group) == group => Ok(()),
            _ => Err(Error::InvalidEntity("block elsewhere than before")),
        }
    }

    fn find_block(&self, placement: &Placement) -> Option<usize> {
        let idx = self.block_idx_of(placement.entity_start)?;
        let block = &self.blocks[idx];
        let is_same = block.entity_start == placement.entity_start
            && block.series_start == placement.series_start
            && u32::from(block.capacity) == placement.capacity;
        is_same.then_some(idx)
    }

    fn check_placement(&self, placement: &Placement, columns: usize) -> Result<()> {
        let capacity = placement.capacity as usize;
        if !(1..=BLOCK_SLOTS_MAX).contains(&capacity)
            || (1 < capacity && BLOCK_SERIES_MAX < capacity * columns)
        {
            return Err(Error::InvalidEntity("capacity of a block"));
        }
        if placement.entity_start < self.next_entity || placement.series_start < self.next_series {
            return Err(Error::InvalidEntity("block before the last one's end"));
        }
        check_ids_left(placement, columns)
    }

    fn replay_entity(&mut self, entity: EntityId, values: &[&str]) -> Result<()> {
        let block_idx =
            self.block_idx_of(entity).ok_or(Error::InvalidEntity("entity in no block"))?;
        let (group, len) = (self.blocks[block_idx].group, self.blocks[block_idx].len);
        if values.len() != self.tags(group).len() {
            return Err(Error::InvalidEntity("number of tag values"));
        }
        let slot = entity - self.blocks[block_idx].entity_start;
        if slot < u32::from(len) {
            return match self.find_values(group, values).0 {
                Some(known) if known == entity => Ok(()),
                _ => Err(Error::InvalidEntity("entity with other labels than before")),
            };
        }
        if slot != u32::from(len) {
            return Err(Error::InvalidEntity("gap between slots"));
        }
        if values.iter().any(|value| value.is_empty()) {
            return Err(Error::InvalidEntity("empty tag value"));
        }
        self.check_room_for(values.iter().map(|value| value.len()).sum(), values.len())?;
        let (known, hash) = self.find_values(group, values);
        if known.is_some() {
            return Err(Error::InvalidEntity("entity registered twice"));
        }
        self.add_entity(block_idx, &hash, values.iter().copied());
        Ok(())
    }

    /// Finds the entity of a group with these values; returns its hash, too.
    fn find_values(&self, group: u32, values: &[&str]) -> (Option<EntityId>, EntityHash) {
        let names: Vec<&str> =
            self.names(group).iter().map(|id| self.dictionary.get(METRIC_NAMES, *id)).collect();
        let tag_names = self.tags(group).iter().map(|id| self.dictionary.get(TAG_NAMES, *id));
        let tags: Vec<(&str, &str)> = tag_names.zip(values.iter().copied()).collect();
        let entity = NewEntity::new(&names, &tags);
        (self.find_entity(&entity), entity.hash)
    }
}

/// The rules of [`NewEntity`] for the lists of a block.
fn check_lists(names: &[&str], tag_names: &[&str]) -> Result<()> {
    let tags: Vec<(&str, &str)> = tag_names.iter().map(|name| (*name, "-")).collect();
    NewEntity::new(names, &tags).check()
}
