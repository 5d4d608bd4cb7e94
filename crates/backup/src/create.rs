//! `quipu backup create`: a snapshot of a running server, sent as far as the place lacks it.
//!
//! Files of a snapshot never change, so one with the path, size, time of change and number that it had
//! in the backup before is the same, and is not read. Of the others each piece is read and hashed, and
//! sent if the place has no blob of that name and size. What a failed run sent is there for the next one.

use super::marks::{Mark, Work, forget, left};
use super::parallel::in_parallel;
use super::pieces::{PIECE_SIZE, hash_of, key_of, listed};
use super::place::{self, Place};
use super::walk::{Found, walk};
use super::{bar, damage, directory::of_file, shelf, text};
use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use clap::{ArgMatches, Command};
use cli::arguments::{option, switch};
use cli::error_text::sentence;
use cli::quantity::{count_of, format_size};
use http_client::client;
use http_client::client::{Client, encode};
use hyper::Method;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use store::{BackupFile, BackupManifest, BlobHash, Finding, SNAPSHOTS_DIR};
use vfs::{RealVfs, Vfs as _};

/// Switch that leaves out the search for damage.
const UNCHECKED: &str = "unchecked";
/// Bytes of a server's answer about snapshots.
const ANSWER_SIZE_MAX: usize = 16 << 20;

/// The subcommand.
pub fn command() -> Command {
    let command = Command::new("create")
        .about("Makes a backup of a running server, of samples, keys and tables")
        .after_help(
            "The server makes a snapshot, in a moment; its files are read here, in the data\n\
             directory, so this runs on the server's machine and as its user. Each piece of a\n\
             file has its hash for a name, and is sent if the place has none of that name: a\n\
             second backup sends what changed, and a failed one goes on when it is run again. The\n\
             backup is there once all of it is.\n\n\
             Files that the backup before does not have are decoded, too. If one is damaged, the\n\
             backup is made, the damage is named, and the exit code is 1, each time until the data\n\
             directory is repaired (quipu verify --repair).",
        )
        .arg(switch(UNCHECKED, "Do not look for damage in what is sent"))
        .arg(
            option("data-dir", "PATH", "The data directory of that server")
                .default_value("./quipu-data"),
        );
    client::arguments(place::arguments(command))
}

/// Makes a backup.
///
/// # Errors
/// When it is not made.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let data_dir = PathBuf::from(text(matches, "data-dir").unwrap_or_default());
    refuse_inside(Path::new(text(matches, "to").unwrap_or_default()), &data_dir)?;
    let place = place::open(matches)?;
    let mut server = Server { client: Client::new(matches)?, data_dir };
    shelf::prepare(place.as_ref())?;
    let mark = Mark::begin(&place, Work::Create)?;
    server.delete_left(place.as_ref())?;
    // Noted before it is there, so that nobody is killed between the two.
    let ending = format!("{:08x}", RealVfs::new().random() >> 32);
    mark.note_snapshot(&ending)?;
    let snapshot = server.snapshot(&ending)?;
    let noted = match snapshot.ends_with(&ending) {
        true => Ok(()),
        // A server of an earlier version names it as it likes.
        false => mark.note_snapshot(&snapshot),
    };
    let backup = noted.and_then(|()| {
        let checks = if matches.get_flag(UNCHECKED) { Checks::None } else { Checks::Sent };
        let sending = Sending { place: &place, threads: place::parallel(matches), checks };
        sending.backup(&server.folder(&snapshot), &snapshot, &mark)
    });
    // It holds files that the server may want to let go.
    let forgotten = server.delete(&snapshot);
    let Made { id, manifest, problems } =
        backup.context("no backup was made; run again, it goes on from here")?;
    if let Err(error) = forgotten {
        eprintln!("quipu: the snapshot {snapshot} stays on the server: {}", sentence(&error));
    }
    cli::print_line!("backup {id}: {}", summary(&manifest));
    Ok(damage::report(&id, &problems))
}

/// Refuses a place within the data directory: what takes that takes the backups, too.
fn refuse_inside(place: &Path, data_dir: &Path) -> anyhow::Result<()> {
    let is_bucket = place.to_string_lossy().contains("://");
    let Some(data_dir) = data_dir.canonicalize().ok().filter(|_| !is_bucket) else {
        return Ok(());
    };
    // What is not there yet is where its parent is.
    let place = std::path::absolute(place)?;
    let there = place.ancestors().find_map(|path| path.canonicalize().ok());
    ensure!(
        there.is_none_or(|there| !there.starts_with(&data_dir)),
        "--to {} is within the data directory {}: whatever happens to that happens to the backups; \
         name another place, best on another disk",
        place.display(),
        data_dir.display()
    );
    Ok(())
}

fn summary(backup: &BackupManifest) -> String {
    format!(
        "{} of {}; sent: {} of {}",
        count_of(backup.files.len(), "file"),
        format_size(backup.size()),
        count_of(backup.sent_blobs, "blob"),
        format_size(backup.sent_bytes)
    )
}

/// The server that is backed up.
struct Server {
    client: Client,
    data_dir: PathBuf,
}

impl Server {
    fn folder(&self, snapshot: &str) -> PathBuf {
        self.data_dir.join(SNAPSHOTS_DIR).join(snapshot)
    }

    /// Has a snapshot made; its files are here.
    fn snapshot(&mut self, ending: &str) -> anyhow::Result<String> {
        let answer = self.ask(Method::POST, &format!("/snapshot/create?ending={ending}"))?;
        let name = answer["snapshot"].as_str().context("the server named no snapshot")?.to_owned();
        if self.folder(&name).is_dir() {
            return Ok(name);
        }
        let folder = self.folder(&name).display().to_string();
        let _ = self.delete(&name);
        bail!(
            "the server made a snapshot, but not in {folder}: say --data-dir as the server has it"
        )
    }

    fn delete(&mut self, snapshot: &str) -> anyhow::Result<()> {
        let path = format!("/snapshot/delete?snapshot={}", encode(snapshot));
        self.ask(Method::POST, &path).map(|_| ())
    }

    /// Deletes snapshots of runs that were killed, as far as they are this server's.
    fn delete_left(&mut self, place: &dyn Place) -> anyhow::Result<()> {
        let left = left(place)?;
        if left.is_empty() {
            return Ok(());
        }
        let answer = self.ask(Method::GET, "/snapshot/list")?;
        let known = answer["snapshots"].as_array().cloned().unwrap_or_default();
        let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
        for noted in left {
            // What was noted is how a name ends, or all of it.
            let is_it = |name: &&&str| **name == noted || name.ends_with(&format!("-{noted}"));
            let Some(name) = known.iter().find(is_it) else { continue };
            if self.folder(name).is_dir() && self.delete(name).is_ok() {
                eprintln!("quipu: deleted the snapshot {name}, which a killed backup had left");
                forget(place, &noted)?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, method: Method, path: &str) -> anyhow::Result<Value> {
        let mut answer = Vec::new();
        let reply = self.client.send(method, path, Bytes::new(), &mut |bytes| {
            ensure!(answer.len() + bytes.len() <= ANSWER_SIZE_MAX, "the answer is too long");
            answer.extend_from_slice(bytes);
            Ok(())
        })?;
        ensure!(reply.status.is_success(), "{path}: {}: {}", reply.status, reply.error);
        serde_json::from_slice(&answer).with_context(|| format!("{path}: no JSON"))
    }
}

/// Sends a snapshot to a place.
struct Sending<'a> {
    place: &'a Arc<dyn Place>,
    threads: usize,
    checks: Checks,
}

/// Which files of a snapshot are decoded to find damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checks {
    None,
    /// Files that the previous backup lacks.
    Sent,
}

/// A backup that is there.
struct Made {
    id: String,
    manifest: BackupManifest,
    /// Damage in its files.
    problems: Vec<Finding>,
}

/// A piece that is to be read.
struct Job {
    file: usize,
    number: usize,
    start: u64,
    size: u64,
}

/// What the place has, and what was sent to it.
#[derive(Default)]
struct There {
    blobs: HashMap<BlobHash, u64>,
    sent_blobs: u64,
    sent_bytes: u64,
}

impl Sending<'_> {
    fn backup(&self, folder: &Path, snapshot: &str, mark: &Mark) -> anyhow::Result<Made> {
        let place = self.place.as_ref();
        let made = RealVfs::new().now();
        let Found { folders, mut files } = walk(folder)?;
        let there = Mutex::new(There { blobs: listed(place)?, ..There::default() });
        let is_there = |hash: &BlobHash, size| of(&there).blobs.get(hash) == Some(&size);
        take_known(&mut files, before(place)?, is_there);
        let changed = damage::changed(&files);
        self.send(folder, &mut files, &there)?;
        let problems = match self.checks {
            Checks::None => Vec::new(),
            Checks::Sent => damage::find(folder, &changed)?,
        };
        damage::forget_identity(folder, &problems, &mut files);
        place.settle()?;
        let There { sent_blobs, sent_bytes, .. } =
            there.into_inner().unwrap_or_else(PoisonError::into_inner);
        let manifest = BackupManifest {
            made,
            piece_size: PIECE_SIZE,
            sent_blobs,
            sent_bytes,
            snapshot: snapshot.to_owned(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            folders,
            files,
        };
        let id = shelf::new_id(made);
        put_manifest(place, &id, &manifest, mark)?;
        Ok(Made { id, manifest, problems })
    }

    /// Reads what is not known yet, and sends what is not there yet.
    fn send(
        &self,
        folder: &Path,
        files: &mut [BackupFile],
        there: &Mutex<There>,
    ) -> anyhow::Result<()> {
        let jobs = jobs(files);
        let bar = bar(jobs.iter().map(|job| job.size).sum())?;
        let hashes = Mutex::new(BTreeMap::new());
        let known: &[BackupFile] = files;
        in_parallel(&jobs, self.threads, |job| {
            let hash = self.send_piece(&folder.join(&known[job.file].path), job, there)?;
            of(&hashes).insert((job.file, job.number), hash);
            bar.inc(job.size);
            Ok(())
        })?;
        bar.finish_and_clear();
        for ((file, _), hash) in hashes.into_inner().unwrap_or_else(PoisonError::into_inner) {
            files[file].pieces.push(hash);
        }
        Ok(())
    }

    fn send_piece(&self, path: &Path, job: &Job, there: &Mutex<There>) -> anyhow::Result<BlobHash> {
        let mut bytes = vec![0; usize::try_from(job.size)?];
        let file = File::open(path).map_err(|error| of_file(error, path))?;
        file.read_exact_at(&mut bytes, job.start).map_err(|error| of_file(error, path))?;
        let hash = hash_of(&bytes);
        {
            // Before it is there: another piece of the same bytes need not be sent, too. If sending
            // fails, so does all.
            let mut there = of(there);
            if there.blobs.insert(hash, job.size) == Some(job.size) {
                return Ok(hash);
            }
            there.sent_blobs += 1;
            there.sent_bytes += job.size;
        }
        self.place.put(&key_of(&hash), &bytes)?;
        Ok(hash)
    }
}

fn of<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The files of the newest backup. Without one everything is read, which is slower and not wrong.
fn before(place: &dyn Place) -> anyhow::Result<Vec<BackupFile>> {
    let Some(newest) = shelf::ids(place)?.pop() else { return Ok(Vec::new()) };
    match shelf::read(place, &newest) {
        Ok(manifest) if manifest.piece_size == PIECE_SIZE => Ok(manifest.files),
        Ok(_) => Ok(Vec::new()),
        Err(error) => {
            eprintln!("quipu: the newest backup does not help, all is read: {}", sentence(&error));
            Ok(Vec::new())
        }
    }
}

/// Takes over the pieces of files that are the same as before, if the place still has all of them.
fn take_known(
    files: &mut [BackupFile],
    before: Vec<BackupFile>,
    is_there: impl Fn(&BlobHash, u64) -> bool,
) {
    let before: BTreeMap<String, BackupFile> =
        before.into_iter().map(|file| (file.path.clone(), file)).collect();
    let manifest = BackupManifest { piece_size: PIECE_SIZE, ..BackupManifest::default() };
    for file in files {
        let Some(known) = before.get(&file.path) else { continue };
        let identity = |file: &BackupFile| (file.size, file.modified, file.inode);
        let mut pieces = known.pieces.iter().enumerate();
        if identity(known) == identity(file)
            && pieces.all(|(number, hash)| is_there(hash, manifest.size_of_piece(file, number)))
        {
            file.pieces = known.pieces.clone();
        }
    }
}

/// The pieces of files that have none yet.
fn jobs(files: &[BackupFile]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (file_number, file) in files.iter().enumerate() {
        let is_known = !file.pieces.is_empty();
        let starts = (0..file.size).step_by(PIECE_SIZE as usize);
        for (number, start) in starts.enumerate().filter(|_| !is_known) {
            let size = PIECE_SIZE.min(file.size - start);
            jobs.push(Job { file: file_number, number, start, size });
        }
    }
    jobs
}

/// Makes the backup exist. No prune has removed a blob of it: one that began before the mark was put
/// would have been seen, one that begins now sees the mark or the manifest.
fn put_manifest(
    place: &dyn Place,
    id: &str,
    manifest: &BackupManifest,
    mark: &Mark,
) -> anyhow::Result<()> {
    let there = listed(place)?;
    for (file, _, hash, size) in super::pieces::all_of(manifest) {
        if there.get(hash) != Some(&size) {
            let (key, path) = (key_of(hash), &manifest.files[file].path);
            bail!("{key} of {path} is not in {} though it was sent", place.name());
        }
    }
    let key = shelf::key_of(id);
    place.put(&key, &manifest.encode())?;
    if let Err(error) = mark.check() {
        place.remove(&key)?;
        return Err(error);
    }
    place.settle()
}

#[cfg(test)]
mod tests {
    use super::super::directory::Directory;
    use super::*;

    fn file(path: &str, inode: u64, hash: u8) -> BackupFile {
        let size = PIECE_SIZE + 1;
        let pieces = match hash {
            0 => vec![],
            hash => vec![[hash; 32], [hash + 100; 32]],
        };
        BackupFile { path: path.into(), size, modified: 5, inode, pieces }
    }

    #[test]
    fn no_backup_lies_in_what_it_is_of() {
        let directory = tempfile::tempdir().expect("a directory");
        let data_dir = directory.path().join("data");
        std::fs::create_dir(&data_dir).expect("made");
        let refused =
            |place: &str| refuse_inside(&directory.path().join(place), &data_dir).is_err();
        assert!(refused("data") && refused("data/new/deep") && refused("data/../data/x"));
        assert!(!refused("backups") && !refused("data-2") && !refused("."));
    }

    #[test]
    fn only_the_same_file_whose_blobs_are_there_is_not_read() {
        let before = vec![file("same", 1, 1), file("other", 2, 2), file("lost", 3, 3)];
        let mut files = vec![file("same", 1, 0), file("other", 7, 0), file("lost", 3, 0)];
        files.push(file("new", 1, 0));
        let sizes = [([1; 32], PIECE_SIZE), ([101; 32], 1), ([2; 32], PIECE_SIZE), ([102; 32], 1)];
        // The second blob of `lost` is too short.
        let sizes = [&sizes[..], &[([3; 32], PIECE_SIZE), ([103; 32], 0)]].concat();
        let there: HashMap<BlobHash, u64> = sizes.into_iter().collect();
        take_known(&mut files, before, |hash, size| there.get(hash) == Some(&size));
        let known: Vec<_> = files.iter().map(|file| file.pieces.len()).collect();
        assert_eq!(known, [2, 0, 0, 0]);
        let to_read: Vec<_> =
            jobs(&files).iter().map(|job| (job.file, job.number, job.size)).collect();
        let of_file = |file| [(file, 0, PIECE_SIZE), (file, 1, 1)];
        assert_eq!(to_read, [of_file(1), of_file(2), of_file(3)].concat());
    }

    #[test]
    fn equal_pieces_are_sent_once_and_what_is_there_is_not_sent() {
        let snapshot = tempfile::tempdir().expect("a directory");
        let to = tempfile::tempdir().expect("a directory");
        let place: Arc<dyn Place> = Arc::new(Directory::new(to.path()).expect("a place"));
        for (name, bytes) in [("a", "one"), ("b", "one"), ("c", "two"), ("empty", "")] {
            std::fs::write(snapshot.path().join(name), bytes).expect("written");
        }
        let sending = Sending { place: &place, threads: 4, checks: Checks::None };
        let mark = Mark::begin(&place, Work::Create).expect("nobody is there");
        let backup = || sending.backup(snapshot.path(), "s", &mark).expect("a backup");
        let Made { id: first, manifest, .. } = backup();
        assert_eq!((manifest.sent_blobs, manifest.sent_bytes), (2, 6));
        assert_eq!(shelf::read(place.as_ref(), &first).expect("read"), manifest);
        // Were it read, it would be another: its bytes change behind its identity.
        let path = snapshot.path().join("c");
        let times = File::options().write(true).open(&path).expect("opened");
        let before = times.metadata().and_then(|found| found.modified()).expect("a time");
        std::fs::write(&path, "TWO").expect("written");
        times.set_modified(before).expect("set back");
        std::fs::write(snapshot.path().join("d"), "three").expect("written");
        let Made { id: second, manifest, .. } = backup();
        assert_eq!((manifest.sent_blobs, manifest.sent_bytes), (1, 5));
        // A blob that is lost is sent again, as long as there is a file with its bytes.
        place.remove(&key_of(&hash_of(b"one"))).expect("removed");
        let Made { manifest, .. } = backup();
        assert_eq!((manifest.sent_blobs, manifest.sent_bytes), (1, 3));
        assert!(first <= second);
    }

    #[test]
    fn a_backup_whose_mark_was_taken_away_is_none() {
        let snapshot = tempfile::tempdir().expect("a directory");
        let to = tempfile::tempdir().expect("a directory");
        let place: Arc<dyn Place> = Arc::new(Directory::new(to.path()).expect("a place"));
        std::fs::write(snapshot.path().join("a"), "one").expect("written");
        let mark = Mark::begin(&place, Work::Create).expect("nobody is there");
        for entry in place.list("marks").expect("listed") {
            place.remove(&entry.key).expect("removed");
        }
        let sending = Sending { place: &place, threads: 1, checks: Checks::None };
        let made = sending.backup(snapshot.path(), "s", &mark);
        let error = made.err().expect("no backup").to_string();
        assert!(error.contains("run again"), "{error}");
        assert_eq!(shelf::ids(place.as_ref()).expect("listed"), Vec::<String>::new());
    }
}
