//! From series to labels, for one series or, with a cache, for many in a row.

use super::strings::BucketCache;
use super::strings::utf8;
use super::{BlockRecord, GroupRecord, Lists, Segment};
use crate::entity::BlockRef;
use crate::error::{Error, Result, corrupt};
use crate::subset::BlockMatch;
use model::{LabelsBuilder, METRIC_NAME};
use std::sync::Arc;

/// What neighbouring series share: their block's place, their group's names, and the strings
/// that were last decoded for each label.
#[derive(Default)]
pub(crate) struct LabelCache {
    block: Option<(BlockRef, u32, BlockRecord, GroupRecord)>,
    lists: Lists,
    /// Of the metric's names.
    names: BucketCache,
    /// Of the tags' names.
    tags: BucketCache,
    /// By position: name and value of the tag; as many as any group has had.
    labels: Vec<CachedLabel>,
    /// Names of the labels that are needed; all when there is no list.
    wanted: Option<Arc<[String]>>,
    /// Whether the metric's name is not needed.
    skips_name: bool,
}

impl LabelCache {
    /// An empty cache for the labels of the given names, or for all.
    pub(crate) fn of(wanted: Option<Arc<[String]>>) -> LabelCache {
        let is_wanted = |names: &Arc<[String]>| names.iter().any(|name| name == METRIC_NAME);
        let skips_name = wanted.as_ref().is_some_and(|names| !is_wanted(names));
        LabelCache { wanted, skips_name, ..LabelCache::default() }
    }
}

#[derive(Default)]
struct CachedLabel {
    name: String,
    /// Id of the value, when it is of the present group.
    id: Option<u32>,
    value: String,
    /// Of the tag's values: those of neighbours are neighbours too when names are counted.
    values: BucketCache,
    is_wanted: bool,
}

impl Segment {
    /// Appends the labels of a series to `out`, the metric's name included, in no order.
    ///
    /// # Errors
    /// As [`Segment::block_of`].
    pub fn labels(
        &self,
        block: &BlockRef,
        column: u16,
        slot: u16,
        out: &mut LabelsBuilder,
    ) -> Result<()> {
        self.labels_cached(&mut LabelCache::default(), block, column, slot, out)
    }

    /// The same, quicker for series of the block or group that the cache last saw. A cache
    /// belongs to one segment.
    pub(crate) fn labels_cached(
        &self,
        cache: &mut LabelCache,
        block: &BlockRef,
        column: u16,
        slot: u16,
        out: &mut LabelsBuilder,
    ) -> Result<()> {
        let read = self.push_labels(cache, block, column, slot, out);
        self.settle(read)
    }

    #[inline]
    fn push_labels(
        &self,
        cache: &mut LabelCache,
        block: &BlockRef,
        column: u16,
        slot: u16,
        out: &mut LabelsBuilder,
    ) -> Result<()> {
        let (number, record, group) = self.enter_block(cache, block)?;
        if !self.is_live(&record, slot)? {
            return Err(Error::Dropped);
        }
        let name = cache.lists.names.get(usize::from(column));
        let name = *name.ok_or_else(|| corrupt("column outside its block"))?;
        if !cache.skips_name {
            out.push(METRIC_NAME, utf8(self.metric_names()?.get_cached(name, &mut cache.names)?)?);
        }
        let LabelCache { lists, labels, .. } = cache;
        for (position, (tag, label)) in lists.tags.iter().zip(labels).enumerate() {
            if !label.is_wanted {
                continue;
            }
            let id = self.column(&group, number, &record, position)?.get(usize::from(slot));
            if label.id != Some(id) {
                label.id = None;
                label.value.clear();
                let value = self.values(*tag)?.get_cached(id, &mut label.values)?;
                label.value.push_str(utf8(value)?);
                label.id = Some(id);
            }
            out.push(&label.name, &label.value);
        }
        Ok(())
    }

    /// Loads what the series of a match share.
    pub(crate) fn enter_match(&self, cache: &mut LabelCache, found: &BlockMatch) -> Result<()> {
        match &cache.block {
            Some((known, ..)) if *known == found.block => Ok(()),
            _ => {
                let (number, record) = self.matched_block(found)?;
                self.enter_record(cache, &found.block, number, record).map(|_| ())
            }
        }
    }

    /// Loads what the series of a block share.
    fn enter_block(
        &self,
        cache: &mut LabelCache,
        block: &BlockRef,
    ) -> Result<(u32, BlockRecord, GroupRecord)> {
        if let Some((known, number, record, group)) = cache.block
            && known == *block
        {
            return Ok((number, record, group));
        }
        let number = self.block_number(block.entity_start)?;
        let number = number.ok_or(Error::Dropped)?;
        self.enter_record(cache, block, number, self.block_record(number)?)
    }

    fn enter_record(
        &self,
        cache: &mut LabelCache,
        block: &BlockRef,
        number: u32,
        record: BlockRecord,
    ) -> Result<(u32, BlockRecord, GroupRecord)> {
        let last_group = cache.block.take().map(|(_, _, record, _)| record.group);
        let group = self.group_record(record.group)?;
        if last_group != Some(record.group) {
            self.enter_group(cache, &group)?;
        }
        cache.block = Some((*block, number, record, group));
        Ok((number, record, group))
    }

    fn enter_group(&self, cache: &mut LabelCache, group: &GroupRecord) -> Result<()> {
        let LabelCache { lists, tags, labels, wanted, .. } = cache;
        self.lists(group, lists)?;
        let strings = self.tag_names()?;
        if labels.len() < lists.tags.len() {
            labels.resize_with(lists.tags.len(), CachedLabel::default);
        }
        for (tag, label) in lists.tags.iter().zip(labels) {
            label.id = None;
            label.values.clear();
            label.name.clear();
            label.name.push_str(utf8(strings.get_cached(*tag, tags)?)?);
            label.is_wanted = wanted.as_ref().is_none_or(|names| names.contains(&label.name));
        }
        Ok(())
    }
}
