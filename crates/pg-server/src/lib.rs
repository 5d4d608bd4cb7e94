//! The door for PostgreSQL's clients: `COPY` of exposition text in, SQL out.
//!
//! ```text
//! socket > connection (frames, limits, TLS) > welcome (who it is) > session
//!   simple | extended (prepared, parameters) > handlers > commands | copies > copy (lines to samples)
//!                                                       | answers (rows of `sql` to messages)
//! ```
//! Messages are those of the crate pgwire; what a statement means is the room `sql`'s.

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

mod copy;
mod policies;
mod protocol;
mod session;
mod statements;
mod values;

use app::App;
use engine::{Partial, QueryLimits, QueryOptions};
use net::listeners::accept::{Accepting, Stop, accept};
use net::listeners::bind::Bound;
use pgwire::api::RandomPidSecretKeyGenerator;
use protocol::startup;
use session::{cancels, notifications};
use sql::{Database, Limits};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What all connections share.
pub struct Postgres {
    app: Arc<App>,
    database: Database,
    /// For a handshake that the client asks for within the protocol.
    tls: Option<TlsAcceptor>,
    handshake_timeout: Duration,
    idle: Option<Duration>,
    /// Who may be cancelled by whom.
    cancels: cancels::Cancels,
    /// Channels of `LISTEN` and their connections.
    notifications: notifications::Notifications,
    pids: RandomPidSecretKeyGenerator,
    startup: startup::Startup,
}

/// Opens the door.
pub fn open(
    app: &Arc<App>,
    bound: Bound,
    mut accepting: Accepting,
    stop: &Stop,
) -> Vec<JoinHandle<()>> {
    let query = &app.config.query;
    let limits = Limits {
        series_max: query.series_max,
        timeout: query.timeout,
        // The others are for those who give locks back.
        waiting_max: query.concurrency_max / 2,
        memory_max: usize::try_from(query.memory_max).unwrap_or(usize::MAX),
        query: query_options(app),
    };
    let database = match Database::new(app.store.clone(), app.tables.clone(), limits) {
        Ok(database) => database,
        Err(error) => {
            tracing::error!("SQL is not served: {error}");
            return Vec::new();
        }
    };
    if let Err(error) = database.finish_drops() {
        tracing::error!("cannot delete the samples of a dropped table: {error}");
    }
    tracing::info!("PostgreSQL's clients are served at {} (--postgres-listen)", bound.address);
    let door = Arc::new(Postgres {
        app: app.clone(),
        database,
        tls: accepting.tls.take(),
        handshake_timeout: accepting.handshake_timeout,
        idle: app.config.listener(bound.listener).and_then(|one| one.idle_timeout),
        cancels: cancels::Cancels::default(),
        notifications: notifications::Notifications::default(),
        pids: RandomPidSecretKeyGenerator::default(),
        startup: startup::Startup::new(app),
    });
    vec![
        tokio::spawn(policies::keep(door.clone(), stop.clone())),
        tokio::spawn(accept(accepting, bound.streams, door, stop.clone())),
    ]
}

/// What PromQL within SQL heeds: the same as elsewhere.
fn query_options(app: &App) -> QueryOptions {
    let config = &app.config.query;
    QueryOptions {
        experimental_functions: config.has_experimental,
        lookback_ms: i64::try_from(config.lookback.as_millis()).unwrap_or(i64::MAX),
        limits: QueryLimits {
            samples_max: config.samples_max as u64,
            series_max: config.series_max,
            memory_bytes_max: config.memory_max,
            ..QueryLimits::default()
        },
        partial: Partial::Deny,
        start_timestamps: config.start_timestamps,
        ..QueryOptions::default()
    }
}
