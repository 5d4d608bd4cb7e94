//! Search in memory: the matchers of a label are evaluated once per distinct value, columns are
//! tested for the resulting ids.

use super::cells::Cells;
use super::dictionary::{METRIC_NAMES, TAG_NAMES, values_of};
use super::ids::{IdBits, Ids};
use super::{Block, MemoryIndex};
use crate::error::Result;
use crate::interrupt::Pace;
use crate::matcher::{CompiledMatcher, CompiledMatchers, LabelMatchers};
use crate::narrow::{to_u16, to_u32};
use crate::subset::{BlockMatch, SlotBits, Subset, full_bits, is_zero, sort_by_entity};
use model::METRIC_NAME;

/// To find the group of a place in a chain costs as much as to look at this many groups.
const GROUPS_PER_PLACE: usize = 8;
/// With more conditions than this, those of a group are found by its tags.
const SCANNED_CONDITIONS_MAX: usize = 16;

/// The matchers of a tag over the ids of this index.
struct Condition {
    /// The tag, when the index has ever seen it.
    tag: Option<u32>,
    /// Whether entities without the tag match.
    matches_absent: bool,
    /// Which values of the tag match.
    ids: Ids,
}

impl Condition {
    /// Whether no entity satisfies it, so that none needs to be looked at.
    fn is_impossible(&self) -> bool {
        !self.matches_absent && (self.tag.is_none() || self.ids.is_none())
    }
}

/// The matchers of a search over the ids of this index.
pub(crate) struct Conditions {
    /// On the metric's name.
    names: Vec<Ids>,
    /// On tags; when there are many, by tag.
    tags: Vec<Condition>,
    /// How many conditions on tags fail for entities without the tag.
    required: usize,
}

impl Conditions {
    fn new(names: Vec<Ids>, mut tags: Vec<Condition>) -> Conditions {
        if SCANNED_CONDITIONS_MAX < tags.len() {
            tags.sort_by_key(|condition| condition.tag);
        }
        let required = tags.iter().filter(|condition| !condition.matches_absent).count();
        Conditions { names, tags, required }
    }

    /// Conditions that no series satisfies.
    fn impossible() -> Conditions {
        Conditions { names: vec![Ids::None], tags: Vec::new(), required: 0 }
    }

    fn is_impossible(&self) -> bool {
        matches!(self.names.as_slice(), [Ids::None])
    }

    /// Whether entities with these tags can match; then `tests` has the columns that must be tested.
    fn tests_of<'a>(&'a self, tags: &[u32], tests: &mut Vec<(usize, &'a Ids)>) -> bool {
        tests.clear();
        if SCANNED_CONDITIONS_MAX < self.tags.len() {
            return self.tests_by_tag(tags, tests);
        }
        for condition in &self.tags {
            let position = condition.tag.and_then(|tag| tags.iter().position(|one| *one == tag));
            match (position, &condition.ids) {
                (None, _) if condition.matches_absent => {}
                (None, _) | (Some(_), Ids::None) => return false,
                (Some(_), Ids::All) => {}
                (Some(position), ids) => tests.push((position, ids)),
            }
        }
        true
    }

    fn tests_by_tag<'a>(&'a self, tags: &[u32], tests: &mut Vec<(usize, &'a Ids)>) -> bool {
        let mut met = 0;
        for (position, tag) in tags.iter().enumerate() {
            let start = self.tags.partition_point(|condition| condition.tag < Some(*tag));
            let own = self.tags[start..].iter().take_while(|one| one.tag == Some(*tag));
            for condition in own {
                met += usize::from(!condition.matches_absent);
                match &condition.ids {
                    Ids::None => return false,
                    Ids::All => {}
                    ids => tests.push((position, ids)),
                }
            }
        }
        met == self.required
    }
}

/// Matchers of one label, without those whose values are looked up, and the ids that satisfy them.
pub(crate) struct TriedIds<'a> {
    /// The label's name.
    pub name: &'a str,
    /// Ids of values that came after these were tried are missing.
    pub bits: &'a IdBits,
}

impl MemoryIndex {
    /// The series that satisfy all matchers, by increasing ids.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub fn search(&self, matchers: &CompiledMatchers) -> Result<Vec<BlockMatch>> {
        let mut out = self.search_unsorted(matchers)?;
        sort_by_entity(&mut out);
        Ok(out)
    }

    /// The same, in no order.
    pub(crate) fn search_unsorted(&self, matchers: &CompiledMatchers) -> Result<Vec<BlockMatch>> {
        let mut pace = Pace::new(matchers.interrupt());
        let conditions = self.conditions(matchers, &mut |label, space| {
            Ids::of(label, &self.dictionary, space, &mut pace)
        })?;
        self.find(&conditions, matchers)
    }

    /// The series that satisfy matchers whose values were tried before, in no order; those whose
    /// values came later may be missing. `is_tried` tells the matchers that `tried` has the ids of.
    pub(crate) fn search_tried(
        &self,
        matchers: &CompiledMatchers,
        is_tried: &dyn Fn(&CompiledMatcher) -> bool,
        tried: &[TriedIds<'_>],
    ) -> Result<Vec<BlockMatch>> {
        let conditions = self.conditions(matchers, &mut |label, space| {
            let count = self.dictionary.count(space);
            let others = label.all.iter().filter(|one| !is_tried(one));
            let ids = Ids::looked_up(others, &self.dictionary, space);
            let tried = tried.iter().filter(|one| one.name == label.name());
            Ok(tried.fold(ids, |ids, one| ids.and(Ids::from_bits(one.bits.clone(), count), count)))
        })?;
        self.find(&conditions, matchers)
    }

    /// The series that satisfy all conditions, in no order.
    fn find(
        &self,
        conditions: &Conditions,
        matchers: &CompiledMatchers,
    ) -> Result<Vec<BlockMatch>> {
        let mut out = Vec::new();
        if conditions.is_impossible() {
            return Ok(out);
        }
        let mut pace = Pace::new(matchers.interrupt());
        let mut tests = Vec::new();
        let mut search_group = |group: u32| -> Result<()> {
            pace.add(1 + u64::from(self.groups[group as usize].block_count))?;
            if conditions.tests_of(self.tags(group), &mut tests)
                && let Some(columns) = self.columns_of_group(group, &conditions.names)
            {
                self.search_group(group, &columns, &tests, &mut out);
            }
            Ok(())
        };
        match self.few_groups(conditions) {
            Some(groups) => groups.into_iter().try_for_each(&mut search_group)?,
            None => (0..to_u32(self.groups.len())).try_for_each(&mut search_group)?,
        }
        Ok(out)
    }

    /// The groups that have a name or a tag that is asked for, when one of these is rare.
    fn few_groups(&self, conditions: &Conditions) -> Option<Vec<u32>> {
        let mut best: Option<Vec<u32>> = None;
        let mut max = self.groups.len() / GROUPS_PER_PLACE;
        for ids in &conditions.names {
            let Ids::One(id) = ids else { continue };
            if let Some(places) = self.chains.of_name(*id, max) {
                max = places.len();
                best = Some(places);
            }
        }
        for condition in conditions.tags.iter().filter(|one| !one.matches_absent) {
            let Some(tag) = condition.tag else { continue };
            if let Some(places) = self.chains.of_tag(tag, max) {
                max = places.len();
                best = Some(places);
            }
        }
        // Chains lead from the newest group to the oldest.
        let group_of = |place: &u32| {
            to_u32(self.groups.partition_point(|group| group.list_start <= *place)) - 1
        };
        best.map(|places| places.iter().rev().map(group_of).collect())
    }

    /// How many groups, blocks and strings a search looks at, at most.
    pub(crate) fn search_cost(&self, matchers: &CompiledMatchers) -> u64 {
        let strings = if matchers.are_exact() { 0 } else { self.entity_count() };
        self.groups.len() as u64 + self.blocks.len() as u64 + strings
    }

    /// How many values of a label there are.
    pub(crate) fn value_count(&self, label: &str) -> u32 {
        self.space_of(label).map_or(0, |space| self.dictionary.count(space))
    }

    /// How many groups and blocks there are.
    pub(crate) fn block_looks(&self) -> u64 {
        self.groups.len() as u64 + self.blocks.len() as u64
    }

    /// Calls `visit` with values of a label from the id `first` on, until it returns false.
    pub(crate) fn visit_values(
        &self,
        label: &str,
        first: u32,
        visit: &mut dyn FnMut(&str) -> bool,
    ) {
        let Some(space) = self.space_of(label) else { return };
        for id in first..self.dictionary.count(space) {
            if !visit(self.dictionary.get(space, id)) {
                return;
            }
        }
    }

    /// The space of a label's values, when the index has ever seen the label.
    fn space_of(&self, label: &str) -> Option<u32> {
        match label {
            METRIC_NAME => Some(METRIC_NAMES),
            _ => self.dictionary.find(TAG_NAMES, label).map(values_of),
        }
    }

    /// The conditions that matchers are here; `ids_of` evaluates those of a label over a space.
    fn conditions(
        &self,
        matchers: &CompiledMatchers,
        ids_of: &mut dyn FnMut(LabelMatchers<'_>, u32) -> Result<Ids>,
    ) -> Result<Conditions> {
        let mut names = Vec::new();
        let mut tags = Vec::new();
        for label in matchers.by_label() {
            if label.name() == METRIC_NAME {
                let ids = ids_of(label, METRIC_NAMES)?;
                if ids.is_none() {
                    return Ok(Conditions::impossible());
                }
                names.push(ids);
                continue;
            }
            let tag = self.dictionary.find(TAG_NAMES, label.name());
            let matches_absent = label.matches_absent();
            let ids = match tag {
                Some(tag) => ids_of(label, values_of(tag))?,
                // Holds for every series here.
                None if matches_absent => continue,
                None => Ids::None,
            };
            let condition = Condition { tag, matches_absent, ids };
            if condition.is_impossible() {
                return Ok(Conditions::impossible());
            }
            tags.push(condition);
        }
        Ok(Conditions::new(names, tags))
    }

    /// The columns whose metric name satisfies all conditions.
    fn columns_of_group(&self, group: u32, conditions: &[Ids]) -> Option<Subset> {
        let names = self.names(group);
        if conditions.is_empty() {
            return Some(Subset::all(to_u16(names.len())));
        }
        let matches = |id: &u32| conditions.iter().all(|ids| ids.contains(*id));
        if names.iter().all(matches) {
            return Some(Subset::all(to_u16(names.len())));
        }
        let found = names.iter().enumerate().filter(|(_, id)| matches(id));
        let columns: Vec<u16> = found.map(|(column, _)| to_u16(column)).collect();
        (!columns.is_empty()).then(|| Subset::from_sorted(&columns))
    }

    fn search_group(
        &self,
        group: u32,
        columns: &Subset,
        tests: &[(usize, &Ids)],
        out: &mut Vec<BlockMatch>,
    ) {
        let mut block_idx = self.groups[group as usize].first_block;
        while let Some(block) = self.blocks.get(block_idx as usize) {
            if let Some(slots) = self.search_block(block, tests) {
                out.push(BlockMatch {
                    block: self.block_ref(block),
                    columns: columns.clone(),
                    slots,
                    number: block_idx,
                });
            }
            block_idx = block.next;
        }
    }

    fn search_block(&self, block: &Block, tests: &[(usize, &Ids)]) -> Option<Subset> {
        let len = usize::from(block.len);
        if len == 0 {
            return None;
        }
        if tests.is_empty() {
            return Some(Subset::all(block.len));
        }
        let mut bits = full_bits(u32::from(block.len));
        for (position, ids) in tests {
            let column = self.columns[block.columns_start as usize + position];
            match self.cells.cells(column, len) {
                Cells::Constant(id) if ids.contains(id) => {}
                Cells::Constant(_) => return None,
                Cells::Bytes(cells) => retain(cells, ids, |cell| u32::from(*cell), &mut bits),
                Cells::Pairs(cells) => {
                    retain(cells, ids, |cell| u32::from(u16::from_le_bytes(*cell)), &mut bits);
                }
                Cells::Quads(cells) => {
                    retain(cells, ids, |cell| u32::from_le_bytes(*cell), &mut bits);
                }
            }
            if is_zero(&bits) {
                return None;
            }
        }
        Some(Subset::from_bits(&bits, u32::from(block.len)))
    }
}

/// Clears the bits of slots whose id is not wanted.
fn retain<T>(cells: &[T], ids: &Ids, id_of: impl Fn(&T) -> u32, bits: &mut SlotBits) {
    match ids {
        Ids::One(one) => retain_if(cells, bits, |cell| id_of(cell) == *one),
        Ids::Except(one) => retain_if(cells, bits, |cell| id_of(cell) != *one),
        _ => retain_if(cells, bits, |cell| ids.contains(id_of(cell))),
    }
}

#[inline]
fn retain_if<T>(cells: &[T], bits: &mut SlotBits, is_wanted: impl Fn(&T) -> bool) {
    for (chunk, word) in cells.chunks(64).zip(bits.iter_mut()) {
        if *word == 0 {
            continue;
        }
        let mut mask = 0u64;
        for (bit, cell) in chunk.iter().enumerate() {
            mask |= u64::from(is_wanted(cell)) << bit;
        }
        *word &= mask;
    }
}
