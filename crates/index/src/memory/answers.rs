//! What matching series in memory have: names of labels and values of one label, sorted.

use super::dictionary::{METRIC_NAMES, TAG_NAMES, values_of};
use super::{Block, MemoryIndex};
use crate::subset::{BlockMatch, Subset};
use model::METRIC_NAME;

impl MemoryIndex {
    /// The names of the labels that matching series have, sorted.
    pub(crate) fn label_names(&self, matches: &[BlockMatch]) -> Vec<String> {
        let mut is_seen = vec![false; self.dictionary.count(TAG_NAMES) as usize];
        let mut last_group = super::NONE;
        let mut is_named = false;
        for found in matches {
            let block = self.matched_block(found);
            is_named = is_named || self.has_named_column(block, &found.columns);
            if block.group != last_group {
                last_group = block.group;
                self.tags(block.group).iter().for_each(|tag| is_seen[*tag as usize] = true);
            }
        }
        let mut out = self.dictionary.marked(TAG_NAMES, &is_seen);
        if is_named {
            let at = out.partition_point(|name| name.as_str() < METRIC_NAME);
            out.insert(at, METRIC_NAME.to_string());
        }
        out
    }

    fn has_named_column(&self, block: &Block, columns: &Subset) -> bool {
        let names = self.names(block.group);
        let id_of = |column: u16| names[usize::from(column)];
        columns.iter().any(|c| !self.dictionary.get_bytes(METRIC_NAMES, id_of(c)).is_empty())
    }

    /// The distinct non-empty values that matching series have for a label, sorted.
    pub(crate) fn label_values(&self, label: &str, matches: &[BlockMatch]) -> Vec<String> {
        let space = match label {
            METRIC_NAME => METRIC_NAMES,
            _ => match self.dictionary.find(TAG_NAMES, label) {
                Some(tag) => values_of(tag),
                None => return Vec::new(),
            },
        };
        let mut is_seen = vec![false; self.dictionary.count(space) as usize];
        for found in matches {
            let block = self.matched_block(found);
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
        self.dictionary.marked(space, &is_seen)
    }

    /// The block of a match: where the search found it, most often.
    pub(super) fn matched_block(&self, found: &BlockMatch) -> &Block {
        let hinted = self.blocks.get(found.number as usize);
        match hinted.filter(|block| block.entity_start == found.block.entity_start) {
            Some(block) => block,
            None => self.place(found.block.entity_start).0,
        }
    }
}
