//! Runs Redis' own suite, which is written in Tcl, against the Redis door: a fresh server for every
//! unit. Then compares with the record `tests/redis-suite.toml`: whatever passed must pass, and what
//! passes by now must be taken off the list, so that it only shrinks.
//!
//! ```text
//! main ─► unit (a server, a run of the suite) ─► report (what it printed)
//!   └───► record (what passed so far) ─► complaints
//! ```
//! `cargo xtask test-redis` brings the suite and calls this.

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

mod record;
mod report;
mod unit;

use anyhow::{Context, Result, bail, ensure};
use record::Record;
use report::Report;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use unit::Suite;

const USAGE: &str = "\
usage: redis-suite SUITE [--quick] [--update] [--words] [UNIT...]

  SUITE     the directory of Redis' source, with its programs linked into src/
  --quick   only the units that the record calls quick
  --update  write what passes now into the record
  --words   what every test that failed said
  UNIT      as the suite calls it, unit/type/list; all if none is given";

/// How often a unit runs that differs from the record.
const TRIES_MAX: u32 = 5;

/// What the command line asks for.
#[derive(Default)]
struct Request {
    suite: PathBuf,
    is_quick: bool,
    updates: bool,
    tells_words: bool,
    units: Vec<String>,
}

impl Request {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Request> {
        let mut request = Request::default();
        for argument in arguments {
            match argument.as_str() {
                "--quick" => request.is_quick = true,
                "--update" => request.updates = true,
                "--words" => request.tells_words = true,
                other if other.starts_with('-') => bail!("{other} is no flag\n{USAGE}"),
                _ if request.suite.as_os_str().is_empty() => request.suite = argument.into(),
                _ => request.units.push(argument),
            }
        }
        ensure!(!request.suite.as_os_str().is_empty(), "{USAGE}");
        Ok(request)
    }

    fn wants(&self, unit: &str, record: &Record) -> bool {
        let is_named = self.units.is_empty() || self.units.iter().any(|name| name == unit);
        is_named && (!self.is_quick || record.is_quick(unit))
    }
}

/// Prints an error without its backtrace, so that the complaints are the last lines of a log.
fn main() -> ExitCode {
    match run_units() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_units() -> Result<()> {
    let request = Request::parse(std::env::args().skip(1))?;
    let mut record = Record::read()?;
    let suite = Suite::new(&request.suite)?;
    let all = suite.units()?;
    let unknown = request.units.iter().find(|unit| !all.contains(unit));
    ensure!(unknown.is_none(), "{} is no unit of the suite", unknown.context("one")?);
    let start = Instant::now();
    println!("{:<42} {:>7} {:>7} {:>8} {:>8}", "unit", "passed", "failed", "skipped", "seconds");
    let mut sum = Report::default();
    let mut complaints = Vec::new();
    for (number, unit) in all.iter().enumerate() {
        if !request.wants(unit, &record) {
            continue;
        }
        let report = run(&suite, unit, number, &request, &record)?;
        if request.updates {
            record.update(unit, &report);
            record.write()?;
        } else {
            complaints.extend(record.compare(unit, &report));
        }
        sum.add(&report);
    }
    show("all", &sum, start.elapsed().as_secs());
    for unit in all.iter().filter(|unit| !record.knows(unit)) {
        complaints.push(format!("{unit} is not in {}", record::FILE));
    }
    if request.updates || complaints.is_empty() {
        return Ok(());
    }
    bail!("{} complaints:\n{}", complaints.len(), complaints.join("\n"))
}

/// Runs a unit. One that differs from the record runs again, up to `TRIES_MAX` times: the suite waits by
/// the clock, and other programs may hold the processor. A test fails if it fails in every try.
fn run(
    suite: &Suite,
    unit: &str,
    number: usize,
    request: &Request,
    record: &Record,
) -> Result<Report> {
    let mut merged: Option<Report> = None;
    for attempt in 1..=TRIES_MAX {
        let start = Instant::now();
        let report = suite.run(unit, number, &record.endless(unit))?;
        show(unit, &report, start.elapsed().as_secs());
        show_failures(unit, &report, request, record);
        let report = match merged.take() {
            Some(earlier) => earlier.merge(&report),
            None => report,
        };
        if request.updates || attempt == TRIES_MAX || record.compare(unit, &report).is_empty() {
            return Ok(report);
        }
        println!("    differs from the record: try {} of {TRIES_MAX}", attempt + 1);
        merged = Some(report);
    }
    bail!("{unit} had no try")
}

/// Prints the output of tests that fail and are not recorded as failing, or of all with `--words`.
fn show_failures(unit: &str, report: &Report, request: &Request, record: &Record) {
    for (test, words) in &report.failed {
        if request.tells_words || !record.is_failing(unit, test) {
            println!("    {test}");
            words.lines().for_each(|line| println!("        {line}"));
        }
    }
}

fn show(unit: &str, report: &Report, seconds: u64) {
    let (passed, failed, skipped) = (report.passed, report.failed.len(), report.skipped);
    println!("{unit:<42} {passed:>7} {failed:>7} {skipped:>8} {seconds:>8}");
}
