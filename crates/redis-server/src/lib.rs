//! Redis' clients: keys over RESP.
//!
//! ```text
//! connection (bytes) ─► dispatch (one command: may it, when, by whom) ─► kv::commands   on keys
//!       ▲                     │                                     └─► commands::*    on the rest
//!       │ outbox              ▼
//!       └──────────────── hub: who is there, who listens, who waits, what is watched
//! ```
//!
//! All connections are served by one thread, which executes what a client has sent as one batch:
//! one read, one hold of the lock, one write. `hub/guard.rs` has the order of locks.

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

mod acl;
mod clients;
mod clock;
mod commands;
mod connection;
mod dispatch;
mod hub;
mod memory;
mod out;
mod persistence;
mod redis;
mod registry;
mod replication;
mod scripting;
mod settings;
mod stats;
mod timeseries;
mod version;

pub use hub::Hub;
pub use persistence::saved_files;

use allocator::Freed;
use app::App;
use connection::closed::ClosedKeys;
use kv::Kv;
use net::listeners::accept::{Accepting, Stop, accept};
use net::listeners::bind::Bound;
use net::listeners::table::Listener;
use redis::Redis;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Opens the door to keys; its thread ends when the server does.
pub fn open(
    app: &Arc<App>,
    kv: Arc<Kv>,
    bound: Bound,
    mut accepting: Accepting,
    stop: &Stop,
) -> Vec<JoinHandle<()>> {
    accepting.cores = None;
    commands::register();
    tracing::info!("keys are served to Redis' clients at {} (--redis-listen)", bound.address);
    let idle = app.config.listener(Listener::Redis).and_then(|one| one.idle_timeout);
    let connections_max = accepting.connections.count_max();
    let door = Redis::new(app.clone(), kv, idle, bound.address, connections_max);
    door.begin_settings();
    door.scripting.recall(&door.kv);
    door.replication.link.recall(&door);
    replication::begin(&door);
    app.telemetry.register(Arc::new(stats::metrics::Metrics(Arc::downgrade(&door))));
    let stop = stop.clone();
    let serve = move || match serve(bound, accepting, door, stop) {
        Ok(()) => {}
        Err(error) => tracing::error!("keys are not served: {error}"),
    };
    vec![tokio::task::spawn_blocking(serve)]
}

/// Opens the listener of a server whose keys are damaged: every command gets the reason.
pub fn open_closed(
    reason: &str,
    bound: Bound,
    accepting: Accepting,
    stop: &Stop,
) -> Vec<JoinHandle<()>> {
    tracing::error!(
        "every command of Redis' clients at {} (--redis-listen) gets an error: {reason}",
        bound.address
    );
    let door = Arc::new(ClosedKeys::new(reason));
    vec![tokio::spawn(accept(accepting, bound.streams, door, stop.clone()))]
}

/// A script may nest tables a thousand deep.
const THREAD_STACK_SIZE: usize = 16 << 20;

/// Serves connections in a runtime of this thread alone, until the server ends and they have.
fn serve(bound: Bound, accepting: Accepting, door: Arc<Redis>, stop: Stop) -> std::io::Result<()> {
    let streams = bound.streams.into_std()?;
    // One worker; a script that takes long leaves its place to another (see `scripting`).
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("redis")
        .thread_stack_size(THREAD_STACK_SIZE)
        .enable_all()
        .build()?;
    let connections = accepting.connections.clone();
    runtime.block_on(async move {
        let expiring = tokio::spawn(settle_expired(door.clone()));
        let syncing = door.clone();
        let syncing = tokio::spawn(async move { syncing.durable.serve(syncing.kv.clone()).await });
        let following = tokio::spawn(replication::following::run(door.clone(), stop.clone()));
        let handing_over = tokio::spawn(replication::failover::run(door.clone()));
        accept(accepting, TcpListener::from_std(streams)?, door.clone(), stop).await;
        while 0 < connections.count() {
            // What it has written stays, as of a script that fails.
            door.scripting.busy.end_at_once();
            door.hub().close_all();
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        expiring.abort();
        syncing.abort();
        handing_over.abort();
        // It hears that the server ends, too, and what it began has to be left whole.
        let _ = following.await;
        Ok(())
    })
}

/// How often it is looked whether keys or time series expired while nobody said anything.
const SETTLE_INTERVAL: std::time::Duration = std::time::Duration::from_millis(200);

/// Bytes of clients' buffers after which freed memory goes back to the system at once.
const GIVE_BACK_SIZE: usize = 32 << 20;

/// Deletes the samples of time series that expire, and tells those who want to hear of what did.
async fn settle_expired(door: Arc<Redis>) {
    let mut released = 0;
    loop {
        tokio::time::sleep(SETTLE_INTERVAL).await;
        door.ping_replicas();
        released += door.client_memory.take_released();
        if GIVE_BACK_SIZE <= released {
            // The allocator keeps large buffers for a while, and memory is measured.
            released = 0;
            tokio::task::spawn_blocking(|| allocator::give_back(Freed::All));
        }
        // A script that takes long has the keys, and this thread serves those who would end it.
        let Some(mut keys) = door.kv.lock_within(std::time::Duration::ZERO) else { continue };
        for news in keys.take_rotten_news() {
            tracing::error!("a key's value is lost: {news} (quipu verify lists what is damaged)");
        }
        if keys.has_series_events() {
            // What fails is told where it fails.
            let _ = timeseries::news::settle_expired(&door.app, &mut keys);
            let _ = door.kv.commit(&mut keys);
        }
        if keys.has_news() {
            // Of no client's doing.
            let mut hub = door.hub();
            door.after(0, &mut keys, &mut hub);
            let _ = door.kv.commit(&mut keys);
        }
    }
}
