//! When keys expire: a wheel of ticks, each with the hashes of the keys that may be due then.
//!
//! An entry is never taken out when a key's time changes: whoever finds it looks at the key itself.
//! That costs eight bytes for each change that moves a key to another tick, until the tick comes.

use crate::index::KeyHash;
use std::collections::BTreeMap;

/// Milliseconds of a tick, as a power of two.
const TICK_BITS: u32 = 7;

/// Keys by the tick of their expiry.
#[derive(Debug, Default)]
pub struct Expiry {
    ticks: BTreeMap<i64, Vec<u64>>,
    len: usize,
    /// Entries by database.
    counts: BTreeMap<u8, usize>,
}

impl Expiry {
    /// Notes that a key expires then.
    pub fn add(&mut self, expire_ms: i64, db: u8, hash: KeyHash) {
        let entry = u64::from(db) << 48 | hash.number();
        let tick = self.ticks.entry(tick_of(expire_ms)).or_default();
        if tick.last() != Some(&entry) {
            tick.push(entry);
            self.len += 1;
            *self.counts.entry(db).or_default() += 1;
        }
    }

    /// Takes up to `count` keys whose tick has passed.
    pub fn take_due(&mut self, now_ms: i64, count: usize) -> Vec<(u8, KeyHash)> {
        let mut due = Vec::new();
        while due.len() < count {
            let Some(mut first) = self.ticks.first_entry() else { break };
            if tick_of(now_ms) <= *first.key() {
                break;
            }
            let taken = count - due.len();
            let entries = first.get_mut();
            let rest = entries.len().saturating_sub(taken);
            due.extend(entries.drain(rest..).map(split));
            if entries.is_empty() {
                first.remove();
            }
        }
        self.len -= due.len();
        for (db, _) in &due {
            self.counts.entry(*db).and_modify(|count| *count -= 1);
        }
        due
    }

    /// Entries of a database.
    pub fn count_of(&self, db: u8) -> usize {
        self.counts.get(&db).copied().unwrap_or(0)
    }

    /// All entries by database, for a checkpoint: times are those of their ticks.
    pub fn all(&self) -> Vec<(u8, Vec<(i64, KeyHash)>)> {
        let mut by_db: BTreeMap<u8, Vec<(i64, KeyHash)>> = BTreeMap::new();
        for (tick, entries) in &self.ticks {
            for entry in entries {
                let (db, hash) = split(*entry);
                by_db.entry(db).or_default().push((tick << TICK_BITS, hash));
            }
        }
        by_db.into_iter().collect()
    }

    /// Bytes of memory.
    pub fn size(&self) -> usize {
        self.len * 8 + self.ticks.len() * 64
    }

    /// Takes all keys out.
    pub fn clear(&mut self) {
        *self = Expiry::default();
    }
}

/// Whether both times share a tick, so that one entry does for both.
pub fn is_same_tick(one_ms: i64, other_ms: i64) -> bool {
    tick_of(one_ms) == tick_of(other_ms)
}

fn tick_of(ms: i64) -> i64 {
    ms >> TICK_BITS
}

fn split(entry: u64) -> (u8, KeyHash) {
    (u8::try_from(entry >> 48).unwrap_or(0), KeyHash::from_number(entry))
}
