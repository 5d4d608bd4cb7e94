//! `crash`: kill -9 in a loop under load.

use crate::crash::{self, CrashOptions, End};
use anyhow::Result;
use clap::{ArgMatches, Command};
use indicatif::HumanCount;
use quipu_bench::flags;
use quipu_bench::server::{Installed, QUIPU, VICTORIA_METRICS};
use std::path::PathBuf;
use std::process::ExitCode;

/// The command's flags.
pub fn command() -> Command {
    Command::new("crash")
        .about("Kill a server under load again and again, and check that it keeps what it acknowledged")
        .arg(flags::value("binary", None, "The server").required(true))
        .arg(
            flags::value("kind", Some("quipu"), "Which server it is")
                .value_parser(["quipu", "victoria-metrics"]),
        )
        .arg(
            flags::value("end", Some("kill"), "How a round ends: SIGKILL or, to test the test, SIGTERM")
                .value_parser(["kill", "stop"]),
        )
        .arg(flags::value("rounds", Some("100"), "How many kills under load"))
        .arg(flags::value("rounds-per-directory", Some("20"), "Rounds between empty directories"))
        .arg(flags::value("dir", Some("./quipu-crash"), "Where directories and logs are made"))
        .arg(flags::value("writers", Some("4"), "Threads that write"))
        .arg(flags::value("lines-per-round", Some("15000"), "Lines a writer sends fast in a round"))
        .arg(flags::value("load-max", Some("1500ms"), "Longest time under load before a kill"))
        .arg(flags::value("seed", Some("1"), "Chooses batches and moments"))
}

/// Runs the rounds; a violation fails.
///
/// # Errors
/// When the server cannot be started or asked.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let peer = if flags::text(matches, "kind")? == "quipu" { &QUIPU } else { &VICTORIA_METRICS };
    let options = CrashOptions {
        installed: Installed::new(peer, &PathBuf::from(flags::text(matches, "binary")?))?,
        dir: PathBuf::from(flags::text(matches, "dir")?),
        rounds: flags::number(matches, "rounds")?,
        rounds_per_directory: flags::number(matches, "rounds-per-directory")?,
        writers: flags::number(matches, "writers")?,
        lines_per_round: flags::number(matches, "lines-per-round")?,
        load_max: flags::duration(matches, "load-max")?,
        end: if flags::text(matches, "end")? == "kill" { End::Kill } else { End::Stop },
        seed: flags::number(matches, "seed")?,
    };
    let summary = crash::run(&options)?;
    for violation in &summary.violations {
        println!("VIOLATION: {violation}");
    }
    println!(
        "{}, seed {}: {} kills under load, {} during recovery; {} samples acknowledged, {} violations; \
         ready in at most {} ms",
        options.installed.version,
        options.seed,
        summary.rounds,
        summary.recovery_kills,
        HumanCount(summary.acknowledged),
        summary.violations.len(),
        summary.ready_max.as_millis()
    );
    Ok(if summary.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
