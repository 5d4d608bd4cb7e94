//! What a connection remembers between messages.

use super::Postgres;
use super::copy::Copying;
use super::kept::Kept;
use super::settings::{Scope, Settings, VERSION};
use super::table_copies::Filling;
use crate::admission::Permit;
use sql::tables::TABLES;
use sql::{Facts, Session as SqlSession, SqlError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What a connection remembers.
pub struct Session {
    pub sql: SqlSession,
    client: Arc<Client>,
    state: Mutex<State>,
}

/// Who came, and what was set since.
pub struct Client {
    pub user: String,
    pub database: String,
    pub settings: Mutex<Settings>,
}

impl Client {
    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Facts for Client {
    fn user(&self) -> String {
        self.user.clone()
    }

    fn database(&self) -> String {
        self.database.clone()
    }

    fn version(&self) -> String {
        let quipu = env!("CARGO_PKG_VERSION");
        format!("PostgreSQL {VERSION} on {}, Quipu {quipu}", std::env::consts::ARCH)
    }

    fn setting(&self, name: &str) -> Option<String> {
        self.settings().get(name).map(str::to_string)
    }

    fn set(&self, name: &str, value: &str, is_local: bool) -> Result<(), SqlError> {
        let scope = if is_local { Scope::Transaction } else { Scope::Session };
        self.settings().set_for(scope, name, value)
    }
}

/// Those parts that change.
#[derive(Default)]
pub struct State {
    pub copying: Option<Copying>,
    pub filling: Option<Filling>,
    pub kept: Kept,
    /// Whether the transaction under way has copied or dropped samples, which no `ROLLBACK` takes
    /// back.
    pub has_copied: bool,
    /// Whether several statements of one text are being done.
    pub is_text_one: bool,
    /// Its place among the running queries, one for all portals.
    pub place: Weak<Permit>,
}

impl Session {
    /// Of a client that has just come.
    pub fn new(door: &Postgres, client: Client) -> Arc<Session> {
        let client = Arc::new(client);
        client.settings().begin_session();
        let facts: Arc<dyn Facts> = client.clone();
        let sql = door.database.session(&facts);
        Arc::new(Session { sql, client, state: Mutex::default() })
    }

    /// Its settings. Not to be held while anybody is waited for.
    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.client.settings()
    }

    /// Its state. Not to be held while anybody is waited for.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether samples may be copied to a table of that name.
pub fn takes_samples(table: &str) -> bool {
    TABLES.iter().any(|one| one.name == table && one.takes_samples)
}
