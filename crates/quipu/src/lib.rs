//! The binary `quipu`: commands, and the wiring of a server.
//!
//! `main.rs` calls [`commands::run`]; tests start a [`server::Server`] in their own process. Read in this
//! order: [`commands`], [`server`], `opening`, [`protocols`].

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

pub mod commands;
mod opening;
pub mod protocols;
pub mod self_scrape;
pub mod server;
pub mod watch;
