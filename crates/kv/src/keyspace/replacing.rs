//! All keys replaced by others: what a replica does with what its primary sends first.

use super::{Expire, Keyspace};
use crate::effects::FLUSH;
use crate::error::CommandError;
use crate::value::{Series, Stored as _, Value};

/// Keys that one step takes out.
const STEP_LEN: usize = 512;

/// How far the keys are taken out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Emptying {
    db: u8,
    cursor: u64,
    is_one: bool,
    is_done: bool,
}

impl Emptying {
    /// Of one database only.
    pub fn one(db: u8) -> Emptying {
        Emptying { db, is_one: true, ..Emptying::default() }
    }

    /// The database is empty.
    fn go_on(&mut self) {
        self.db += 1;
        self.is_done = self.is_one;
    }
}

impl Keyspace {
    /// Takes some keys out, all but time series, and logs that. Returns whether more are left.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn empty_some(&mut self, at: &mut Emptying) -> Result<bool, CommandError> {
        if at.is_done || self.config.databases <= usize::from(at.db) {
            return Ok(false);
        }
        let db = at.db;
        if !self.has_series(db)? {
            if !self.is_empty(db) {
                self.flush(db);
                self.effects.push(db, &[FLUSH]);
            }
            at.go_on();
            return Ok(true);
        }
        let mut gone: Vec<Vec<u8>> = Vec::new();
        let scan = self.scan(db, at.cursor, STEP_LEN, |key, value| {
            if !matches!(value, Value::Series(_)) {
                gone.push(key.to_vec());
            }
        })?;
        at.cursor = scan.next;
        for key in gone {
            self.remove(db, &key)?;
            self.effects.push(db, &[b"del", &key]);
        }
        if at.cursor == 0 {
            at.go_on();
        }
        Ok(true)
    }

    /// Whether a database has time series.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn has_series(&mut self, db: u8) -> Result<bool, CommandError> {
        Ok(db == crate::series::SERIES_DB && self.lists_series())
    }

    /// Gives a key the value that it has elsewhere, and logs that. Returns whether it has: a time
    /// series stays.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn load_key(
        &mut self,
        db: u8,
        key: &[u8],
        value: Value,
        expire_ms: Option<i64>,
    ) -> Result<bool, CommandError> {
        if self.value(db, key)?.is_some_and(|value| Series::of(value).is_some()) {
            return Ok(false);
        }
        self.put(db, key, value, expire_ms.map_or(Expire::Never, Expire::At))?;
        self.log_key(db, key)?;
        Ok(true)
    }
}
