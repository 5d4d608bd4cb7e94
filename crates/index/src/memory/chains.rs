//! From a metric's name or a tag's name to the groups that have it: chains through their lists.
//!
//! ```text
//! lists    [ names │ tags ][ names │ tags ] ...      of group 0, of group 1, ...
//! before      ▲  └───────────── the same name, one group earlier
//! last_of_name[id] ─────────────┘
//! ```
//!
//! One number per list entry finds the group of an odd series among a million without a look at
//! the others. Chains of names that most groups have are long, and walked only up to a bound.

/// No block.
pub(super) const NONE: u32 = u32::MAX;
use crate::narrow::to_u32;

/// Chains of equal ids through the groups' lists.
#[derive(Default)]
pub(super) struct Chains {
    /// By place in the lists, the place before it with the same name or tag.
    before: Vec<u32>,
    /// By id of a metric's name, its last place.
    last_of_name: Vec<u32>,
    /// By id of a tag's name, its last place.
    last_of_tag: Vec<u32>,
}

impl Chains {
    /// Appends a place for a metric's name.
    pub(super) fn push_name(&mut self, id: u32) {
        push(&mut self.before, &mut self.last_of_name, id);
    }

    /// Appends a place for a tag.
    pub(super) fn push_tag(&mut self, id: u32) {
        push(&mut self.before, &mut self.last_of_tag, id);
    }

    /// The places of a metric's name, when there are at most `max`.
    pub(super) fn of_name(&self, id: u32, max: usize) -> Option<Vec<u32>> {
        self.walk(&self.last_of_name, id, max)
    }

    /// The places of a tag, when there are at most `max`.
    pub(super) fn of_tag(&self, id: u32, max: usize) -> Option<Vec<u32>> {
        self.walk(&self.last_of_tag, id, max)
    }

    fn walk(&self, last: &[u32], id: u32, max: usize) -> Option<Vec<u32>> {
        let mut places = Vec::new();
        let mut next = last.get(id as usize).copied().unwrap_or(NONE);
        while next != NONE {
            if places.len() == max {
                return None;
            }
            places.push(next);
            next = self.before[next as usize];
        }
        Some(places)
    }

    /// Bytes of memory held.
    pub(super) fn memory_size(&self) -> usize {
        let entries = [&self.before, &self.last_of_name, &self.last_of_tag];
        entries.iter().map(|list| 4 * list.capacity()).sum()
    }
}

fn push(before: &mut Vec<u32>, last: &mut Vec<u32>, id: u32) {
    if last.len() <= id as usize {
        last.resize(id as usize + 1, NONE);
    }
    let place = to_u32(before.len());
    before.push(std::mem::replace(&mut last[id as usize], place));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_lead_through_all_places_of_an_id() {
        let mut chains = Chains::default();
        for round in 0..10 {
            chains.push_name(round);
            chains.push_tag(round);
            chains.push_tag(77);
        }
        assert_eq!(chains.of_name(3, 1), Some(vec![9]));
        assert_eq!(chains.of_tag(3, 5), Some(vec![10]));
        assert_eq!(
            chains.of_tag(77, 10).unwrap(),
            (0..10).rev().map(|i| i * 3 + 2).collect::<Vec<u32>>()
        );
        assert_eq!(chains.of_tag(77, 9), None);
        assert_eq!(chains.of_tag(76, 9), Some(Vec::new()));
        assert_eq!(chains.of_name(99, 9), Some(Vec::new()));
    }
}
