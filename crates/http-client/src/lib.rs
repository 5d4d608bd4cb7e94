//! Clients of servers that commands and legacy backends ask: HTTP, object stores, RESP, and the answers of
//! remote read, VictoriaMetrics and InfluxDB. Blocking, with limits on time and size.

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

pub mod client;
pub mod influxdb;
pub mod influxql;
pub mod json;
pub mod json_lines;
#[cfg(feature = "s3")]
pub mod object_store;
pub mod remote_read;
pub mod resp;
pub mod retry;
mod server_trust;
pub mod target_store;
