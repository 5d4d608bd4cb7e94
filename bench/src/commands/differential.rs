//! `differential`: random expressions, answered by Quipu and by the server whose language they are.

use crate::differential::{self, Dialect, DifferentialOptions};
use crate::flags;
use crate::server::{Installed, PROMETHEUS, QUIPU, VICTORIA_METRICS};
use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;

/// The command's flags.
pub fn command() -> Command {
    Command::new("differential")
        .about("Compare answers to random expressions with those of Prometheus or VictoriaMetrics")
        .arg(flags::value("quipu", None, "Quipu's binary").required(true))
        .arg(
            flags::value("dialect", Some("promql"), "Whose language")
                .value_parser(["promql", "metricsql"]),
        )
        .arg(flags::value(
            "peer",
            None,
            "Binary of Prometheus or VictoriaMetrics; else the installed one",
        ))
        .arg(flags::value("count", Some("1000"), "How many expressions"))
        .arg(flags::value("seed", Some("1"), "Chooses data and expressions"))
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
        "promql" => (Dialect::PromQl, &PROMETHEUS),
        _ => (Dialect::MetricsQl, &VICTORIA_METRICS),
    };
    let peer_binary = flags::path(matches, "peer").or_else(|| peer.find_binary());
    let peer_binary = peer_binary.with_context(|| format!("{} is not installed", peer.name))?;
    let dir = tempfile::tempdir()?;
    let options = DifferentialOptions {
        quipu: Installed::new(&QUIPU, &PathBuf::from(flags::text(matches, "quipu")?))?,
        peer: Installed::new(peer, &peer_binary)?,
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
