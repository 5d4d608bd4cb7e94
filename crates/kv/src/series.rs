//! Keys that are time series: lists of them, and what whoever keeps samples must hear of them.
//!
//! Series live in the first database. Two databases list them that clients do not see, and whose place
//! the manifest has: one all, the other those that have no sample under their labels yet, which nobody else knows of. Nothing is
//! logged of these lists: they follow from the series, at replay, too.

use crate::error::CommandError;
pub use crate::keyspace::series_event::SeriesEvent;
use crate::keyspace::{Keyspace, check_corrupt};
use crate::slots::NEVER;
use crate::value::{Series, Stored as _, Str, Value};

/// The database of series.
pub const SERIES_DB: u8 = 0;

impl Keyspace {
    fn all_series_db(&self) -> u8 {
        u8::try_from(self.hidden_from).unwrap_or(u8::MAX)
    }

    fn unsampled_db(&self) -> u8 {
        u8::try_from(self.hidden_from + 1).unwrap_or(u8::MAX)
    }

    /// What became of series since the last call.
    pub fn take_series_events(&mut self) -> Vec<SeriesEvent> {
        std::mem::take(&mut self.series_events)
    }

    /// Whether there is any such news.
    pub fn has_series_events(&self) -> bool {
        !self.series_events.is_empty()
    }

    /// Whether any key may be a series: some that are listed may be gone.
    pub fn lists_series(&self) -> bool {
        !self.is_empty(self.all_series_db())
    }

    /// The keys of all series, or of those without samples under their labels. Some may be gone.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn listed_series(&mut self, is_unsampled: bool) -> Result<Vec<Vec<u8>>, CommandError> {
        let db = if is_unsampled { self.unsampled_db() } else { self.all_series_db() };
        let (keys, corrupt) = self.readable_keys(db)?;
        check_corrupt(corrupt)?;
        Ok(keys)
    }

    /// The keys of a list, and the number of those whose records are corrupt.
    fn readable_keys(&mut self, db: u8) -> Result<(Vec<Vec<u8>>, usize), CommandError> {
        let mut keys = Vec::new();
        if self.is_empty(db) {
            return Ok((keys, 0));
        }
        let scan = self.scan(db, 0, usize::MAX, |key, _| keys.push(key.to_vec()))?;
        Ok((keys, scan.corrupt))
    }

    pub(crate) fn note_series_gone(&mut self, db: u8, key: &[u8], value: &Value) {
        let Some(series) = Series::of(value) else { return };
        if db == SERIES_DB {
            self.set_listed(self.all_series_db(), key, false);
            self.set_listed(self.unsampled_db(), key, false);
            self.series_events.push(SeriesEvent::Gone(key.into(), Box::new(series.clone())));
        }
    }

    pub(crate) fn note_series_come(&mut self, db: u8, key: &[u8]) -> Result<(), CommandError> {
        if db != SERIES_DB {
            return Ok(());
        }
        let is_moved = match self.slot(db, key)?.map(|slot| &slot.value) {
            Some(Value::Series(series)) => series.name.as_bytes() != key,
            _ => false,
        };
        if is_moved {
            self.series_events.push(SeriesEvent::Moved(key.into()));
        }
        Ok(())
    }

    /// Brings the lists up to date with a slot.
    #[inline]
    pub(crate) fn list_series(&mut self, number: u32) {
        let Some(slot) = self.slots.get(number) else { return };
        let Value::Series(series) = &slot.value else { return };
        if slot.db == SERIES_DB {
            let (key, is_sampled) = (slot.key.clone(), series.is_sampled);
            self.set_listed(self.all_series_db(), &key, true);
            self.set_listed(self.unsampled_db(), &key, !is_sampled);
        }
    }

    /// The same with a key.
    pub(crate) fn list_series_of(&mut self, db: u8, key: &[u8]) -> Result<(), CommandError> {
        if let Some(number) = self.find(db, key)? {
            self.list_series(number);
        }
        Ok(())
    }

    fn set_listed(&mut self, db: u8, key: &[u8], is_listed: bool) {
        // A list that cannot be read is one of keys that cannot be read either.
        let Ok(found) = self.find(db, key) else { return };
        match found {
            Some(number) if !is_listed => {
                let hash = self.hash(key);
                self.drop_slot(number, hash);
            }
            None if is_listed => {
                self.insert(db, key, Str::default().into_value(), NEVER);
            }
            _ => {}
        }
    }

    /// Before a database is flushed: its series are told of one by one.
    pub(crate) fn flush_series(&mut self, db: u8) {
        if db != SERIES_DB {
            return;
        }
        let Ok((keys, _)) = self.readable_keys(self.all_series_db()) else { return };
        for key in keys {
            if let Ok(Some(number)) = self.find(db, &key)
                && self.slots.get(number).is_some_and(|slot| Series::of(&slot.value).is_some())
            {
                let hash = self.hash(&key);
                self.drop_slot(number, hash);
            } else {
                self.set_listed(self.all_series_db(), &key, false);
                self.set_listed(self.unsampled_db(), &key, false);
            }
        }
    }

    /// Logs a key as it is now: its whole value, or that it is gone.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn log_key(&mut self, db: u8, key: &[u8]) -> Result<(), CommandError> {
        let mut encoded = Vec::new();
        let expire_ms = match self.stored_slot(db, key)? {
            Some(slot) => {
                slot.value.encode(&mut encoded);
                slot.expire_ms
            }
            None => {
                self.effects.push(db, &[b"del", key]);
                return Ok(());
            }
        };
        let expire = if expire_ms == NEVER { -1 } else { expire_ms };
        let mut digits = itoa::Buffer::new();
        let expire = digits.format(expire).as_bytes();
        self.effects.push(db, &[crate::effects::PUT, key, expire, &encoded]);
        Ok(())
    }
}
