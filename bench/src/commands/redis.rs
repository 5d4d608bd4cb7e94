//! `redis`: keys, beside Redis.

use super::contenders::{INSTALLED, NONE};
use crate::flags;
use crate::redis::{self, CASES, RedisOptions, Size};
use crate::server::REDIS;
use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;

/// The command's flags.
pub fn command() -> Command {
    let cases = CASES.iter().map(|case| format!("  {:11} {}", case.name, case.title));
    Command::new("redis")
        .about("Measure Quipu's keys beside Redis: rates, latencies, CPU, memory, disk, starts")
        .arg(flags::value("quipu", None, "Quipu's binary").required(true))
        .arg(flags::value("redis", Some(INSTALLED), "Redis: a path, \"installed\" or \"none\""))
        .arg(flags::value("only", None, "Names of cases, by commas; all without"))
        .arg(flags::switch("quick", "Little of everything, for trying"))
        .arg(flags::value("rounds", None, "Rounds of each server"))
        .arg(flags::value("keys", None, "Keys where there are few"))
        .arg(flags::value("many-keys", None, "Keys where there are many"))
        .arg(flags::value("requests", None, "Requests of a measurement without pipelines"))
        .arg(flags::value("work-dir", Some("./quipu-redis"), "Where servers keep their data"))
        .arg(flags::value("out", None, "File of the tables"))
        .after_help(format!("Cases:\n{}", cases.collect::<Vec<_>>().join("\n")))
}

/// Runs the cases.
///
/// # Errors
/// When flags are malformed or a server cannot be run.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let mut size = if matches.get_flag("quick") { Size::QUICK } else { Size::FULL };
    for (name, number) in [
        ("rounds", &mut size.rounds),
        ("keys", &mut size.keys),
        ("many-keys", &mut size.many_keys),
        ("requests", &mut size.requests),
    ] {
        if flags::optional_text(matches, name).is_some() {
            *number = flags::number(matches, name)?;
        }
    }
    let redis = match flags::text(matches, "redis")? {
        NONE => None,
        INSTALLED => Some(REDIS.find_binary().context("redis-server is not installed")?),
        path => Some(PathBuf::from(path)),
    };
    let only = flags::optional_text(matches, "only").unwrap_or_default();
    let only = only.split(',').filter(|name| !name.is_empty()).map(str::to_string).collect();
    let options = RedisOptions {
        quipu: std::path::absolute(flags::text(matches, "quipu")?)?,
        redis,
        only,
        work_dir: std::path::absolute(flags::text(matches, "work-dir")?)?,
        out: flags::path(matches, "out"),
        size,
    };
    redis::run(&options, &super::compare::command_line())?;
    Ok(ExitCode::SUCCESS)
}
