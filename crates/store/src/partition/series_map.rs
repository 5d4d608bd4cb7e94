//! From the hash of a row's raw key to the series its values belong to: the one look-up a known
//! row costs.
//!
//! Open addressing, 16 bytes a slot, at most three quarters full. The full 128-bit hash is cut to 96 bits:
//! the low 64 choose the slot and are compared, 32 more are compared too. The hash is keyed with a
//! secret of the process, so 40 million keys collide with probability 1e-14 and nobody can help it.
//!
//! Look-ups come in groups: [`SeriesMap::find_group`] first loads the home slot of every row of
//! the group, which lets the processor wait for all the cache misses at once, and then compares.

use crate::base::narrow::{low_half, to_usize};

/// Rows that are looked up together; enough to overlap the misses of one group.
pub const GROUP_ROWS: usize = 32;

/// Where a known row goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// All values to this entity, in order.
    Entity(u32),
    /// To several series; an index into the partition's list of piece lists.
    Pieces(u32),
}

#[derive(Clone, Copy)]
struct Slot {
    low: u64,
    high: u32,
    target: u32,
}

const EMPTY: u32 = u32::MAX;
/// Set in a slot's target when it is [`Target::Pieces`].
const PIECES: u32 = 1 << 31;
const FREE_SLOT: Slot = Slot { low: 0, high: 0, target: EMPTY };
const SLOTS_MIN: usize = 1024;

/// The map of one partition.
#[derive(Default)]
pub struct SeriesMap {
    slots: Vec<Slot>,
    len: usize,
}

impl SeriesMap {
    /// An empty map.
    pub fn new() -> SeriesMap {
        SeriesMap { slots: Vec::new(), len: 0 }
    }

    /// How many keys are known.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no key is known.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory in use.
    pub fn size(&self) -> usize {
        self.slots.len() * size_of::<Slot>()
    }

    /// Slots, used or not.
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// The keys in some slots, as far as they are kept, with their targets.
    pub fn keys_in(&self, slots: std::ops::Range<usize>) -> Vec<(u128, Target)> {
        let end = slots.end.min(self.slots.len());
        let used = self.slots[slots.start.min(end)..end].iter().filter(|s| s.target != EMPTY);
        used.map(|s| (u128::from(s.low) | u128::from(s.high) << 64, s.target())).collect()
    }

    /// Bytes that the next growth will need at once, if it is near.
    pub fn growth_ahead(&self) -> usize {
        let is_near = self.slots.len() * 2 <= self.len * 3;
        if is_near { 2 * self.size() } else { 0 }
    }

    /// Looks up at most [`GROUP_ROWS`] hashes; unknown ones give `None`.
    #[inline]
    pub fn find_group(&self, hashes: &[u128], found: &mut [Option<Target>; GROUP_ROWS]) {
        assert!(hashes.len() <= GROUP_ROWS);
        if self.slots.is_empty() {
            found[..hashes.len()].fill(None);
            return;
        }
        let mask = self.slots.len() - 1;
        let mut home = [FREE_SLOT; GROUP_ROWS];
        for (slot, hash) in home.iter_mut().zip(hashes) {
            *slot = self.slots[to_usize(low(*hash)) & mask];
        }
        for ((found, slot), hash) in found.iter_mut().zip(&home).zip(hashes) {
            *found = match slot.matches(*hash) {
                true => Some(slot.target()),
                false if slot.target == EMPTY => None,
                false => self.find_after_home(*hash),
            };
        }
    }

    /// Which of some hashes are not there, by their places.
    pub fn unknown(&self, hashes: impl Iterator<Item = u128>) -> Vec<usize> {
        let (mut group, mut found) = ([0; GROUP_ROWS], [None; GROUP_ROWS]);
        let (mut unknown, mut start) = (Vec::new(), 0);
        let mut hashes = hashes.fuse();
        loop {
            let mut len = 0;
            for (slot, hash) in group.iter_mut().zip(hashes.by_ref()) {
                *slot = hash;
                len += 1;
            }
            if len == 0 {
                return unknown;
            }
            self.find_group(&group[..len], &mut found);
            let absent = found[..len].iter().enumerate().filter(|(_, found)| found.is_none());
            unknown.extend(absent.map(|(at, _)| start + at));
            start += len;
        }
    }

    /// Adds a key that is not there.
    pub fn insert(&mut self, hash: u128, target: Target) {
        if self.slots.len() * 3 < (self.len + 1) * 4 {
            self.grow();
        }
        let target = match target {
            Target::Entity(entity) => {
                assert!(entity < PIECES, "entity ids fit 31 bits");
                entity
            }
            Target::Pieces(idx) => {
                assert!(idx < PIECES - 1, "piece lists fit 31 bits");
                idx | PIECES
            }
        };
        let slot = Slot { low: low(hash), high: high(hash), target };
        insert_slot(&mut self.slots, slot);
        self.len += 1;
        debug_assert!(self.len < self.slots.len(), "a look-up ends at an empty slot");
    }

    /// Removes the keys whose target is not to be kept.
    pub fn retain(&mut self, is_kept: impl Fn(Target) -> bool) {
        if self.slots.iter().all(|slot| slot.target == EMPTY || is_kept(slot.target())) {
            return;
        }
        let mut kept = vec![FREE_SLOT; self.slots.len()];
        self.len = 0;
        for slot in self.slots.iter().filter(|s| s.target != EMPTY && is_kept(s.target())) {
            insert_slot(&mut kept, *slot);
            self.len += 1;
        }
        self.slots = kept;
    }

    fn find_after_home(&self, hash: u128) -> Option<Target> {
        let mask = self.slots.len() - 1;
        let mut idx = (to_usize(low(hash)) + 1) & mask;
        loop {
            let slot = &self.slots[idx];
            if slot.target == EMPTY {
                return None;
            }
            if slot.matches(hash) {
                return Some(slot.target());
            }
            idx = (idx + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let mut larger = vec![FREE_SLOT; (self.slots.len() * 2).max(SLOTS_MIN)];
        for slot in self.slots.iter().filter(|slot| slot.target != EMPTY) {
            insert_slot(&mut larger, *slot);
        }
        self.slots = larger;
    }
}

/// The half of a hash that chooses the slot.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "half of it is asked for")]
fn low(hash: u128) -> u64 {
    hash as u64
}

/// What is compared besides.
#[inline(always)]
fn high(hash: u128) -> u32 {
    low_half(low(hash >> 64))
}

impl Slot {
    #[inline]
    fn matches(&self, hash: u128) -> bool {
        self.low == low(hash) && self.high == high(hash) && self.target != EMPTY
    }

    #[inline]
    fn target(&self) -> Target {
        if self.target & PIECES == 0 {
            Target::Entity(self.target)
        } else {
            Target::Pieces(self.target & !PIECES)
        }
    }
}

fn insert_slot(slots: &mut [Slot], slot: Slot) {
    debug_assert!(slots.len().is_power_of_two(), "a mask chooses the slot");
    debug_assert!(slot.target != EMPTY, "only keys are put in");
    let mask = slots.len() - 1;
    let mut idx = to_usize(slot.low) & mask;
    while slots[idx].target != EMPTY {
        idx = (idx + 1) & mask;
    }
    slots[idx] = slot;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(map: &SeriesMap, hash: u128) -> Option<Target> {
        let mut found = [None; GROUP_ROWS];
        map.find_group(&[hash], &mut found);
        found[0]
    }

    #[test]
    fn keys_are_found_after_growth_and_collisions() {
        let mut map = SeriesMap::new();
        assert_eq!(find(&map, 7), None);
        // Keys that share the low bits, so that every one probes past its home.
        let key = |i: u128| (i << 64) | ((i & 3) << 40) | 5;
        for i in 0..600u128 {
            map.insert(key(i), Target::Entity(i as u32));
        }
        for i in 0..5000u128 {
            let hash = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            map.insert(hash, Target::Pieces(i as u32));
            assert_eq!(find(&map, hash), Some(Target::Pieces(i as u32)));
        }
        for i in 0..600u128 {
            assert_eq!(find(&map, key(i)), Some(Target::Entity(i as u32)));
        }
        assert_eq!(find(&map, key(600)), None);
        assert_eq!(map.len(), 5600);
        map.retain(|target| !matches!(target, Target::Entity(entity) if entity % 2 == 0));
        assert_eq!(map.len(), 5300);
        for i in 0..600u128 {
            let wanted = (i % 2 == 1).then_some(Target::Entity(i as u32));
            assert_eq!(find(&map, key(i)), wanted);
        }
        // More than a group, and a last one that is not full.
        let unknown = map.unknown((0..700).map(key));
        let wanted = (0..700).filter(|i| i % 2 == 0 || 600 <= *i).collect::<Vec<usize>>();
        assert_eq!(unknown, wanted);
        assert_eq!(SeriesMap::new().unknown([7, 8].into_iter()), [0, 1]);
        assert!(map.unknown(std::iter::empty()).is_empty());
    }
}
