//! Protocols by listener: [`open`] has an arm for each row of [`net::listeners::table`].

use app::App;
use net::listeners::accept::{Accepting, Stop, accept};
use net::listeners::bind::Bound;
use net::listeners::table::Listener;
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
            let http = Arc::new(http_api::http::Http::new(app.clone(), http_api::routes::ROUTES));
            vec![tokio::spawn(accept(accepting, bound.streams, http, stop.clone()))]
        }
        Listener::Influx => http_api::influx::open(app, bound, accepting, stop),
        Listener::Redis => match (&app.kv, &app.closed.keys) {
            (Some(kv), _) => redis_server::open(app, kv.clone(), bound, accepting, stop),
            (None, Some(reason)) => redis_server::open_closed(reason, bound, accepting, stop),
            (None, None) => Vec::new(),
        },
        #[cfg(feature = "sql")]
        Listener::Postgres => pg_server::open(app, bound, accepting, stop),
        #[cfg(not(feature = "sql"))]
        Listener::Postgres => unreachable!("builds without SQL do not bind it"),
    }
}
