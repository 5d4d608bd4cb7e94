//! `quipu backup prune`: removes backups that are not kept, then blobs that no backup names.
//!
//! A backup being made counts on blobs that it found. So a prune marks the place, goes away if a backup
//! is being made, and reads manifests only then: whatever is made later sees its mark and refuses. It
//! looks for its own mark before each bunch of blobs; if that is gone, somebody took it for dead.

use super::directory::NEW_SUFFIX;
use super::marks::{Mark, Work};
use super::parallel::in_parallel;
use super::pieces::{BLOBS, all_of, hash_in};
use super::place::{self, Entry, Place};
use super::shelf;
use anyhow::{Context as _, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use cli::arguments::switch;
use cli::quantity::{count_of, format_size};
use std::collections::HashSet;
use std::process::ExitCode;
use store::{BackupManifest, BlobHash};
use vfs::{RealVfs, Vfs as _};

/// Blobs that are removed between two looks at the mark.
const BUNCH: usize = 100;
const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// The subcommand.
pub fn command() -> Command {
    let number = |name: &'static str, help: &'static str| {
        let parser = value_parser!(u32).range(1..);
        Arg::new(name).long(name).value_name("N").value_parser(parser).help(help)
    };
    let dry_run = switch("dry-run", "Only say what would be removed");
    let command = Command::new("prune")
        .about("Removes old backups, and blobs that no other backup needs")
        .after_help(
            "With both rules a backup stays if one of them keeps it. The newest one always stays.\n\
             Also removes what failed runs of `create` sent. Refuses while a backup is being\n\
             made, as those being made refuse meanwhile.",
        );
    place::arguments(command)
        .arg(number("keep", "Keep the N newest backups"))
        .arg(number("keep-days", "Keep backups of the last N days"))
        .arg(dry_run)
}

/// Which backups stay.
struct Rule {
    newest: Option<usize>,
    since: Option<i64>,
}

impl Rule {
    fn of(matches: &ArgMatches) -> anyhow::Result<Rule> {
        let number = |name: &str| matches.get_one::<u32>(name).copied();
        // However many days are said, it is a time of the past.
        let since = |days| {
            RealVfs::new().now().saturating_sub(i64::from(days).saturating_mul(NANOS_PER_DAY))
        };
        let rule = Rule {
            newest: number("keep").map(|count| count as usize),
            since: number("keep-days").map(since),
        };
        match rule {
            Rule { newest: None, since: None } => bail!("say --keep N or --keep-days N, or both"),
            rule => Ok(rule),
        }
    }

    /// Whether a backup stays, of which so many are newer.
    fn keeps(&self, newer: usize, backup: &BackupManifest) -> bool {
        newer == 0
            || self.newest.is_some_and(|count| newer < count)
            || self.since.is_some_and(|since| since <= backup.made)
    }
}

/// What goes.
#[derive(Default)]
struct Plan {
    backups: Vec<String>,
    kept: usize,
    blobs: Vec<Entry>,
}

/// Prunes.
///
/// # Errors
/// When somebody else is at work, or when not all could be removed that should be.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let rule = Rule::of(matches)?;
    let place = place::open(matches)?;
    shelf::check(place.as_ref())?;
    if matches.get_flag("dry-run") {
        // Reads only, so it needs no mark; what is being sent just now looks like nobody's.
        let plan = plan(place.as_ref(), &rule)?;
        plan.backups.iter().for_each(|id| cli::print_line!("would remove backup {id}"));
        cli::print_line!("would remove {}", plan.sentence());
        return Ok(ExitCode::SUCCESS);
    }
    let mark = Mark::begin(&place, Work::Prune)?;
    let plan = plan(place.as_ref(), &rule)?;
    let threads = place::parallel(matches);
    plan.apply(place.as_ref(), &mark, threads).context("not all was removed; run again")?;
    cli::print_line!("removed {}", plan.sentence());
    Ok(ExitCode::SUCCESS)
}

fn plan(place: &dyn Place, rule: &Rule) -> anyhow::Result<Plan> {
    let mut plan = Plan::default();
    let mut needed: HashSet<BlobHash> = HashSet::new();
    for (newer, id) in shelf::ids(place)?.into_iter().rev().enumerate() {
        let backup = shelf::read(place, &id).with_context(|| {
            format!(
                "nothing is removed: nobody can say which blobs backup {id} needs (if it is lost, \
                 remove its manifest by hand)"
            )
        })?;
        if rule.keeps(newer, &backup) {
            plan.kept += 1;
            needed.extend(all_of(&backup).map(|(_, _, hash, _)| *hash));
        } else {
            plan.backups.push(id);
        }
    }
    plan.blobs = place.list(BLOBS)?;
    // What has another name is not ours, whatever it is doing there.
    plan.blobs.retain(|entry| match hash_in(&entry.key) {
        Some(hash) => !needed.contains(&hash),
        None => is_unfinished(&entry.key),
    });
    Ok(plan)
}

/// Whether a blob was being written there when a run was killed.
fn is_unfinished(key: &str) -> bool {
    let Some((name, digits)) = key.split_once(NEW_SUFFIX) else { return false };
    let is_random = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_random && hash_in(name).is_some()
}

impl Plan {
    fn sentence(&self) -> String {
        let size: u64 = self.blobs.iter().map(|blob| blob.size).sum();
        format!(
            "{} and {} of {}; left: {}",
            count_of(self.backups.len(), "backup"),
            count_of(self.blobs.len(), "blob"),
            format_size(size),
            count_of(self.kept, "backup")
        )
    }

    /// Manifests go first: a backup whose blobs go is none any more.
    fn apply(&self, place: &dyn Place, mark: &Mark, threads: usize) -> anyhow::Result<()> {
        for id in &self.backups {
            mark.check()?;
            place.remove(&shelf::key_of(id))?;
        }
        for bunch in self.blobs.chunks(BUNCH) {
            mark.check()?;
            in_parallel(bunch, threads, |blob| place.remove(&blob.key))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::Directory;
    use super::super::pieces::{PIECE_SIZE, hash_of, key_of};
    use super::*;
    use std::path::Path;
    use std::sync::Arc;
    use store::BackupFile;

    /// Backups a day apart, the newest of now, each with a blob of its own and one of all.
    fn place(directory: &Path) -> Arc<dyn Place> {
        let place: Arc<dyn Place> = Arc::new(Directory::new(directory).expect("a place"));
        shelf::prepare(place.as_ref()).expect("a place of backups");
        for age in 0..4 {
            let made = RealVfs::new().now() - age * NANOS_PER_DAY - NANOS_PER_DAY / 2;
            let mut files = Vec::new();
            for bytes in ["all".to_owned(), format!("one {age}")] {
                let hash = hash_of(bytes.as_bytes());
                place.put(&key_of(&hash), bytes.as_bytes()).expect("put");
                let size = bytes.len() as u64;
                let pieces = vec![hash];
                files.push(BackupFile { path: bytes, size, pieces, ..BackupFile::default() });
            }
            let piece_size = PIECE_SIZE;
            let backup = BackupManifest { made, piece_size, files, ..BackupManifest::default() };
            place.put(&shelf::key_of(&shelf::new_id(made)), &backup.encode()).expect("put");
        }
        let failed = key_of(&hash_of(b"of a failed run"));
        place.put(&failed, b"of a failed run").expect("put");
        let half = format!("{failed}{NEW_SUFFIX}0123456789abcdef");
        place.put(&half, b"half").expect("put");
        for other in ["blobs/mine.txt", "blobs/ab/abc.new-0123456789abcdef", "blobs/sha256/ab/data"]
        {
            place.put(other, b"of somebody else").expect("put");
        }
        place
    }

    fn counts(place: &dyn Place) -> (usize, usize) {
        // Three are of somebody else, who keeps them.
        let blobs = place.list(BLOBS).expect("listed").len() - 3;
        (shelf::ids(place).expect("listed").len(), blobs)
    }

    #[test]
    fn what_a_kept_backup_needs_stays() {
        for (newest, days, kept) in
            [(Some(2), None, 2), (None, Some(3), 3), (Some(1), Some(3), 3), (Some(9), None, 4)]
        {
            let directory = tempfile::tempdir().expect("a directory");
            let place = place(directory.path());
            let since = days.map(|days: i64| RealVfs::new().now() - days * NANOS_PER_DAY);
            let plan = plan(place.as_ref(), &Rule { newest, since }).expect("a plan");
            let mark = Mark::begin(&place, Work::Prune).expect("nobody is there");
            plan.apply(place.as_ref(), &mark, 3).expect("removed");
            assert_eq!(counts(place.as_ref()), (kept, kept + 1), "{newest:?} {days:?}");
        }
    }

    #[test]
    fn days_beyond_all_time_keep_everything() {
        for days in ["106752", "150000", "999999", "4294967295"] {
            let matches = command().get_matches_from(["x", "--to", "p", "--keep-days", days]);
            let since = Rule::of(&matches).expect("a rule").since.expect("a time");
            assert!(since < 0, "{days}: {since}");
        }
    }

    #[test]
    fn the_newest_stays_however_old_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = place(directory.path());
        let rule = Rule { newest: None, since: Some(i64::MAX) };
        assert_eq!(plan(place.as_ref(), &rule).expect("a plan").kept, 1);
    }

    #[test]
    fn with_a_manifest_that_cannot_be_read_nothing_goes() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = place(directory.path());
        let id = shelf::ids(place.as_ref()).expect("listed").remove(0);
        place.put(&shelf::key_of(&id), b"rotten").expect("put");
        let error = plan(place.as_ref(), &Rule { newest: Some(1), since: None }).err();
        let text = format!("{:#}", error.expect("refused"));
        assert!(text.contains(&id) && text.contains("nothing is removed"), "{text}");
    }

    #[test]
    fn a_prune_that_was_taken_for_dead_removes_no_more() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = place(directory.path());
        let plan = plan(place.as_ref(), &Rule { newest: Some(1), since: None }).expect("a plan");
        let mark = Mark::begin(&place, Work::Prune).expect("nobody is there");
        std::fs::remove_dir_all(directory.path().join("marks")).expect("gone");
        assert!(plan.apply(place.as_ref(), &mark, 3).is_err());
        assert_eq!(counts(place.as_ref()), (4, 7));
    }
}
