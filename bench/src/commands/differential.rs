//! `differential`: random expressions, answered by Quipu and by the server whose language they are;
//! random commands, answered by Quipu and by Redis.

use crate::differential::redis::{self, RedisOptions};
use crate::differential::{self, Dialect, DifferentialOptions};
use crate::flags;
use crate::server::{Installed, PROMETHEUS, Peer, QUIPU, QUIPU_KEYS, REDIS, VICTORIA_METRICS};
use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;

/// The command's flags.
pub fn command() -> Command {
    Command::new("differential")
        .about("Compare answers to random expressions or commands with those of Prometheus, VictoriaMetrics or Redis")
        .arg(flags::value("quipu", None, "Quipu's binary").required(true))
        .arg(
            flags::value("dialect", Some("promql"), "Whose language")
                .value_parser(["promql", "metricsql", "redis"]),
        )
        .arg(flags::value(
            "peer",
            None,
            "Binary of Prometheus, VictoriaMetrics or Redis; else the installed one",
        ))
        .arg(flags::value("count", Some("1000"), "How many expressions or commands"))
        .arg(flags::value("seed", Some("1"), "Chooses data, expressions and commands"))
        .arg(flags::value(
            "tolerance",
            Some("1e-12"),
            "Largest relative difference of equal values",
        ))
}

/// Asks both; a difference fails.
///
/// # Errors
/// When a server cannot be started or asked.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let (dialect, peer) = match flags::text(matches, "dialect")? {
        "redis" => return run_redis(matches),
        "promql" => (Dialect::PromQl, &PROMETHEUS),
        _ => (Dialect::MetricsQl, &VICTORIA_METRICS),
    };
    let dir = tempfile::tempdir()?;
    let options = DifferentialOptions {
        quipu: Installed::new(&QUIPU, &PathBuf::from(flags::text(matches, "quipu")?))?,
        peer: installed(matches, peer)?,
        dialect,
        count: flags::number(matches, "count")?,
        seed: flags::number(matches, "seed")?,
        tolerance: flags::number(matches, "tolerance")?,
        dir: dir.path().to_path_buf(),
    };
    let summary = differential::run(&options)?;
    for difference in &summary.differences {
        println!("{difference}");
    }
    println!(
        "{}, seed {}: {} alike ({} of them empty), {} refused by both, {} different",
        options.peer.version,
        options.seed,
        summary.alike,
        summary.empty,
        summary.refused,
        summary.different
    );
    Ok(if summary.different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn installed(matches: &ArgMatches, peer: &'static Peer) -> Result<Installed> {
    let binary = flags::path(matches, "peer").or_else(|| peer.find_binary());
    Installed::new(peer, &binary.with_context(|| format!("{} is not installed", peer.name))?)
}

fn run_redis(matches: &ArgMatches) -> Result<ExitCode> {
    let dir = tempfile::tempdir()?;
    let options = RedisOptions {
        quipu: Installed::new(&QUIPU_KEYS, &PathBuf::from(flags::text(matches, "quipu")?))?,
        peer: installed(matches, &REDIS)?,
        count: flags::number(matches, "count")?,
        seed: flags::number(matches, "seed")?,
        dir: dir.path().to_path_buf(),
    };
    let summary = redis::run(&options)?;
    for (kind, difference) in &summary.differences {
        println!("{kind}\n  {difference}\n");
    }
    println!(
        "{}, seed {}: {} replies alike ({} of them errors), {} keys restored from the other's dump, \
         {} sequences of commands with a difference, {} kinds",
        options.peer.version,
        options.seed,
        summary.alike,
        summary.refused,
        summary.restored,
        summary.different,
        summary.differences.len()
    );
    Ok(if summary.different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
