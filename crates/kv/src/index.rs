//! Which keys there are and where their values lie: 12 bytes a key, without the keys.
//!
//! ```text
//! 48 bits of the key's hash │ 48 bits of its place
//! └ 10: which table          └ 1 + slot number (hot)   0 + segment, offset / 16 (cold)
//! ```
//!
//! One database has 1,024 tables, so that growing one is short and a scan can go by order of hashes.
//! Two keys may share all 48 bits: who looks a key up compares it with the one at the place.

use hashbrown::HashTable;

/// Bits of a hash that pick its table.
const TABLE_BITS: u32 = 10;
/// Bits of a hash that are kept.
pub const HASH_BITS: u32 = 48;
/// Bit of a place that says it is a slot.
const HOT_BIT: u64 = 1 << 47;
/// Records begin at multiples of this, in bytes.
pub const RECORD_ALIGNMENT: usize = 16;
/// Bits of an offset, in units of [`RECORD_ALIGNMENT`].
const OFFSET_BITS: u32 = 23;
/// Segments there can be.
pub const SEGMENT_MAX: u32 = (1 << (47 - OFFSET_BITS)) - 1;

/// The part of a key's hash that the index keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(u64);

impl KeyHash {
    /// The hash of a key, with the keyspace's own seed.
    #[inline]
    pub fn new(key: &[u8], seed: u64) -> KeyHash {
        KeyHash(xxhash_rust::xxh3::xxh3_64_with_seed(key, seed) >> (64 - HASH_BITS))
    }

    /// A hash of that number, as [`KeyHash::number`] gave it.
    pub fn from_number(number: u64) -> KeyHash {
        KeyHash(number & ((1 << HASH_BITS) - 1))
    }

    /// Its bits.
    pub fn number(self) -> u64 {
        self.0
    }

    #[inline]
    fn table(self) -> usize {
        usize::try_from(self.0 >> (HASH_BITS - TABLE_BITS)).unwrap_or(0)
    }

    /// Spread over 64 bits, as the tables want it.
    #[inline]
    fn spread(self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Where a record lies on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Which segment.
    pub segment: u32,
    /// Where in it, in units of [`RECORD_ALIGNMENT`].
    pub offset: u32,
}

/// Where a key's value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory, in that slot.
    Hot(u32),
    /// On disk.
    Cold(Address),
}

impl Place {
    /// As 48 bits.
    pub fn to_bits(self) -> u64 {
        match self {
            Place::Hot(slot) => HOT_BIT | u64::from(slot),
            Place::Cold(address) => {
                assert!(address.segment <= SEGMENT_MAX && address.offset < 1 << OFFSET_BITS);
                u64::from(address.segment) << OFFSET_BITS | u64::from(address.offset)
            }
        }
    }

    /// Of 48 bits.
    pub fn from_bits(bits: u64) -> Place {
        let low = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
        match bits & HOT_BIT {
            0 => Place::Cold(Address {
                segment: low(bits >> OFFSET_BITS & u64::from(SEGMENT_MAX)),
                offset: low(bits & ((1 << OFFSET_BITS) - 1)),
            }),
            _ => Place::Hot(low(bits)),
        }
    }
}

/// Hash and place, packed.
#[derive(Clone, Copy, Debug)]
struct Entry([u32; 3]);

impl Entry {
    #[inline]
    fn new(hash: KeyHash, place: Place) -> Entry {
        let place = place.to_bits();
        let low = |bits: u64| (bits & u64::from(u32::MAX)) as u32;
        Entry([low(hash.0), low(hash.0 >> 32) << 16 | low(place >> 32), low(place)])
    }

    #[inline]
    fn hash(self) -> KeyHash {
        KeyHash(u64::from(self.0[0]) | u64::from(self.0[1] >> 16) << 32)
    }

    #[inline]
    fn place(self) -> Place {
        Place::from_bits(u64::from(self.0[2]) | u64::from(self.0[1] & 0xffff) << 32)
    }
}

/// The keys of one database.
#[derive(Debug, Default)]
pub struct Index {
    /// None before the first key.
    tables: Vec<HashTable<Entry>>,
    len: usize,
    /// Bytes of all tables.
    size: usize,
}

impl Index {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The first place with that hash which `is_it` accepts.
    #[inline]
    pub fn find(&self, hash: KeyHash, mut is_it: impl FnMut(Place) -> bool) -> Option<Place> {
        let table = self.tables.get(hash.table())?;
        let found = table.find(hash.spread(), |entry| entry.hash() == hash && is_it(entry.place()));
        found.map(|entry| entry.place())
    }

    /// Adds a key, which must not be there.
    pub fn insert(&mut self, hash: KeyHash, place: Place) {
        if self.tables.is_empty() {
            self.tables.resize_with(1 << TABLE_BITS, HashTable::new);
        }
        let Some(table) = self.tables.get_mut(hash.table()) else { return };
        let before = table.allocation_size();
        table.insert_unique(hash.spread(), Entry::new(hash, place), |entry| entry.hash().spread());
        self.size = self.size + table.allocation_size() - before;
        self.len += 1;
    }

    /// Gives a key's value another place.
    ///
    /// # Panics
    /// When no key has that hash and place: the index and who owns the places disagree.
    pub fn replace(&mut self, hash: KeyHash, from: Place, to: Place) {
        let table = self.tables.get_mut(hash.table());
        let is_it = |entry: &Entry| entry.hash() == hash && entry.place() == from;
        let entry = table.and_then(|table| table.find_mut(hash.spread(), is_it));
        *entry.expect("a place that changes is in the index") = Entry::new(hash, to);
    }

    /// Takes a key out. Returns whether it was there.
    pub fn remove(&mut self, hash: KeyHash, place: Place) -> bool {
        let Some(table) = self.tables.get_mut(hash.table()) else { return false };
        let is_it = |entry: &Entry| entry.hash() == hash && entry.place() == place;
        let Ok(entry) = table.find_entry(hash.spread(), is_it) else { return false };
        entry.remove();
        self.len -= 1;
        // A table that was much larger gives its memory back, seldom enough to cost nothing.
        if table.is_empty() || 64 < table.capacity() && table.len() < table.capacity() / 8 {
            let before = table.allocation_size();
            table.shrink_to_fit(|entry| entry.hash().spread());
            self.size = self.size + table.allocation_size() - before;
        }
        true
    }

    /// Room for so many keys more, for a start.
    pub fn reserve(&mut self, count: usize) {
        if self.tables.is_empty() {
            self.tables.resize_with(1 << TABLE_BITS, HashTable::new);
        }
        let each = count / self.tables.len() + count / self.tables.len() / 16;
        for table in &mut self.tables {
            let before = table.allocation_size();
            table.reserve(each, |entry| entry.hash().spread());
            self.size = self.size + table.allocation_size() - before;
        }
    }

    /// How many tables there are: 0 for a database without keys.
    pub fn table_count(&self) -> usize {
        self.tables.len()
    }

    /// All of one table.
    pub fn table(&self, number: usize) -> impl Iterator<Item = (KeyHash, Place)> {
        let table = self.tables.get(number).into_iter().flatten();
        table.map(|entry| (entry.hash(), entry.place()))
    }

    /// At least `count` keys (all of them, if there are fewer) by increasing hash, from `cursor` on;
    /// keys of the same hash come together. Returns the cursor to go on from, 0 at the end.
    ///
    /// A key that is there all the while is given, whatever else comes and goes.
    pub fn scan(&self, cursor: u64, count: usize) -> (u64, Vec<(KeyHash, Place)>) {
        let mut found: Vec<(KeyHash, Place)> = Vec::new();
        let first = KeyHash::from_number(cursor).table();
        for number in first..self.tables.len() {
            let start = found.len();
            found.extend(self.table(number).filter(|(hash, _)| cursor <= hash.number()));
            let Some(added) = found.get_mut(start..) else { break };
            added.sort_unstable_by_key(|(hash, _)| *hash);
            if count <= found.len() {
                let last = found.get(count.max(1) - 1).map_or(0, |(hash, _)| hash.number());
                let end = found.partition_point(|(hash, _)| hash.number() <= last);
                found.truncate(end);
                let is_last = last + 1 == 1 << HASH_BITS;
                return (if is_last { 0 } else { last + 1 }, found);
            }
        }
        (0, found)
    }

    /// The key at a random place, for a random number: nearly uniform while tables are of one size.
    pub fn pick(&self, random: u64) -> Option<(KeyHash, Place)> {
        if self.is_empty() {
            return None;
        }
        let start = KeyHash(random >> (64 - HASH_BITS)).table();
        let count = self.tables.len();
        let tables = (0..count).map(|step| (start + step) % count);
        let filled = tables.into_iter().find(|number| !self.tables[*number].is_empty())?;
        let nth = usize::try_from(random & 0xffff_ffff).unwrap_or(0) % self.tables[filled].len();
        self.table(filled).nth(nth)
    }

    /// Takes all keys out.
    pub fn clear(&mut self) {
        *self = Index::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_hashes_are_packed() {
        let hash = KeyHash::from_number(0xabcd_1234_5678);
        for place in [
            Place::Hot(0),
            Place::Hot(u32::MAX),
            Place::Cold(Address { segment: SEGMENT_MAX, offset: (1 << OFFSET_BITS) - 1 }),
            Place::Cold(Address { segment: 0, offset: 0 }),
        ] {
            let entry = Entry::new(hash, place);
            assert_eq!((entry.hash(), entry.place()), (hash, place));
        }
        assert_eq!(size_of::<Entry>(), 12);
    }

    #[test]
    fn a_scan_sees_what_stays() {
        let mut index = Index::default();
        let hashes: Vec<KeyHash> =
            (0..5000u32).map(|n| KeyHash::new(&n.to_le_bytes(), 7)).collect();
        for (n, hash) in (0..).zip(&hashes) {
            index.insert(*hash, Place::Hot(n));
        }
        let (mut cursor, mut seen) = (0, std::collections::HashSet::new());
        let mut steps = 0;
        loop {
            let (next, found) = index.scan(cursor, 10);
            seen.extend(found.iter().map(|(_, place)| place.to_bits()));
            // The odd ones go, and others come.
            let n = 2 * steps + 1;
            if n < 5000 {
                let _ = index.remove(hashes[n as usize], Place::Hot(n));
                index.insert(KeyHash::new(&(n + 10_000).to_le_bytes(), 7), Place::Hot(n + 10_000));
            }
            steps += 1;
            if next == 0 {
                break;
            }
            assert!(cursor < next);
            cursor = next;
        }
        for n in (0..5000).step_by(2) {
            assert!(seen.contains(&Place::Hot(n).to_bits()), "{n}");
        }
    }
}
