//! Doors: each file is a family of routes; the first ones are what all doors share.
//!
//! ```text
//! http (sockets) > connection (limits) > exchange (one request) > router > a door > answer > stream
//! ```
//!
//! A door is a plain function from a [`request::Request`] to an [`answer::Answer`] or an
//! [`answer::Failure`]. It runs on a worker thread and may block on the store.

pub mod answer;
pub mod body;
pub mod connection;
pub mod exchange;
pub mod http;
pub mod request;
pub mod router;
pub mod stream;

pub mod import;
pub mod influx;
pub mod insert;
pub mod remote_write;
pub mod unpack;

pub mod admin;
pub mod cardinality;
pub mod csv;
pub mod exemplars;
pub mod export;
pub mod federate;
pub mod functions;
pub mod graphite;
pub mod page;
pub mod partial;
pub mod prometheus;
pub mod query;
pub mod remote_read;
pub mod report;
pub mod running;
pub mod selection;
pub mod status;
pub mod syntax;
