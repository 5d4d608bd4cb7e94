//! The command line: one function a command.

use crate::matchers::series::Order;
use crate::path::HotPath;
use crate::{matchers, path, paths};
use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The command line.
pub fn command() -> Command {
    let names = Arg::new("name").num_args(0..).action(ArgAction::Append);
    Command::new("quipu-inside")
        .about("Hot paths and matchers of Quipu, measured from inside the process")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("paths").about("Lists the hot paths"))
        .subcommand(
            Command::new("path")
                .about("Runs one hot path and nothing else; prints how many operations that were")
                .arg(Arg::new("name").required(true).help("One of those that `paths` lists"))
                .arg(value("iterations", "1", "Passes over the path's data")),
        )
        .subcommand(
            Command::new("time")
                .about("Nanoseconds of CPU an operation, the best of many passes")
                .arg(names.help("Which paths; all if none is named"))
                .arg(value("seconds", "0.3", "Time for each path")),
        )
        .subcommand(
            Command::new("matchers")
                .about("The 16 matcher cases of record, on one core, without any cache")
                .arg(value("series", "5000000", "How many; a multiple of 50"))
                .arg(
                    value("order", "record", "Neighbours share n, or differ in every label")
                        .value_parser(["record", "mixed"]),
                )
                .arg(value("seconds", "2", "Time for each case"))
                .arg(Arg::new("json").long("json").help("Where the figures go as JSON")),
        )
}

/// Runs what the command line asks for.
///
/// # Errors
/// When a flag is malformed, or an answer is not the one expected.
pub fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("paths", _)) => list(),
        Some(("path", matches)) => run_path(matches),
        Some(("time", matches)) => time(matches),
        Some(("matchers", matches)) => matchers::run(&matchers::Request {
            series: number(matches, "series")?,
            order: match matches.get_one::<String>("order").map(String::as_str) {
                Some("mixed") => Order::Mixed,
                _ => Order::Record,
            },
            time_per_case: seconds(matches)?,
            json: matches.get_one::<String>("json").map(PathBuf::from),
        }),
        _ => unreachable!("clap demands a subcommand"),
    }
}

fn list() -> Result<()> {
    for path in paths::all() {
        println!("{:24} per {:12} {}", path.name, path.unit, path.about);
    }
    Ok(())
}

fn run_path(matches: &ArgMatches) -> Result<()> {
    let name = matches.get_one::<String>("name").context("clap demands a name")?;
    let passes: u64 = number(matches, "iterations")?;
    ensure!(0 < passes, "--iterations must be at least 1");
    let operations = path::run(find(name)?, passes);
    println!("operations {operations}");
    Ok(())
}

fn time(matches: &ArgMatches) -> Result<()> {
    let time_per_path = seconds(matches)?;
    let names: Vec<&String> = matches.get_many("name").unwrap_or_default().collect();
    let chosen: Vec<&HotPath> = match names.is_empty() {
        true => paths::all().collect(),
        false => names.iter().map(|name| find(name)).collect::<Result<_>>()?,
    };
    for path in chosen {
        let nanoseconds = path::time(path, time_per_path)?;
        println!("{:24} {nanoseconds:12.1} ns per {}", path.name, path.unit);
    }
    Ok(())
}

fn find(name: &str) -> Result<&'static HotPath> {
    let found = paths::all().find(|path| path.name == name);
    found.with_context(|| format!("no path is called {name:?}; `quipu-inside paths` lists them"))
}

fn value(name: &'static str, default: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).default_value(default).help(help)
}

fn number<T: FromStr>(matches: &ArgMatches, name: &str) -> Result<T> {
    let text = matches.get_one::<String>(name).with_context(|| format!("--{name} is missing"))?;
    text.parse().ok().with_context(|| format!("--{name} {text:?} is not a number"))
}

fn seconds(matches: &ArgMatches) -> Result<Duration> {
    let seconds = number(matches, "seconds")?;
    Duration::try_from_secs_f64(seconds).context("--seconds must be a number that is not negative")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
        run(&command().get_matches_from(["quipu-inside", "paths"])).unwrap();
        run(&command().get_matches_from(["quipu-inside", "path", "parse-query"])).unwrap();
        let unknown = command().get_matches_from(["quipu-inside", "path", "nowhere"]);
        assert!(run(&unknown).unwrap_err().to_string().contains("nowhere"));
    }
}
