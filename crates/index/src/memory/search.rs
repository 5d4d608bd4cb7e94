//! Search in memory: a matcher is evaluated once per distinct value, columns are tested for the
//! resulting ids.

use super::cells::Cells;
use super::dictionary::{Dictionary, METRIC_NAMES, TAG_NAMES, values_of};
use super::{Block, MemoryIndex};
use crate::matcher::pattern::Pattern;
use crate::matcher::{CompiledMatcher, CompiledMatchers};
use crate::subset::{BlockMatch, SlotBits, Subset, full_bits, is_zero};
use model::METRIC_NAME;
use std::collections::BTreeSet;

/// A matcher over the ids of this index.
struct Condition {
    /// The tag, when the index has ever seen it.
    tag: Option<u32>,
    /// Whether entities without the tag match.
    matches_absent: bool,
    /// Which values of the tag match.
    ids: Ids,
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
            Pattern::NonEmpty if space != METRIC_NAMES => match matcher.is_negated {
                false => Ids::All,
                true => Ids::None,
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
        let (names, conditions) = self.conditions(matchers);
        let mut out = Vec::new();
        let mut tests = Vec::new();
        for group in 0..self.groups.len() as u32 {
            if self.tests_of_group(group, &conditions, &mut tests)
                && let Some(columns) = self.columns_of_group(group, &names)
            {
                self.search_group(group, &columns, &tests, &mut out);
            }
        }
        out.sort_unstable_by_key(|found| found.block.entity_start);
        out
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
            let ids = match tag {
                Some(tag) => Ids::of(matcher, &self.dictionary, values_of(tag)),
                None => Ids::None,
            };
            conditions.push(Condition { tag, matches_absent: matcher.matches_absent(), ids });
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
            return Some(Subset::all(names.len() as u16));
        }
        let matches = |id: &u32| conditions.iter().all(|ids| ids.contains(*id));
        if names.iter().all(matches) {
            return Some(Subset::all(names.len() as u16));
        }
        let found = names.iter().enumerate().filter(|(_, id)| matches(id));
        let columns: Vec<u16> = found.map(|(column, _)| column as u16).collect();
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
            block_idx = block.next;
            if let Some(slots) = self.search_block(block, tests) {
                out.push(BlockMatch {
                    block: self.block_ref(block),
                    columns: columns.clone(),
                    slots,
                });
            }
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

    /// Adds the names of the labels that matching series have.
    pub(crate) fn label_names(&self, matches: &[BlockMatch], out: &mut BTreeSet<String>) {
        let mut is_seen = vec![false; self.dictionary.count(TAG_NAMES) as usize];
        let mut last_group = super::NONE;
        let mut is_named = false;
        for found in matches {
            let (block, _) = self.place(found.block.entity_start);
            is_named = is_named || self.has_named_column(block, &found.columns);
            if block.group != last_group {
                last_group = block.group;
                self.tags(block.group).iter().for_each(|tag| is_seen[*tag as usize] = true);
            }
        }
        if is_named {
            out.insert(METRIC_NAME.to_string());
        }
        let seen = is_seen.iter().enumerate().filter(|(_, seen)| **seen);
        out.extend(seen.map(|(tag, _)| self.dictionary.get(TAG_NAMES, tag as u32).to_string()));
    }

    fn has_named_column(&self, block: &Block, columns: &Subset) -> bool {
        let names = self.names(block.group);
        let id_of = |column: u16| names[usize::from(column)];
        columns.iter().any(|c| !self.dictionary.get_bytes(METRIC_NAMES, id_of(c)).is_empty())
    }

    /// Adds the distinct non-empty values that matching series have for a label.
    pub(crate) fn label_values(
        &self,
        label: &str,
        matches: &[BlockMatch],
        out: &mut BTreeSet<String>,
    ) {
        let space = match label {
            METRIC_NAME => METRIC_NAMES,
            _ => match self.dictionary.find(TAG_NAMES, label) {
                Some(tag) => values_of(tag),
                None => return,
            },
        };
        let mut is_seen = vec![false; self.dictionary.count(space) as usize];
        for found in matches {
            let (block, _) = self.place(found.block.entity_start);
            if space == METRIC_NAMES {
                let names = self.names(block.group);
                found.columns.iter().for_each(|c| is_seen[names[usize::from(c)] as usize] = true);
                continue;
            }
            let wanted = self.tags_with_columns(block).find(|(tag, _)| values_of(*tag) == space);
            if let Some((_, column)) = wanted {
                for slot in found.slots.iter() {
                    is_seen[self.cells.get(column, usize::from(slot)) as usize] = true;
                }
            }
        }
        let seen = is_seen.iter().enumerate().filter(|(_, seen)| **seen);
        let values = seen.map(|(id, _)| self.dictionary.get(space, id as u32));
        out.extend(values.filter(|value| !value.is_empty()).map(str::to_string));
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
