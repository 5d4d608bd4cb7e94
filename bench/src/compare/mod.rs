//! Side by side: the same work for several servers in turn, and a table of ratios.
//!
//! ```text
//! for each repeat, for each contender:            raw/<case>-<server>-<repeat>.json
//!   start in an empty directory ─► work ─► stop ─►                │
//!                                                 <case>.md ◄─ medians, spreads, ratios
//! ```
//!
//! Repeats are interleaved, so that a slow minute of the machine hits all. Each run's raw result
//! is written at once; with `--resume` a run that has one is not done again. A case is a file that
//! implements [`Case`]; its figures carry their own direction, so tables need no case's help.

pub mod figures;
pub mod ingest;
mod markdown;
mod plot;
pub mod queries;

use crate::observe::machine;
use crate::server::Installed;
use anyhow::{Context, Result};
use figures::Figure;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Something to compare servers by.
pub trait Case {
    /// File name of its table, without ending.
    fn file_name(&self) -> String;
    /// Heading of its table.
    fn title(&self) -> String;
    /// Why that server cannot do it, if so.
    fn unsupported(&self, contender: &Installed) -> Option<String>;
    /// Does the work on a server that it starts in `dir`, which is empty.
    ///
    /// # Errors
    /// When the server fails; that becomes the run's result.
    fn run(&self, contender: &Installed, dir: &Path) -> Result<Outcome>;
}

/// What a run gives.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// What is compared, in the order of the table.
    pub figures: Vec<Figure>,
    /// Why it ended early, if it did.
    pub stopped: Option<String>,
    /// Everything else that was measured.
    pub raw: serde_json::Value,
    /// Rates and memory over time, for plots.
    pub timeline: Vec<crate::load::report::TimelineRow>,
}

/// One run of one contender.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    contender: String,
    version: String,
    command: String,
    repeat: u64,
    /// When it ended, UTC.
    ended: String,
    machine: machine::Machine,
    outcome: Outcome,
}

/// How to compare.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The servers; ratios are those of the first to each other.
    pub contenders: Vec<Installed>,
    /// How often each runs.
    pub repeats: u64,
    /// Where tables go.
    pub out_dir: PathBuf,
    /// Where the servers' directories are made and removed.
    pub work_dir: PathBuf,
    /// Whether to keep results of an earlier, interrupted comparison.
    pub resume: Resume,
    /// The command line, for the table.
    pub command_line: String,
}

/// What to do with raw results that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Take them instead of running again.
    Yes,
    /// Run again.
    No,
}

/// Runs a case for all contenders and writes its table; returns the table.
///
/// # Errors
/// When results cannot be written; a server's failure is a result.
pub fn run(case: &dyn Case, options: &CompareOptions) -> Result<String> {
    let raw_dir = options.out_dir.join("raw");
    fs::create_dir_all(&raw_dir).with_context(|| format!("cannot create {}", raw_dir.display()))?;
    let mut runs = Vec::new();
    for repeat in 1..=options.repeats {
        for contender in &options.contenders {
            let name = format!("{}-{}-{repeat}.json", case.file_name(), contender.peer.name);
            let path = raw_dir.join(name.to_lowercase());
            let done = fs::read(&path).ok().filter(|_| options.resume == Resume::Yes);
            let run = match done.and_then(|bytes| serde_json::from_slice::<Run>(&bytes).ok()) {
                Some(run) => run,
                None => run_once(case, contender, repeat, &options.work_dir)?,
            };
            fs::write(&path, serde_json::to_string_pretty(&run)?)?;
            runs.push(run);
        }
    }
    let table = markdown::table(case, options, &runs);
    fs::write(options.out_dir.join(format!("{}.md", case.file_name())), &table)?;
    if let Some(svg) = plot::timelines(&runs) {
        fs::write(options.out_dir.join(format!("{}.svg", case.file_name())), svg)?;
    }
    Ok(table)
}

fn run_once(case: &dyn Case, contender: &Installed, repeat: u64, work_dir: &Path) -> Result<Run> {
    eprintln!("{}: {}, run {repeat}", case.title(), contender.peer.name);
    fs::create_dir_all(work_dir)?;
    let dir = tempfile::Builder::new().prefix("run-").tempdir_in(work_dir)?;
    let outcome = match case.unsupported(contender) {
        Some(reason) => Outcome { stopped: Some(reason), ..Outcome::default() },
        None => case.run(contender, dir.path()).unwrap_or_else(|error| Outcome {
            stopped: Some(format!("{error:#}")),
            ..Outcome::default()
        }),
    };
    if let Some(reason) = &outcome.stopped {
        eprintln!("{}: {reason}", contender.peer.name);
    }
    Ok(Run {
        contender: contender.peer.name.to_string(),
        version: contender.version.clone(),
        command: contender.shown_command(),
        repeat,
        ended: crate::instant::format_rfc3339(crate::instant::now_ns()),
        machine: machine::describe(),
        outcome,
    })
}
