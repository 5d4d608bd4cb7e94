//! Writes groups to segment files: the only I/O of a running log.

use crate::format::{Header, segment_name};
use crate::pending::{Group, State};
use crate::start::StartFile;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use vfs::{AppendFile, Vfs};

/// The segment file that is being written.
pub(crate) struct SegmentWriter {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    start: Arc<StartFile>,
    /// None until the first record.
    current: Option<(Header, Box<dyn AppendFile>)>,
}

impl SegmentWriter {
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        directory: PathBuf,
        start: Arc<StartFile>,
    ) -> SegmentWriter {
        SegmentWriter { vfs, directory, start, current: None }
    }

    /// Writes a group and makes it durable.
    fn commit(&mut self, group: &Group) -> vfs::Result<()> {
        for (header, bytes) in group.iter() {
            let file = self.file_of(header)?;
            file.append(bytes)?;
            file.sync()?;
        }
        Ok(())
    }

    fn file_of(&mut self, header: Header) -> vfs::Result<&mut dyn AppendFile> {
        let is_new = self.current.as_ref().is_none_or(|(current, _)| *current != header);
        if is_new {
            let file = self.create(header)?;
            self.current = Some((header, file));
        }
        let (_, file) = self.current.as_mut().expect("just set");
        Ok(file.as_mut())
    }

    /// Begins a segment. The header is synced before any record is written, so that a file with
    /// more than a header has a good one; and the name, so that no acknowledged record is in a
    /// file that a crash makes vanish. Then it is written down, so that nothing else does, either.
    fn create(&mut self, header: Header) -> vfs::Result<Box<dyn AppendFile>> {
        if let Some((before, _)) = &self.current {
            assert!(before.segment < header.segment, "segments are written in order");
        }
        let mut file = self.vfs.create(&self.directory.join(segment_name(header.segment)))?;
        file.append(&header.encode())?;
        file.sync()?;
        self.vfs.sync_dir(&self.directory)?;
        self.start.note_begun(header.segment)?;
        Ok(file)
    }
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
    /// A group is durable, or the log latched.
    done: Condvar,
    pub(crate) vfs: Arc<dyn Vfs>,
    /// Which segments there are.
    pub(crate) start: Arc<StartFile>,
    /// Totals of all commits.
    totals: Mutex<CommitTotals>,
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
            state: Mutex::new(state),
            vfs: writer.vfs.clone(),
            start: writer.start.clone(),
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
        self.count(group.bytes.len(), self.vfs.now().saturating_sub(started));
        self.state().finish_commit(group, result);
        self.done.notify_all();
    }

    /// The commit thread: writes groups until it is told to stop and nothing is pending.
    pub(crate) fn run(&self) {
        let _guard = LatchOnPanic(self);
        while self.wait_for_work() {
            self.commit();
        }
    }

    fn wait_for_work(&self) -> bool {
        let mut state = self.state();
        while !state.has_work() {
            if state.phase == crate::pending::Phase::Stopped {
                // What nobody was in a hurry for is written, too.
                return state.has_pending();
            }
            state = self.work.wait(state).expect("the log's state is sound");
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
