//! InfluxDB's clients: line protocol in over HTTP, InfluxQL and Flux out, and the handshakes they
//! begin with; line protocol over TCP and UDP, without answers.
//!
//! ```text
//! streams (TCP) ── whole lines ─┐
//!                               ├─► lines: decode, store, count
//! datagrams (UDP) ── lines ─────┘
//! ```

pub mod buckets;
pub mod flux;
pub mod handshakes;
pub mod query;
pub mod v3;
pub mod write;

mod datagrams;
mod lines;
mod policies;
mod streams;

use app::App;
use lines::Lines;
use net::listeners::accept::{Accepting, Stop, accept};
use net::listeners::bind::Bound;
use std::sync::Arc;
use streams::Streams;
use tokio::task::JoinHandle;

/// Opens the listener of line protocol.
pub fn open(
    app: &Arc<App>,
    bound: Bound,
    accepting: Accepting,
    stop: &Stop,
) -> Vec<JoinHandle<()>> {
    let Bound { address, streams, datagrams, .. } = bound;
    tracing::info!("line protocol is taken over TCP and UDP at {address} (--influx-listen)");
    let lines = Arc::new(Lines::new(app.clone()));
    let door = Arc::new(Streams::new(lines.clone()));
    let mut tasks = vec![tokio::spawn(accept(accepting, streams, door, stop.clone()))];
    tasks.extend(
        datagrams.map(|socket| tokio::spawn(datagrams::receive(lines, socket, stop.clone()))),
    );
    tasks
}
