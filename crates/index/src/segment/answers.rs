//! What matching series have: names of labels and values of one label, collected block by block.
//!
//! Ids that are met are marked; the dictionaries are then read from start to end, so the answer
//! comes sorted and buckets without a marked string are not looked at.

use super::{BlockRecord, Lists, Segment};
use crate::BLOCK_SLOTS_MAX;
use crate::error::{Error, Result, corrupt};
use crate::subset::BlockMatch;
use model::METRIC_NAME;

impl Segment {
    /// The names of the labels that matching series have, sorted.
    pub(crate) fn label_names(&self, matches: &[BlockMatch]) -> Result<Vec<String>> {
        let names = self.names_of(matches);
        self.settle(names)
    }

    fn names_of(&self, matches: &[BlockMatch]) -> Result<Vec<String>> {
        let mut is_seen = vec![false; self.counts().label_count as usize - 1];
        let (mut is_named, mut last_group) = (false, u32::MAX);
        let unnamed = self.metric_names()?.find(b"")?;
        let mut lists = Lists::default();
        for found in matches {
            let (_, block) = self.matched_block(found)?;
            if block.group != last_group {
                last_group = block.group;
                self.lists(&self.group_record(block.group)?, &mut lists)?;
                for tag in &lists.tags {
                    let seen = is_seen.get_mut(*tag as usize);
                    *seen.ok_or_else(|| corrupt("tag of a group"))? = true;
                }
            }
            let name_of = |column: u16| lists.names.get(usize::from(column)).copied();
            is_named = is_named || found.columns.iter().any(|column| name_of(column) != unnamed);
        }
        let mut out = self.tag_names()?.marked(&is_seen)?;
        if is_named {
            let at = out.partition_point(|name| name.as_str() < METRIC_NAME);
            out.insert(at, METRIC_NAME.to_string());
        }
        Ok(out)
    }

    /// The distinct non-empty values that matching series have for a label, sorted.
    pub(crate) fn label_values(&self, label: &str, matches: &[BlockMatch]) -> Result<Vec<String>> {
        let values = self.values_of(label, matches);
        self.settle(values)
    }

    fn values_of(&self, label: &str, matches: &[BlockMatch]) -> Result<Vec<String>> {
        if label == METRIC_NAME {
            return self.metric_names()?.marked(&self.names_seen(matches)?);
        }
        match self.tag_names()?.find(label.as_bytes())? {
            Some(tag) => self.values(tag)?.marked(&self.values_seen(tag, matches)?),
            None => Ok(Vec::new()),
        }
    }

    /// By id: whether a matching series has that metric name.
    fn names_seen(&self, matches: &[BlockMatch]) -> Result<Vec<bool>> {
        let mut is_seen = vec![false; self.metric_names()?.count() as usize];
        let mut lists = Lists::default();
        for found in matches {
            let (_, block) = self.matched_block(found)?;
            self.lists(&self.group_record(block.group)?, &mut lists)?;
            for column in &found.columns {
                let name = lists.names.get(usize::from(column));
                let seen = name.and_then(|name| is_seen.get_mut(*name as usize));
                *seen.ok_or_else(|| corrupt("name of a group"))? = true;
            }
        }
        Ok(is_seen)
    }

    /// By id: whether matching series have that value of a tag.
    fn values_seen(&self, tag: u32, matches: &[BlockMatch]) -> Result<Vec<bool>> {
        let mut is_seen = vec![false; self.values(tag)?.count() as usize];
        let mut lists = Lists::default();
        let mut values = [0; BLOCK_SLOTS_MAX];
        for found in matches {
            let (number, block) = self.matched_block(found)?;
            let group = self.group_record(block.group)?;
            self.lists(&group, &mut lists)?;
            let Ok(position) = lists.tags.binary_search(&tag) else { continue };
            let column = self.column(&group, number, &block, position)?;
            if column.width == 0 {
                let seen = is_seen.get_mut(column.min as usize);
                *seen.ok_or_else(|| corrupt("value id in a column"))? = true;
                continue;
            }
            let values = &mut values[..usize::from(block.len)];
            column.decode(values);
            for slot in &found.slots {
                let id = values.get(usize::from(slot));
                let seen = id.and_then(|id| is_seen.get_mut(*id as usize));
                *seen.ok_or_else(|| corrupt("value id in a column"))? = true;
            }
        }
        Ok(is_seen)
    }

    /// The block of a match: where the search found it, most often.
    pub(super) fn matched_block(&self, found: &BlockMatch) -> Result<(u32, BlockRecord)> {
        if let Ok(block) = self.block_record(found.number)
            && block.entity_start == found.block.entity_start
        {
            return Ok((found.number, block));
        }
        let number = self.block_number(found.block.entity_start)?;
        let number = number.ok_or(Error::Dropped)?;
        Ok((number, self.block_record(number)?))
    }
}
