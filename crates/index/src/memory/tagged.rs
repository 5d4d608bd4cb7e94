//! The series that have a label, counted by group.

use super::dictionary::TAG_NAMES;
use super::{MemoryIndex, NONE};

impl MemoryIndex {
    /// Whether some series have a tag of this name.
    pub(crate) fn knows_tag(&self, name: &str) -> bool {
        self.dictionary.find(TAG_NAMES, name).is_some()
    }

    /// How many series have a tag of this name.
    pub(crate) fn series_with_tag(&self, name: &str) -> u64 {
        let Some(tag) = self.dictionary.find(TAG_NAMES, name) else { return 0 };
        let places = self.chains.of_tag(tag, usize::MAX).unwrap_or_default();
        let group_of =
            |place: u32| self.groups.partition_point(|group| group.list_start <= place) - 1;
        places.into_iter().map(|place| self.series_of_group(group_of(place))).sum()
    }

    fn series_of_group(&self, group: usize) -> u64 {
        let group = &self.groups[group];
        let (mut entities, mut next) = (0, group.first_block);
        while next != NONE {
            let block = &self.blocks[next as usize];
            entities += u64::from(block.len);
            next = block.next;
        }
        entities * u64::from(group.name_count)
    }
}
