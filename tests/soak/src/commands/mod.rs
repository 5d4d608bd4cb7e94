//! One file a command: its flags, and what it does with them.

mod crash;
mod ordeal;

use anyhow::Result;
use clap::{ArgMatches, Command};
use std::process::ExitCode;

/// The command line.
pub fn command() -> Command {
    Command::new("soak")
        .about("Kill a server under load again and again, and compare what is left")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(crash::command())
        .subcommand(ordeal::command())
}

/// Runs what the command line asks for.
///
/// # Errors
/// When flags are malformed or a run cannot start; a run that finds faults gives a failing code.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    match matches.subcommand() {
        Some(("crash", matches)) => crash::run(matches),
        Some(("ordeal", matches)) => ordeal::run(matches),
        _ => unreachable!("clap demands a subcommand"),
    }
}
