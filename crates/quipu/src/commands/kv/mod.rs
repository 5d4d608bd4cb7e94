//! `quipu kv`: keys, moved in and out, and looked over.

mod analyze;
mod export;
mod fold;
mod import;

use clap::{ArgMatches, Command};
use indicatif::{ProgressBar, ProgressStyle};
use std::process::ExitCode;

/// The subcommand.
pub fn command() -> Command {
    Command::new("kv")
        .about("Works on the keys of a running server, through its Redis door")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(analyze::command())
        .subcommand(export::command())
        .subcommand(import::command())
}

/// Runs the subcommand that the arguments name.
///
/// # Errors
/// As it does.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    match matches.subcommand() {
        Some(("analyze", matches)) => analyze::run(matches),
        Some(("export", matches)) => export::run(matches),
        Some(("import", matches)) => import::run(matches),
        _ => unreachable!("clap asks for a subcommand"),
    }
}

/// A bar of what is known beforehand; shown where standard error is a terminal.
fn bar(len: u64, template: &str) -> anyhow::Result<ProgressBar> {
    let bar = ProgressBar::new(len);
    bar.set_style(ProgressStyle::with_template(template)?);
    Ok(bar)
}
