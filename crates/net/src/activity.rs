//! The queries that run, which can be made to stop, and those that ended lately.
//!
//! ```text
//! begin ─► active, by id ─► the guard is dropped ─► ended, a ring ─► the tops of a time
//!               └── kill: sets the query's own flag, nobody else's
//! ```
//!
//! Both lists are bounded: the running ones by query.max-concurrency, the ended ones by their
//! number and by the bytes of their texts.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Ended queries that are remembered.
pub const ENDED_MAX: usize = 20_000;
/// Queries that took less are not: there are many, and nobody waits for them.
pub const DURATION_MIN: Duration = Duration::from_millis(1);
/// Bytes of the texts of ended queries.
const TEXTS_SIZE_MAX: usize = 4 << 20;

/// What a query asks for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The expression.
    pub text: Arc<str>,
    /// First step, in milliseconds since the epoch.
    pub start_ms: i64,
    /// Last step.
    pub end_ms: i64,
    /// Between steps; of an instant query, 0.
    pub step_ms: i64,
}

/// A query that runs.
#[derive(Clone, Debug)]
pub struct Active {
    /// What it asks for.
    pub asked: Asked,
    /// Who asks, if it came over a socket.
    pub peer: Option<SocketAddr>,
    /// When its head arrived.
    pub started: Instant,
    /// Makes it stop.
    pub cancelled: Arc<AtomicBool>,
}

/// A query that ended.
struct Ended {
    asked: Asked,
    at: Instant,
    took: Duration,
    bytes: u64,
}

/// The queries that run, and those that ended not long ago.
#[derive(Default)]
struct Queries {
    next_id: u64,
    active: BTreeMap<u64, Active>,
    /// Oldest first.
    ended: VecDeque<Ended>,
    /// Bytes of the texts of `ended`.
    texts_size: usize,
}

/// All queries of a server.
#[derive(Default)]
pub struct Activity {
    queries: Mutex<Queries>,
}

/// A query that runs until this is dropped.
pub struct Running<'a> {
    activity: &'a Activity,
    id: u64,
    /// Most bytes that it held, once that is known.
    pub bytes: u64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let active = self.activity.lock().active.remove(&self.id);
        if let Some(Active { asked, started, .. }) = active {
            self.activity.note_ended(&asked, started, self.bytes);
        }
    }
}

impl Activity {
    /// Lists a query as running.
    pub fn begin(&self, query: Active) -> Running<'_> {
        let mut queries = self.lock();
        queries.next_id += 1;
        let id = queries.next_id;
        queries.active.insert(id, query);
        Running { activity: self, id, bytes: 0 }
    }

    /// Remembers a query that ended now, unless it was too short.
    pub fn note_ended(&self, asked: &Asked, started: Instant, bytes: u64) {
        let at = Instant::now();
        let took = at - started;
        if took < DURATION_MIN || TEXTS_SIZE_MAX < asked.text.len() {
            return;
        }
        let mut queries = self.lock();
        queries.texts_size += asked.text.len();
        queries.ended.push_back(Ended { asked: asked.clone(), at, took, bytes });
        while ENDED_MAX < queries.ended.len() || TEXTS_SIZE_MAX < queries.texts_size {
            let Some(oldest) = queries.ended.pop_front() else { break };
            queries.texts_size -= oldest.asked.text.len();
        }
    }

    /// Those that run, by id.
    pub fn active(&self) -> Vec<(u64, Active)> {
        self.lock().active.iter().map(|(id, query)| (*id, query.clone())).collect()
    }

    /// Makes a query stop at its next look; whether there is one of that id.
    pub fn kill(&self, id: u64) -> bool {
        let queries = self.lock();
        let Some(query) = queries.active.get(&id) else { return false };
        query.cancelled.store(true, Relaxed);
        true
    }

    /// What ended within the last `lifetime`, put together by text and length of time.
    pub fn totals(&self, lifetime: Duration) -> Vec<Total> {
        let now = Instant::now();
        let mut by_query: HashMap<(Arc<str>, i64), Total> = HashMap::new();
        let queries = self.lock();
        for Ended { asked, at, took, bytes } in queries.ended.iter().rev() {
            if lifetime < now.saturating_duration_since(*at) {
                break;
            }
            let seconds = asked.end_ms.saturating_sub(asked.start_ms) / 1000;
            let key = (asked.text.clone(), seconds);
            let total = by_query.entry(key).or_insert_with(|| Total::new(&asked.text, seconds));
            total.count += 1;
            total.took += *took;
            total.bytes = total.bytes.saturating_add(*bytes);
        }
        drop(queries);
        by_query.into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Queries> {
        self.queries.lock().expect("no panic while held")
    }
}

/// All runs of one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    /// Its text.
    pub text: Arc<str>,
    /// From its first to its last step.
    pub range_seconds: i64,
    /// How often it ran.
    pub count: u64,
    /// Its durations, added up.
    pub took: Duration,
    /// The most bytes of each run, added up.
    pub bytes: u64,
}

impl Total {
    fn new(text: &Arc<str>, range_seconds: i64) -> Total {
        let text = text.clone();
        Total { text, range_seconds, count: 0, took: Duration::ZERO, bytes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Asked {
        Asked { text: text.into(), start_ms: 0, end_ms: 60_000, step_ms: 1000 }
    }

    fn query(text: &str) -> Active {
        let started = Instant::now() - Duration::from_secs(1);
        Active { asked: asked(text), peer: None, started, cancelled: Arc::default() }
    }

    #[test]
    fn a_kill_stops_one_query() {
        let activity = Activity::default();
        let (first, second) = (query("a"), query("b"));
        let flags = [first.cancelled.clone(), second.cancelled.clone()];
        let running = [activity.begin(first), activity.begin(second)];
        let ids: Vec<u64> = activity.active().iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [1, 2]);
        assert!(activity.kill(2) && !activity.kill(3));
        assert_eq!(flags.map(|flag| flag.load(Relaxed)), [false, true]);
        drop(running);
        assert!(activity.active().is_empty() && !activity.kill(1));
        assert_eq!(activity.totals(Duration::from_secs(60)).len(), 2);
    }

    #[test]
    fn runs_are_put_together() {
        let activity = Activity::default();
        for bytes in [10, 20] {
            activity.begin(query("a")).bytes = bytes;
        }
        activity.note_ended(&asked("short"), Instant::now(), 0);
        let totals = activity.totals(Duration::from_secs(60));
        let [total] = totals.as_slice() else { panic!("{totals:?}") };
        assert_eq!((&*total.text, total.range_seconds, total.count, total.bytes), ("a", 60, 2, 30));
        assert!(Duration::from_secs(2) <= total.took);
        assert!(activity.totals(Duration::ZERO).is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let activity = Activity::default();
        let long = "x".repeat(1 << 20);
        for _ in 0..6 {
            drop(activity.begin(query(&long)));
        }
        drop(activity.begin(query(&"x".repeat(TEXTS_SIZE_MAX + 1))));
        assert_eq!(activity.lock().ended.len(), 4);
        for idx in 0..ENDED_MAX + 10 {
            drop(activity.begin(query(&idx.to_string())));
        }
        let queries = activity.lock();
        assert_eq!(queries.ended.len(), ENDED_MAX);
        let texts_size: usize = queries.ended.iter().map(|e| e.asked.text.len()).sum();
        assert_eq!(queries.texts_size, texts_size);
    }
}
