//! Side by side: the same work for several servers in turn, and a table of ratios.
//!
//! ```text
//! for each repeat, for each contender:            a line in runs.jsonl
//!   start in an empty directory ─► work ─► stop ─►                │
//!                                                 <case>.md ◄─ medians, spreads, ratios
//! ```
//!
//! Repeats are interleaved, so that a slow minute of the machine hits all. Each run's raw result
//! is recorded at once ([`record`]); with `--resume` a run that has one is not done again. A case is a file in
//! `cases/` that implements [`Case`]; its figures carry their own direction, so tables need no
//! case's help.

pub mod figures;
mod markdown;
pub mod overview;
mod plot;
pub mod record;
mod spread;
mod tally;

use crate::observe::machine;
use crate::server::Installed;
use anyhow::Result;
use figures::Figure;
use record::Record;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Directories of runs start so; what an interrupted run left behind is found by it.
pub const RUN_PREFIX: &str = "run-";

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
    /// The figures that the overview of all cases shows.
    fn headline(&self) -> Vec<String>;
    /// What is drawn as bars beside the table.
    fn charts(&self) -> Vec<Chart> {
        Vec::new()
    }
    /// What is counted and averaged below the table.
    fn tallies(&self) -> Vec<Tally> {
        Vec::new()
    }
    /// Columns of numbers that others published, from other machines.
    fn published(&self) -> Vec<Published> {
        Vec::new()
    }
}

/// A bar chart: a group of bars per label, a bar per contender.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What the bars show, with its unit and which way is better.
    pub title: String,
    /// A group's label and the figure that it shows.
    pub groups: Vec<(String, String)>,
}

/// Figures of one kind, of which it is said how many are better and by how much on average.
#[derive(Clone, Debug)]
pub struct Tally {
    /// What they have in common.
    pub title: String,
    /// Their names.
    pub figures: Vec<String>,
}

/// Numbers from elsewhere, shown beside the measured ones and never divided by them.
#[derive(Clone, Debug)]
pub struct Published {
    /// Whose and from when.
    pub name: &'static str,
    /// The figure's name and the value.
    pub values: Vec<(String, f64)>,
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
pub struct Run {
    contender: String,
    version: String,
    command: String,
    repeat: u64,
    /// The run of the whole suite that it is a part of, if any.
    #[serde(default)]
    suite: Option<String>,
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
    /// The run of the whole suite that this is a part of: only its own results are kept.
    pub suite: Option<String>,
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

/// Runs a case for all contenders and writes its table and plots; returns the table.
///
/// # Errors
/// When results cannot be written; a server's failure is a result.
pub fn run(case: &dyn Case, options: &CompareOptions) -> Result<String> {
    let mut record = Record::read(&options.out_dir)?;
    let mut runs = Vec::new();
    for repeat in 1..=options.repeats {
        for contender in &options.contenders {
            let name = run_name(case, contender, repeat);
            let done = record
                .get(&name)
                .filter(|run| options.resume == Resume::Yes && run.suite == options.suite);
            let run = match done {
                Some(run) => run.clone(),
                None => {
                    let run = run_once(case, contender, repeat, options)?;
                    record.put(&name, run.clone())?;
                    run
                }
            };
            runs.push(run);
        }
    }
    let table = markdown::table(case, options, &runs);
    let path = |ending: &str| options.out_dir.join(format!("{}{ending}", case.file_name()));
    fs::write(path(".md"), &table)?;
    if let Some(svg) = plot::timelines(&runs) {
        fs::write(path(".svg"), svg)?;
    }
    for (idx, chart) in case.charts().iter().enumerate() {
        if let Some(svg) = plot::bars(chart, &names(options), &runs) {
            fs::write(path(&chart_ending(idx)), svg)?;
        }
    }
    Ok(table)
}

/// The results of a case that are recorded, of whatever run.
pub fn recorded_runs(case: &dyn Case, options: &CompareOptions, record: &Record) -> Vec<Run> {
    let repeats = 1..=options.repeats;
    let names = repeats
        .flat_map(|repeat| options.contenders.iter().map(move |one| run_name(case, one, repeat)));
    names.filter_map(|name| record.get(&name).cloned()).collect()
}

fn run_name(case: &dyn Case, contender: &Installed, repeat: u64) -> String {
    format!("{}-{}-{repeat}", case.file_name(), contender.peer.name).to_lowercase()
}

fn names(options: &CompareOptions) -> Vec<&'static str> {
    options.contenders.iter().map(|one| one.peer.name).collect()
}

/// The end of the file name of a case's chart.
fn chart_ending(idx: usize) -> String {
    format!("-bars-{}.svg", idx + 1)
}

fn run_once(
    case: &dyn Case,
    contender: &Installed,
    repeat: u64,
    options: &CompareOptions,
) -> Result<Run> {
    eprintln!("{}: {}, run {repeat}", case.title(), contender.peer.name);
    fs::create_dir_all(&options.work_dir)?;
    let dir = tempfile::Builder::new().prefix(RUN_PREFIX).tempdir_in(&options.work_dir)?;
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
        suite: options.suite.clone(),
        ended: crate::instant::format_rfc3339(crate::instant::now_ns()),
        machine: machine::describe(),
        outcome,
    })
}
