//! `soak`: tests of durability that run for minutes to hours.
//!
//! ```text
//! commands ─┬─ crash ──► kills under load, export, comparison
//!           └─ ordeal ─► the same on a disk that stalls, fills up and fails to sync; series or keys
//! ```
//!
//! Clients and payloads are those of `quipu-bench`, so the server is seen from outside.

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

mod commands;
mod crash;
mod ordeal;

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
