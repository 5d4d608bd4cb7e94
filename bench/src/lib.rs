//! `quipu-bench`: load generators and side-by-side comparisons, from outside. `tests/soak` uses its
//! clients, payloads and servers under test.
//!
//! ```text
//! commands ─► tsbs | shapes (workload) ─► payload ─► load (workers, http) ─► server under test
//!                                                      └─ observe (/proc, disk) ─► report
//! ```
//!
//! It links nothing of Quipu but its random numbers, so it measures what a client of any of the
//! servers would see.

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

mod cases;
mod cluster;
pub mod commands;
mod compare;
pub mod flags;
pub mod http;
pub mod instant;
mod legacy;
pub mod load;
mod median;
pub mod observe;
pub mod payload;
mod queries;
pub mod random;
mod redis;
pub mod resp;
pub mod server;
mod shapes;
mod sql;
mod suite;
mod tsbs;
mod workload;

pub use tsbs::queries::percent_encode;
