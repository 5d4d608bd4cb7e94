//! `quipu-bench`: load generators, a crash test and side-by-side comparisons, from outside.
//!
//! ```text
//! commands ─► tsbs | shapes (workload) ─► payload ─► load (workers, http) ─► server under test
//!                                                      └─ observe (/proc, disk) ─► report
//! ```
//!
//! It links nothing of Quipu but its random numbers: what it measures is what a client of any of the servers would see.

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

mod cases;
mod cluster;
mod commands;
mod compare;
mod crash;
mod flags;
mod http;
mod instant;
mod legacy;
mod load;
mod median;
mod observe;
mod ordeal;
mod payload;
mod queries;
mod random;
mod redis;
mod resp;
mod server;
mod shapes;
mod sql;
mod suite;
mod tsbs;
mod workload;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(&commands::command().get_matches()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
