//! Cold values on their way into memory, read while others have the keys.
//!
//! ```text
//! locked: which records a command will need ─► unlocked: read, decode ─► locked: admit those that
//!                                                                        are still their keys' ─► run
//! ```
//! What was changed, moved or read by somebody else meanwhile is not admitted: the command finds what
//! there is then, and reads under the lock what nobody has read for it.

use super::Keyspace;
use crate::cold::{Reading, Record};
use crate::index::{Address, KeyHash, Place};

/// A cold value that a command is about to need.
pub struct Fetch {
    db: u8,
    hash: KeyHash,
    address: Address,
    reading: Reading,
    record: Option<Record>,
}

impl Fetch {
    /// Reads it if the system has it in memory. Returns whether it was read.
    pub fn read_cached(&mut self) -> bool {
        if self.record.is_none() {
            self.record = self.reading.read_cached();
        }
        self.record.is_some()
    }

    /// Reads it from the disk unless it was read. What cannot be read is met by the command itself.
    pub fn read(&mut self) {
        if self.record.is_none() {
            self.record = self.reading.read();
        }
    }

    /// Where its record lies: no other record ever lies there.
    pub fn address(&self) -> Address {
        self.address
    }

    /// About how many bytes it will take once it is read, from its beginning on disk. None where that
    /// cannot be read; its command meets the reason.
    pub fn size_to_be(&self) -> Option<usize> {
        self.reading.size()
    }

    /// Whether it was read.
    pub fn is_read(&self) -> bool {
        self.record.is_some()
    }

    /// Bytes that were read, about.
    pub fn size(&self) -> usize {
        self.record.as_ref().map_or(0, |record| record.key.len() + record.value.heap_size())
    }
}

impl Keyspace {
    /// Whether any key is not in memory.
    pub fn has_cold(&self) -> bool {
        self.slots.len() < self.dbs.iter().map(crate::index::Index::len).sum()
    }

    /// Adds what has to be read from disk before a key can be looked up.
    pub fn fetch(&self, db: u8, key: &[u8], fetches: &mut Vec<Fetch>) {
        let Some(index) = self.dbs.get(usize::from(db)) else { return };
        let hash = self.hash(key);
        let before = fetches.len();
        let found = index.find(hash, |place| match place {
            Place::Hot(number) => self.slots.get(number).is_some_and(|slot| *slot.key == *key),
            Place::Cold(address) => {
                let reading = self.cold.reading(address);
                let fetch = |reading| Fetch { db, hash, address, reading, record: None };
                fetches.extend(reading.map(fetch));
                false
            }
        });
        if found.is_some() {
            // Another key of the same hash is cold.
            fetches.truncate(before);
        }
    }

    /// Adds what has to be read before the keys can be looked at that are due to expire, `count` of
    /// them at most.
    pub(crate) fn fetch_due(&self, count: usize, fetches: &mut Vec<Fetch>) {
        for (db, hash) in self.expiry.due(self.now_ms, count) {
            self.dbs[usize::from(db)].find(hash, |place| {
                if let Place::Cold(address) = place {
                    let reading = self.cold.reading(address);
                    let fetch = |reading| Fetch { db, hash, address, reading, record: None };
                    fetches.extend(reading.map(fetch));
                }
                false
            });
        }
    }

    /// Makes what was read hot keys, as far as it is still what the index points to.
    pub fn settle(&mut self, fetches: &mut Vec<Fetch>) {
        for Fetch { db, hash, address, record, .. } in fetches.drain(..) {
            let Some(record) = record.filter(|record| record.db == db) else { continue };
            let is_there = self.dbs.get(usize::from(db)).is_some_and(|index| {
                index.find(hash, |place| place == Place::Cold(address)).is_some()
            });
            if is_there && self.hash(&record.key) == hash {
                self.stats.cold_reads += 1;
                self.admit(record, address, hash);
            }
        }
    }
}
