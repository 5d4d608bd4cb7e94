//! The binary `quipu`: flags, doors, auth, jobs, the page. The only async code, the only sockets.
//!
//! `main.rs` is a shell around [`commands::run`], so that tests can start a [`server::Server`] in
//! process. Read in this order: [`commands`], [`flags`], [`config`], [`server`], [`listeners`], [`app`],
//! [`doors`]. What knows no protocol, and every door stands on: [`listeners`], [`auth`],
//! [`admission`], [`failure`], [`ingest`], [`telemetry`].

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

pub mod activity;
pub mod admission;
pub mod allocator;
pub mod app;
pub mod auth;
mod block_strings;
mod borrowed_texts;
pub mod buffers;
pub mod calendar;
pub mod commands;
pub mod config;
pub mod config_file;
mod data_dir;
pub mod doors;
pub mod failure;
mod file_metrics;
pub mod flag;
pub mod flags;
pub mod hosts;
pub mod ingest;
pub mod legacy;
pub mod listeners;
pub mod logging;
pub mod login_limiter;
pub mod measurements;
pub mod metric_names;
pub mod retention_policies;
pub mod tag_keys;
pub mod texts;
pub mod memory;
pub mod metrics_page;
pub mod process;
pub mod quantity;
mod secrets;
pub mod selector;
pub mod self_scrape;
pub mod series_rules;
pub mod opening;
pub mod server;
pub mod shutdown;
pub mod telemetry;
pub mod watch;
pub mod write_conflicts;
