//! What a connection remembers between messages.

use super::Postgres;
use super::copy::Copying;
use super::kept::Kept;
use super::settings::Settings;
use crate::admission::Permit;
use sql::{Session as SqlSession, SqlError, Vocabulary};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::time::Instant;

/// The tables that are there without anybody making them.
pub const TABLES: &[(&str, Vocabulary)] =
    &[("metrics", Vocabulary::Classic), ("metrics_cx", Vocabulary::Composite)];

/// Where samples may be copied to beside the tables themselves.
const COPY_SUFFIXES: &[&str] = &["", "_copy", "_samples"];

/// What a connection remembers.
pub struct Session {
    pub sql: SqlSession,
    state: Mutex<State>,
}

/// Those parts that change.
#[derive(Default)]
pub struct State {
    pub settings: Settings,
    pub copying: Option<Copying>,
    pub kept: Kept,
    /// Whether the transaction under way has copied samples, which no `ROLLBACK` takes back.
    pub has_copied: bool,
    /// Its place among the running queries, one for all portals.
    pub place: Weak<Permit>,
    /// When the first portal that waits for its client has had its time.
    pub portals_until: Option<Instant>,
}

impl Session {
    /// Of a client that has just come.
    ///
    /// # Errors
    /// When its tables cannot be made.
    pub fn new(door: &Postgres, settings: Settings) -> Result<Arc<Session>, SqlError> {
        let sql = door.database.session()?;
        for (name, vocabulary) in TABLES {
            door.database.add_samples(&sql, name, *vocabulary)?;
        }
        let state = Mutex::new(State { settings, ..State::default() });
        Ok(Arc::new(Session { sql, state }))
    }

    /// Its state. Not to be held while anybody is waited for.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether samples may be copied to a table of that name.
pub fn takes_samples(table: &str) -> bool {
    let is_known = |name: &str| {
        COPY_SUFFIXES
            .iter()
            .any(|suffix| table.strip_suffix(suffix).is_some_and(|base| base == name))
    };
    TABLES.iter().any(|(name, _)| is_known(name))
}
