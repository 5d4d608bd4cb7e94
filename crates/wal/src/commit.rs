//! Writes groups to segment files: the only I/O of a running log.
//!
//! A write or a sync that fails latches the log: nobody knows what the disk holds. Where there is no
//! file handle to begin a segment with, nothing was written: the group is kept and tried again. So it is
//! where the disk is full: what was synced before is known to be there, and all else is in memory.
//!
//! ```text
//! create ─► header, sync ─► sync the directory ─► START ─► append, sync ─► END, at times
//!    └──────────────────────────────┴───────────────┴─ no file handle, or full: again from here, later
//! full while a group is written: copy what was synced ─► sync ─► rename ─► sync the directory ─► append
//! ```

use crate::end::{EndFile, NOTE_INTERVAL};
use crate::error::Error;
use crate::format::{HEADER_SIZE, Header, segment_name};
use crate::pending::{Commit, Group, Phase, State};
use crate::start::StartFile;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use vfs::atomic::TEMPORARY_SUFFIX;
use vfs::{AppendFile, Vfs};

/// How long the commit thread waits before it tries again to begin a segment.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The segment file that is being written.
pub(crate) struct SegmentWriter {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    start: Arc<StartFile>,
    end: Arc<EndFile>,
    /// None until the first record.
    current: Option<(Header, Box<dyn AppendFile>)>,
    /// The next one while it has its synced header, and its name may not be durable yet.
    begun: Option<(Header, Box<dyn AppendFile>)>,
    /// The current one and its synced bytes, after the disk was full while a group was written: what
    /// is behind them is unknown, and is written anew.
    torn: Option<(Header, u64)>,
}

/// Whether a failure passes: nothing is lost when the group is written later. Whether a name was
/// changed on a full disk is not known.
fn passes(error: &vfs::Error) -> bool {
    let is_of_bytes = ["create", "append", "sync"].contains(&error.operation);
    error.is_file_limit() || error.is_disk_full() && is_of_bytes
}

impl SegmentWriter {
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        directory: PathBuf,
        start: Arc<StartFile>,
        end: Arc<EndFile>,
    ) -> SegmentWriter {
        SegmentWriter { vfs, directory, start, end, current: None, begun: None, torn: None }
    }

    /// Writes a group and makes it durable.
    fn commit(&mut self, group: &Group) -> Commit {
        for (written, (header, bytes)) in group.iter().enumerate() {
            match self.enter(header).and_then(|()| self.append(header, bytes)) {
                Err(error) if passes(&error) => return Commit::Stalled { written, error },
                Err(error) => return Commit::Failed(error),
                Ok(()) => {}
            }
        }
        Commit::Done
    }

    fn append(&mut self, header: Header, bytes: &[u8]) -> vfs::Result<()> {
        let (current, file) = self.current.as_mut().expect("entered");
        assert_eq!(*current, header, "records go to the segment that they were numbered for");
        let synced = file.size();
        let written = file.append(bytes).and_then(|()| file.sync());
        match &written {
            Ok(()) => self.end.note(header, file.size()),
            Err(error) if error.is_disk_full() => {
                (self.current, self.torn) = (None, Some((header, synced)));
            }
            Err(_) => {}
        }
        written
    }

    /// Writes the current segment anew, up to the bytes that were synced before the disk was full.
    fn rewrite_torn(&self, header: Header, synced: u64) -> vfs::Result<Box<dyn AppendFile>> {
        let path = self.directory.join(segment_name(header.segment));
        let mut name = path.clone().into_os_string();
        name.push(TEMPORARY_SUFFIX);
        let temporary = PathBuf::from(name);
        if self.vfs.exists(&temporary)? {
            self.vfs.remove(&temporary)?;
        }
        let before = self.vfs.map(&path)?;
        let synced = usize::try_from(synced).ok().and_then(|size| before.get(..size));
        let mut file = self.vfs.create(&temporary)?;
        match synced.filter(|_| !before.has_faulted()) {
            Some(bytes) => file.append(bytes)?,
            None => return Err(lost(&path)),
        }
        if before.has_faulted() {
            return Err(lost(&path));
        }
        file.sync()?;
        self.vfs.rename(&temporary, &path)?;
        self.vfs.sync_dir(&self.directory)?;
        Ok(file)
    }

    /// Makes a segment the current one. When it fails for a reason that passes, it may be called
    /// again.
    fn enter(&mut self, header: Header) -> vfs::Result<()> {
        if let Some((torn, synced)) = self.torn {
            assert_eq!(torn, header, "the group that was not written is the next");
            self.current = Some((header, self.rewrite_torn(header, synced)?));
            self.torn = None;
        }
        if self.current.as_ref().is_some_and(|(current, _)| *current == header) {
            return Ok(());
        }
        if let Some((before, _)) = &self.current {
            assert!(before.segment < header.segment, "segments are written in order");
        }
        if self.begun.is_none() {
            self.begun = Some((header, self.create(header)?));
        }
        let (begun, _) = self.begun.as_ref().expect("just set");
        assert_eq!(*begun, header, "the segment that was begun is the next");
        // No acknowledged record is in a file that a crash makes vanish.
        self.vfs.sync_dir(&self.directory)?;
        // Nor in one that something else makes vanish unnoticed.
        self.start.note_begun(header.segment)?;
        self.end.set_due();
        self.current = self.begun.take();
        Ok(())
    }

    /// Creates a segment's file. The header is synced before any record is written, so that a file
    /// with more than a header has a good one.
    fn create(&self, header: Header) -> vfs::Result<Box<dyn AppendFile>> {
        let path = self.directory.join(segment_name(header.segment));
        let mut file = self.vfs.create(&path)?;
        let written = file.append(&header.encode()).and_then(|()| file.sync());
        if let Err(error) = written {
            if error.is_disk_full() {
                // Nothing names it yet; the next attempt makes it anew.
                drop(file);
                self.vfs.remove(&path)?;
            }
            return Err(error);
        }
        assert_eq!(file.size(), HEADER_SIZE, "the first record stands behind the header");
        Ok(file)
    }
}

/// Bytes that were synced are not there any more.
fn lost(path: &Path) -> vfs::Error {
    vfs::Error::new("read", path, std::io::Error::other("synced bytes of the log are gone"))
}

/// What the appenders and the committer share.
///
/// Locks: `writer` before `state`, and before that of `start`. `state` is never held during I/O, so
/// an append never waits for the disk.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The disk's side; held while a group is written, so there is one at a time.
    writer: Mutex<SegmentWriter>,
    /// Something is pending, or the thread has to stop.
    work: Condvar,
    /// A group is durable, or was tried in vain, or the log latched.
    done: Condvar,
    pub(crate) vfs: Arc<dyn Vfs>,
    /// Which segments there are.
    pub(crate) start: Arc<StartFile>,
    /// Up to where they are synced.
    pub(crate) end: Arc<EndFile>,
    /// Totals of all commits.
    totals: Mutex<CommitTotals>,
    /// Whether [`State::refusal`] has a reason.
    is_refusing: AtomicBool,
}

/// How much was written so far, and how long it took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CommitTotals {
    pub(crate) commit_count: u64,
    pub(crate) written_size: u64,
    pub(crate) commit_ns_total: u64,
    pub(crate) commit_ns_max: u64,
}

impl Shared {
    pub(crate) fn new(state: State, writer: SegmentWriter) -> Shared {
        Shared {
            is_refusing: AtomicBool::new(state.refusal().is_some()),
            state: Mutex::new(state),
            vfs: writer.vfs.clone(),
            start: writer.start.clone(),
            end: writer.end.clone(),
            writer: Mutex::new(writer),
            work: Condvar::new(),
            done: Condvar::new(),
            totals: Mutex::default(),
        }
    }

    /// The state; no code panics while it holds it but by a broken invariant, which then shows.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the log's state is sound")
    }

    /// Wakes the commit thread.
    pub(crate) fn notify_work(&self) {
        self.work.notify_one();
    }

    /// Waits until a commit ends.
    pub(crate) fn wait_done<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.done.wait(state).expect("the log's state is sound")
    }

    /// Latches while a thread panics; a state that is poisoned takes nothing any more anyway.
    pub(crate) fn latch_for_panic(&self, reason: &str) {
        if let Ok(mut state) = self.state.lock() {
            state.latch(reason.to_owned());
            drop(state);
            self.is_refusing.store(true, Ordering::Relaxed);
            self.done.notify_all();
        }
    }

    pub(crate) fn totals(&self) -> CommitTotals {
        *self.totals.lock().expect("only sums")
    }

    /// Writes what is pending now, if anything.
    pub(crate) fn commit(&self) {
        let mut writer = self.writer.lock().expect("the log's writer is sound");
        let Some(group) = self.state().begin_commit() else { return };
        let started = self.vfs.now();
        let result = writer.commit(&group);
        if matches!(result, Commit::Done) {
            self.count(group.bytes.len(), self.vfs.now().saturating_sub(started));
        }
        let mut state = self.state();
        state.finish_commit(group, result);
        self.is_refusing.store(state.refusal().is_some(), Ordering::Relaxed);
        drop(state);
        self.done.notify_all();
        // Waiters were woken before: they do not wait for this write.
        self.end.write_if_due();
    }

    /// Why what is appended now would not become durable, if so. Costs nothing while all is well.
    pub(crate) fn refusal(&self) -> Option<Error> {
        match self.is_refusing.load(Ordering::Relaxed) {
            true => self.state().refusal(),
            false => None,
        }
    }

    /// The commit thread: writes groups until it is told to stop and nothing is pending.
    pub(crate) fn run(&self) {
        let _guard = LatchOnPanic(self);
        while self.wait_for_work() {
            self.commit();
            self.pause_if_stalled();
        }
    }

    /// Gives others time to close files or to make room. All that could be written waits behind what is stalled.
    fn pause_if_stalled(&self) {
        let state = self.state();
        if state.is_stalled() {
            let is_running = |state: &mut State| state.phase != Phase::Stopped;
            let waited = self.work.wait_timeout_while(state, RETRY_INTERVAL, is_running);
            drop(waited.expect("the log's state is sound"));
        }
    }

    fn wait_for_work(&self) -> bool {
        let mut state = self.state();
        while !state.has_work() {
            if state.phase == Phase::Stopped {
                // What nobody was in a hurry for is written, too.
                return state.has_pending();
            }
            if !self.end.is_dirty() || state.check_latched().is_err() {
                state = self.work.wait(state).expect("the log's state is sound");
                continue;
            }
            let waited = self.work.wait_timeout(state, NOTE_INTERVAL);
            let (still, timeout) = waited.expect("the log's state is sound");
            state = still;
            if timeout.timed_out() && state.check_latched().is_ok() {
                drop(state);
                self.end.write();
                state = self.state();
            }
        }
        true
    }

    fn count(&self, size: usize, elapsed: i64) {
        // A clock that was set back counts as no time.
        let elapsed = u64::try_from(elapsed).unwrap_or(0);
        let mut totals = self.totals.lock().expect("only sums");
        totals.commit_count += 1;
        totals.written_size += size as u64;
        totals.commit_ns_total += elapsed;
        totals.commit_ns_max = totals.commit_ns_max.max(elapsed);
    }
}

/// Nobody may wait for ever because the commit thread panicked.
struct LatchOnPanic<'a>(&'a Shared);

impl Drop for LatchOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.latch_for_panic("the commit thread panicked");
        }
    }
}
