//! `quipu verify`: walks every checksum and invariant of a data directory that nobody has open.

use super::option;
use crate::quantity::format_size;
use clap::{ArgMatches, Command};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use vfs::RealVfs;

/// Exit code when something is wrong with the data.
const PROBLEMS: u8 = 1;

/// The subcommand.
pub fn command() -> Command {
    Command::new("verify")
        .about("Checks every checksum and invariant of a data directory that is not in use")
        .arg(option("data-dir", "PATH", "The directory").default_value("./quipu-data"))
}

/// Checks the directory; exit code 1 when something is wrong.
///
/// # Errors
/// When the directory cannot be read or is in use.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let directory = matches.get_one::<String>("data-dir").map(String::as_str).unwrap_or_default();
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {msg} {elapsed}")?);
    bar.enable_steady_tick(Duration::from_millis(100));
    let mut show =
        |progress: &store::Progress<'_>| bar.set_message(progress.path.display().to_string());
    let report = store::verify(Arc::new(RealVfs::new()), Path::new(directory), &mut show);
    bar.finish_and_clear();
    let report = report?;
    println!(
        "{} files, {}, {} series, {} samples",
        report.files,
        format_size(report.bytes),
        report.series,
        report.samples
    );
    if report.problems.is_empty() {
        println!("no problems");
        return Ok(ExitCode::SUCCESS);
    }
    for problem in &report.problems {
        println!("problem: {problem}");
    }
    println!("{} problems", report.problems.len());
    Ok(ExitCode::from(PROBLEMS))
}
