//! The answers that are kept: bounded by their bytes, those used last longest.

use super::entry::{Entry, allocated};
use model::Matcher;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// An answer may have this share of all memory; a larger one would drive out too many others.
const SHARE: usize = 4;
/// What an answer takes beside its own bytes: its place in two maps.
const PLACE_SIZE: usize = 256;

/// Bounds on what is kept.
#[derive(Clone, Copy, Debug)]
pub struct CacheLimits {
    /// Bytes of all answers together (`--query.cache-memory`); 0 keeps none.
    pub bytes_max: usize,
    /// Answers that took less to evaluate are not worth their bytes.
    pub evaluation_min: Duration,
}

/// Answers to range queries, for those that ask the same of a later range. Of one source only.
#[derive(Debug)]
pub struct ResultCache {
    limits: CacheLimits,
    shelf: Mutex<Shelf>,
    /// Whether memory is short: nothing is kept.
    is_tight: AtomicBool,
    pub(super) counters: Counters,
}

/// What became of queries.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub hits: AtomicU64,
    pub partial: AtomicU64,
    pub misses: AtomicU64,
    pub unfit: AtomicU64,
    pub steps_reused: AtomicU64,
    pub evictions: AtomicU64,
}

/// Counts since the start, and what is kept now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Queries of which no step was evaluated.
    pub hits: u64,
    /// Queries of which some steps were.
    pub partial: u64,
    /// Queries of which all steps were, though their answer could be kept.
    pub misses: u64,
    /// Queries whose answer cannot be kept.
    pub unfit: u64,
    /// Steps that were not evaluated.
    pub steps_reused: u64,
    /// Answers that had to go for others.
    pub evictions: u64,
    /// Answers kept now.
    pub entries: u64,
    /// Bytes of the answers kept now.
    pub bytes: u64,
}

/// All that decides the numbers of an answer, but for its range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub text: String,
    pub step_ms: i64,
    /// Where steps are between two multiples of the step.
    pub phase_ms: i64,
    /// Steps, roughly: panels of an hour and of a day do not take each other's place.
    pub len_class: usize,
    pub lookback_ms: i64,
    pub subquery_step_ms: i64,
    pub keeps_over_time: bool,
    /// The range's length, which calculated durations may ask for, where they are known.
    pub range_ms: Option<i64>,
    /// Label filters that confine the query.
    pub filters: Arc<[Vec<Matcher>]>,
}

impl Key {
    /// Bytes of memory that the filters take.
    fn filters_size(&self) -> usize {
        let text = |matcher: &Matcher| allocated(matcher.name.len() + matcher.value.len());
        let size = |matcher: &Matcher| size_of::<Matcher>() + text(matcher);
        self.filters.iter().flatten().map(size).sum()
    }
}

#[derive(Debug, Default)]
struct Shelf {
    entries: HashMap<Arc<Key>, Kept>,
    /// Keys by their last use.
    by_use: BTreeMap<u64, Arc<Key>>,
    /// The number of the next use.
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    entry: Arc<Entry>,
    size: usize,
    used: u64,
}

impl ResultCache {
    /// An empty cache.
    pub fn new(limits: CacheLimits) -> ResultCache {
        ResultCache {
            limits,
            shelf: Mutex::default(),
            is_tight: AtomicBool::new(false),
            counters: Counters::default(),
        }
    }

    /// Whether anything is kept at all.
    pub fn is_on(&self) -> bool {
        0 < self.limits.bytes_max
    }

    /// Forgets all answers and keeps no new ones from now on, or keeps some again.
    pub fn set_tight(&self, is_tight: bool) {
        self.is_tight.store(is_tight, Relaxed);
        if is_tight {
            *self.shelf() = Shelf::default();
        }
    }

    /// What it did, and what it holds.
    pub fn stats(&self) -> CacheStats {
        let Counters { hits, partial, misses, unfit, steps_reused, evictions } = &self.counters;
        let shelf = self.shelf();
        CacheStats {
            hits: hits.load(Relaxed),
            partial: partial.load(Relaxed),
            misses: misses.load(Relaxed),
            unfit: unfit.load(Relaxed),
            steps_reused: steps_reused.load(Relaxed),
            evictions: evictions.load(Relaxed),
            entries: shelf.entries.len() as u64,
            bytes: shelf.bytes as u64,
        }
    }

    /// Whether an answer that took so long is worth being kept.
    pub(super) fn is_worth(&self, evaluation: Duration) -> bool {
        self.limits.evaluation_min <= evaluation
    }

    /// Whether an answer of so many values may fit.
    pub(super) fn may_hold(&self, cells: usize) -> bool {
        cells.saturating_mul(size_of::<f64>()) <= self.limits.bytes_max / SHARE
            && !self.is_tight.load(Relaxed)
    }

    pub(super) fn find(&self, key: &Key) -> Option<Arc<Entry>> {
        let shelf = &mut *self.shelf();
        let kept = shelf.entries.get_mut(key)?;
        let key = shelf.by_use.remove(&kept.used)?;
        kept.used = shelf.uses;
        shelf.by_use.insert(shelf.uses, key);
        shelf.uses += 1;
        Some(Arc::clone(&kept.entry))
    }

    /// Keeps an answer in place of an older one, if it is not too large.
    pub(super) fn keep(&self, key: Key, entry: Entry) {
        let size = entry.size()
            + PLACE_SIZE
            + size_of::<Key>()
            + allocated(key.text.len())
            + key.filters_size();
        if self.limits.bytes_max / SHARE < size || self.is_tight.load(Relaxed) {
            return;
        }
        let shelf = &mut *self.shelf();
        if shelf.entries.get(&key).is_some_and(|known| entry.version < known.entry.version) {
            return;
        }
        shelf.remove(&key);
        let (key, used) = (Arc::new(key), shelf.uses);
        shelf.uses += 1;
        shelf.bytes += size;
        shelf.by_use.insert(used, Arc::clone(&key));
        shelf.entries.insert(key, Kept { entry: Arc::new(entry), size, used });
        while self.limits.bytes_max < shelf.bytes {
            let Some((_, oldest)) = shelf.by_use.first_key_value() else { break };
            let oldest = Arc::clone(oldest);
            shelf.remove(&oldest);
            self.counters.evictions.fetch_add(1, Relaxed);
        }
    }

    /// A panic of another thread leaves nothing worse than a wrong number of bytes.
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Shelf {
    fn remove(&mut self, key: &Key) {
        if let Some(kept) = self.entries.remove(key) {
            self.by_use.remove(&kept.used);
            self.bytes -= kept.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::entry::{Notes, Rows};
    use crate::time::Grid;
    use model::Labels;

    fn key(text: &str) -> Key {
        Key {
            text: text.to_string(),
            step_ms: 1,
            phase_ms: 0,
            len_class: 1,
            lookback_ms: 0,
            subquery_step_ms: 0,
            keeps_over_time: false,
            range_ms: None,
            filters: Arc::default(),
        }
    }

    fn entry(version: u64, len: usize) -> Entry {
        let grid = Grid { start_ms: 0, step_ms: 1, len };
        let rows = Rows { labels: vec![Labels::default()], values: vec![0.0; len] };
        Entry { version, grid, notes: Notes::default(), rows }
    }

    fn cache(bytes_max: usize) -> ResultCache {
        ResultCache::new(CacheLimits { bytes_max, evaluation_min: Duration::from_millis(1) })
    }

    #[test]
    fn what_was_used_last_stays() {
        let cache = cache(64 << 10);
        for name in ["a", "b", "c", "d"] {
            cache.keep(key(name), entry(1, 1600));
        }
        assert_eq!((cache.stats().entries, cache.stats().evictions), (4, 0));
        assert!(cache.find(&key("a")).is_some());
        cache.keep(key("e"), entry(1, 1600));
        assert!(cache.find(&key("b")).is_none(), "nobody asked for it");
        assert!(cache.find(&key("a")).is_some());
        let stats = cache.stats();
        assert_eq!((stats.entries, stats.evictions), (4, 1));
        assert!(4 * 1600 * 8 < stats.bytes && stats.bytes <= 64 << 10, "{stats:?}");
    }

    #[test]
    fn large_old_and_unwanted_answers_are_not_kept() {
        let cache = cache(64 << 10);
        cache.keep(key("large"), entry(1, 2500));
        assert_eq!(cache.stats(), CacheStats::default());
        assert!(!cache.may_hold(2500) && cache.may_hold(1600));
        cache.keep(key("a"), entry(5, 2));
        cache.keep(key("a"), entry(4, 3));
        assert_eq!(cache.find(&key("a")).map(|entry| entry.version), Some(5));
        cache.keep(key("a"), entry(6, 3));
        assert_eq!(cache.stats().entries, 1);
        cache.set_tight(true);
        assert_eq!(cache.stats(), CacheStats::default());
        cache.keep(key("a"), entry(7, 2));
        assert!(cache.find(&key("a")).is_none() && !cache.may_hold(1));
        cache.set_tight(false);
        cache.keep(key("a"), entry(7, 2));
        assert!(cache.find(&key("a")).is_some());
        assert!(!cache.is_worth(Duration::from_micros(999)));
        assert!(cache.is_worth(Duration::from_millis(1)));
    }
}
