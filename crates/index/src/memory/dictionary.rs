//! Strings to small ids and back, without an object per string.
//!
//! Ids are dense per *space*: the names of tags are one space, the names of metrics another, and
//! the values of each tag one more. All spaces share one text, one list of entries and one hash
//! table, so that a million labels with one value each cost no more than one with a million.

use crate::narrow::to_u32;
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The space of tag names.
pub(crate) const TAG_NAMES: u32 = 0;
/// The space of metric names.
pub(crate) const METRIC_NAMES: u32 = 1;

/// The space of the values of a tag.
pub(crate) fn values_of(tag: u32) -> u32 {
    tag + 2
}

/// Bytes of all strings: offsets are `u32`.
pub(crate) const TEXT_SIZE_MAX: usize = u32::MAX as usize;

#[derive(Default)]
pub(crate) struct Dictionary {
    /// All strings, in order of arrival.
    text: Vec<u8>,
    /// One per string; it ends where the next one starts.
    entries: Vec<Entry>,
    /// Indexes into `entries`, by space and string.
    table: HashTable<u32>,
    /// Per space: index into `entries` of each id.
    spaces: Vec<Space>,
}

/// The indexes into `entries` of a space's ids. A label that one series has, and no other, has one
/// value, and needs no list.
#[derive(Default)]
enum Space {
    #[default]
    Empty,
    One(u32),
    Many(Vec<u32>),
}

impl Space {
    #[inline]
    fn entries(&self) -> &[u32] {
        match self {
            Space::Empty => &[],
            Space::One(entry_idx) => std::slice::from_ref(entry_idx),
            Space::Many(list) => list,
        }
    }

    fn push(&mut self, entry_idx: u32) {
        match self {
            Space::Empty => *self = Space::One(entry_idx),
            Space::One(first) => *self = Space::Many(vec![*first, entry_idx]),
            Space::Many(list) => list.push(entry_idx),
        }
    }

    /// Bytes of memory held.
    fn memory_size(&self) -> usize {
        let list_size = match self {
            Space::Many(list) => 4 * list.capacity(),
            _ => 0,
        };
        size_of::<Space>() + list_size
    }
}

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    space: u32,
    id: u32,
    /// Upper half of the hash; the table grows without touching the text.
    hash: u32,
}

fn hash_of(space: u32, text: &str) -> u32 {
    (xxh3_64_with_seed(text.as_bytes(), u64::from(space)) >> 32) as u32
}

/// Spreads 32 bits over the 64 that the table looks at.
pub(crate) fn widen(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Dictionary {
    /// The id of a string, if it has one.
    #[inline]
    pub(crate) fn find(&self, space: u32, text: &str) -> Option<u32> {
        let hash = hash_of(space, text);
        let entry_idx = self.table.find(widen(hash), |idx| self.is_at(*idx, space, hash, text))?;
        Some(self.entries[*entry_idx as usize].id)
    }

    /// The id of a string, new if need be. The caller has checked [`Dictionary::has_room`].
    #[inline]
    pub(crate) fn intern(&mut self, space: u32, text: &str) -> u32 {
        let hash = hash_of(space, text);
        match self.table.find(widen(hash), |idx| self.is_at(*idx, space, hash, text)) {
            Some(entry_idx) => self.entries[*entry_idx as usize].id,
            None => self.add(space, hash, text),
        }
    }

    fn add(&mut self, space: u32, hash: u32, text: &str) -> u32 {
        if self.spaces.len() <= space as usize {
            self.spaces.resize_with(space as usize + 1, Space::default);
        }
        let entry_idx = to_u32(self.entries.len());
        let ids = &mut self.spaces[space as usize];
        let id = to_u32(ids.entries().len());
        ids.push(entry_idx);
        self.entries.push(Entry { start: to_u32(self.text.len()), space, id, hash });
        self.text.extend_from_slice(text.as_bytes());
        let entries = &self.entries;
        self.table.insert_unique(widen(hash), entry_idx, |idx| widen(entries[*idx as usize].hash));
        id
    }

    fn is_at(&self, entry_idx: u32, space: u32, hash: u32, text: &str) -> bool {
        let entry = self.entries[entry_idx as usize];
        entry.hash == hash && entry.space == space && self.bytes(entry_idx) == text.as_bytes()
    }

    fn bytes(&self, entry_idx: u32) -> &[u8] {
        let start = self.entries[entry_idx as usize].start as usize;
        let end = match self.entries.get(entry_idx as usize + 1) {
            Some(next) => next.start as usize,
            None => self.text.len(),
        };
        &self.text[start..end]
    }

    /// Whether `size` more bytes fit.
    pub(crate) fn has_room(&self, size: usize) -> bool {
        self.text.len() + size <= TEXT_SIZE_MAX
    }

    /// The bytes of the string of an id.
    #[inline]
    pub(crate) fn get_bytes(&self, space: u32, id: u32) -> &[u8] {
        self.bytes(self.spaces[space as usize].entries()[id as usize])
    }

    /// The string of an id.
    pub(crate) fn get(&self, space: u32, id: u32) -> &str {
        std::str::from_utf8(self.get_bytes(space, id)).expect("interned from &str")
    }

    /// How many ids a space has.
    pub(crate) fn count(&self, space: u32) -> u32 {
        self.spaces.get(space as usize).map_or(0, |ids| to_u32(ids.entries().len()))
    }

    /// The ids of a space in the order of their strings.
    pub(crate) fn sorted(&self, space: u32) -> Vec<u32> {
        self.sort(space, 0..self.count(space))
    }

    /// The strings whose ids are marked, in order, without the empty one.
    pub(crate) fn marked(&self, space: u32, is_marked: &[bool]) -> Vec<String> {
        let ids = (0..self.count(space)).zip(is_marked).filter(|(_, is_marked)| **is_marked);
        let sorted = self.sort(space, ids.map(|(id, _)| id));
        let strings = sorted.into_iter().map(|id| self.get(space, id));
        strings.filter(|string| !string.is_empty()).map(str::to_string).collect()
    }

    /// Sorts ids by their strings. Strings are all over the text, so what is compared is the eight
    /// bytes behind what all have in common, and the strings only where these are equal.
    fn sort(&self, space: u32, ids: impl Iterator<Item = u32> + Clone) -> Vec<u32> {
        let Some(first) = ids.clone().next().map(|id| self.get_bytes(space, id)) else {
            return Vec::new();
        };
        let shared = ids.clone().fold(first.len(), |shared, id| {
            let pairs = first[..shared].iter().zip(self.get_bytes(space, id));
            pairs.take_while(|(a, b)| a == b).count()
        });
        let key_of = |id: u32| (head_of(&self.get_bytes(space, id)[shared..]), id);
        let mut keys: Vec<(u64, u32)> = ids.map(key_of).collect();
        keys.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| self.get_bytes(space, a.1).cmp(self.get_bytes(space, b.1)))
        });
        keys.into_iter().map(|(_, id)| id).collect()
    }

    /// Bytes of memory held.
    pub(crate) fn memory_size(&self) -> usize {
        let ids: usize = self.spaces.iter().map(Space::memory_size).sum();
        self.text.capacity() + 16 * self.entries.capacity() + self.table.allocation_size() + ids
    }
}

/// The first eight bytes of a string, zeros behind a shorter one: ordered as the strings are, or
/// equal.
fn head_of(bytes: &[u8]) -> u64 {
    let mut head = [0; 8];
    let size = bytes.len().min(8);
    head[..size].copy_from_slice(&bytes[..size]);
    u64::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_dense_per_space() {
        let mut dictionary = Dictionary::default();
        for round in 0..2 {
            for space in [METRIC_NAMES, values_of(0), values_of(7)] {
                for id in 0..1000 {
                    assert_eq!(dictionary.intern(space, &format!("value {id}")), id, "{round}");
                }
                assert_eq!(dictionary.count(space), 1000);
            }
        }
        assert_eq!(dictionary.find(values_of(7), "value 77"), Some(77));
        assert_eq!(dictionary.find(values_of(6), "value 77"), None);
        assert_eq!(dictionary.get(METRIC_NAMES, 999), "value 999");
        assert_eq!(dictionary.count(99), 0);
        let sorted = dictionary.sorted(METRIC_NAMES);
        assert_eq!(&sorted[..4], [0, 1, 10, 100]);
        let mut strings =
            ["b", "", "a", "a\0", "a\0\0\0\0\0\0\0\0", "same start 2", "same start 1"];
        strings.iter().for_each(|string| _ = dictionary.intern(values_of(9), string));
        let marked = dictionary.marked(values_of(9), &[true; 7]);
        strings.sort();
        assert_eq!(marked, strings[1..], "all but the empty one");
    }
}
