//! `compare ingest|shapes|queries|dashboards`: the same work for Quipu and its peers, and a table.

use super::contenders::{NONE, contender_flags, contenders};
use super::{dashboards, shapes, tsbs_queries};
use crate::cases::ingest::Ingest;
use crate::cases::loading::Loading;
use crate::cases::queries::Queries;
use crate::compare::{self, Case, CompareOptions, Resume};
use crate::flags;
use crate::payload::Protocol;
use crate::shapes::ShapeWorkload;
use crate::tsbs::CpuOnly;
use crate::workload::Workload;
use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;

/// The command's flags.
pub fn command() -> Command {
    Command::new("compare")
        .about("Run the same work on several servers in turn and write a table of ratios")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("ingest")
                .about("Load a TSBS data set into an empty server")
                .arg(flags::switch(
                    "restart-next-day",
                    "Then stop, start, and load as much again from right after",
                ))
                .args(common_flags(NONE, Some("1")))
                .arg(idle_flag())
                .args(flags::limit_flags())
                .args(flags::scale_flags())
                .args(flags::request_flags()),
        )
        .subcommand(
            Command::new("shapes")
                .about("Load an ugly shape into an empty server")
                .arg(shapes::shape_flag().help("Which shape; all without"))
                .args(common_flags(NONE, Some("1")))
                .arg(idle_flag())
                .args(flags::limit_flags())
                .args(flags::shape_flags())
                .args(flags::request_flags()),
        )
        .subcommand(
            Command::new("queries")
                .about("Load a TSBS data set, then run its query types")
                .args(common_flags(NONE, Some("1")))
                .arg(idle_flag())
                .args(flags::limit_flags())
                .args(flags::scale_flags())
                .args(flags::request_flags().into_iter().filter(|arg| arg.get_id() != "workers"))
                .args(tsbs_queries::query_flags()),
        )
        .subcommand(
            Command::new("dashboards")
                .about("Load what monitors a Kubernetes cluster, then ask what dashboards ask")
                .args(common_flags(NONE, Some("1")))
                .arg(idle_flag())
                .args(flags::limit_flags())
                .args(dashboards::own_flags())
                .args(flags::request_flags().into_iter().map(in_time_order)),
        )
}

/// The flags of every comparison; the default of `--repeat` may be the case's own.
pub fn common_flags(peers_default: &'static str, repeat: Option<&'static str>) -> Vec<Arg> {
    let own = vec![
        flags::value("repeat", repeat, "Runs of each server"),
        flags::value("out-dir", Some("docs/benchmarks"), "Where tables and raw results go"),
        flags::value("work-dir", Some("./quipu-bench-data"), "Where servers keep their data"),
        flags::switch("resume", "Keep the results of an earlier comparison that was interrupted"),
    ];
    [contender_flags(peers_default), own].concat()
}

/// One worker by default, so that samples come in the order of time, as a scraper sends them.
fn in_time_order(flag: Arg) -> Arg {
    match flag.get_id().as_str() {
        "workers" => flag.default_value("1"),
        "protocol" => flag.default_value(Protocol::RemoteWrite.name()).hide(true),
        _ => flag,
    }
}

fn idle_flag() -> Arg {
    flags::value("idle", Some("10s"), "Rest after a load before memory is measured")
}

/// Compares.
///
/// # Errors
/// When flags are malformed or results cannot be written.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    match matches.subcommand() {
        Some(("ingest", matches)) => run_ingest(matches),
        Some(("shapes", matches)) => run_shapes(matches),
        Some(("queries", matches)) => run_queries(matches),
        Some(("dashboards", matches)) => {
            run_case(&dashboards::case(matches, loading(matches)?)?, matches)
        }
        _ => bail!("clap demands a subcommand"),
    }
}

fn run_ingest(matches: &ArgMatches) -> Result<ExitCode> {
    let scale = flags::scale(matches)?;
    let (first, second) = (CpuOnly::new(scale)?, CpuOnly::new(scale.following())?);
    let is_restarted = matches.get_flag("restart-next-day");
    let case = Ingest {
        file_name: file_name("ingest", &first, matches)?,
        first: Box::new(first),
        second: is_restarted.then(|| Box::new(second) as Box<dyn Workload>),
        loading: loading(matches)?,
    };
    run_case(&case, matches)
}

fn run_shapes(matches: &ArgMatches) -> Result<ExitCode> {
    let names = match flags::optional_text(matches, "shape") {
        Some(name) => vec![name],
        None => crate::shapes::names(),
    };
    for name in names {
        let workload = ShapeWorkload::new(name, flags::shape_scale(matches)?)?;
        let case = Ingest {
            file_name: file_name(&format!("shape-{name}"), &workload, matches)?,
            first: Box::new(workload),
            second: None,
            loading: loading(matches)?,
        };
        run_case(&case, matches)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run_queries(matches: &ArgMatches) -> Result<ExitCode> {
    let scale = flags::scale(matches)?;
    let case = Queries {
        file_name: file_name("queries", &CpuOnly::new(scale)?, matches)?,
        scale,
        loading: loading(matches)?,
        query_types: tsbs_queries::query_types(matches)?,
        count: flags::number(matches, "count")?,
        workers: flags::number(matches, "workers")?,
        time_max: None,
    };
    run_case(&case, matches)
}

/// The table's file: what, how many series and samples of each, protocol.
fn file_name(what: &str, workload: &dyn Workload, matches: &ArgMatches) -> Result<String> {
    let (series, samples) = (workload.series(), workload.samples());
    let protocol = flags::text(matches, "protocol")?;
    Ok(format!("{what}-{series}x{}-{protocol}", samples / series))
}

/// The one protocol of `--protocol`, and the rest of the flags of a load.
fn loading(matches: &ArgMatches) -> Result<Loading> {
    let options = flags::load_options(matches, "")?;
    let idle = flags::duration(matches, "idle")?;
    Ok(Loading { protocols: vec![options.format.protocol], options, idle })
}

fn run_case(case: &dyn Case, matches: &ArgMatches) -> Result<ExitCode> {
    let repeats = flags::number(matches, "repeat")?;
    let options = CompareOptions { repeats, ..compare_options(matches)? };
    println!("{}", compare::run(case, &options)?);
    Ok(ExitCode::SUCCESS)
}

/// Reads [`common_flags`], but for `--repeat`.
///
/// # Errors
/// When a server cannot be run.
pub fn compare_options(matches: &ArgMatches) -> Result<CompareOptions> {
    Ok(CompareOptions {
        contenders: contenders(matches)?,
        repeats: 1,
        out_dir: PathBuf::from(flags::text(matches, "out-dir")?),
        work_dir: PathBuf::from(flags::text(matches, "work-dir")?),
        resume: if matches.get_flag("resume") { Resume::Yes } else { Resume::No },
        suite: None,
        command_line: command_line(),
    })
}

/// This command line, without the directories of this machine.
pub(super) fn command_line() -> String {
    std::env::args().map(|argument| without_directories(&argument)).collect::<Vec<_>>().join(" ")
}

fn without_directories(argument: &str) -> String {
    let (flag, path) = match argument.split_once('=') {
        Some((flag, path)) => (format!("{flag}="), path),
        None => (String::new(), argument),
    };
    format!("{flag}{}", path.rsplit('/').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_not_shown() {
        assert_eq!(without_directories("a/b/quipu-bench"), "quipu-bench");
        assert_eq!(without_directories("--quipu=/a/b/quipu"), "--quipu=quipu");
        assert_eq!(without_directories("--scale"), "--scale");
        assert_eq!(without_directories("10m"), "10m");
    }
}
