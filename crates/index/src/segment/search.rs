//! Search in a segment: the cheapest condition names candidate blocks, the others are tested on
//! their columns.
//!
//! ```text
//! matchers ─► ids per label ─► candidates: blocks of few values │ groups of names │ all groups
//!                                  └─► per group: columns by name, tags that need a test
//!                                         └─► per block: AND of bit-sliced comparisons
//! ```

use super::conditions::{Conditions, IdSet, PLANE_RANGES_MAX, Selected};
use super::planes::Planes;
use super::{BlockRecord, GroupRecord, Lists, Segment};
use crate::BLOCK_SLOTS_MAX;
use crate::error::Result;
use crate::interrupt::Pace;
use crate::matcher::CompiledMatchers;
use crate::narrow::to_u16;
use crate::subset::{BlockMatch, SLOT_WORDS, SlotBits, Subset, is_zero, sort_by_entity};
use roaring::RoaringBitmap;

/// Postings are only asked about sets of this many ids; larger ones hardly ever select.
const POSTING_IDS_MAX: u64 = 4096;
/// A candidate block costs about as much as testing this many groups: reads are less ordered.
const BLOCK_COST: u64 = 2;
/// The same of a series whose block must be found by its ordinal first.
const ORDINAL_COST: u64 = 4;

/// Where the search looks.
enum Candidates {
    /// These blocks, increasing.
    Blocks(Vec<u32>),
    /// All blocks of these groups, increasing.
    Groups(Vec<u32>),
    /// All groups.
    Everything,
}

impl Segment {
    /// The series that satisfy all matchers, by increasing ids.
    ///
    /// # Errors
    /// As [`Segment::block_of`].
    pub fn search(&self, matchers: &CompiledMatchers) -> Result<Vec<BlockMatch>> {
        let mut out = self.search_among(matchers, None)?;
        sort_by_entity(&mut out);
        Ok(out)
    }

    /// The series that satisfy all matchers, in no order. Blocks without a series of `among` may
    /// be left out.
    pub(crate) fn search_among(
        &self,
        matchers: &CompiledMatchers,
        among: Option<&RoaringBitmap>,
    ) -> Result<Vec<BlockMatch>> {
        self.check_searchable()?;
        let found = self.matches_among(matchers, among);
        self.settle(found)
    }

    fn matches_among(
        &self,
        matchers: &CompiledMatchers,
        among: Option<&RoaringBitmap>,
    ) -> Result<Vec<BlockMatch>> {
        let conditions = self.conditions(matchers)?;
        let is_impossible = conditions.names.contains(&Selected::None)
            || conditions
                .tags
                .iter()
                .any(|one| !one.matches_absent && one.values == Selected::None);
        if is_impossible {
            return Ok(Vec::new());
        }
        let mut search = Search {
            segment: self,
            conditions: &conditions,
            lists: Lists::default(),
            tests: Vec::new(),
            pace: Pace::new(matchers.interrupt()),
            out: Vec::new(),
        };
        let (candidates, cost) = self.candidates_of(&conditions, among)?;
        matchers.check_cost(cost)?;
        match candidates {
            Candidates::Blocks(blocks) => search.in_blocks(&blocks)?,
            Candidates::Groups(groups) => {
                groups.into_iter().try_for_each(|group| search.in_group(group))?;
            }
            Candidates::Everything => {
                (0..self.counts().group_count).try_for_each(|group| search.in_group(group))?;
            }
        }
        Ok(search.out)
    }

    /// The candidates that cost least, and what they cost.
    fn candidates_of(
        &self,
        conditions: &Conditions,
        among: Option<&RoaringBitmap>,
    ) -> Result<(Candidates, u64)> {
        let mut best = Candidates::Everything;
        let mut best_cost =
            u64::from(self.counts().group_count) + u64::from(self.counts().block_count);
        let own = self.series();
        let among = among.map(|among| (among, among.range_cardinality(own.clone())));
        let few = among.filter(|(_, count)| count * ORDINAL_COST < best_cost);
        if let Some((_, count)) = few {
            best_cost = count * ORDINAL_COST;
        }
        for names in &conditions.names {
            if let Some((cost, groups)) = self.groups_of_names(names, best_cost)? {
                (best, best_cost) = (Candidates::Groups(groups), cost);
            }
        }
        for condition in conditions.tags.iter().filter(|one| !one.matches_absent) {
            let Some(tag) = condition.tag else { continue };
            if let Some((cost, groups)) = self.groups_of_tag(tag, best_cost)? {
                (best, best_cost) = (Candidates::Groups(groups), cost);
            }
            if let Selected::Ids(ids) = &condition.values
                && let Some((cost, blocks)) = self.blocks_of_values(tag, ids, best_cost)?
            {
                (best, best_cost) = (Candidates::Blocks(blocks), cost);
            }
        }
        match (best, few) {
            (Candidates::Everything, Some((among, _))) => {
                Ok((Candidates::Blocks(self.blocks_of_ordinals(among)?), best_cost))
            }
            (best, _) => Ok((best, best_cost)),
        }
    }

    /// The blocks that have one of these series.
    fn blocks_of_ordinals(&self, among: &RoaringBitmap) -> Result<Vec<u32>> {
        let mut blocks = Vec::new();
        let mut ordinals = among.range(self.series());
        let mut place = 0;
        while let Some(ordinal) = ordinals.next() {
            let Some((idx, number)) = self.block_from(place, ordinal)? else { continue };
            let block = self.block_record(number)?;
            let group = self.group_record(block.group)?;
            let end = self.block_ref(&block, &group)?.series_end();
            place = idx;
            if ordinal < end {
                blocks.push(number);
                ordinals.advance_to(end);
            }
        }
        blocks.sort_unstable();
        Ok(blocks)
    }

    /// The groups with one of the names, if they cost less than `limit`.
    fn groups_of_names(&self, names: &Selected, limit: u64) -> Result<Option<(u64, Vec<u32>)>> {
        let Selected::Ids(ids) = names else { return Ok(None) };
        let Some(ids) = ids.few(POSTING_IDS_MAX) else { return Ok(None) };
        let postings = self.postings_of(&self.label_record(0)?)?;
        let mut groups = Vec::new();
        for id in ids {
            match postings.count(id)? {
                Some(count) if u64::from(count) + (groups.len() as u64) < limit => {
                    postings.append(id, self.counts().group_count, &mut groups)?;
                }
                _ => return Ok(None),
            }
        }
        self.cost_of_groups(groups, limit)
    }

    /// The groups with a tag, if they cost less than `limit`.
    fn groups_of_tag(&self, tag: u32, limit: u64) -> Result<Option<(u64, Vec<u32>)>> {
        let postings = self.tag_postings()?;
        match postings.count(tag)? {
            Some(count) if u64::from(count) < limit => {
                let mut groups = Vec::new();
                postings.append(tag, self.counts().group_count, &mut groups)?;
                self.cost_of_groups(groups, limit)
            }
            _ => Ok(None),
        }
    }

    fn cost_of_groups(&self, mut groups: Vec<u32>, limit: u64) -> Result<Option<(u64, Vec<u32>)>> {
        groups.sort_unstable();
        groups.dedup();
        let mut cost = 0;
        for group in &groups {
            cost += 1 + u64::from(self.group_record(*group)?.block_count);
            if limit <= cost {
                return Ok(None);
            }
        }
        Ok(Some((cost, groups)))
    }

    /// The blocks with one of the values of a tag, if they cost less than `limit`.
    fn blocks_of_values(
        &self,
        tag: u32,
        ids: &IdSet,
        limit: u64,
    ) -> Result<Option<(u64, Vec<u32>)>> {
        let Some(ids) = ids.few(POSTING_IDS_MAX) else { return Ok(None) };
        let postings = self.postings_of(&self.label_record(tag + 1)?)?;
        let mut blocks = Vec::new();
        for id in ids {
            match postings.count(id)? {
                Some(count) if (u64::from(count) + blocks.len() as u64) * BLOCK_COST < limit => {
                    postings.append(id, self.counts().block_count, &mut blocks)?;
                }
                _ => return Ok(None),
            }
        }
        blocks.sort_unstable();
        blocks.dedup();
        Ok(Some((blocks.len() as u64 * BLOCK_COST, blocks)))
    }
}

/// A search on its way through a segment.
struct Search<'a> {
    segment: &'a Segment,
    conditions: &'a Conditions,
    lists: Lists,
    /// Of the present group: positions of tags, and what their values must be.
    tests: Vec<(usize, &'a IdSet)>,
    pace: Pace<'a>,
    out: Vec<BlockMatch>,
}

impl Search<'_> {
    fn in_group(&mut self, group: u32) -> Result<()> {
        let record = self.segment.group_record(group)?;
        if let Some(columns) = self.enter_group(&record)? {
            for number in record.block_start..record.block_start + record.block_count {
                self.in_block(&record, number, &columns)?;
            }
        }
        Ok(())
    }

    /// Blocks of one group are neighbours, so each group is looked at once.
    fn in_blocks(&mut self, blocks: &[u32]) -> Result<()> {
        let mut present: Option<(u32, GroupRecord, Option<Subset>)> = None;
        for number in blocks {
            let group = self.segment.block_record(*number)?.group;
            if present.as_ref().is_none_or(|(present, _, _)| *present != group) {
                let record = self.segment.group_record(group)?;
                let columns = self.enter_group(&record)?;
                present = Some((group, record, columns));
            }
            if let Some((_, record, Some(columns))) = &present {
                let (record, columns) = (*record, columns.clone());
                self.in_block(&record, *number, &columns)?;
            }
        }
        Ok(())
    }

    /// The columns of a group that match, and in `tests` what its slots must pass; `None` when
    /// nothing can match.
    fn enter_group(&mut self, group: &GroupRecord) -> Result<Option<Subset>> {
        let conditions = self.conditions;
        self.pace.add(1 + conditions.tags.len() as u64)?;
        self.tests.clear();
        self.segment.lists(group, &mut self.lists)?;
        for condition in &conditions.tags {
            let position = condition.tag.and_then(|tag| self.lists.tags.binary_search(&tag).ok());
            match (position, &condition.values) {
                (None, _) if condition.matches_absent => {}
                (None, _) | (Some(_), Selected::None) => return Ok(None),
                (Some(_), Selected::All) => {}
                (Some(position), Selected::Ids(ids)) => self.tests.push((position, ids)),
            }
        }
        Ok(columns_of(&self.lists.names, &conditions.names))
    }

    fn in_block(&mut self, group: &GroupRecord, number: u32, columns: &Subset) -> Result<()> {
        self.pace.add(1 + self.tests.len() as u64)?;
        let record = self.segment.block_record(number)?;
        let block = self.segment.block_ref(&record, group)?;
        let slots = if self.tests.is_empty() && record.live == super::ALL_LIVE {
            Subset::all(record.len)
        } else {
            let bits = self.slots_of_block(group, number, &record)?;
            if is_zero(&bits) {
                return Ok(());
            }
            Subset::from_bits(&bits, block.len)
        };
        self.out.push(BlockMatch { block, columns: columns.clone(), slots, number });
        Ok(())
    }

    fn slots_of_block(
        &self,
        group: &GroupRecord,
        number: u32,
        block: &BlockRecord,
    ) -> Result<SlotBits> {
        let mut bits = self.segment.live_bits(block)?;
        for (position, ids) in &self.tests {
            let column = self.segment.column(group, number, block, *position)?;
            retain(&column, ids, usize::from(block.len), &mut bits);
            if is_zero(&bits) {
                break;
            }
        }
        Ok(bits)
    }
}

/// The columns whose metric names satisfy all conditions.
fn columns_of(names: &[u32], conditions: &[Selected]) -> Option<Subset> {
    let matches = |id: &u32| {
        conditions.iter().all(|condition| match condition {
            Selected::All => true,
            Selected::None => false,
            Selected::Ids(ids) => ids.contains(*id),
        })
    };
    if names.iter().all(matches) {
        return Some(Subset::all(to_u16(names.len())));
    }
    let found = names.iter().enumerate().filter(|(_, id)| matches(id));
    let columns: Vec<u16> = found.map(|(column, _)| to_u16(column)).collect();
    (!columns.is_empty()).then(|| Subset::from_sorted(&columns))
}

/// Clears the bits of slots whose id is not in the set.
fn retain(column: &Planes<'_>, ids: &IdSet, len: usize, bits: &mut SlotBits) {
    let (min, max) = (column.min, column.max());
    let ranges = ids.overlapping(min, max);
    match ranges {
        [] => bits.fill(0),
        [(low, high)] if *low <= min && max <= *high => {}
        _ if ranges.len() <= PLANE_RANGES_MAX => {
            let mut any = [0; SLOT_WORDS];
            for (low, high) in ranges {
                let found = column.between(*low.max(&min), *high.min(&max));
                (0..SLOT_WORDS).for_each(|word| any[word] |= found[word]);
            }
            (0..SLOT_WORDS).for_each(|word| bits[word] &= any[word]);
        }
        _ => {
            let mut values = [0; BLOCK_SLOTS_MAX];
            let values = &mut values[..len];
            column.decode(values);
            for (chunk, word) in values.chunks(64).zip(bits.iter_mut()).filter(|(_, w)| **w != 0) {
                let mut mask = 0u64;
                for (bit, id) in chunk.iter().enumerate() {
                    mask |= u64::from(ids.contains(*id)) << bit;
                }
                *word &= mask;
            }
        }
    }
}
