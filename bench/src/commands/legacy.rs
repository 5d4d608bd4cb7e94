//! `legacy`: what questions take while Quipu takes over from a VictoriaMetrics.

use super::contenders::INSTALLED;
use crate::flags;
use crate::legacy::{self, LegacyOptions};
use crate::server::{Installed, QUIPU, VICTORIA_METRICS};
use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The command's flags.
pub fn command() -> Command {
    Command::new("legacy")
        .about("Measure queries before, in the middle of and after a move from VictoriaMetrics")
        .arg(flags::value("quipu", None, "Quipu's binary").required(true))
        .arg(flags::value(
            "victoria-metrics",
            Some(INSTALLED),
            "VictoriaMetrics: a path or \"installed\"",
        ))
        .args(flags::scale_flags())
        .arg(flags::switch("no-tsbs", "Leave the query types of TSBS out"))
        .arg(flags::value(
            "series",
            Some("100,1000,10000,100000"),
            "Numbers of series of the index queries, by commas; may be empty",
        ))
        .arg(flags::value("rounds", Some("50"), "Rounds of a question at most"))
        .arg(flags::value("time-limit", Some("10s"), "No further round after so long"))
        .arg(flags::value("work-dir", Some("./quipu-legacy"), "Where servers keep their data"))
        .arg(flags::value("out", None, "File of the tables"))
}

/// Runs it.
///
/// # Errors
/// When flags are malformed or a server cannot be run.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let victoria_metrics = match flags::text(matches, "victoria-metrics")? {
        INSTALLED => VICTORIA_METRICS.find_binary().context("victoria-metrics is not installed")?,
        path => PathBuf::from(path),
    };
    let series = flags::text(matches, "series")?.split(',').filter(|text| !text.is_empty());
    let series = series.map(|text| text.parse().with_context(|| format!("--series {text:?}")));
    let is_tsbs = !matches.get_flag("no-tsbs");
    let options = LegacyOptions {
        quipu: Installed::new(&QUIPU, Path::new(flags::text(matches, "quipu")?))?,
        victoria_metrics: Installed::new(&VICTORIA_METRICS, &victoria_metrics)?,
        scale: is_tsbs.then(|| flags::scale(matches)).transpose()?,
        series: series.collect::<Result<_>>()?,
        rounds: flags::number(matches, "rounds")?,
        time_max: flags::duration(matches, "time-limit")?,
        work_dir: std::path::absolute(flags::text(matches, "work-dir")?)?,
        out: flags::path(matches, "out"),
    };
    legacy::run(&options, &super::compare::command_line())?;
    Ok(ExitCode::SUCCESS)
}
