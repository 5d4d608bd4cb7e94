//! Prometheus' protocols: remote write and text in, its HTTP API, federation and remote read out.

pub mod exposition;
pub mod push_path;
pub mod pushgateway;
pub mod remote_write;

pub mod exemplars;
pub mod federate;
pub mod functions;
pub mod query;
mod query_hints;
pub mod remote_read;
pub mod report;
pub mod series;
pub mod syntax;
