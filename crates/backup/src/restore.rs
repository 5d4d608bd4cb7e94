//! `quipu backup restore`: a backup becomes a data directory, in pieces and by several threads.
//!
//! The directory is marked before anything is in it, and the mark goes when all of it is on disk: until
//! then no server opens it. A second run with the same backup goes on: pieces whose bytes are there are
//! read and hashed, the others fetched.

use super::directory::of_file;
use super::look::backup_argument;
use super::parallel::in_parallel;
use super::pieces::{all_of, fetch, hash_of};
use super::place::{self, Place};
use super::shelf::{self, LATEST};
use super::{bar, primary, text};
use anyhow::{Context as _, ensure};
use clap::{ArgMatches, Command};
use cli::arguments::{option, switch};
use cli::quantity::format_size;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{
    BackupFile, BackupManifest, BlobHash, RESTORING_MARKER, begin_restoring, end_restoring,
    restoring,
};
use vfs::{LOCK_FILE, RealVfs, Vfs as _};

/// What a new file system has in its root.
const LOST_AND_FOUND: &str = "lost+found";

/// The subcommand.
pub fn command() -> Command {
    let dry_run = switch("dry-run", "Only say what would be done, and whether there is room");
    let command = Command::new("restore")
        .about("Makes a data directory of a backup")
        .after_help(
            "The directory must be empty or new. Every byte is checked before it is written, and\n\
             no server opens it before all of it is on disk. What was interrupted goes on when it\n\
             is run again.\n\n\
             Then: quipu serve --data-dir PATH",
        )
        .arg(backup_argument());
    place::arguments_from(command)
        .arg(option("data-dir", "PATH", "The directory to make, empty or new").required(true))
        .arg(dry_run)
}

/// Restores.
///
/// # Errors
/// When not all of it could be restored.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let place = place::open(matches)?;
    let id = shelf::find(place.as_ref(), text(matches, "backup").unwrap_or(LATEST))?;
    let manifest = shelf::read(place.as_ref(), &id)?;
    let target = Path::new(text(matches, "data-dir").unwrap_or_default());
    let has = format!(
        "backup {id} of {}: {} files, {}",
        shelf::made(&manifest),
        manifest.files.len(),
        format_size(manifest.size())
    );
    if matches.get_flag("dry-run") {
        let found = look_at(target, &id)?;
        check_room(target, &manifest)?;
        cli::print_line!("{has}; would {} {}", found.verb(), target.display());
        return Ok(ExitCode::SUCCESS);
    }
    let vfs = RealVfs::new();
    vfs.create_dir_all(target)?;
    // Neither a server nor another restore.
    let _lock = vfs.lock(target)?;
    let found = look_at(target, &id)?;
    check_room(target, &manifest)?;
    if found == Target::Empty {
        begin_restoring(&vfs, target, &format!("backup {id} from {}\n", place.name()))?;
    }
    let restoring = Restoring { place: place.as_ref(), target, found, manifest: &manifest };
    restoring
        .run(place::parallel(matches))
        .with_context(|| format!("{} is not restored", target.display()))?;
    let words = primary::forget_primary(target)?;
    end_restoring(&vfs, target)?;
    cli::print_line!("{has}; restored in {}", target.display());
    if let Some(words) = words {
        cli::print_line!("{words}");
    }
    Ok(ExitCode::SUCCESS)
}

/// What is in the directory before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Empty,
    /// Some of the same backup.
    Begun,
}

impl Target {
    fn verb(self) -> &'static str {
        match self {
            Target::Empty => "restore it in",
            Target::Begun => "go on with it in",
        }
    }
}

fn look_at(target: &Path, id: &str) -> anyhow::Result<Target> {
    let vfs = RealVfs::new();
    let shown = target.display();
    if !vfs.exists(target)? {
        return Ok(Target::Empty);
    }
    if let Some(text) = restoring(&vfs, target)? {
        let of_it = format!("backup {id} from ");
        ensure!(
            text.starts_with(&of_it),
            "{shown} is half restored ({text}): go on with that one, or say an empty directory"
        );
        return Ok(Target::Begun);
    }
    for entry in std::fs::read_dir(target).map_err(|error| of_file(error, target))? {
        let name = entry.map_err(|error| of_file(error, target))?.file_name();
        let is_nothing = [LOCK_FILE, LOST_AND_FOUND].iter().any(|known| name == *known)
            // A run that was killed before the marker had its name.
            || name.to_string_lossy().starts_with(&format!("{RESTORING_MARKER}."));
        ensure!(
            is_nothing,
            "{shown} is not empty (it has {}): restore into an empty or a new directory",
            name.display()
        );
    }
    Ok(Target::Empty)
}

/// Refuses if the disk has no room for what is missing; nothing was written then.
fn check_room(target: &Path, manifest: &BackupManifest) -> anyhow::Result<()> {
    let there = |file: &BackupFile| {
        use std::os::unix::fs::MetadataExt as _;
        let found = std::fs::metadata(target.join(&file.path));
        found.map_or(0, |found| found.blocks().saturating_mul(512).min(file.size))
    };
    let needed: u64 = manifest.files.iter().map(|file| file.size - there(file)).sum();
    let existing = target.ancestors().find(|path| path.exists());
    // A relative path's last ancestor is the empty one.
    let existing = existing.filter(|path| !path.as_os_str().is_empty());
    let free = RealVfs::new().free_space(existing.unwrap_or(Path::new(".")))?;
    ensure!(
        needed <= free,
        "{} needs {} more and its disk has {} free: make room, or say another --data-dir",
        target.display(),
        format_size(needed),
        format_size(free)
    );
    Ok(())
}

/// Puts a backup's files into a directory that is marked.
struct Restoring<'a> {
    place: &'a dyn Place,
    target: &'a Path,
    found: Target,
    manifest: &'a BackupManifest,
}

/// A piece of a file.
struct Job<'a> {
    file: usize,
    number: usize,
    hash: &'a BlobHash,
    size: u64,
}

impl Restoring<'_> {
    fn run(&self, threads: usize) -> anyhow::Result<()> {
        let vfs = RealVfs::new();
        for folder in &self.manifest.folders {
            let path = self.target.join(folder);
            std::fs::create_dir_all(&path).map_err(|error| of_file(error, &path))?;
        }
        self.manifest.files.iter().try_for_each(|file| self.make(file))?;
        let jobs: Vec<Job<'_>> = all_of(self.manifest)
            .map(|(file, number, hash, size)| Job { file, number, hash, size })
            .collect();
        let left: Vec<AtomicUsize> =
            self.manifest.files.iter().map(|file| AtomicUsize::new(file.pieces.len())).collect();
        let bar = bar(self.manifest.size())?;
        in_parallel(&jobs, threads, |job| {
            let file = self.restore(job)?;
            if left[job.file].fetch_sub(1, Ordering::AcqRel) == 1 {
                let path = self.path(&self.manifest.files[job.file]);
                file.sync_all().map_err(|error| of_file(error, &path))?;
            }
            bar.inc(job.size);
            Ok(())
        })?;
        bar.finish_and_clear();
        for folder in self.manifest.folders.iter().rev() {
            vfs.sync_dir(&self.target.join(folder))?;
        }
        Ok(vfs.sync_dir(self.target)?)
    }

    fn path(&self, file: &BackupFile) -> PathBuf {
        self.target.join(&file.path)
    }

    /// Makes a file of the right size, with nothing in it yet or with what an earlier run wrote.
    fn make(&self, file: &BackupFile) -> anyhow::Result<()> {
        let path = self.path(file);
        let make = || {
            let made = File::options().create(true).truncate(false).write(true).open(&path)?;
            made.set_len(file.size)?;
            if file.pieces.is_empty() { made.sync_all() } else { Ok(()) }
        };
        make().map_err(|error| of_file(error, &path))
    }

    /// Makes sure that a piece is there, and fetches it if not.
    fn restore(&self, job: &Job<'_>) -> anyhow::Result<File> {
        let path = self.path(&self.manifest.files[job.file]);
        let start = self.manifest.piece_size.saturating_mul(job.number as u64);
        let file = File::options().read(true).write(true).open(&path);
        let file = file.map_err(|error| of_file(error, &path))?;
        let is_begun = self.found == Target::Begun;
        if is_begun && has(&file, start, job).map_err(|error| of_file(error, &path))? {
            return Ok(file);
        }
        let shown = || format!("{} cannot be restored", self.manifest.files[job.file].path);
        let bytes = fetch(self.place, job.hash, job.size).with_context(shown)?;
        file.write_all_at(&bytes, start).map_err(|error| of_file(error, &path))?;
        Ok(file)
    }
}

/// Whether an earlier run wrote a piece. What nobody wrote reads as zeros, which need no hash to tell.
fn has(file: &File, start: u64, job: &Job<'_>) -> std::io::Result<bool> {
    let mut bytes = vec![0; usize::try_from(job.size).map_err(std::io::Error::other)?];
    match file.read_exact_at(&mut bytes, start) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    let is_blank = bytes.iter().all(|byte| *byte == 0);
    Ok(!is_blank && hash_of(&bytes) == *job.hash)
}
