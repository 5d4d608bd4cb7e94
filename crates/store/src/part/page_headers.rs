//! Parsed headers of columns, kept from query to query in bounded memory.
//!
//! ```text
//! (part, slice, page) ──► header: lens, layout, places of pages, the entropy coder's table
//! ```
//!
//! To read one series of a column takes a microsecond or two once its header is known, and ten
//! before. Parts never change, so a header is never wrong; those of a part that is gone are
//! forgotten like all that nobody asks for: entries leave in the order in which they came, but
//! one that was asked for meanwhile goes to the back of the line once more.

use codec::{TimestampsOutline, ValuesOutline};
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of all headers: those of the columns of 200,000 hosts' ten metrics over a day or so.
pub const PAGE_HEADERS_SIZE_MAX: usize = 32 << 20;

/// What an entry takes beside its header, about.
const ENTRY_SIZE: usize = 96;

/// Which page a header is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageKey {
    /// What tells the part from all others that this process opens.
    pub part: u64,
    /// Index of the slice.
    pub slice: u32,
    /// What of the slice.
    pub page: PageOf,
}

/// A page with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageOf {
    /// The slice's timestamps.
    SharedTimes,
    /// The own timestamps of a column.
    OwnTimes(u32),
    /// The values of a column.
    Values(u32),
}

#[derive(Clone)]
enum Header {
    Times(Arc<TimestampsOutline>),
    Values(Arc<ValuesOutline>),
}

struct Entry {
    header: Header,
    size: usize,
    /// Whether somebody asked for it since it was last at the front of the line.
    is_wanted: bool,
}

#[derive(Default)]
struct Kept {
    by_key: HashMap<PageKey, Entry>,
    /// Every key once, the next to leave first.
    line: VecDeque<PageKey>,
    size: usize,
}

/// The headers that a store keeps.
pub struct PageHeaders {
    size_max: usize,
    /// Held for a look-up or an insertion, never while bytes are parsed.
    kept: Mutex<Kept>,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Default for PageHeaders {
    fn default() -> PageHeaders {
        PageHeaders::new(PAGE_HEADERS_SIZE_MAX)
    }
}

impl PageHeaders {
    /// Room for `size_max` bytes.
    pub fn new(size_max: usize) -> PageHeaders {
        let (hits, misses) = (AtomicU64::new(0), AtomicU64::new(0));
        PageHeaders { size_max, kept: Mutex::default(), hits, misses }
    }

    /// Keeps nothing: for who reads so much that each header would be gone before it is asked
    /// for again, and those of others with it.
    pub fn none() -> PageHeaders {
        PageHeaders::new(0)
    }

    /// Empties it.
    pub fn clear(&self) {
        *self.lock() = Kept::default();
    }

    /// Bytes held, about.
    pub fn size(&self) -> usize {
        self.lock().size
    }

    /// How often a header was there, and how often it was not.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// The header of a page of timestamps; parsed by `open` when it is not known.
    pub fn times<E>(
        &self,
        key: PageKey,
        open: impl FnOnce() -> Result<TimestampsOutline, E>,
    ) -> Result<Arc<TimestampsOutline>, E> {
        if let Some(Header::Times(times)) = self.find(&key) {
            return Ok(times);
        }
        let times = Arc::new(open()?);
        self.keep(key, Header::Times(Arc::clone(&times)), times.memory_size());
        Ok(times)
    }

    /// The header of a page of values; parsed by `open` when it is not known.
    pub fn values<E>(
        &self,
        key: PageKey,
        open: impl FnOnce() -> Result<ValuesOutline, E>,
    ) -> Result<Arc<ValuesOutline>, E> {
        if let Some(Header::Values(values)) = self.find(&key) {
            return Ok(values);
        }
        let values = Arc::new(open()?);
        self.keep(key, Header::Values(Arc::clone(&values)), values.memory_size());
        Ok(values)
    }

    fn find(&self, key: &PageKey) -> Option<Header> {
        if self.size_max == 0 {
            return None;
        }
        let mut kept = self.lock();
        let found = kept.by_key.get_mut(key).map(|entry| {
            entry.is_wanted = true;
            entry.header.clone()
        });
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    fn keep(&self, key: PageKey, header: Header, size: usize) {
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
        kept.by_key.insert(key, Entry { header, size, is_wanted: false });
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
        debug_assert_eq!(self.line.is_empty(), self.size == 0, "sizes are those of entries");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::{Effort, Error, Layout, Paging, encode_values};

    fn key(slice: u32) -> PageKey {
        PageKey { part: 1, slice, page: PageOf::Values(0) }
    }

    #[test]
    fn memory_is_bounded_and_what_is_asked_for_stays() {
        let (mut column, lens) = (Vec::new(), [2, 3]);
        encode_values(&[1.0, 2.0, 7.0, 9.0, 4.0], &lens, Effort::Fast, &mut column);
        let open = || ValuesOutline::open(&column, Arc::new(Layout::new(&lens, Paging::NEWEST)?));
        let size = open().unwrap().memory_size() + ENTRY_SIZE;
        let headers = PageHeaders::new(4 * size);
        for slice in 0..100 {
            headers.values(key(0), open).unwrap();
            headers.values(key(1 + slice), open).unwrap();
            assert!(headers.size() <= 4 * size);
        }
        assert_eq!(headers.hits_and_misses(), (99, 101));
        let failed = headers.values(key(1000), || Err(Error { offset: 0, what: "no" }));
        assert!(failed.is_err(), "a failure is not kept");
        assert!(headers.values(key(1000), open).is_ok());
    }
}
