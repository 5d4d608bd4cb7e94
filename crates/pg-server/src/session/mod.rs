//! What a connection remembers between messages.

pub mod cancels;
pub mod kept;
pub mod notifications;
pub mod place;
pub mod settings;

use super::Postgres;
use crate::copy::Copying;
use crate::copy::table_copies::Filling;
use crate::protocol::welcome::Authenticated;
use app::App;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kept::Kept;
use model::sample::NANOS_PER_MICRO;
use notifications::{Action, Actions, Inbox};
use place::Place;
use settings::{Scope, Settings, VERSION};
use sql::{Facts, Session as SqlSession, SqlError, Template};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
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
    pub app: Arc<App>,
    pub settings: Mutex<Settings>,
    /// The number by which the connection may be cancelled, once it has one.
    pub pid: Arc<AtomicI32>,
    /// Permit to run a query.
    pub place: Mutex<Weak<Place>>,
    /// LISTEN, UNLISTEN and NOTIFY of the open transaction.
    pub actions: Actions,
    /// The notifications that wait for the client.
    pub inbox: Arc<Inbox>,
}

impl Client {
    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self) -> Option<Arc<Place>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

impl Session {
    /// LISTEN, UNLISTEN and NOTIFY of the open transaction.
    pub fn actions(&self) -> &Actions {
        &self.client.actions
    }

    /// The notifications that wait for the client.
    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.client.inbox
    }

    /// The number by which the connection may be cancelled.
    pub fn pid(&self) -> i32 {
        self.client.pid()
    }

    /// The name that the client gave.
    pub fn user(&self) -> &str {
        &self.client.user
    }
}

impl Facts for Client {
    fn user(&self) -> String {
        self.user.clone()
    }

    fn database(&self) -> String {
        self.database.clone()
    }

    fn pid(&self) -> i32 {
        self.pid.load(Ordering::Relaxed)
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

    fn started_at_us(&self) -> i64 {
        self.app.started_at.div_euclid(NANOS_PER_MICRO)
    }

    fn now_us(&self) -> i64 {
        self.app.vfs.now().div_euclid(NANOS_PER_MICRO)
    }

    fn notify(&self, channel: &str, payload: &str) -> Result<(), SqlError> {
        let action = Action::Notify { channel: channel.into(), payload: payload.into() };
        self.actions.add(action).map_err(|(code, words)| SqlError::new(code, words))
    }

    fn leave_place(&self) {
        if let Some(place) = self.place() {
            place.leave();
        }
    }

    fn take_place(&self) -> BoxFuture<'static, Result<(), SqlError>> {
        let place = self.place();
        async move {
            match place {
                Some(place) => {
                    let taken = place.take().await;
                    taken.map_err(|failure| SqlError::new("53000", failure.to_string()))
                }
                None => Ok(()),
            }
        }
        .boxed()
    }
}

/// Those parts that change.
#[derive(Default)]
pub struct State {
    pub copying: Option<Copying>,
    pub filling: Option<Filling>,
    pub kept: Kept,
    /// What was prepared by statements.
    pub templates: HashMap<String, Template>,
    /// Whether the transaction under way has copied or dropped samples, which no `ROLLBACK` takes
    /// back.
    pub has_copied: bool,
    /// Whether several statements of one text are being done.
    pub is_text_one: bool,
}

impl Session {
    /// Creates the session of a client that has authenticated.
    pub fn new(door: &Postgres, client: Client, _: Authenticated) -> Arc<Session> {
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

    /// The connection's place among the running queries, taken or not.
    pub fn place(&self, app: &Arc<App>) -> Arc<Place> {
        let mut known = self.client.place.lock().unwrap_or_else(PoisonError::into_inner);
        known.upgrade().unwrap_or_else(|| {
            let place = Arc::new(Place::new(app));
            *known = Arc::downgrade(&place);
            place
        })
    }

    /// Stops what its portals do until one of them is asked for rows, and gives their place to others.
    pub fn rest(&self) {
        if let Some(place) = self.client.place() {
            self.sql.pause();
            place.leave();
        }
    }

    /// Its state. Not to be held while anybody is waited for.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// The text of a prepared statement with values in their places.
    ///
    /// # Errors
    /// When there is none of that name, or it takes other values.
    pub fn executed(&self, name: &str, values: &[String]) -> Result<String, SqlError> {
        let state = self.state();
        let template = state.templates.get(name).ok_or_else(|| {
            let words = format!("prepared statement \"{name}\" does not exist");
            SqlError::new("26000", words)
        })?;
        template.with_values(name, values)
    }

    /// Forgets what was prepared by a statement; says whether there was one of that name.
    pub fn forget_template(&self, name: &str) -> bool {
        let mut state = self.state();
        let is_known = state.templates.remove(name).is_some();
        if is_known {
            state.kept.remove_statement(name);
        }
        is_known
    }

    /// Keeps a statement for later.
    ///
    /// # Errors
    /// When there is one of that name, and when there are too many.
    pub fn prepare(&self, name: &str, template: Template) -> Result<(), SqlError> {
        let mut state = self.state();
        if state.templates.contains_key(name) {
            let words = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new("42P05", words));
        }
        state.kept.put_statement(name, template.size()).map_err(SqlError::limit)?;
        state.templates.insert(name.to_string(), template);
        Ok(())
    }
}
