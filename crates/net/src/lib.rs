//! Parts that all protocols share: listeners and TLS, credentials, admission and limits, errors, telemetry,
//! flags and their values.
//!
//! It knows no protocol: [`failure::Failure`] says why a request fails, each protocol words it.

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

pub mod activity;
pub mod admission;
pub mod auth;
pub mod buffers;
pub mod config_file;
pub mod data_dir;
pub mod failure;
pub mod file_metrics;
pub mod flag;
pub mod flags;
pub mod hosts;
pub mod listeners;
pub mod logging;
pub mod login_limiter;
pub mod memory;
pub mod metrics_page;
pub mod process;
pub mod secrets;
pub mod settings;
pub mod shutdown;
pub mod telemetry;
