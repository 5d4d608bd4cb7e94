//! `tsbs load`: generates on the fly, loads a running server, reports. Also what `shapes load`
//! does once it has its workload.

use crate::flags;
use crate::load;
use crate::load::report::LoadReport;
use crate::load::settle::Settle;
use crate::server::QUIPU;
use crate::tsbs::CpuOnly;
use crate::workload::Workload;
use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command};
use std::process::ExitCode;

/// The command's flags.
pub fn command() -> Command {
    Command::new("load")
        .about("Load a running server with generated data and report")
        .args(flags::scale_flags())
        .args(load_flags())
}

/// Loads a TSBS data set.
///
/// # Errors
/// When flags are malformed, the server cannot be watched, or a report cannot be written.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    run_workload(&CpuOnly::new(flags::scale(matches)?)?, matches)
}

/// The flags of every load.
pub fn load_flags() -> Vec<Arg> {
    let own = vec![
        flags::value("idle", Some("10s"), "Rest before memory and disk are measured"),
        flags::value("settle", Some("flush"), "Ask the server for a flush, and for a merge")
            .value_parser(["idle", "flush", "merge"]),
        flags::value("json", None, "Write the report to this file"),
        flags::value("rate-out", None, "Write the rate over time to this CSV file"),
    ];
    [flags::request_flags(), flags::server_flags(), flags::limit_flags(), own].concat()
}

/// Loads, prints, and writes the files asked for; a load that was stopped fails.
///
/// # Errors
/// As [`run`].
pub fn run_workload(workload: &dyn Workload, matches: &ArgMatches) -> Result<ExitCode> {
    let mut options = flags::load_options(matches, &flags::authority(matches)?)?;
    let asks = flags::text(matches, "settle")?;
    options.settle = Settle {
        idle: flags::duration(matches, "idle")?,
        flush: QUIPU.flush.filter(|_| asks != "idle"),
        merge: QUIPU.merge.filter(|_| asks == "merge"),
        time_max: None,
    };
    let report = load::run(workload, &options, &flags::observed(matches)?)?;
    print!("{report}");
    write_files(&report, matches)?;
    Ok(if report.stopped.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn write_files(report: &LoadReport, matches: &ArgMatches) -> Result<()> {
    if let Some(path) = flags::path(matches, "json") {
        let json = serde_json::to_string_pretty(report)?;
        std::fs::write(&path, json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = flags::path(matches, "rate-out") {
        std::fs::write(&path, report.timeline_csv())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
