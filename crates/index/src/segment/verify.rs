//! Walks a whole segment: every checksum, every record, every promise that readers rely on.

use super::Segment;
use super::piece::{Piece, PieceCursor, Space};
use super::strings::utf8;
use crate::error::{Result, corrupt};
use crate::format::{ENTITY_BLOCK_SIZE, HASH_SIZE, Section};
use crate::subset::{count_bits, for_each_bit};

impl Segment {
    /// Checks everything; takes about a microsecond an entity.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] with the first thing that does not hold.
    pub fn verify(&self) -> Result<()> {
        let verified = match self.has_sound_header() {
            true => self.verify_sections().and_then(|()| self.verify_content()),
            false => Err(corrupt("header of a segment")),
        };
        self.settle(verified).map_err(|error| error.in_file(&self.name))
    }

    /// Everything but the checksums.
    pub(crate) fn verify_content(&self) -> Result<()> {
        self.verify_dictionary(Space::TagNames)?;
        self.verify_dictionary(Space::MetricNames)?;
        for tag in 0..self.counts().label_count - 1 {
            self.verify_dictionary(Space::Values(tag))?;
        }
        self.verify_entity_blocks()?;
        let (mut entity_count, mut series_count, mut hash_count) = (0, 0, 0);
        let mut next_block = 0;
        for number in 0..self.group_count() {
            let group = self.group_record(number)?;
            if group.block_start != next_block || group.block_count == 0 {
                return Err(corrupt("blocks of a group"));
            }
            next_block += group.block_count;
            let live = self.verify_group(number)?;
            if live != u64::from(group.entity_count) {
                return Err(corrupt("number of a group's entities"));
            }
            entity_count += live;
            series_count += live * u64::from(group.name_count);
            hash_count += if group.name_count == 1 { live } else { 2 * live };
        }
        let counts = self.counts();
        let wanted = (counts.entity_count, counts.series_count, counts.hash_count);
        if (entity_count, series_count, hash_count) != wanted || next_block != counts.block_count {
            return Err(corrupt("counts of the footer"));
        }
        self.verify_hashes()
    }

    fn verify_dictionary(&self, space: Space) -> Result<()> {
        let mut cursor: PieceCursor<'_> = self.cursor(space)?;
        while let Some((string, _)) = cursor.current() {
            utf8(string)?;
            if string.is_empty() && space != Space::MetricNames {
                return Err(corrupt("empty name or value of a tag"));
            }
            cursor.advance()?;
        }
        Ok(())
    }

    /// Blocks by entity do not overlap, neither in entities nor in ordinals.
    fn verify_entity_blocks(&self) -> Result<()> {
        let (mut entity_end, mut series_end) =
            (self.counts().entities_start, self.counts().series_start);
        let records = self.section(Section::EntityBlocks)?.as_chunks::<ENTITY_BLOCK_SIZE>().0;
        for (record, block) in records.iter().zip(self.blocks()?) {
            let block = block?;
            if block.entity_start < entity_end
                || block.series_start < series_end
                || block.entity_start.to_le_bytes() != record[..4]
            {
                return Err(corrupt("overlap of blocks"));
            }
            entity_end = block.entity_start + block.capacity;
            series_end = block.series_end();
        }
        Ok(())
    }

    /// Columns, postings and hashes of a group's blocks; returns how many entities live.
    fn verify_group(&self, group: u32) -> Result<u64> {
        let (names, tags) = self.group_lists(group)?;
        for name in &names {
            self.verify_posting(0, *name, group)?;
        }
        for tag in &tags {
            self.verify_tag_posting(*tag, group)?;
        }
        let mut live = 0;
        for block in self.group_blocks(group)? {
            live += u64::from(count_bits(&block.live));
            let mut columns = vec![vec![0; block.block.len as usize]; tags.len()];
            for (position, tag) in tags.iter().enumerate() {
                self.column_ids(block.number, position, &mut columns[position])?;
                let mut ids = columns[position].clone();
                ids.sort_unstable();
                ids.dedup();
                for id in ids {
                    self.verify_posting(tag + 1, id, block.number)?;
                }
            }
            let mut slots = Vec::new();
            for_each_bit(&block.live, |slot| slots.push(slot));
            for slot in slots {
                let tags = tags.iter().zip(&columns);
                let tags: Vec<(u32, u32)> =
                    tags.map(|(tag, column)| (*tag, column[usize::from(slot)])).collect();
                self.verify_entity(block.block.entity(slot), &names, &tags)?;
            }
        }
        Ok(live)
    }

    /// The posting of a value names the block, or all.
    fn verify_posting(&self, label: u32, id: u32, number: u32) -> Result<()> {
        let label = self.label_record(label)?;
        if label.value_count <= id {
            return Err(corrupt("value id in a column"));
        }
        let postings = self.postings_of(&label)?;
        let mut numbers = Vec::new();
        if postings.count(id)?.is_some() {
            postings.append(id, u32::MAX, &mut numbers)?;
            if numbers.binary_search(&number).is_err() {
                return Err(corrupt("a posting misses a block"));
            }
        }
        Ok(())
    }

    fn verify_tag_posting(&self, tag: u32, group: u32) -> Result<()> {
        let postings = self.tag_postings()?;
        let mut numbers = Vec::new();
        if postings.count(tag)?.is_some() {
            postings.append(tag, u32::MAX, &mut numbers)?;
            if numbers.binary_search(&group).is_err() {
                return Err(corrupt("the posting of a tag misses a group"));
            }
        }
        Ok(())
    }

    /// The entity is found by its labels.
    fn verify_entity(&self, entity: u32, names: &[u32], tags: &[(u32, u32)]) -> Result<()> {
        let mut text = Vec::new();
        let mut strings = Vec::new();
        for id in names {
            self.metric_names()?.get(*id, &mut text)?;
            strings.push(utf8(&text)?.to_string());
        }
        for (tag, value) in tags {
            self.tag_names()?.get(*tag, &mut text)?;
            strings.push(utf8(&text)?.to_string());
            self.values(*tag)?.get(*value, &mut text)?;
            strings.push(utf8(&text)?.to_string());
        }
        let strings: Vec<&str> = strings.iter().map(String::as_str).collect();
        let (names, tags) = strings.split_at(names.len());
        let tags: Vec<(&str, &str)> = tags.as_chunks().0.iter().map(|[n, v]| (*n, *v)).collect();
        let new = crate::NewEntity::new(names, &tags);
        let found = self.find_entity(&new)?;
        match found == Some(entity) {
            true => Ok(()),
            false => Err(corrupt("an entity is not found by its labels")),
        }
    }

    /// The table of entities is sorted and its directory points into it.
    fn verify_hashes(&self) -> Result<()> {
        let directory_size = self.bucket_count() * 4 + 4;
        let (directory, entries) = self.section(Section::Hashes)?.split_at(directory_size);
        let starts = directory.as_chunks::<4>().0.iter().map(|start| u32::from_le_bytes(*start));
        let mut mapped: Vec<u64> = Vec::with_capacity(entries.len() / HASH_SIZE);
        self.hashes(&mut mapped)?;
        let shift = 64 - self.counts().bucket_bits;
        let bucket_of = |entry: u64| if shift == 64 { 0 } else { entry >> shift };
        let is_in_place = starts.enumerate().all(|(bucket, start)| {
            mapped.partition_point(|entry| bucket_of(*entry) < bucket as u64) == start as usize
        });
        if !mapped.is_sorted_by(|a, b| a < b) || !is_in_place {
            return Err(corrupt("order of the hashes"));
        }
        Ok(())
    }
}
