//! Doors: a folder for each protocol. What doors over HTTP share is in [`http`]; [`routes`] is the
//! table of which path leads to which of them.
//!
//! ```text
//! http: sockets > connection (limits) > exchange (one request) > router > a door > answer > stream
//! ```
//!
//! A door over HTTP is a plain function from a [`http::request::Request`] to an
//! [`http::answer::Answer`] or an [`http::answer::Failure`]. It runs on a worker thread and may
//! block on the store.

pub mod http;
pub mod routes;

pub mod admin;
pub mod graphite;
pub mod influx;
pub mod page;
pub mod prometheus;
pub mod victoriametrics;
