//! `quipu-inside`: hot paths and matchers, measured from inside the process.
//!
//! ```text
//! commands ─┬─ paths, path, time ─► path (what one is, how it runs) ─► paths/* over hosts, rng
//!           └─ matchers ──────────► matchers/{cases, series, report}
//! ```
//!
//! Unlike `quipu-bench` it links Quipu's rooms and calls them without any socket. Data are seeded
//! and nothing starts a thread, so a path executes the same instructions on every run; that is
//! what `cargo xtask instructions` counts and compares with `instructions.toml`.

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

mod commands;
mod path;
mod paths;
mod hosts;
mod matchers;
mod process;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(&commands::command().get_matches()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
