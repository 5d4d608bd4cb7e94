//! Protocols over HTTP: Prometheus, VictoriaMetrics, Graphite, InfluxDB, administration, the web page.
//! [`routes`] is the table that leads from a path to a handler; [`http`] has what handlers share.
//!
//! ```text
//! http: sockets > connection (limits) > exchange (one request) > router > handler > answer > stream
//! ```
//!
//! A handler is a plain function from a [`http::request::Request`] to an [`http::answer::Answer`] or a
//! [`net::failure::Failure`]. It runs on a worker thread and may block on the store.

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

pub mod admin;
pub mod graphite;
pub mod http;
pub mod influx;
pub mod page;
pub mod prometheus;
pub mod routes;
pub mod victoriametrics;
