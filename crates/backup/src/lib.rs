//! `quipu backup`: copies of a running server in a place of their own, and back.
//!
//! ```text
//! create   mark ─► snapshot of the server ─► pieces that the place lacks ─► manifest ─► mark and snapshot go
//! restore  manifest ─► marker in an empty directory ─► pieces, checked ─► everything synced ─► marker goes
//! prune    mark ─► manifests that are not kept go ─► blobs that no manifest names go ─► mark goes
//! ```
//!
//! A backup is there when its manifest is, and that is sent last. What lies where is in
//! `docs/format/backup.md`, why in `docs/decisions/0039-backups.md`.
//! Read in this order: `place`, `pieces`, `marks`, `shelf`, then the subcommands.

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

#[cfg(feature = "s3")]
mod bucket;
mod check;
mod create;
mod damage;
mod directory;
mod look;
mod marks;
mod parallel;
mod pieces;
mod place;
mod primary;
mod prune;
mod restore;
mod shelf;
mod walk;

use clap::{ArgMatches, Command};
use indicatif::{ProgressBar, ProgressStyle};
use std::process::ExitCode;

/// The subcommand.
pub fn command() -> Command {
    Command::new("backup")
        .about("Makes backups of a running server, lists, checks and restores them")
        .after_help(
            "quipu backup create --to /backups/quipu      back up the server on 127.0.0.1:8428\n\
             quipu backup list --to /backups/quipu        what is there\n\
             quipu backup restore latest --from /backups/quipu --data-dir new-data\n\n\
             PLACE is a directory, or s3://BUCKET/PREFIX in builds with the feature s3. Each server\n\
             wants a place of its own. The second backup sends only what has changed. More in docs/backup.md.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(create::command())
        .subcommand(look::list_command())
        .subcommand(look::show_command())
        .subcommand(check::command())
        .subcommand(restore::command())
        .subcommand(prune::command())
}

/// Runs the subcommand that the arguments name.
///
/// # Errors
/// As it does.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    match matches.subcommand() {
        Some(("create", matches)) => create::run(matches),
        Some(("list", matches)) => look::list(matches),
        Some(("show", matches)) => look::show(matches),
        Some(("verify", matches)) => check::run(matches),
        Some(("restore", matches)) => restore::run(matches),
        Some(("prune", matches)) => prune::run(matches),
        _ => unreachable!("clap asks for a subcommand"),
    }
}

/// A bar of bytes; shown where standard error is a terminal.
fn bar(size: u64) -> anyhow::Result<ProgressBar> {
    let bar = ProgressBar::new(size);
    let template =
        "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template)?);
    Ok(bar)
}

/// The text of an argument.
fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}
