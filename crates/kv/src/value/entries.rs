//! Entries with names of their own: what a set and a hash have in common. A name is found in constant
//! time, any entry can be picked by its number, and all can be scanned while they change.
//!
//! ```text
//! list     entry │ entry │ entry ...             in any order; the last one fills a gap (`shared`)
//! table    (hash, number) │ - │ (hash, number)   by increasing hash, near where the hash says
//! ```
//! The table is open addressing with linear probing whose runs are kept sorted by hash: so walking it
//! is walking by hash, whatever its size, and a scan's cursor is a hash. Few entries have no table.

use super::shared::Shared;
use std::sync::OnceLock;

/// Entries that are searched one by one: no table is kept for so few.
const UNINDEXED_MAX: usize = 16;
/// The smallest table, as a power of two.
const TABLE_BITS_MIN: u32 = 5;
/// The number of no entry.
const EMPTY: u32 = u32::MAX;

/// Something with a name that nothing else of its collection has.
pub trait Named {
    /// The name.
    fn name(&self) -> &[u8];
}

impl Named for super::element::Element {
    #[inline]
    fn name(&self) -> &[u8] {
        self.bytes()
    }
}

static SEED: OnceLock<u64> = OnceLock::new();

/// Sets what hashes of names start with, once for the program: random, so that nobody can choose
/// names that meet, and kept on disk, so that a scan goes on after a restart.
pub fn set_seed(seed: u64) {
    SEED.get_or_init(|| seed);
}

#[inline]
fn hash_of(name: &[u8]) -> u32 {
    let seed = SEED.get().copied().unwrap_or(0);
    (xxhash_rust::xxh3::xxh3_64_with_seed(name, seed) >> 32) as u32
}

/// Entries of a collection.
#[derive(Clone, Debug)]
pub struct Entries<E> {
    list: Shared<E>,
    table: Table,
}

impl<E> Default for Entries<E> {
    fn default() -> Entries<E> {
        Entries { list: Shared::default(), table: Table::default() }
    }
}

impl<E: Named + Clone> Entries<E> {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.list.iter()
    }

    /// They as they are now, to be gone through later, while others change them here: nothing is
    /// found in that. None where it would be copied one by one.
    pub fn freeze(&self) -> Option<Entries<E>> {
        let list = self.list.is_large().then(|| self.list.clone())?;
        Some(Entries { list, table: Table::default() })
    }

    /// The entry of that number.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&E> {
        self.list.get(at)
    }

    /// The same, to be changed, but not its name.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut E> {
        self.list.get_mut(at)
    }

    /// The number of the entry of that name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        if self.table.is_none() {
            return self.list.iter().position(|entry| entry.name() == name);
        }
        let is_it = |at: u32| self.list.get(at as usize).is_some_and(|it| it.name() == name);
        let place = self.table.find(hash_of(name), is_it)?;
        Some(self.table.buckets[place].at as usize)
    }

    /// Adds an entry whose name is new.
    pub fn push(&mut self, entry: E) {
        let at = u32::try_from(self.list.len()).unwrap_or(EMPTY);
        assert!(at < EMPTY, "memory is bounded far below so many entries");
        if self.list.len() == UNINDEXED_MAX && self.table.is_none() {
            for (at, entry) in (0..).zip(self.list.iter()) {
                self.table.insert(hash_of(entry.name()), at);
            }
        }
        if !self.table.is_none() {
            self.table.insert(hash_of(entry.name()), at);
        }
        self.list.push(entry);
    }

    /// None, with room for so many.
    pub fn with_capacity(count: usize) -> Entries<E> {
        let mut entries = Entries { list: Shared::with_capacity(count), table: Table::default() };
        entries.table.reserve(count);
        entries
    }

    /// Takes the entry of that number out; the last one gets its number.
    pub fn swap_remove(&mut self, at: usize) -> E {
        let hash_at = |list: &Shared<E>, at: usize| {
            hash_of(list.get(at).expect("the caller has seen it").name())
        };
        if !self.table.is_none() {
            self.table.remove(hash_at(&self.list, at), at as u32);
            let last = self.list.len() - 1;
            if at < last {
                self.table.renumber(hash_at(&self.list, last), last as u32, at as u32);
            }
        }
        self.list.swap_remove(at)
    }

    /// At least `count` entries (all, if there are fewer) by increasing hash of their names, from
    /// `cursor` on. Returns the cursor to go on from, 0 at the end. An entry that is there all the
    /// while is given, whatever else comes and goes.
    pub fn scan(&self, cursor: u64, count: usize) -> (u64, Vec<&E>) {
        let Ok(cursor) = u32::try_from(cursor) else { return (0, Vec::new()) };
        if self.table.is_none() {
            return (0, self.list.iter().collect());
        }
        let mut found = Vec::new();
        let mut last = cursor;
        for bucket in &self.table.buckets[self.table.home(cursor)..] {
            if bucket.at == EMPTY || bucket.hash < cursor {
                continue;
            }
            // Names of one hash come together, for the cursor cannot stop between them.
            if count <= found.len() && last < bucket.hash {
                return (u64::from(bucket.hash), found);
            }
            found.extend(self.list.get(bucket.at as usize));
            last = bucket.hash;
        }
        (0, found)
    }

    /// Bytes of memory besides the struct itself and what entries own.
    pub fn heap_size(&self) -> usize {
        self.list.heap_size() + self.table.buckets.capacity() * size_of::<Bucket>()
    }
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    hash: u32,
    /// The number of the entry; [`EMPTY`].
    at: u32,
}

const NOTHING: Bucket = Bucket { hash: 0, at: EMPTY };

/// Numbers of entries by the hash of their names.
///
/// What holds: filled buckets are in order of their hashes, none stands before the place that its
/// hash says ([`Table::home`]), and between that place and it none is empty.
#[derive(Clone, Debug, Default)]
struct Table {
    /// As many as there are homes, and a tail for what is pushed over the end.
    buckets: Vec<Bucket>,
    bits: u32,
    len: usize,
}

impl Table {
    #[inline]
    fn is_none(&self) -> bool {
        self.buckets.is_empty()
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        (hash >> (u32::BITS - self.bits)) as usize
    }

    #[inline]
    fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<usize> {
        let home = self.home(hash);
        for (place, bucket) in (home..).zip(&self.buckets[home..]) {
            if bucket.at == EMPTY || hash < bucket.hash {
                return None;
            }
            if bucket.hash == hash && is_it(bucket.at) {
                return Some(place);
            }
        }
        None
    }

    fn insert(&mut self, hash: u32, at: u32) {
        self.reserve((self.len + 1).max(UNINDEXED_MAX + 1));
        let mut place = self.home(hash);
        while self.buckets.get(place).is_some_and(|it| it.at != EMPTY && it.hash <= hash) {
            place += 1;
        }
        let mut carried = Bucket { hash, at };
        // What stands there and behind moves on by one, up to the next gap.
        loop {
            let Some(bucket) = self.buckets.get_mut(place) else {
                self.buckets.push(carried);
                break;
            };
            std::mem::swap(bucket, &mut carried);
            if carried.at == EMPTY {
                break;
            }
            place += 1;
        }
        self.len += 1;
    }

    fn remove(&mut self, hash: u32, at: u32) {
        let Some(mut place) = self.find(hash, |number| number == at) else { return };
        self.len -= 1;
        // What was pushed on by it moves back.
        while let Some(next) = self.buckets.get(place + 1).copied() {
            if next.at == EMPTY || self.home(next.hash) == place + 1 {
                break;
            }
            self.buckets[place] = next;
            place += 1;
        }
        self.buckets[place] = NOTHING;
        if TABLE_BITS_MIN < self.bits && self.len * 8 < 1 << self.bits {
            self.resize(self.bits - 1);
        }
    }

    /// An entry's number has changed.
    fn renumber(&mut self, hash: u32, from: u32, to: u32) {
        if let Some(place) = self.find(hash, |number| number == from) {
            self.buckets[place].at = to;
        }
    }

    /// Grows the table for so many entries, if it has to: seven eighths are filled at most.
    fn reserve(&mut self, count: usize) {
        if count <= UNINDEXED_MAX && self.is_none() {
            return;
        }
        let mut bits = self.bits.max(TABLE_BITS_MIN);
        while (1usize << bits) - (1 << (bits - 3)) < count && bits < u32::BITS - 1 {
            bits += 1;
        }
        if self.bits < bits {
            self.resize(bits);
        }
    }

    fn resize(&mut self, bits: u32) {
        let before = std::mem::take(&mut self.buckets);
        self.bits = bits;
        self.buckets = vec![NOTHING; 1 << bits];
        let mut next = 0;
        // In order of hashes each goes to its home, or behind the one before.
        for bucket in before.iter().filter(|bucket| bucket.at != EMPTY) {
            let place = self.home(bucket.hash).max(next);
            match self.buckets.get_mut(place) {
                Some(free) => *free = *bucket,
                None => self.buckets.push(*bucket),
            }
            next = place + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::element::Element;
    use super::*;
    use std::collections::{HashMap, HashSet};

    fn check_order(entries: &Entries<Element>) {
        let table = &entries.table;
        if table.is_none() {
            return;
        }
        let mut last = 0;
        for (place, bucket) in table.buckets.iter().enumerate() {
            if bucket.at == EMPTY {
                continue;
            }
            assert!(last <= bucket.hash);
            last = bucket.hash;
            let home = table.home(bucket.hash);
            assert!(home <= place);
            assert!(table.buckets[home..place].iter().all(|between| between.at != EMPTY));
            let entry = entries.list.get(bucket.at as usize).expect("there");
            assert_eq!(hash_of(entry.name()), bucket.hash);
        }
        assert_eq!(table.len, entries.len());
    }

    #[test]
    fn names_are_found_whatever_came_and_went() {
        let mut dice = rng::Random(11);
        let mut entries: Entries<Element> = Entries::default();
        let mut model: HashSet<Vec<u8>> = HashSet::new();
        for step in 0..20_000usize {
            let range = if step < 10_000 { 3000 } else { 100 };
            let name = dice.index(range).to_string().into_bytes();
            let found = entries.find(&name);
            assert_eq!(found.is_some(), model.contains(&name));
            match found {
                Some(at) if dice.index(3) == 0 || 10_000 < step => {
                    assert_eq!(entries.swap_remove(at).bytes(), name);
                    model.remove(&name);
                }
                None if step < 19_000 => {
                    entries.push(Element::new(&name));
                    model.insert(name);
                }
                _ => {}
            }
            if step % 997 == 0 {
                check_order(&entries);
            }
        }
        check_order(&entries);
        assert_eq!(entries.len(), model.len());
    }

    #[test]
    fn a_scan_sees_what_stays() {
        let mut entries: Entries<Element> = Entries::default();
        for n in 0..2000 {
            entries.push(Element::new(format!("stays {n}").as_bytes()));
        }
        let (mut cursor, mut seen): (u64, HashMap<Vec<u8>, usize>) = (0, HashMap::new());
        for step in 0.. {
            let (next, found) = entries.scan(cursor, 10);
            for entry in found {
                *seen.entry(entry.bytes().to_vec()).or_default() += 1;
            }
            cursor = next;
            if cursor == 0 {
                break;
            }
            // Others come, many at first, and go: the table grows and shrinks.
            for n in 0..100 {
                let name = format!("comes {} {n}", step % 50);
                match entries.find(name.as_bytes()) {
                    Some(at) => drop(entries.swap_remove(at)),
                    None => entries.push(Element::new(name.as_bytes())),
                }
            }
        }
        for n in 0..2000 {
            let name = format!("stays {n}").into_bytes();
            assert_eq!(seen.get(&name), Some(&1), "{n}");
        }
    }
}
