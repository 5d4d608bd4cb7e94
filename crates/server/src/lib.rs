//! The binary `quipu`: flags, doors, auth, jobs, the page. The only async code, the only sockets.
//!
//! `main.rs` is a shell around [`commands::run`], so that tests can start a [`server::Server`] in
//! process. Read in this order: [`commands`], [`flags`], [`config`], [`server`], [`listeners`], [`app`],
//! [`doors`]. What knows no protocol, and every door stands on: [`listeners`], [`auth`],
//! [`admission`], [`failure`], [`ingest`], [`telemetry`].

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

#[path = "../../net/src/activity.rs"]
pub mod activity;
#[path = "../../net/src/admission.rs"]
pub mod admission;
pub mod allocator;
#[path = "../../app/src/app.rs"]
pub mod app;
#[path = "../../net/src/auth.rs"]
pub mod auth;
#[path = "../../app/src/block_strings.rs"]
mod block_strings;
#[path = "../../influx-schema/src/borrowed_strings.rs"]
mod borrowed_texts;
#[path = "../../net/src/buffers.rs"]
pub mod buffers;
#[path = "../../cli/src/calendar.rs"]
pub mod calendar;
pub mod commands;
#[path = "../../app/src/config.rs"]
pub mod config;
#[path = "../../net/src/config_file.rs"]
pub mod config_file;
#[path = "../../net/src/data_dir.rs"]
mod data_dir;
pub mod doors;
#[path = "../../net/src/failure.rs"]
pub mod failure;
#[path = "../../net/src/file_metrics.rs"]
mod file_metrics;
#[path = "../../net/src/flag.rs"]
pub mod flag;
#[path = "../../net/src/flags.rs"]
pub mod flags;
#[path = "../../net/src/hosts.rs"]
pub mod hosts;
#[path = "../../app/src/ingest.rs"]
pub mod ingest;
#[path = "../../federation/src/lib.rs"]
pub mod legacy;
#[path = "../../net/src/listeners/mod.rs"]
pub mod listeners;
#[path = "../../net/src/logging.rs"]
pub mod logging;
#[path = "../../net/src/login_limiter.rs"]
pub mod login_limiter;
#[path = "../../influx-schema/src/schema.rs"]
pub mod measurements;
#[path = "../../influx-schema/src/metric_names.rs"]
pub mod metric_names;
#[path = "../../influx-schema/src/retention_policies.rs"]
pub mod retention_policies;
#[path = "../../influx-schema/src/tag_keys.rs"]
pub mod tag_keys;
#[path = "../../influx-schema/src/strings.rs"]
pub mod texts;
#[path = "../../net/src/memory.rs"]
pub mod memory;
#[path = "../../net/src/metrics_page.rs"]
pub mod metrics_page;
#[path = "../../net/src/process.rs"]
pub mod process;
#[path = "../../cli/src/quantity.rs"]
pub mod quantity;
#[path = "../../net/src/secrets.rs"]
mod secrets;
#[path = "../../promql/src/selector.rs"]
pub mod selector;
pub mod self_scrape;
#[path = "../../app/src/series_rules.rs"]
pub mod series_rules;
pub mod opening;
pub mod server;
#[path = "../../net/src/shutdown.rs"]
pub mod shutdown;
#[path = "../../net/src/telemetry.rs"]
pub mod telemetry;
pub mod watch;
#[path = "../../app/src/write_conflicts.rs"]
pub mod write_conflicts;
