//! Quipu's door for Redis' clients beside Redis: rates, latencies, CPU of the server for an operation,
//! memory, bytes on disk, starts.
//!
//! ```text
//! cases ─► server (one of each, watched) ─► tool (redis-benchmark) | load (own clients)
//!             └──────────── measure: rounds in turn, medians ─► page (Markdown)
//! ```
//!
//! Rates on a machine that others use, too, say little: rounds of both servers alternate, medians
//! of the pairs are shown, and the CPU that the server took for an operation stands beside them.

mod cases;
mod data;
mod load;
mod measure;
mod page;
mod resp;
mod server;
mod tool;

use crate::instant;
use crate::observe::machine;
use anyhow::{Context, Result, bail};
use page::Page;
use server::{Kind, Program};
use std::fs;
use std::path::PathBuf;

pub use cases::CASES;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// Quipu's binary.
    pub quipu: PathBuf,
    /// Redis' binary, unless Quipu runs alone.
    pub redis: Option<PathBuf>,
    /// Names of cases; empty for all.
    pub only: Vec<String>,
    /// Directory for the data of the servers.
    pub work_dir: PathBuf,
    /// Directory for the tables; without it they are only printed.
    pub out: Option<PathBuf>,
    /// How much of everything.
    pub size: Size,
}

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Size {
    /// Keys of the cases that have few.
    pub keys: u64,
    /// Keys of the cases that have many.
    pub many_keys: u64,
    /// Time series.
    pub series: u64,
    /// Rounds of each server.
    pub rounds: u64,
    /// Requests of a measurement without pipelines; with them it makes more.
    pub requests: u64,
}

impl Size {
    /// For trying: minutes.
    pub const QUICK: Size =
        Size { keys: 50_000, many_keys: 200_000, series: 10_000, rounds: 3, requests: 30_000 };
    /// Of record.
    pub const FULL: Size = Size {
        keys: 1_000_000,
        many_keys: 10_000_000,
        series: 1_000_000,
        rounds: 5,
        requests: 100_000,
    };
}

/// Runs the cases and prints their tables, each as soon as it is there.
///
/// # Errors
/// When a case is unknown, a server does not start, or a table cannot be written.
pub fn run(options: &RedisOptions, command_line: &str) -> Result<()> {
    for name in &options.only {
        if !CASES.iter().any(|case| case.name == name) {
            bail!("there is no case {name:?}");
        }
    }
    fs::create_dir_all(&options.work_dir)?;
    let mut programs = vec![Program::new(Kind::Quipu, &options.quipu)?];
    if let Some(redis) = &options.redis {
        programs.push(Program::new(Kind::Redis, redis)?);
    }
    let mut page = Page::new(&machine::describe().to_string(), &programs, command_line);
    for case in CASES {
        if !options.only.is_empty() && !options.only.iter().any(|name| case.name == name) {
            continue;
        }
        eprintln!("== {}", case.name);
        let mut bench = Bench { options, programs: &programs, case: case.name };
        match (case.run)(&mut bench) {
            Ok(section) => {
                println!("{section}");
                page.push(&section.to_string());
            }
            Err(error) => {
                eprintln!("   failed: {error:#}");
                page.push(&format!("## {}\n\nFailed: {error:#}\n", case.title));
            }
        }
        page.ended(&instant::format_rfc3339(instant::now_ns()));
        if let Some(out) = &options.out {
            fs::write(out, page.text())
                .with_context(|| format!("cannot write {}", out.display()))?;
        }
    }
    Ok(())
}

/// What a case is given.
pub struct Bench<'a> {
    options: &'a RedisOptions,
    programs: &'a [Program],
    case: &'static str,
}

/// A case.
pub struct Case {
    /// Its name, as `--only` takes it.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    run: fn(&mut Bench<'_>) -> Result<page::Section>,
}
