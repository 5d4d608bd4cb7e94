//! The series that match any of several sets of matchers, each once: what is held has the size of the
//! index at most, however many sets there are.

use crate::entity::EntityId;
use crate::subset::{BlockMatch, SlotBits, Subset, full_bits, sort_by_entity};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Matches by the first entity of their block.
#[derive(Default)]
pub(crate) struct MatchUnion {
    blocks: HashMap<EntityId, BlockUnion>,
}

/// The matches of one block.
enum BlockUnion {
    One(BlockMatch),
    /// A match of the block, and by column the slots of all.
    Many(BlockMatch, Vec<(u16, SlotBits)>),
}

impl MatchUnion {
    /// Adds the matches of one more set.
    pub(crate) fn add(&mut self, found: Vec<BlockMatch>) {
        for one in found {
            match self.blocks.entry(one.block.entity_start) {
                Entry::Vacant(entry) => _ = entry.insert(BlockUnion::One(one)),
                Entry::Occupied(mut entry) => entry.get_mut().add(one),
            }
        }
    }

    /// Takes all matches, by increasing entity. A block has several if its columns differ.
    pub(crate) fn take(&mut self) -> Vec<BlockMatch> {
        let mut out = Vec::with_capacity(self.blocks.len());
        for (_, block) in self.blocks.drain() {
            block.push_matches(&mut out);
        }
        sort_by_entity(&mut out);
        out
    }
}

impl BlockUnion {
    fn add(&mut self, found: BlockMatch) {
        if let BlockUnion::One(known) = self {
            if *known == found {
                return;
            }
            let mut columns = Vec::new();
            join(&mut columns, known);
            *self = BlockUnion::Many(known.clone(), columns);
        }
        if let BlockUnion::Many(block, columns) = self {
            join(columns, &found);
            // A later search of the memory index may know more slots of it.
            if block.block.len < found.block.len {
                block.block.len = found.block.len;
            }
        }
    }

    fn push_matches(self, out: &mut Vec<BlockMatch>) {
        let (block, mut columns) = match self {
            BlockUnion::One(found) => return out.push(found),
            BlockUnion::Many(block, columns) => (block, columns),
        };
        columns.sort_unstable_by_key(|(column, _)| *column);
        let mut by_slots: Vec<(SlotBits, Vec<u16>)> = Vec::new();
        for (column, bits) in columns {
            match by_slots.iter_mut().find(|(known, _)| *known == bits) {
                Some((_, columns)) => columns.push(column),
                None => by_slots.push((bits, vec![column])),
            }
        }
        for (bits, columns) in by_slots {
            let columns = match columns.len() == block.block.columns as usize {
                true => Subset::all(crate::narrow::to_u16(columns.len())),
                false => Subset::from_sorted(&columns),
            };
            out.push(block.restricted(columns, Subset::from_bits(&bits, block.block.len)));
        }
    }
}

/// Adds the slots of a match to its columns.
fn join(columns: &mut Vec<(u16, SlotBits)>, found: &BlockMatch) {
    let slots = bits_of(&found.slots, found.block.len);
    for column in &found.columns {
        match columns.iter_mut().find(|(known, _)| *known == column) {
            Some((_, known)) => known.iter_mut().zip(&slots).for_each(|(a, b)| *a |= b),
            None => columns.push((column, slots)),
        }
    }
}

fn bits_of(slots: &Subset, len: u32) -> SlotBits {
    if slots.is_all() {
        return full_bits(len);
    }
    let mut bits = [0; crate::subset::SLOT_WORDS];
    slots.iter().for_each(|slot| bits[usize::from(slot) / 64] |= 1 << (slot % 64));
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::BlockRef;
    use rng::Random;
    use std::collections::BTreeSet;

    fn random_match(prng: &mut Random) -> BlockMatch {
        let number = prng.index(5) as u32;
        let block = BlockRef {
            entity_start: number * 1024,
            series_start: number * 8192,
            capacity: 1024,
            len: 70,
            columns: 1 + number % 3,
        };
        let some = |prng: &mut Random, len: u16| match prng.index(3) {
            0 => Subset::all(len),
            _ => {
                let first = prng.index(usize::from(len)) as u16;
                Subset::from_sorted(&(first..len).step_by(1 + prng.index(7)).collect::<Vec<_>>())
            }
        };
        let columns = some(prng, block.columns as u16);
        BlockMatch { block, columns, slots: some(prng, 70), number }
    }

    #[test]
    fn every_series_is_there_once() {
        let mut prng = Random::seeded(1);
        for count in [0, 1, 2, 5, 30, 200] {
            let mut union = MatchUnion::default();
            let mut expected = BTreeSet::new();
            for _ in 0..count {
                let found = random_match(&mut prng);
                expected.extend(found.ordinals());
                union.add(vec![found]);
            }
            let found = union.take();
            assert!(found.is_sorted_by_key(|one| one.block.entity_start));
            let ordinals: Vec<u32> = found.iter().flat_map(BlockMatch::ordinals).collect();
            assert_eq!(ordinals.len(), expected.len(), "none twice");
            assert_eq!(ordinals.into_iter().collect::<BTreeSet<u32>>(), expected);
            assert!(found.iter().all(|one| !one.columns.is_empty() && !one.slots.is_empty()));
            assert!(union.take().is_empty());
        }
    }

    #[test]
    fn equal_matches_take_the_memory_of_one() {
        let mut prng = Random::seeded(2);
        let found = random_match(&mut prng);
        let mut union = MatchUnion::default();
        (0..1000).for_each(|_| union.add(vec![found.clone()]));
        assert_eq!(union.take(), [found]);
    }
}
