//! Every protocol's bytes to requests and back, without sockets.
//!
//! Rules for every decoder here: bytes from outside never panic, memory is bounded by the request
//! and by a named limit, the good part of a request is kept as its protocol promises, and each
//! refusal carries its position and its reason.
//!
//! ```text
//! influx  remote_write  exposition  json_lines  vm_native   samples in: body ──► decoded::Decoded
//! exposition  json_lines  prom_json  remote_read answers out: series ──► Vec<u8>
//! influx  prometheus_block  vm_native            ways out to other databases
//! opentsdb  redis_timeseries  whisper            other databases' history, to be copied
//! params                                         times and durations in URLs
//! compression  protobuf  number  crc32c  exemplars   what they stand on
//! ```

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod compression;
mod crc32c;
pub mod decoded;
#[cfg(test)]
mod doc_examples;
pub mod error;
mod exemplars;
pub mod exposition;
pub mod extra_labels;
#[doc(hidden)]
pub mod fuzzing;
pub mod influx;
pub mod json_lines;
pub mod moved_labels;
mod number;
pub mod opentsdb;
pub mod params;
pub mod partial_answer;
pub mod prom_json;
pub mod prometheus_block;
pub mod protobuf;
pub mod redis_timeseries;
pub mod remote_read;
pub mod remote_write;
pub mod resp;
pub mod vm_native;
pub mod whisper;

pub use decoded::{Counts, Decoded, LineError, LineErrors, Start};
pub use error::{Error, Limit};
pub use extra_labels::ExtraLabels;
use model::narrow;
