//! `ordeal`: kill -9 under mixed load on a disk that stalls, fills up and fails to sync; of series, or
//! of keys with `--keys`.

use crate::ordeal::keys::{self, KeysOptions};
use crate::ordeal::{self, OrdealOptions};
use anyhow::{Result, ensure};
use clap::{ArgMatches, Command};
use indicatif::HumanCount;
use quipu_bench::flags;
use std::path::PathBuf;
use std::process::ExitCode;

/// The command's flags.
pub fn command() -> Command {
    Command::new("ordeal")
        .about("Kill Quipu under mixed load on a disk that stalls, fills up and fails to sync; compare what is left")
        .arg(flags::value("binary", None, "The server").required(true))
        .arg(flags::value("rounds", Some("100"), "How many kills"))
        .arg(flags::value("rounds-per-directory", Some("25"), "Rounds between empty directories"))
        .arg(flags::value("dir", Some("./quipu-ordeal"), "Where directories and logs are made"))
        .arg(flags::value("writers", Some("3"), "Threads that write, each in another protocol"))
        .arg(flags::switch("keys", "Keys instead of series; writers are connections, 6 at most"))
        .arg(flags::value("load-max", Some("250ms"), "Longest time under load before a kill"))
        .arg(flags::value("seed", Some("1"), "Chooses what can be chosen; moments differ"))
}

/// Runs the rounds; a violation fails.
///
/// # Errors
/// When the server cannot be started at all, or there is no C compiler.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    if matches.get_flag("keys") {
        return run_keys(matches);
    }
    let options = OrdealOptions {
        binary: std::path::absolute(PathBuf::from(flags::text(matches, "binary")?))?,
        dir: PathBuf::from(flags::text(matches, "dir")?),
        rounds: flags::number(matches, "rounds")?,
        rounds_per_directory: flags::number(matches, "rounds-per-directory")?,
        writers: flags::number(matches, "writers")?,
        load_max: flags::duration(matches, "load-max")?,
        seed: flags::number(matches, "seed")?,
    };
    let summary = ordeal::run(&options)?;
    for violation in &summary.violations {
        println!("VIOLATION: {violation}");
    }
    println!(
        "seed {}: {} rounds {:?}; {} lines acknowledged, {} samples compared, {} snapshots started; \
         {} violations",
        options.seed,
        summary.rounds,
        summary.weathers,
        HumanCount(summary.acknowledged),
        HumanCount(summary.compared),
        summary.snapshots,
        summary.violations.len(),
    );
    println!("answers to changes: {:?}", summary.statuses);
    Ok(if summary.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_keys(matches: &ArgMatches) -> Result<ExitCode> {
    let connections: u64 = flags::number(matches, "writers")?;
    ensure!((1..=6).contains(&connections), "--writers must be 1 to 6");
    let options = KeysOptions {
        binary: std::path::absolute(PathBuf::from(flags::text(matches, "binary")?))?,
        dir: PathBuf::from(flags::text(matches, "dir")?),
        rounds: flags::number(matches, "rounds")?,
        rounds_per_directory: flags::number(matches, "rounds-per-directory")?,
        connections,
        load_max: flags::duration(matches, "load-max")?,
        seed: flags::number(matches, "seed")?,
    };
    let summary = keys::run(&options)?;
    for violation in &summary.violations {
        println!("VIOLATION: {violation}");
    }
    println!(
        "seed {}: {} rounds {:?}; {} commands or transactions acknowledged, {} lost as durability \
         allows, {} keys compared, {} snapshots started; {} violations",
        options.seed,
        summary.rounds,
        summary.kinds,
        HumanCount(summary.acknowledged),
        HumanCount(summary.lost),
        HumanCount(summary.compared),
        summary.snapshots,
        summary.violations.len(),
    );
    Ok(if summary.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
