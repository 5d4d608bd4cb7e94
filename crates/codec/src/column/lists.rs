//! Lists of timestamps that slots share: series that are scraped together have one.

use std::collections::BTreeMap;
use std::ops::Range;

/// The different lists of a column, and which slot has which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Where each list first occurs among the timestamps, in order of occurrence.
    pub ranges: Vec<Range<usize>>,
    /// For each slot 0 if it is empty, else 1 + the index of its list.
    pub ids: Vec<u32>,
    /// Whether some list belongs to more than one slot.
    pub is_shared: bool,
}

impl Lists {
    /// Finds the lists that are the same.
    ///
    /// # Panics
    /// When the timestamps of a slot are not strictly increasing.
    pub fn find(timestamps: &[i64], lens: &[u32]) -> Lists {
        let mut lists = Lists::default();
        // Few lists agree in this key without being the same; a list that does is stored again.
        let mut seen: BTreeMap<(usize, i64, i64, i64), usize> = BTreeMap::new();
        let (mut start, mut index) = (0, 0);
        for &len in lens {
            let range = start..start + len as usize;
            start = range.end;
            let list = &timestamps[range.clone()];
            let [first, ..] = list else {
                lists.ids.push(0);
                continue;
            };
            // Most often it is the list of the slot before, which needs no search.
            if !lists.is_at(index, timestamps, list) {
                let key = (list.len(), *first, list[list.len() - 1], list[list.len() / 2]);
                index = *seen.entry(key).or_insert(lists.ranges.len());
            }
            if lists.is_at(index, timestamps, list) {
                lists.is_shared = true;
            } else {
                assert!(list.is_sorted_by(|a, b| a < b), "timestamps of a slot do not increase");
                index = lists.ranges.len();
                lists.ranges.push(range);
            }
            lists.ids.push(index as u32 + 1);
        }
        lists
    }

    fn is_at(&self, index: usize, timestamps: &[i64], list: &[i64]) -> bool {
        self.ranges.get(index).is_some_and(|range| &timestamps[range.clone()] == list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(timestamps: &[i64], lens: &[u32], ids: &[u32], is_shared: bool) {
        let lists = Lists::find(timestamps, lens);
        assert_eq!(lists.ids, ids);
        assert_eq!(lists.is_shared, is_shared);
        let count = ids.iter().copied().max().unwrap_or(0) as usize;
        assert_eq!(lists.ranges.len(), count);
    }

    #[test]
    fn equal_lists_are_found() {
        check(&[], &[], &[], false);
        check(&[], &[0, 0], &[0, 0], false);
        check(&[1, 2, 3], &[2, 0, 1], &[1, 0, 2], false);
        check(&[1, 2, 1, 2, 5, 1, 2, 5, 6], &[2, 2, 1, 2, 1, 1], &[1, 1, 2, 1, 2, 3], true);
    }

    #[test]
    fn lists_that_agree_in_the_key_stay_apart() {
        let lens = [5, 5, 5, 5];
        let timestamps = [1, 2, 5, 7, 9, 1, 3, 5, 7, 9, 1, 2, 5, 7, 9, 1, 3, 5, 7, 9];
        let lists = Lists::find(&timestamps, &lens);
        for (slot, &id) in lists.ids.iter().enumerate() {
            let range = lists.ranges[id as usize - 1].clone();
            assert_eq!(timestamps[range], timestamps[slot * 5..slot * 5 + 5]);
        }
    }
}
