//! From an entity's labels to its id: hash table, then a comparison of the real strings.
//!
//! ```text
//! hashes = first entry u32 of each bucket, and the end │ { hash u32, entity u32 } sorted
//! bucket = upper bits of the hash
//! ```

use super::{Lists, Segment};
use crate::entity::{EntityId, NewEntity};
use crate::error::{Result, corrupt};
use crate::format::{HASH_SIZE, Section};
use crate::narrow::{low_half, to_u16};

impl Segment {
    /// The entity with exactly these metric names and tags.
    ///
    /// # Errors
    /// As [`Segment::block_of`].
    pub fn find_entity(&self, entity: &NewEntity<'_>) -> Result<Option<EntityId>> {
        let found = self.entity_with(entity);
        self.settle(found)
    }

    fn entity_with(&self, entity: &NewEntity<'_>) -> Result<Option<EntityId>> {
        let mut lists = Lists::default();
        for candidate in self.candidates(entity.hash.entity())? {
            let names_are = |segment: &Segment, lists: &Lists, text: &mut Vec<u8>| {
                segment.names_are(lists, entity.names, text)
            };
            if self.entity_is(candidate, entity.tags, &mut lists, names_are)? {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    /// The series of an entity of one metric as one column of another entity, of several metrics.
    ///
    /// # Errors
    /// As [`Segment::block_of`].
    pub fn find_column(&self, entity: &NewEntity<'_>) -> Result<Option<(EntityId, u16)>> {
        let found = self.column_with(entity);
        self.settle(found)
    }

    fn column_with(&self, entity: &NewEntity<'_>) -> Result<Option<(EntityId, u16)>> {
        let [name] = entity.names else { return Ok(None) };
        let mut candidates = self.candidates(entity.hash.tags_only())?.peekable();
        if candidates.peek().is_none() {
            return Ok(None);
        }
        let Some(name_id) = self.metric_names()?.find(name.as_bytes())? else {
            return Ok(None);
        };
        let mut lists = Lists::default();
        for candidate in candidates {
            let has_name =
                |_: &Segment, lists: &Lists, _: &mut Vec<u8>| Ok(lists.names.contains(&name_id));
            if self.entity_is(candidate, entity.tags, &mut lists, has_name)? {
                let column = lists.names.iter().position(|id| *id == name_id);
                return Ok(column.map(|column| (candidate, to_u16(column))));
            }
        }
        Ok(None)
    }

    pub(super) fn bucket_count(&self) -> usize {
        1 << self.counts().bucket_bits
    }

    /// Entities with this hash.
    fn candidates(&self, hash: u32) -> Result<impl Iterator<Item = EntityId> + '_> {
        let (directory, entries) =
            self.section(Section::Hashes)?.split_at(self.bucket_count() * 4 + 4);
        let directory = directory.as_chunks::<4>().0;
        let entries = entries.as_chunks::<HASH_SIZE>().0;
        let bucket = hash.checked_shr(32 - self.counts().bucket_bits).unwrap_or(0) as usize;
        let start = u32::from_le_bytes(directory[bucket]) as usize;
        let end = u32::from_le_bytes(directory[bucket + 1]) as usize;
        let bucket = entries.get(start..end).ok_or_else(|| corrupt("bucket of a hash"))?;
        Ok(bucket.iter().map(|entry| u64::from_le_bytes(*entry)).filter_map(move |entry| {
            (low_half(entry) == hash).then_some((entry >> 32) as EntityId)
        }))
    }

    /// Whether an entity has these tags, and names that pass.
    fn entity_is(
        &self,
        entity: EntityId,
        tags: &[(&str, &str)],
        lists: &mut Lists,
        names_pass: impl Fn(&Segment, &Lists, &mut Vec<u8>) -> Result<bool>,
    ) -> Result<bool> {
        let number = self.block_number(entity)?;
        let number = number.ok_or_else(|| corrupt("entity of a hash"))?;
        let block = self.block_record(number)?;
        let group = self.group_record(block.group)?;
        if usize::from(group.tag_count) != tags.len() {
            return Ok(false);
        }
        self.lists(&group, lists)?;
        let mut text = Vec::with_capacity(64);
        let slot = (entity - block.entity_start) as usize;
        for (position, (tag, (name, value))) in lists.tags.iter().zip(tags).enumerate() {
            let id = self.column(&group, number, &block, position)?.get(slot);
            self.values(*tag)?.get(id, &mut text)?;
            if text != value.as_bytes() {
                return Ok(false);
            }
            self.tag_names()?.get(*tag, &mut text)?;
            if text != name.as_bytes() {
                return Ok(false);
            }
        }
        names_pass(self, lists, &mut text)
    }

    fn names_are(&self, lists: &Lists, names: &[&str], text: &mut Vec<u8>) -> Result<bool> {
        if lists.names.len() != names.len() {
            return Ok(false);
        }
        let strings = self.metric_names()?;
        for (id, name) in lists.names.iter().zip(names) {
            strings.get(*id, text)?;
            if text != name.as_bytes() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
