//! Whole databases: emptied, exchanged, scanned, a key of them picked.

use super::expiring::first_expiry;
use super::{HIDDEN_DATABASES, Keyspace, Touched, unreadable};
use crate::error::{CommandError, Error};
use crate::index::Place;
use crate::value::Value;

/// Result of a [`Keyspace::scan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Cursor of the keys behind; 0 at the end.
    pub next: u64,
    /// Keys whose records are corrupt.
    pub corrupt: usize,
}

impl Scan {
    /// The next cursor, if every key was shown.
    ///
    /// # Errors
    /// When records are corrupt. The message has the next cursor: `SCAN` goes on there.
    pub fn complete(self) -> Result<u64, CommandError> {
        let Scan { next, corrupt } = self;
        match corrupt {
            0 => Ok(next),
            _ => Err(CommandError::new(format!(
                "ERR the names of {corrupt} keys cannot be read: their records are corrupt, and the server's log \
                 names the files. SCAN {next} continues behind them, and COUNT 1 skips the fewest keys"
            ))),
        }
    }
}

/// Refuses a list that lacks the names of keys with corrupt records.
///
/// # Errors
/// When there are any.
pub(crate) fn check_corrupt(corrupt: usize) -> Result<(), CommandError> {
    match corrupt {
        0 => Ok(()),
        _ => Err(CommandError::new(format!(
            "ERR the names of {corrupt} keys cannot be read: their records are corrupt, and the server's log \
             names the files. SCAN lists the other keys"
        ))),
    }
}

impl Keyspace {
    /// Takes all keys of a database out.
    pub fn flush(&mut self, db: u8) {
        self.spoil_dump();
        self.tell_watched(db, db);
        self.changes += 1;
        self.flush_series(db);
        let index = std::mem::take(&mut self.dbs[usize::from(db)]);
        for table in 0..index.table_count() {
            for (_, place) in index.table(table) {
                match place {
                    Place::Cold(address) => self.cold.release(address),
                    Place::Hot(number) => {
                        let Some(slot) = self.slots.remove(number) else { continue };
                        self.hot_size -= slot.cost as usize;
                        slot.home.into_iter().for_each(|home| self.cold.release(home));
                        self.discard(slot.value);
                    }
                }
            }
        }
        self.cold.is_snapshot_stale = true;
        if self.is_observed {
            self.touched.push(Touched::Database(db));
        }
        let waited: Vec<_> = self.waited_for.keys().filter(|key| key.0 == db).cloned().collect();
        self.ready.extend(waited);
    }

    /// Exchanges two databases.
    ///
    /// # Errors
    /// When a record cannot be read: each names its database, so all are read and written again.
    pub fn swap(&mut self, one: u8, other: u8) -> Result<(), CommandError> {
        if one == other {
            return Ok(());
        }
        self.spoil_dump();
        self.tell_watched(one, other);
        self.tell_watched(other, one);
        for db in [one, other] {
            self.warm_all(db)?;
        }
        self.dbs.swap(usize::from(one), usize::from(other));
        for db in [one, other] {
            for table in 0..self.dbs[usize::from(db)].table_count() {
                let entries: Vec<_> = self.dbs[usize::from(db)].table(table).collect();
                for (hash, place) in entries {
                    let Place::Hot(number) = place else { continue };
                    let Some(slot) = self.slots.get_mut(number) else { continue };
                    (slot.db, slot.seq, slot.is_dirty) = (db, self.seq, true);
                    let home = slot.home.take();
                    // Its record names the other database: nobody would find the key by it.
                    home.into_iter().for_each(|home| self.cold.release(home));
                    let at = first_expiry(slot.expire_ms, &slot.value);
                    self.note_later(at, db, hash);
                    self.slots.end_saving(number);
                }
            }
        }
        if self.is_observed {
            self.touched.extend([Touched::Database(one), Touched::Database(other)]);
        }
        self.changes += 1;
        self.cold.is_snapshot_stale = true;
        let waited = self.waited_for.keys().filter(|key| key.0 == one || key.0 == other);
        let waited: Vec<_> = waited.cloned().collect();
        self.ready.extend(waited);
        Ok(())
    }

    /// Places the hidden databases of a keyspace without keys.
    pub(crate) fn place_hidden(&mut self, from: usize) {
        self.hidden_from = from;
        let count = self.dbs.len().max(from + HIDDEN_DATABASES);
        self.dbs.resize_with(count, Default::default);
    }

    /// Moves the hidden databases behind others that clients have. What is there is none of theirs yet.
    ///
    /// # Errors
    /// When one byte cannot number them there, or a record cannot be read.
    pub(crate) fn move_hidden(&mut self, to: usize) -> Result<(), CommandError> {
        let from = self.hidden_from;
        let number = |db: usize| {
            u8::try_from(db).map_err(|_| CommandError::new(format!("ERR no database {db}")))
        };
        number(to + HIDDEN_DATABASES - 1)?;
        self.dbs.resize_with(self.dbs.len().max(to + HIDDEN_DATABASES), Default::default);
        // From the last one on: the first may come to where another was.
        for at in (0..HIDDEN_DATABASES).rev() {
            self.swap(number(from + at)?, number(to + at)?)?;
        }
        self.hidden_from = to;
        Ok(())
    }

    /// The last database from `from` on that clients had and that has keys.
    pub(crate) fn last_used(&self, from: usize) -> Option<usize> {
        (from..self.hidden_from).rev().find(|db| self.dbs.get(*db).is_some_and(|db| !db.is_empty()))
    }

    fn warm_all(&mut self, db: u8) -> Result<(), CommandError> {
        for table in 0..self.dbs[usize::from(db)].table_count() {
            let entries: Vec<_> = self.dbs[usize::from(db)].table(table).collect();
            for (hash, place) in entries {
                let Place::Cold(address) = place else { continue };
                let record = self.cold.read(address).map_err(unreadable)?;
                self.admit(record, address, hash);
            }
        }
        Ok(())
    }

    /// Keys of a database from a cursor on, by order of their hashes; see [`crate::index::Index::scan`]. Keys
    /// that have expired are left out. Keys with corrupt records are left out and counted: no other file has
    /// their names. Callers that need every key use [`Scan::complete`].
    ///
    /// # Errors
    /// When the disk does not give a record.
    pub fn scan(
        &mut self,
        db: u8,
        cursor: u64,
        count: usize,
        mut each: impl FnMut(&[u8], &Value),
    ) -> Result<Scan, CommandError> {
        let (next, places) = self.dbs[usize::from(db)].scan(cursor, count);
        let mut corrupt = 0;
        for (_, place) in places {
            corrupt += usize::from(!self.look(place, &mut each)?);
        }
        Ok(Scan { next, corrupt })
    }

    /// Shows a key at a place that has not expired; a cold one stays cold. Returns false if its record is
    /// corrupt.
    pub(super) fn look(
        &mut self,
        place: Place,
        each: &mut impl FnMut(&[u8], &Value),
    ) -> Result<bool, CommandError> {
        match place {
            Place::Hot(number) => {
                let slot = self.slots.get(number).filter(|slot| !self.has_passed(slot.expire_ms));
                if let Some(slot) = slot {
                    each(&slot.key, &slot.value);
                }
            }
            Place::Cold(address) => match self.cold.read(address) {
                Ok(record) if !self.has_passed(record.expire_ms) => {
                    each(&record.key, &record.value);
                }
                Ok(_) => {}
                Err(error @ Error::Corrupt { .. }) => {
                    self.note_unreadable(address, &error);
                    return Ok(false);
                }
                Err(error) => return Err(unreadable(error)),
            },
        }
        Ok(true)
    }

    /// A random key of a database that has not expired.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn random_key(&mut self, db: u8) -> Result<Option<Vec<u8>>, CommandError> {
        // Among many expired ones a living one is found at last by going through all of them.
        for _ in 0..100 {
            let random = self.random();
            let Some((_, place)) = self.dbs[usize::from(db)].pick(random) else { return Ok(None) };
            let mut found = None;
            self.look(place, &mut |key, _| found = Some(key.to_vec()))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let mut found = None;
        let scan = self.scan(db, 0, usize::MAX, |key, _| found = Some(key.to_vec()))?;
        if found.is_none() {
            scan.complete()?;
        }
        Ok(found)
    }
}
