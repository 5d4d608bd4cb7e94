//! From series to labels, for one series or, with a cache, for many in a row.

use super::{BlockRecord, GroupRecord, Lists, Segment, utf8};
use crate::entity::BlockRef;
use crate::error::{Result, corrupt};
use model::{LabelsBuilder, METRIC_NAME};
use std::sync::Arc;

/// What neighbouring series share: their block's place, their group's names, and the strings
/// that were last decoded for each label.
#[derive(Default)]
pub(crate) struct LabelCache {
    block: Option<(BlockRef, u32, BlockRecord, GroupRecord)>,
    lists: Lists,
    /// Id and text of the metric's name.
    name: CachedString,
    /// By position: the tag's name.
    tag_names: Vec<String>,
    /// By position: id and text of the value.
    values: Vec<CachedString>,
    /// Names of the labels that are needed; all when there is no list.
    wanted: Option<Arc<[String]>>,
}

impl LabelCache {
    /// An empty cache for the labels of the given names, or for all.
    pub(crate) fn of(wanted: Option<Arc<[String]>>) -> LabelCache {
        LabelCache { wanted, ..LabelCache::default() }
    }

    fn wants(&self, name: &str) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.iter().any(|one| one == name))
    }
}

#[derive(Default)]
struct CachedString {
    id: Option<u32>,
    text: String,
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
        let (number, record, group) = self.enter_block(cache, block)?;
        if record.len <= slot {
            return Err(corrupt("entity in no block"));
        }
        let name = cache.lists.names.get(usize::from(column));
        let name = *name.ok_or_else(|| corrupt("column outside its block"))?;
        if cache.name.id != Some(name) {
            let mut text = Vec::new();
            self.metric_names()?.get(name, &mut text)?;
            cache.name.id = Some(name);
            cache.name.text = utf8(&text)?.to_string();
        }
        out.push(METRIC_NAME, &cache.name.text);
        let LabelCache { lists, tag_names, values, .. } = cache;
        for (position, tag) in lists.tags.iter().enumerate() {
            let value = &mut values[position];
            if !value.is_wanted {
                continue;
            }
            let id = self.column(&group, number, &record, position)?.get(usize::from(slot));
            if value.id != Some(id) {
                value.id = None;
                let mut bytes = std::mem::take(&mut value.text).into_bytes();
                self.values(*tag)?.get(id, &mut bytes)?;
                value.text = String::from_utf8(bytes).map_err(|_| corrupt("UTF-8 of a label"))?;
                value.id = Some(id);
            }
            out.push(&tag_names[position], &value.text);
        }
        Ok(())
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
        let last_group = cache.block.take().map(|(_, _, record, _)| record.group);
        let number = self.block_number(block.entity_start)?;
        let number = number.ok_or_else(|| corrupt("entity in no block"))?;
        let record = self.block_record(number)?;
        let group = self.group_record(record.group)?;
        if last_group != Some(record.group) {
            self.enter_group(cache, &group)?;
        }
        cache.block = Some((*block, number, record, group));
        Ok((number, record, group))
    }

    fn enter_group(&self, cache: &mut LabelCache, group: &GroupRecord) -> Result<()> {
        self.lists(group, &mut cache.lists)?;
        let strings = self.tag_names()?;
        let mut text = Vec::new();
        cache.tag_names.clear();
        cache.values.clear();
        for tag in &cache.lists.tags {
            strings.get(*tag, &mut text)?;
            let name = utf8(&text)?.to_string();
            let is_wanted = cache.wants(&name);
            cache.tag_names.push(name);
            cache.values.push(CachedString { is_wanted, ..CachedString::default() });
        }
        Ok(())
    }
}
