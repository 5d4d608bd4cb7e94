//! `quipu backup verify`: reads every blob of backups, and names what is missing or rotten.

use super::parallel::in_parallel;
use super::pieces::{all_of, fetch, key_of, listed};
use super::place::{self, Place};
use super::{bar, shelf, text};
use clap::{Arg, ArgMatches, Command};
use cli::arguments::switch;
use cli::error_text::sentence;
use cli::quantity::{count_of, format_size};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use store::{BackupManifest, BlobHash};

/// Exit code when there are problems.
const PROBLEMS: u8 = 1;
/// Exit code when it could not be found out.
const COULD_NOT_RUN: u8 = 2;
/// Files that are named for one blob.
const FILES_NAMED: usize = 3;

/// The subcommand.
pub fn command() -> Command {
    let quick =
        switch("quick", "Only look whether all blobs are there with their sizes; reads none");
    let command = Command::new("verify")
        .about("Reads backups and checks every byte of them")
        .after_help(
            "What is missing or rotten is named, with the backups and files that it is of. If a\n\
             rotten blob is removed, the next backup sends it again where the server still has\n\
             its bytes.\n\n\
             Exit codes: 0 no problems, 1 problems, 2 could not run.",
        )
        .arg(
            Arg::new("backup")
                .value_name("BACKUP")
                .help("One of them, or latest; without it all, each blob once"),
        );
    place::arguments(command).arg(quick)
}

/// What a blob is of.
#[derive(Default)]
struct Uses {
    size: u64,
    backups: BTreeSet<String>,
    files: BTreeSet<String>,
}

/// Verifies.
///
/// # Errors
/// None: that it could not is exit code 2.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    run_asked(matches).or_else(|error| {
        eprintln!("quipu: {}", sentence(&error));
        Ok(ExitCode::from(COULD_NOT_RUN))
    })
}

fn run_asked(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let place = place::open(matches)?;
    shelf::check(place.as_ref())?;
    let ids = match text(matches, "backup") {
        Some(asked) => vec![shelf::find(place.as_ref(), asked)?],
        None => shelf::ids(place.as_ref())?,
    };
    let mut problems = Vec::new();
    let mut blobs: BTreeMap<BlobHash, Uses> = BTreeMap::new();
    for id in &ids {
        match shelf::read(place.as_ref(), id) {
            Ok(manifest) => add(&mut blobs, id, &manifest),
            Err(error) => problems.push(format!("backup {id}: {}", sentence(&error))),
        }
    }
    problems.extend(match matches.get_flag("quick") {
        true => look(place.as_ref(), &blobs)?,
        false => read(place.as_ref(), &blobs, place::parallel(matches))?,
    });
    let size: u64 = blobs.values().map(|uses| uses.size).sum();
    problems.iter().for_each(|problem| cli::print_line!("{problem}"));
    cli::print_line!(
        "{}, {} of {}; {}",
        count_of(ids.len(), "backup"),
        count_of(blobs.len(), "blob"),
        format_size(size),
        count_of(problems.len(), "problem")
    );
    Ok(ExitCode::from(if problems.is_empty() { 0 } else { PROBLEMS }))
}

fn add(blobs: &mut BTreeMap<BlobHash, Uses>, id: &str, manifest: &BackupManifest) {
    for (file, _, hash, size) in all_of(manifest) {
        let uses = blobs.entry(*hash).or_default();
        uses.size = size;
        uses.backups.insert(id.to_owned());
        if uses.files.len() <= FILES_NAMED {
            uses.files.insert(manifest.files[file].path.clone());
        }
    }
}

fn look(place: &dyn Place, blobs: &BTreeMap<BlobHash, Uses>) -> anyhow::Result<Vec<String>> {
    let there = listed(place)?;
    let mut problems = Vec::new();
    for (hash, uses) in blobs {
        let (key, size) = (key_of(hash), uses.size);
        match there.get(hash) {
            Some(found) if *found == size => {}
            Some(found) => {
                problems.push(format!("{key} has {found} bytes, not {size}: {}", of(uses)))
            }
            None => problems.push(format!("{key} is missing: {}", of(uses))),
        }
    }
    Ok(problems)
}

fn read(
    place: &dyn Place,
    blobs: &BTreeMap<BlobHash, Uses>,
    threads: usize,
) -> anyhow::Result<Vec<String>> {
    let bar = bar(blobs.values().map(|uses| uses.size).sum())?;
    let problems = Mutex::new(Vec::new());
    let jobs: Vec<_> = blobs.iter().collect();
    in_parallel(&jobs, threads, |(hash, uses)| {
        if let Err(error) = fetch(place, hash, uses.size) {
            let mut problems = problems.lock().unwrap_or_else(PoisonError::into_inner);
            problems.push(format!("{}: {}", sentence(&error), of(uses)));
        }
        bar.inc(uses.size);
        Ok(())
    })?;
    bar.finish_and_clear();
    let mut problems = problems.into_inner().unwrap_or_else(PoisonError::into_inner);
    problems.sort();
    Ok(problems)
}

/// What lacks a blob.
fn of(uses: &Uses) -> String {
    let named: Vec<&str> = uses.files.iter().take(FILES_NAMED).map(String::as_str).collect();
    let more = if FILES_NAMED < uses.files.len() { " and others" } else { "" };
    let backups: Vec<&str> = uses.backups.iter().map(String::as_str).collect();
    format!("a piece of {}{more}, in {}", named.join(", "), backups.join(", "))
}
