//! Parsed headers of columns, kept from query to query in bounded memory.
//!
//! ```text
//! (part, slice, page) ──► outline: lens, layout, places of pages, the entropy coder's table
//! ```
//!
//! To read one series of a column takes a microsecond or two once its outline is known, and ten
//! before. Parts never change, so an outline is never wrong; those of a part that is gone are
//! forgotten like all that nobody asks for: entries leave in the order in which they came, but
//! one that was asked for meanwhile goes to the back of the line once more.

use codec::{TimestampsOutline, ValuesOutline};
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of all outlines: those of the columns of 200,000 hosts' ten metrics over a day or so.
pub const OUTLINES_SIZE_MAX: usize = 32 << 20;

/// What an entry takes beside its outline, about.
const ENTRY_SIZE: usize = 96;

/// Which page an outline is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutlineKey {
    /// [`crate::part::Part::number`].
    pub part: u64,
    /// Index of the slice.
    pub slice: u32,
    /// What of the slice.
    pub page: OutlinedPage,
}

/// A page with an outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutlinedPage {
    /// The slice's timestamps.
    SharedTimes,
    /// The own timestamps of a column.
    OwnTimes(u32),
    /// The values of a column.
    Values(u32),
}

#[derive(Clone)]
enum Outline {
    Times(Arc<TimestampsOutline>),
    Values(Arc<ValuesOutline>),
}

struct Entry {
    outline: Outline,
    size: usize,
    /// Whether somebody asked for it since it was last at the front of the line.
    is_wanted: bool,
}

#[derive(Default)]
struct Kept {
    by_key: HashMap<OutlineKey, Entry>,
    /// Every key once, the next to leave first.
    line: VecDeque<OutlineKey>,
    size: usize,
}

/// The outlines that a store keeps.
pub struct Outlines {
    size_max: usize,
    /// Held for a look-up or an insertion, never while bytes are parsed.
    kept: Mutex<Kept>,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Default for Outlines {
    fn default() -> Outlines {
        Outlines::new(OUTLINES_SIZE_MAX)
    }
}

impl Outlines {
    /// Room for `size_max` bytes.
    pub fn new(size_max: usize) -> Outlines {
        let (hits, misses) = (AtomicU64::new(0), AtomicU64::new(0));
        Outlines { size_max, kept: Mutex::default(), hits, misses }
    }

    /// Keeps nothing: for who reads so much that each outline would be gone before it is asked
    /// for again, and those of others with it.
    pub fn none() -> Outlines {
        Outlines::new(0)
    }

    /// Forgets all.
    pub fn clear(&self) {
        *self.lock() = Kept::default();
    }

    /// Bytes held, about.
    pub fn size(&self) -> usize {
        self.lock().size
    }

    /// How often an outline was there, and how often it was not.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// The outline of a page of timestamps; parsed by `open` when it is not known.
    pub fn times<E>(
        &self,
        key: OutlineKey,
        open: impl FnOnce() -> Result<TimestampsOutline, E>,
    ) -> Result<Arc<TimestampsOutline>, E> {
        if let Some(Outline::Times(times)) = self.find(&key) {
            return Ok(times);
        }
        let times = Arc::new(open()?);
        self.keep(key, Outline::Times(Arc::clone(&times)), times.memory_size());
        Ok(times)
    }

    /// The outline of a page of values; parsed by `open` when it is not known.
    pub fn values<E>(
        &self,
        key: OutlineKey,
        open: impl FnOnce() -> Result<ValuesOutline, E>,
    ) -> Result<Arc<ValuesOutline>, E> {
        if let Some(Outline::Values(values)) = self.find(&key) {
            return Ok(values);
        }
        let values = Arc::new(open()?);
        self.keep(key, Outline::Values(Arc::clone(&values)), values.memory_size());
        Ok(values)
    }

    fn find(&self, key: &OutlineKey) -> Option<Outline> {
        if self.size_max == 0 {
            return None;
        }
        let mut kept = self.lock();
        let found = kept.by_key.get_mut(key).map(|entry| {
            entry.is_wanted = true;
            entry.outline.clone()
        });
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    fn keep(&self, key: OutlineKey, outline: Outline, size: usize) {
        let size = size + ENTRY_SIZE;
        if self.size_max < size {
            return;
        }
        let mut kept = self.lock();
        if kept.by_key.contains_key(&key) {
            // Another thread parsed it at the same time.
            return;
        }
        kept.make_room(self.size_max - size);
        kept.by_key.insert(key, Entry { outline, size, is_wanted: false });
        kept.line.push_back(key);
        kept.size += size;
        debug_assert!(kept.by_key.len() == kept.line.len() && kept.size <= self.size_max);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().expect("no panic while held")
    }
}

impl Kept {
    /// Drops entries until at most `size_max` bytes are left.
    fn make_room(&mut self, size_max: usize) {
        while size_max < self.size {
            let key = self.line.pop_front().expect("a size without entries");
            let entry = self.by_key.get_mut(&key).expect("every key of the line has an entry");
            if entry.is_wanted {
                entry.is_wanted = false;
                self.line.push_back(key);
                continue;
            }
            self.size -= entry.size;
            self.by_key.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::{Effort, Error, Layout, Paging, encode_values};

    fn key(slice: u32) -> OutlineKey {
        OutlineKey { part: 1, slice, page: OutlinedPage::Values(0) }
    }

    #[test]
    fn memory_is_bounded_and_what_is_asked_for_stays() {
        let (mut column, lens) = (Vec::new(), [2, 3]);
        encode_values(&[1.0, 2.0, 7.0, 9.0, 4.0], &lens, Effort::Fast, &mut column);
        let open = || ValuesOutline::open(&column, Arc::new(Layout::new(&lens, Paging::NEWEST)?));
        let size = open().unwrap().memory_size() + ENTRY_SIZE;
        let outlines = Outlines::new(4 * size);
        for slice in 0..100 {
            outlines.values(key(0), open).unwrap();
            outlines.values(key(1 + slice), open).unwrap();
            assert!(outlines.size() <= 4 * size);
        }
        assert_eq!(outlines.hits_and_misses(), (99, 101));
        let failed = outlines.values(key(1000), || Err(Error { offset: 0, what: "no" }));
        assert!(failed.is_err(), "a failure is not kept");
        assert!(outlines.values(key(1000), open).is_ok());
    }
}
