//! The whole suite: every case of a profile in turn, resumable, and the overview of all.
//!
//! An interrupted run is taken up again by its identity, which is recorded with the results: what
//! that run has done is kept, what other runs left there is not.

use crate::cases::{self, Setting};
use crate::compare::overview::{self, Entry};
use crate::compare::record::Record;
use crate::compare::{self, CompareOptions, RUN_PREFIX, Resume};
use crate::instant;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// How to run the suite.
#[derive(Clone, Debug)]
pub struct SuiteOptions {
    /// What cases are planned with.
    pub setting: Setting,
    /// Names of kinds of cases; empty for all.
    pub only: Vec<String>,
    /// Runs of each server, where not the cases' own.
    pub repeats: Option<u64>,
    /// The rest; its repeats and suite are set for each case.
    pub compare: CompareOptions,
}

/// Runs all planned cases and writes their tables and the overview, which lists those cases too
/// that were left out this time.
///
/// # Errors
/// When a case is unknown or results cannot be written; a server's failure is a result.
pub fn run(options: &SuiteOptions) -> Result<()> {
    let start = Instant::now();
    let mut compare = options.compare.clone();
    compare.suite = Some(identity(&compare)?);
    remove_leftovers(&compare.work_dir)?;
    let planned = cases::plan(&options.setting, &options.only)?;
    for (idx, one) in planned.iter().enumerate() {
        let (minutes, count) = (start.elapsed().as_secs() / 60, planned.len());
        eprintln!("== case {} of {count}, after {minutes} min: {}", idx + 1, one.case.title());
        compare.repeats = options.repeats.unwrap_or(one.repeats);
        println!("{}", compare::run(one.case.as_ref(), &compare)?);
        // Written after every case, so that an interrupted run has its overview too.
        write_overview(options, &compare)?;
    }
    eprintln!("== {} cases in {} min", planned.len(), start.elapsed().as_secs() / 60);
    Ok(())
}

/// The interrupted run's identity, or a new one.
fn identity(compare: &CompareOptions) -> Result<String> {
    let mut record = Record::read(&compare.out_dir)?;
    if compare.resume == Resume::Yes
        && let Some(identity) = record.suite()
    {
        return Ok(identity.to_string());
    }
    let identity = instant::format_rfc3339(instant::now_ns());
    record.begin_suite(&identity)?;
    Ok(identity)
}

/// Servers' directories that an interrupted run left behind.
fn remove_leftovers(work_dir: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(work_dir) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(RUN_PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn write_overview(options: &SuiteOptions, compare: &CompareOptions) -> Result<()> {
    let all = cases::plan(&options.setting, &[])?;
    let record = Record::read(&compare.out_dir)?;
    let entry = |one| {
        let one: &cases::Planned = one;
        let repeats = options.repeats.unwrap_or(one.repeats).max(one.repeats);
        let compare = CompareOptions { repeats, ..compare.clone() };
        let runs = compare::recorded_runs(one.case.as_ref(), &compare, &record);
        Entry { case: one.case.as_ref(), runs }
    };
    let page = overview::page(&all.iter().map(entry).collect::<Vec<_>>(), compare);
    let path = compare.out_dir.join("results.md");
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}
