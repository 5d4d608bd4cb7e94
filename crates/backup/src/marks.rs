//! Who is at work in a place: marks that keep a prune from what a backup being made has found there.
//!
//! ```text
//! put my mark ─► list marks ─► is there one of whom I must not meet?  take mine away, and refuse
//!                            └► no: work; my mark is put again each minute ─► take it away
//! ```
//!
//! Who comes second sees the mark of the first, as each puts its own before it looks: of two who begin
//! at once one gives up, or both. A mark that nobody has put again for [`LIFE`], by the clock of the
//! place, or whose process is known to have ended on this machine, is dead, and is taken away. Who was
//! only asleep finds its mark gone, and does not call done what it did: see [`Mark::check`].

use super::place::{Entry, Place};
use anyhow::{Context as _, bail};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use vfs::{RealVfs, Vfs as _};

/// The folder of marks.
const MARKS: &str = "marks";
/// The folder of names of snapshots that are to be deleted by who can.
const LEFT: &str = "left";
/// How often a mark is put again.
const REFRESH: Duration = Duration::from_secs(60);
/// A mark that was not put again for so long is nobody's.
const LIFE: Duration = Duration::from_secs(15 * 60);
/// Bytes of the text of a mark that are looked at.
const TEXT_SIZE_MAX: u64 = 4096;
/// What begins the line with the process.
const PROCESS: &str = "process ";
/// What begins the line with the snapshot that is being sent.
const SNAPSHOT: &str = "snapshot ";

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A backup is made.
    Create,
    /// Backups and blobs are removed.
    Prune,
}

/// A mark that stands; it goes with this value.
pub struct Mark {
    place: Arc<dyn Place>,
    key: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    text: Mutex<String>,
    is_ended: Mutex<bool>,
    ended: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::Create => "create",
            Work::Prune => "prune",
        }
    }

    /// Whether a mark's ending is one of these. A mark that is being written is none yet: its owner looks
    /// around once it is.
    fn is_one(kind: &str) -> bool {
        [Work::Create, Work::Prune].iter().any(|work| work.name() == kind)
    }

    /// Whether both may be done at once.
    fn goes_with(self, other: &str) -> bool {
        self == Work::Create && other == Work::Create.name()
    }
}

impl Mark {
    /// Marks a place.
    ///
    /// # Errors
    /// When somebody is at work there that must be left alone.
    pub fn begin(place: &Arc<dyn Place>, work: Work) -> anyhow::Result<Mark> {
        let key = format!("{MARKS}/{:016x}.{}", RealVfs::new().random(), work.name());
        let text = format!("{PROCESS}{} {}\n", machine(), std::process::id());
        place.put(&key, text.as_bytes())?;
        let shared = Arc::new(Shared { text: Mutex::new(text), ..Shared::default() });
        let mut mark = Mark { place: Arc::clone(place), key, shared, thread: None };
        mark.look_around(work)?;
        mark.thread = Some(mark.start()?);
        Ok(mark)
    }

    /// Refuses if somebody is in the way, and takes away marks of the dead.
    fn look_around(&self, work: Work) -> anyhow::Result<()> {
        let marks = self.place.list(MARKS)?;
        let mine = marks.iter().find(|mark| mark.key == self.key);
        let now = mine.context("a mark that was put is not listed; run again")?.modified;
        for other in marks.iter().filter(|mark| mark.key != self.key) {
            let Some((_, kind)) = other.key.rsplit_once('.') else { continue };
            // Who has ended meanwhile is in nobody's way.
            let Some(bytes) = self.place.get(&other.key, TEXT_SIZE_MAX)? else { continue };
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if is_dead(other, &text, now) {
                // Whoever sees the mark need not be on the server that has the snapshot.
                let names = text.lines().filter_map(|line| line.strip_prefix(SNAPSHOT));
                for name in names.filter(|name| is_plain(name)) {
                    self.place.put(&format!("{LEFT}/{name}"), b"")?;
                }
                self.place.remove(&other.key)?;
            } else if !work.goes_with(kind) && Work::is_one(kind) {
                bail!(
                    "quipu backup {kind} is at work in {} ({}): run again when it has ended; if it \
                     was killed, its mark counts for nothing after {} minutes",
                    self.place.name(),
                    other.key,
                    LIFE.as_secs() / 60
                );
            }
        }
        Ok(())
    }

    fn start(&self) -> anyhow::Result<JoinHandle<()>> {
        let (place, key, shared) =
            (Arc::clone(&self.place), self.key.clone(), Arc::clone(&self.shared));
        let refresh = move || {
            let mut guard = lock(&shared.is_ended);
            loop {
                let waited = shared.ended.wait_timeout_while(guard, REFRESH, |ended| !*ended);
                guard = waited.unwrap_or_else(PoisonError::into_inner).0;
                if *guard {
                    return;
                }
                refresh(place.as_ref(), &key, &shared);
            }
        };
        Ok(std::thread::Builder::new().name("backup-mark".to_owned()).spawn(refresh)?)
    }

    /// Writes into the mark which snapshot is being sent, for who finds it dead.
    ///
    /// # Errors
    /// When the place does not take it.
    pub fn note_snapshot(&self, name: &str) -> anyhow::Result<()> {
        let mut text = lock(&self.shared.text);
        text.push_str(&format!("{SNAPSHOT}{name}\n"));
        self.place.put(&self.key, text.as_bytes())
    }

    /// Makes sure that nobody has taken the mark for dead since it was put.
    ///
    /// # Errors
    /// When somebody has: what was found in the place may be gone.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.place.get(&self.key, TEXT_SIZE_MAX)?.is_some() {
            return Ok(());
        }
        bail!(
            "{} is gone from {}: this process stood still for so long that another took it for dead, \
             and may have removed blobs; run again, what is there is not sent again",
            self.key,
            self.place.name()
        )
    }
}

/// Snapshots that killed backups left on servers: on which, the place does not know.
///
/// # Errors
/// When they cannot be listed.
pub fn left(place: &dyn Place) -> anyhow::Result<Vec<String>> {
    let start = format!("{LEFT}/");
    let entries = place.list(LEFT)?;
    let names = entries.iter().filter_map(|entry| entry.key.strip_prefix(&start));
    Ok(names.filter(|name| is_plain(name)).map(str::to_owned).collect())
}

/// Forgets such a snapshot: it is gone.
///
/// # Errors
/// When the place does not take it away.
pub fn forget(place: &dyn Place, name: &str) -> anyhow::Result<()> {
    place.remove(&format!("{LEFT}/{name}"))
}

/// Whether a name is one that servers give to snapshots, and leads nowhere.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Puts a mark again, if it is still there: one that was taken for dead stays dead.
fn refresh(place: &dyn Place, key: &str, shared: &Shared) {
    let text = lock(&shared.text);
    if let Ok(Some(_)) = place.get(key, TEXT_SIZE_MAX) {
        // It lives for many minutes more: the next time will do.
        let _ = place.put(key, text.as_bytes());
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        *lock(&self.shared.is_ended) = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // If it stays, it is dead soon.
        let _ = self.place.remove(&self.key);
    }
}

/// Whether nobody stands behind a mark any more.
fn is_dead(mark: &Entry, text: &str, now: i64) -> bool {
    let life = i64::try_from(LIFE.as_nanos()).unwrap_or(i64::MAX);
    if mark.modified.saturating_add(life) < now {
        return true;
    }
    let process = text.lines().find_map(|line| line.strip_prefix(PROCESS));
    let Some((machine_of_it, pid)) = process.and_then(|process| process.rsplit_once(' ')) else {
        return false;
    };
    let is_of_here = machine_of_it == machine() && machine_of_it != "-";
    is_of_here && pid.parse::<u32>().is_ok_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

/// This start of this machine, and the room of processes in it; `-` where that cannot be told.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let room = std::fs::read_link("/proc/self/ns/pid");
    match (boot, room) {
        (Ok(boot), Ok(room)) => format!("{}/{}", boot.trim(), room.display()),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::Directory;
    use super::*;

    fn place(directory: &Path) -> Arc<dyn Place> {
        Arc::new(Directory::new(directory).expect("a place"))
    }

    fn marks(place: &Arc<dyn Place>) -> usize {
        place.list(MARKS).expect("listed").len()
    }

    #[test]
    fn backups_go_together_and_a_prune_is_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = place(directory.path());
        let first = Mark::begin(&place, Work::Create).expect("nobody is there");
        let second = Mark::begin(&place, Work::Create).expect("backups go together");
        let refused = Mark::begin(&place, Work::Prune).err().expect("refused").to_string();
        assert!(refused.contains("quipu backup create is at work in"), "{refused}");
        assert_eq!(marks(&place), 2, "who is refused leaves no mark");
        place.put("marks/3.prune.new-0123456789abcdef", b"").expect("put");
        drop(Mark::begin(&place, Work::Create).expect("it is no mark yet"));
        place.remove("marks/3.prune.new-0123456789abcdef").expect("removed");
        drop((first, second));
        assert_eq!(marks(&place), 0);
        let prune = Mark::begin(&place, Work::Prune).expect("nobody is there");
        for work in [Work::Create, Work::Prune] {
            let refused = Mark::begin(&place, work).err().expect("refused").to_string();
            assert!(refused.contains("quipu backup prune is at work in"), "{refused}");
        }
        prune.check().expect("it stands");
    }

    #[test]
    fn marks_of_the_dead_go_and_tell_what_they_left() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = place(directory.path());
        let asleep = Mark::begin(&place, Work::Create).expect("nobody is there");
        asleep.note_snapshot("0001-ab").expect("noted");
        // By its age: the file system's clock says that it was put long ago.
        let path = directory.path().join(&asleep.key);
        let file = std::fs::File::options().write(true).open(path).expect("the mark");
        let long_ago = std::time::SystemTime::now() - LIFE - Duration::from_secs(5);
        file.set_modified(long_ago).expect("an old mark");
        let _prune = Mark::begin(&place, Work::Prune).expect("who is dead is not in the way");
        assert_eq!(left(place.as_ref()).expect("listed"), ["0001-ab"]);
        forget(place.as_ref(), "0001-ab").expect("removed");
        assert!(left(place.as_ref()).expect("listed").is_empty());
        let error = asleep.check().expect_err("it was taken for dead").to_string();
        assert!(error.contains("run again"), "{error}");
        refresh(place.as_ref(), &asleep.key, &asleep.shared);
        assert!(asleep.check().is_err(), "it stays dead");
    }

    #[test]
    fn a_process_that_has_ended_here_is_dead_at_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = place(directory.path());
        // Above what Linux gives out.
        let ended = format!("{PROCESS}{} {}\n{SNAPSHOT}x\n", machine(), u32::MAX);
        place.put("marks/1.create", ended.as_bytes()).expect("put");
        let elsewhere = format!("{PROCESS}another/pid:[1] {}\n", u32::MAX);
        let prune = Mark::begin(&place, Work::Prune);
        let is_linux = Path::new("/proc/self/ns/pid").exists();
        assert_eq!(prune.is_ok(), is_linux);
        drop(prune);
        place.put("marks/2.create", elsewhere.as_bytes()).expect("put");
        assert!(Mark::begin(&place, Work::Prune).is_err(), "nobody knows about that one");
    }
}
