//! Doors: a folder for each protocol. What doors over HTTP share is in [`http`]; [`routes`] is the
//! table of which path leads to which of them.
//!
//! ```text
//! http: sockets > connection (limits) > exchange (one request) > router > a door > answer > stream
//! ```
//!
//! A door with a port of its own is opened by [`open`], an arm for each row of
//! [`crate::listeners::table`]. A door over HTTP is a plain function from a
//! [`http::request::Request`] to an [`http::answer::Answer`] or a [`crate::failure::Failure`]. It
//! runs on a worker thread and may block on the store.

#[path = "../../../http-api/src/http/mod.rs"]
pub mod http;
#[path = "../../../http-api/src/routes.rs"]
pub mod routes;

#[path = "../../../http-api/src/admin/mod.rs"]
pub mod admin;
#[path = "../../../http-api/src/graphite/mod.rs"]
pub mod graphite;
#[path = "../../../http-api/src/influx/mod.rs"]
pub mod influx;
#[path = "../../../http-api/src/page.rs"]
pub mod page;
#[cfg(feature = "sql")]
#[path = "../../../pg-server/src/lib.rs"]
pub mod postgres;
#[path = "../../../http-api/src/prometheus/mod.rs"]
pub mod prometheus;
#[path = "../../../redis-server/src/lib.rs"]
pub mod redis;
#[path = "../../../http-api/src/victoriametrics/mod.rs"]
pub mod victoriametrics;

use crate::app::App;
use crate::listeners::accept::{Accepting, Stop, accept};
use crate::listeners::bind::Bound;
use crate::listeners::table::Listener;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Opens the door of a listener; its tasks end when the server does.
pub fn open(
    app: &Arc<App>,
    bound: Bound,
    accepting: Accepting,
    stop: &Stop,
) -> Vec<JoinHandle<()>> {
    match bound.listener {
        Listener::Http => {
            let http = Arc::new(http::Http::new(app.clone(), routes::ROUTES));
            vec![tokio::spawn(accept(accepting, bound.streams, http, stop.clone()))]
        }
        Listener::Influx => influx::open(app, bound, accepting, stop),
        Listener::Redis => match (&app.kv, &app.closed.keys) {
            (Some(kv), _) => redis::open(app, kv.clone(), bound, accepting, stop),
            (None, Some(reason)) => redis::open_closed(reason, bound, accepting, stop),
            (None, None) => Vec::new(),
        },
        #[cfg(feature = "sql")]
        Listener::Postgres => postgres::open(app, bound, accepting, stop),
        #[cfg(not(feature = "sql"))]
        Listener::Postgres => unreachable!("builds without SQL do not bind it"),
    }
}
