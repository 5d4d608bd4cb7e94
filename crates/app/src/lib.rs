//! The opened database as every protocol reaches it: configuration, samples, keys, tables, limits, counters;
//! and ingestion, which takes batches of every protocol into the store.

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

mod app;
pub mod block_strings;
pub mod config;
pub mod ingest;
mod series_rules;
mod write_conflicts;

pub use app::{App, ClosedParts, Opened};
