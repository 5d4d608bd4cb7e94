//! One file a command: its flags, and what it does with them.

mod compare;
mod contenders;
mod dashboards;
mod legacy;
mod load;
mod redis;
mod shapes;
mod suite;
mod tsbs_generate;
mod tsbs_queries;

use anyhow::Result;
use clap::{ArgMatches, Command};
use std::process::ExitCode;

/// The command line.
pub fn command() -> Command {
    let tsbs = Command::new("tsbs")
        .about("The Time Series Benchmark Suite, use case cpu-only")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(tsbs_generate::command())
        .subcommand(load::command())
        .subcommand(tsbs_queries::command());
    let shapes = Command::new("shapes")
        .about("Ugly shapes of data")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(shapes::command());
    Command::new("quipu-bench")
        .about("Load generators and side-by-side comparisons for metrics databases")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(tsbs)
        .subcommand(shapes)
        .subcommand(compare::command())
        .subcommand(legacy::command())
        .subcommand(redis::command())
        .subcommand(suite::command())
}

/// Runs what the command line asks for.
///
/// # Errors
/// When flags are malformed or a run cannot start; a run that finds faults gives a failing code.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    match matches.subcommand() {
        Some(("tsbs", matches)) => match matches.subcommand() {
            Some(("generate", matches)) => tsbs_generate::run(matches),
            Some(("load", matches)) => load::run(matches),
            Some(("queries", matches)) => tsbs_queries::run(matches),
            _ => unreachable!("clap demands a subcommand"),
        },
        Some(("shapes", matches)) => match matches.subcommand() {
            Some(("load", matches)) => shapes::run(matches),
            _ => unreachable!("clap demands a subcommand"),
        },
        Some(("compare", matches)) => compare::run(matches),
        Some(("legacy", matches)) => legacy::run(matches),
        Some(("redis", matches)) => redis::run(matches),
        Some(("suite", matches)) => suite::run(matches),
        _ => unreachable!("clap demands a subcommand"),
    }
}
