//! What doors over HTTP share, in the order in which a request meets it.

pub mod sockets;

pub mod connection;
mod foreign;
mod watched;

mod arrived;
pub mod exchange;

pub mod credentials;
pub mod router;
pub mod site;

pub mod request;

pub mod insert;

pub mod answer;
pub mod counters;
pub mod partial;
pub mod stream;

use app::App;
use counters::HttpCounters;
use foreign::OtherListeners;
use router::Route;
use std::sync::Arc;

/// One HTTP server: what its connections share.
pub struct Http {
    /// What every door can reach.
    pub app: Arc<App>,
    /// Which paths there are.
    pub routes: &'static [Route],
    /// What is counted.
    pub counters: Arc<HttpCounters>,
    /// Addresses of the listeners for other protocols.
    others: Arc<OtherListeners>,
}

impl Http {
    /// A server of those routes, whose counters are in `/metrics`.
    pub fn new(app: Arc<App>, routes: &'static [Route]) -> Http {
        let counters = Arc::new(HttpCounters::new(routes));
        app.telemetry.register(counters.clone());
        let others = Arc::new(OtherListeners::new(&app.config));
        Http { app, routes, counters, others }
    }
}
