//! Which slots or which columns of a block match, and the product of both.

use crate::entity::{BLOCK_SLOTS_MAX, BlockRef};
use crate::narrow::to_u16;

/// Words of a bitmap over a block's slots.
pub(crate) const SLOT_WORDS: usize = BLOCK_SLOTS_MAX / 64;

/// One bit per slot of a block.
pub(crate) type SlotBits = [u64; SLOT_WORDS];

/// Subsets of up to this size are kept as a list: 16 bytes against a bitmap's 128.
const LIST_LEN_MAX: usize = 8;

/// A set of indexes `0..len` (slots or columns of a block), iterated in increasing order.
#[derive(Clone, PartialEq, Eq)]
pub struct Subset {
    kind: Kind,
}

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// Every index below this.
    All(u16),
    /// These, strictly increasing.
    List(Box<[u16]>),
    /// Those whose bit is set; only for slots.
    Bits(Box<SlotBits>),
}

impl Subset {
    /// Every index below `len`.
    pub fn all(len: u16) -> Subset {
        Subset { kind: Kind::All(len) }
    }

    /// These indexes, which must be strictly increasing.
    pub fn from_sorted(indexes: &[u16]) -> Subset {
        assert!(indexes.is_sorted_by(|a, b| a < b), "strictly increasing");
        Subset { kind: Kind::List(indexes.into()) }
    }

    /// The slots whose bit is set; `len` is the block's.
    pub(crate) fn from_bits(bits: &SlotBits, len: u32) -> Subset {
        let count = count_bits(bits);
        if count == len {
            return Subset::all(to_u16(len as usize));
        }
        if LIST_LEN_MAX < count as usize {
            return Subset { kind: Kind::Bits(Box::new(*bits)) };
        }
        let mut list = Vec::with_capacity(count as usize);
        for_each_bit(bits, |slot| list.push(slot));
        Subset { kind: Kind::List(list.into_boxed_slice()) }
    }

    /// How many indexes are in the set.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::All(len) => usize::from(*len),
            Kind::List(list) => list.len(),
            Kind::Bits(bits) => count_bits(bits) as usize,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the set holds besides its own.
    fn heap_size(&self) -> usize {
        match &self.kind {
            Kind::All(_) => 0,
            Kind::List(list) => size_of_val(&**list),
            Kind::Bits(_) => size_of::<SlotBits>(),
        }
    }

    /// Whether the set is every index of the block: then it needs no test.
    pub fn is_all(&self) -> bool {
        matches!(self.kind, Kind::All(_))
    }

    /// Whether `index` is in the set.
    pub fn contains(&self, index: u16) -> bool {
        match &self.kind {
            Kind::All(len) => index < *len,
            Kind::List(list) => list.binary_search(&index).is_ok(),
            Kind::Bits(bits) => {
                let word = bits.get(usize::from(index) / 64).copied().unwrap_or(0);
                (word >> (index % 64)) & 1 == 1
            }
        }
    }

    /// The indexes, increasing.
    pub fn iter(&self) -> SubsetIter<'_> {
        SubsetIter(match &self.kind {
            Kind::All(len) => Iter::All(0..*len),
            Kind::List(list) => Iter::List(list.iter()),
            Kind::Bits(bits) => Iter::Bits { bits, word_idx: 0, word: bits[0] },
        })
    }

    /// The indexes, increasing.
    pub fn to_vec(&self) -> Vec<u16> {
        self.iter().collect()
    }
}

impl std::fmt::Debug for Subset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::All(len) => write!(f, "all {len}"),
            _ => f.debug_set().entries(self.iter()).finish(),
        }
    }
}

impl<'a> IntoIterator for &'a Subset {
    type Item = u16;
    type IntoIter = SubsetIter<'a>;

    fn into_iter(self) -> SubsetIter<'a> {
        self.iter()
    }
}

/// Iterates over a [`Subset`].
#[derive(Clone)]
pub struct SubsetIter<'a>(Iter<'a>);

#[derive(Clone)]
enum Iter<'a> {
    All(std::ops::Range<u16>),
    List(std::slice::Iter<'a, u16>),
    Bits { bits: &'a SlotBits, word_idx: usize, word: u64 },
}

impl Iterator for SubsetIter<'_> {
    type Item = u16;

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "slots have 16 bits")]
    fn next(&mut self) -> Option<u16> {
        match &mut self.0 {
            Iter::All(range) => range.next(),
            Iter::List(list) => list.next().copied(),
            Iter::Bits { bits, word_idx, word } => {
                while *word == 0 {
                    *word_idx += 1;
                    *word = *bits.get(*word_idx)?;
                }
                let slot = *word_idx * 64 + word.trailing_zeros() as usize;
                *word &= *word - 1;
                Some(slot as u16)
            }
        }
    }
}

/// The series of one block that match: every column in `columns` with every slot in `slots`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockMatch {
    /// The block.
    pub block: BlockRef,
    /// The metrics, never empty.
    pub columns: Subset,
    /// The entities, never empty.
    pub slots: Subset,
    /// Where the part that found the block keeps it, so that it need not be looked for again; a
    /// hint, as the part may be gone by the time it is read.
    pub(crate) number: u32,
}

impl BlockMatch {
    /// Some of the series of this match.
    pub fn restricted(&self, columns: Subset, slots: Subset) -> BlockMatch {
        BlockMatch { block: self.block, columns, slots, number: self.number }
    }

    /// Bytes of memory that the match holds besides its own.
    pub fn memory_size(&self) -> usize {
        self.columns.heap_size() + self.slots.heap_size()
    }

    /// How many series match.
    pub fn series_count(&self) -> u64 {
        self.columns.len() as u64 * self.slots.len() as u64
    }

    /// The ordinals of the matching series: column by column, increasing.
    pub fn ordinals(&self) -> impl Iterator<Item = u32> + '_ {
        self.columns
            .iter()
            .flat_map(move |column| self.slots.iter().map(move |s| self.block.ordinal(column, s)))
    }
}

/// Sorts matches by increasing entity. They are large and often nearly sorted, so small keys are
/// sorted first, then each match moves once.
pub fn sort_by_entity(matches: &mut [BlockMatch]) {
    if matches.is_sorted_by_key(|found| found.block.entity_start) {
        return;
    }
    let keys = matches.iter().zip(0u32..).map(|(m, idx)| (m.block.entity_start, idx));
    let mut keys: Vec<(u32, u32)> = keys.collect();
    keys.sort_unstable();
    let mut places = vec![0u32; keys.len()];
    for ((_, from), place) in keys.iter().zip(0u32..) {
        places[*from as usize] = place;
    }
    for idx in 0..matches.len() {
        // Each swap brings one match to its place for good.
        while places[idx] as usize != idx {
            let place = places[idx] as usize;
            matches.swap(idx, place);
            places.swap(idx, place);
        }
    }
    debug_assert!(matches.is_sorted_by_key(|found| found.block.entity_start));
}

/// Bits `0..len` set.
pub(crate) fn full_bits(len: u32) -> SlotBits {
    debug_assert!(len as usize <= BLOCK_SLOTS_MAX);
    std::array::from_fn(|word_idx| {
        let rest = (len as usize).saturating_sub(word_idx * 64);
        if 64 <= rest { u64::MAX } else { (1u64 << rest) - 1 }
    })
}

pub(crate) fn count_bits(bits: &SlotBits) -> u32 {
    bits.iter().map(|word| word.count_ones()).sum()
}

pub(crate) fn is_zero(bits: &SlotBits) -> bool {
    bits.iter().fold(0, |any, word| any | word) == 0
}

#[expect(clippy::cast_possible_truncation, reason = "slots have 16 bits")]
pub(crate) fn for_each_bit(bits: &SlotBits, mut visit: impl FnMut(u16)) {
    for (word_idx, word) in bits.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            visit((word_idx * 64) as u16 + word.trailing_zeros() as u16);
            word &= word - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_tells_the_same() {
        for (len, step) in [(1024u32, 1usize), (1024, 3), (1024, 300), (700, 7), (65, 64), (1, 1)] {
            let mut bits = [0; SLOT_WORDS];
            let wanted: Vec<u16> = (0..len as u16).step_by(step).collect();
            wanted.iter().for_each(|s| bits[usize::from(*s) / 64] |= 1 << (s % 64));
            let subset = Subset::from_bits(&bits, len);
            assert_eq!(subset.to_vec(), wanted);
            assert_eq!(subset.len(), wanted.len());
            assert_eq!(subset.is_all(), step == 1);
            for slot in 0..len as u16 + 3 {
                assert_eq!(subset.contains(slot), wanted.contains(&slot), "{slot} of {subset:?}");
            }
        }
    }

    #[test]
    fn matches_are_sorted_whatever_their_order() {
        for (len, step) in
            [(0u32, 1u32), (1, 1), (2, 1), (1000, 1), (1000, 7), (1000, 999), (1000, 501)]
        {
            let block = |idx: u32| BlockRef {
                entity_start: idx * step % len * 3,
                series_start: idx,
                capacity: 1,
                len: 1,
                columns: 1,
            };
            let one = |idx| BlockMatch {
                block: block(idx),
                columns: Subset::all(1),
                slots: Subset::all(1),
                number: idx,
            };
            let mut matches: Vec<BlockMatch> = (0..len).map(one).collect();
            let mut wanted = matches.clone();
            wanted.sort_by_key(|found| found.block.entity_start);
            sort_by_entity(&mut matches);
            assert!(matches == wanted, "{len} {step}");
        }
    }

    #[test]
    fn full_bits_have_len_bits() {
        for len in [0, 1, 63, 64, 65, 1000, 1024] {
            assert_eq!(count_bits(&full_bits(len)), len);
        }
    }
}
