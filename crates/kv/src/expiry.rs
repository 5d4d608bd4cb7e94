//! When keys expire: a wheel of ticks, each with the hashes of the keys that may be due then.
//!
//! What holds: a key that expires has an entry at that tick or an earlier one. An entry is never taken
//! out when a key's time changes: whoever finds it looks at the key itself, and notes the key again if
//! it is to go later. So a key whose time is put off again and again has one entry. Those of keys that
//! went and came again are found when there are many more entries than keys: [`Expiry::tidy`].

use crate::index::KeyHash;
use std::collections::{BTreeMap, HashSet};

/// Milliseconds of a tick, as a power of two.
const TICK_BITS: u32 = 7;
/// Entries that there may be whatever the keys need.
const SPARE_ENTRIES_MAX: usize = 1 << 16;

/// Keys by the tick of their expiry.
#[derive(Debug, Default)]
pub struct Expiry {
    ticks: BTreeMap<i64, Vec<u64>>,
    len: usize,
    /// Sum of the ticks of all entries.
    tick_sum: i128,
    /// Entries by database.
    counts: BTreeMap<u8, usize>,
}

impl Expiry {
    /// Notes that a key expires then.
    pub fn add(&mut self, expire_ms: i64, db: u8, hash: KeyHash) {
        let entry = u64::from(db) << 48 | hash.number();
        let number = tick_of(expire_ms);
        let tick = self.ticks.entry(number).or_default();
        if tick.last() != Some(&entry) {
            tick.push(entry);
            self.len += 1;
            self.tick_sum += i128::from(number);
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
            let number = *first.key();
            let entries = first.get_mut();
            let taken = entries.len().min(count - due.len());
            let rest = entries.len() - taken;
            self.tick_sum -= i128::from(number) * taken as i128;
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

    /// Whether there are many more entries than so many keys need.
    pub fn is_untidy(&self, keys: usize) -> bool {
        SPARE_ENTRIES_MAX + 2 * keys < self.len
    }

    /// Takes out all entries of a key but the first, and those of keys that are not there.
    pub fn tidy(&mut self, is_there: impl Fn(u8, KeyHash) -> bool) {
        let mut seen: HashSet<u64> = HashSet::new();
        self.counts.clear();
        for entries in self.ticks.values_mut() {
            entries.retain(|entry| {
                let (db, hash) = split(*entry);
                let stays = is_there(db, hash) && seen.insert(*entry);
                if stays {
                    *self.counts.entry(db).or_default() += 1;
                }
                stays
            });
            entries.shrink_to_fit();
        }
        self.ticks.retain(|_, entries| !entries.is_empty());
        self.len = seen.len();
        let sums =
            self.ticks.iter().map(|(tick, entries)| i128::from(*tick) * entries.len() as i128);
        self.tick_sum = sums.sum();
    }

    /// The keys that [`Expiry::take_due`] would take.
    pub fn due(&self, now_ms: i64, count: usize) -> Vec<(u8, KeyHash)> {
        let passed = self.ticks.range(..tick_of(now_ms));
        passed
            .flat_map(|(_, entries)| entries.iter().rev())
            .take(count)
            .copied()
            .map(split)
            .collect()
    }

    /// Entries of a database.
    pub fn count_of(&self, db: u8) -> usize {
        self.counts.get(&db).copied().unwrap_or(0)
    }

    /// Milliseconds until the ticks of all entries, added up.
    pub fn left_ms(&self, now_ms: i64) -> f64 {
        let until = (self.tick_sum << TICK_BITS) - i128::from(now_ms) * self.len as i128;
        until.max(0) as f64
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

/// Whether a time's tick comes before that of another, so that the other's entry would be found too late.
pub fn is_earlier(one_ms: i64, other_ms: i64) -> bool {
    tick_of(one_ms) < tick_of(other_ms)
}

fn tick_of(ms: i64) -> i64 {
    ms >> TICK_BITS
}

fn split(entry: u64) -> (u8, KeyHash) {
    (u8::try_from(entry >> 48).unwrap_or(0), KeyHash::from_number(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_is_left_follows_the_entries() {
        let mut expiry = Expiry::default();
        assert_eq!(expiry.left_ms(1000), 0.0);
        let hash = |number| KeyHash::from_number(number);
        for (at, key) in [(1280, 1), (2560, 2), (2560, 3)] {
            expiry.add(at, 0, hash(key));
        }
        assert_eq!(expiry.left_ms(1280), 2560.0);
        assert_eq!(expiry.take_due(1408, 1).len(), 1);
        assert_eq!(expiry.left_ms(1280), 2560.0);
        expiry.tidy(|_, key| key == hash(3));
        assert_eq!(expiry.left_ms(1280), 1280.0);
        assert_eq!(expiry.left_ms(9000), 0.0, "the time is past");
        expiry.clear();
        assert_eq!(expiry.left_ms(0), 0.0);
    }
}
