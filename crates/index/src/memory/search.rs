//! Search in memory: a matcher is evaluated once per distinct value, columns are tested for the
//! resulting ids.

use super::cells::Cells;
use super::dictionary::{Dictionary, METRIC_NAMES, TAG_NAMES, values_of};
use super::{Block, MemoryIndex};
use crate::matcher::pattern::Pattern;
use crate::matcher::{CompiledMatcher, CompiledMatchers};
use crate::narrow::{to_u16, to_u32};
use crate::subset::{BlockMatch, SlotBits, Subset, full_bits, is_zero, sort_by_entity};
use model::METRIC_NAME;

/// To find the group of a place in a chain costs as much as to look at this many groups.
const GROUPS_PER_PLACE: usize = 8;

/// A matcher over the ids of this index.
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

/// A set of ids of one space.
enum Ids {
    All,
    None,
    One(u32),
    Except(u32),
    Bits(Vec<u64>),
}

impl Ids {
    fn is_none(&self) -> bool {
        matches!(self, Ids::None)
    }

    fn contains(&self, id: u32) -> bool {
        match self {
            Ids::All => true,
            Ids::None => false,
            Ids::One(one) => id == *one,
            Ids::Except(one) => id != *one,
            Ids::Bits(bits) => (bits[id as usize / 64] >> (id % 64)) & 1 == 1,
        }
    }

    /// The ids of the strings of a space that satisfy a matcher.
    fn of(matcher: &CompiledMatcher, dictionary: &Dictionary, space: u32) -> Ids {
        let count = dictionary.count(space);
        match &matcher.pattern {
            Pattern::Exact(set) if set.len() == 1 => {
                match (dictionary.find(space, &set[0]), matcher.is_negated) {
                    (Some(id), false) => Ids::One(id),
                    (Some(id), true) => Ids::Except(id),
                    (None, false) => Ids::None,
                    (None, true) => Ids::All,
                }
            }
            Pattern::Exact(set) if !matcher.is_negated && set.len() < count as usize => {
                Ids::from_ids(set.iter().filter_map(|one| dictionary.find(space, one)), count)
            }
            // No tag has an empty value; metrics without a name have.
            Pattern::NonEmpty => match (dictionary.find(space, ""), matcher.is_negated) {
                (Some(id), false) => Ids::Except(id),
                (Some(id), true) => Ids::One(id),
                (None, false) => Ids::All,
                (None, true) => Ids::None,
            },
            _ => Ids::from_ids(
                (0..count).filter(|id| matcher.matches(dictionary.get(space, *id))),
                count,
            ),
        }
    }

    fn from_ids(ids: impl Iterator<Item = u32>, count: u32) -> Ids {
        let mut bits = vec![0u64; (count as usize).div_ceil(64)];
        let mut found = 0;
        for id in ids {
            bits[id as usize / 64] |= 1 << (id % 64);
            found += 1;
        }
        match found {
            0 => Ids::None,
            _ if found == count => Ids::All,
            _ => Ids::Bits(bits),
        }
    }
}

impl MemoryIndex {
    /// The series that satisfy all matchers, by increasing ids.
    pub fn search(&self, matchers: &CompiledMatchers) -> Vec<BlockMatch> {
        let mut out = self.search_unsorted(matchers);
        sort_by_entity(&mut out);
        out
    }

    /// The same, in no order.
    pub(crate) fn search_unsorted(&self, matchers: &CompiledMatchers) -> Vec<BlockMatch> {
        let (names, conditions) = self.conditions(matchers);
        let mut out = Vec::new();
        if names.iter().any(Ids::is_none) || conditions.iter().any(Condition::is_impossible) {
            return out;
        }
        let mut tests = Vec::new();
        let mut search_group = |group: u32| {
            if self.tests_of_group(group, &conditions, &mut tests)
                && let Some(columns) = self.columns_of_group(group, &names)
            {
                self.search_group(group, &columns, &tests, &mut out);
            }
        };
        match self.few_groups(&names, &conditions) {
            Some(groups) => groups.into_iter().for_each(&mut search_group),
            None => (0..to_u32(self.groups.len())).for_each(&mut search_group),
        }
        out
    }

    /// The groups that have a name or a tag that is asked for, when one of these is rare.
    fn few_groups(&self, names: &[Ids], conditions: &[Condition]) -> Option<Vec<u32>> {
        let mut best: Option<Vec<u32>> = None;
        let mut max = self.groups.len() / GROUPS_PER_PLACE;
        for ids in names {
            let Ids::One(id) = ids else { continue };
            if let Some(places) = self.chains.of_name(*id, max) {
                max = places.len();
                best = Some(places);
            }
        }
        for condition in conditions.iter().filter(|one| !one.matches_absent) {
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

    /// Conditions on the metric's name, and those on tags.
    fn conditions(&self, matchers: &CompiledMatchers) -> (Vec<Ids>, Vec<Condition>) {
        let mut names = Vec::new();
        let mut conditions = Vec::new();
        for matcher in matchers.iter() {
            if matcher.name == METRIC_NAME {
                names.push(Ids::of(matcher, &self.dictionary, METRIC_NAMES));
                continue;
            }
            let tag = self.dictionary.find(TAG_NAMES, &matcher.name);
            let matches_absent = matcher.matches_absent();
            let ids = match tag {
                Some(tag) => Ids::of(matcher, &self.dictionary, values_of(tag)),
                // Holds for every series here.
                None if matches_absent => continue,
                None => Ids::None,
            };
            conditions.push(Condition { tag, matches_absent, ids });
        }
        (names, conditions)
    }

    /// Whether entities of a group can match; then `tests` has the columns to be tested still.
    fn tests_of_group<'a>(
        &self,
        group: u32,
        conditions: &'a [Condition],
        tests: &mut Vec<(usize, &'a Ids)>,
    ) -> bool {
        tests.clear();
        let tags = self.tags(group);
        for condition in conditions {
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
