//! The log as its user sees it: append, wait, rotate, remove.

use crate::commit::{SegmentWriter, Shared};
use crate::config::{Committer, WalConfig};
use crate::end::EndFile;
use crate::error::{Error, Result};
use crate::format::{Header, segment_name};
use crate::kinds::KindSet;
use crate::pending::{Lsn, Phase, State};
use crate::recover::{Begin, OnRecord, Recovery, read_ended, recover};
use crate::reservation::Reservation;
use crate::start::{LogRange, OnSegmentBegun, StartFile};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use vfs::Vfs;

/// How often a segment is tried to be begun before whoever waits for it is told that it stalls: for
/// five seconds.
const STALL_COUNT_MAX: u64 = 50;
/// Bytes of records that may wait, at most.
const LAZY_SIZE_MAX: usize = 1 << 20;

/// An open log. All methods may be called from any thread.
///
/// Dropping it writes what is pending, as far as the disk lets it; [`Wal::close`] also tells
/// whether that went well.
pub struct Wal {
    pub(crate) shared: Arc<Shared>,
    directory: PathBuf,
    pub(crate) config: WalConfig,
    /// The kinds that it takes.
    pub(crate) kinds: KindSet,
    recovery: Recovery,
    /// Whether `START` is durable; not if there was no room to write it.
    has_durable_start: bool,
    /// Whether there is a durable `END`.
    has_end_file: bool,
    /// The commit thread until it is joined; none with [`Committer::Waiter`].
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Counters for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct WalStats {
    /// Records appended since opening.
    pub record_count: u64,
    /// Groups written and synced.
    pub commit_count: u64,
    /// Bytes in them.
    pub written_size: u64,
    /// Wall time of all commits.
    pub commit_ns_total: u64,
    /// The longest one.
    pub commit_ns_max: u64,
    /// Bytes that gather for the next group.
    pub pending_size: usize,
    /// As [`Wal::size`].
    pub size: u64,
    /// The segment that records go to.
    pub segment: u64,
}

impl Wal {
    /// Opens the log in `directory`, which is created if need be: hands every record of the
    /// segments from `from_segment` on to `on_record`, in order, and is ready to append to a new
    /// segment, of any kind. Earlier segments are left alone and counted in
    /// [`Wal::size`], but for those that [`Wal::remove_before`] was about to remove: they go.
    ///
    /// The caller holds the lock of the data directory.
    ///
    /// # Errors
    /// When a segment is missing or corrupt, when `on_record` refuses a record, or on I/O errors.
    /// An unfinished write at the very end is no error: see [`Wal::recovery`]. Without room to make
    /// the end of the log durable the log opens, latched.
    pub(crate) fn open(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        config: WalConfig,
        from_segment: u64,
        on_record: &mut OnRecord<'_>,
    ) -> Result<Wal> {
        config.check();
        vfs.create_dir_all(directory)?;
        let begin = Begin { from_segment, next_segment_min: config.next_segment_min };
        let recovered = recover(vfs.as_ref(), directory, begin, on_record)?;
        let header = Header { segment: recovered.next_segment, nonce: vfs.random() };
        let mut state = State::new(&recovered.segments, header);
        let has_durable_start = recovered.latched.is_none();
        if let Some(reason) = recovered.latched {
            state.latch(reason);
        }
        let start = StartFile::new(vfs.clone(), directory.to_path_buf(), recovered.range);
        let end = EndFile::new(vfs.clone(), directory.to_path_buf(), recovered.ends);
        if recovered.recovery.lost_end.is_some() || recovered.recovery.is_end_damaged {
            // Report a loss once.
            end.set_dirty();
            end.write();
        }
        let has_end_file = has_durable_start && end.ensure_exists();
        let (start, end) = (Arc::new(start), Arc::new(end));
        let writer = SegmentWriter::new(vfs, directory.to_path_buf(), start, end);
        let shared = Arc::new(Shared::new(state, writer));
        let thread = match config.committer {
            Committer::Thread => Some(spawn(&shared, directory)?),
            Committer::Waiter => None,
        };
        Ok(Wal {
            shared,
            directory: directory.to_path_buf(),
            config,
            kinds: KindSet::all(),
            recovery: recovered.recovery,
            has_durable_start,
            has_end_file,
            thread: Mutex::new(thread),
        })
    }

    /// What opening found.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// What `START` says and is durable; `None` if there was no room to write it.
    pub fn durable_range(&self) -> Option<LogRange> {
        self.has_durable_start.then(|| self.shared.start.range())
    }

    /// Whether there was a durable `END` when the log was opened. It is never removed.
    pub fn has_end_file(&self) -> bool {
        self.has_end_file
    }

    /// Sets the function that is called for each new segment. Called once, before the first record.
    pub fn set_on_segment_begun(&self, on_begun: OnSegmentBegun) {
        self.shared.start.set_on_begun(on_begun);
    }

    /// Appends a record of a declared `kind` to the pending group and returns its place for
    /// [`Wal::wait_durable`]. Never waits for the disk.
    ///
    /// # Errors
    /// [`Error::Busy`] when too much is pending, [`Error::RecordTooLarge`], [`Error::Latched`] and
    /// [`Error::Closed`]; the record is then not in the log and never will be.
    pub fn append(&self, kind: u8, payload: &[u8]) -> Result<Lsn> {
        self.append_parts(kind, &[payload])
    }

    /// As [`Wal::append`], of a payload in pieces.
    ///
    /// # Errors
    /// As [`Wal::append`].
    pub fn append_parts(&self, kind: u8, parts: &[&[u8]]) -> Result<Lsn> {
        let mut state = self.checked_state(kind, parts)?;
        let lsn = state.append(&self.config, kind, parts, || self.shared.vfs.random())?;
        let is_news = state.hurry();
        drop(state);
        if is_news {
            self.shared.notify_work();
        }
        Ok(lsn)
    }

    /// As [`Wal::append_parts`], of a record that may wait for others: it is written with the next
    /// one that may not, once much is pending, or when [`Wal::hurry`] is called.
    ///
    /// # Errors
    /// As [`Wal::append`].
    pub fn append_lazily(&self, kind: u8, parts: &[&[u8]]) -> Result<Lsn> {
        let mut state = self.checked_state(kind, parts)?;
        let lsn = state.append(&self.config, kind, parts, || self.shared.vfs.random())?;
        let is_news = LAZY_SIZE_MAX <= state.pending_size() && state.hurry();
        drop(state);
        if is_news {
            self.shared.notify_work();
        }
        Ok(lsn)
    }

    /// Has what is pending written now.
    pub fn hurry(&self) {
        let mut state = self.shared.state();
        if state.has_pending() && state.hurry() {
            drop(state);
            self.shared.notify_work();
        }
    }

    fn checked_state(&self, kind: u8, parts: &[&[u8]]) -> Result<MutexGuard<'_, State>> {
        self.check_kind(kind);
        let size: usize = parts.iter().map(|part| part.len()).sum();
        let max = self.config.record_size_max;
        match size <= max {
            true => Ok(self.shared.state()),
            false => Err(Error::RecordTooLarge { size, max }),
        }
    }

    /// Room for a record of `bytes` of payload, and for more once it grows: what is appended with
    /// it is never refused for want of room. It must not be held while waiting for the disk.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn reserve(&self, bytes: usize) -> Result<Reservation<'_>> {
        Reservation::new(self, bytes)
    }

    /// Returns when the record at `lsn` and all before it are durable.
    ///
    /// # Errors
    /// [`Error::Latched`] when they will not be: after a crash they may be there or not.
    /// [`Error::Stalled`] when they are not yet, for want of room or of a file handle: waiting again is
    /// fine.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        let stall_count_max = self.commit_as_waiter(|state| state.is_durable(lsn));
        let mut state = self.shared.state();
        loop {
            if state.is_durable(lsn) {
                return Ok(());
            }
            state.check_latched()?;
            state.check_stalled(stall_count_max)?;
            if state.has_pending() && state.hurry() {
                self.shared.notify_work();
            }
            state = self.shared.wait_done(state);
        }
    }

    /// Why what is appended now would not become durable, if so: the log is latched, or the disk is
    /// full. The second passes.
    pub fn refusal(&self) -> Option<String> {
        self.shared.refusal().map(|error| error.to_string())
    }

    /// Whether somebody else than whoever waits writes what is pending.
    pub fn has_commit_thread(&self) -> bool {
        self.config.committer == Committer::Thread
    }

    /// The place of the last record appended: waiting for it waits for all there is.
    pub fn end(&self) -> Lsn {
        self.shared.state().end()
    }

    /// Ends the current segment: records appended from now on go to the returned segment or a
    /// later one, all earlier ones are in segments before it. No I/O.
    pub fn rotate(&self) -> u64 {
        self.shared.state().rotate(|| self.shared.vfs.random())
    }

    /// Hands on the records of segments that [`Wal::rotate`] has ended and of which all is durable.
    /// Those that nobody needs may be gone already.
    ///
    /// # Errors
    /// When one cannot be read or is damaged, or the record is not taken.
    pub fn read_segments(
        &self,
        segments: std::ops::Range<u64>,
        on_record: &mut OnRecord<'_>,
    ) -> Result<()> {
        for segment in segments {
            let path = self.directory.join(segment_name(segment));
            match read_ended(self.shared.vfs.as_ref(), &path, segment, on_record) {
                Err(Error::Io(error)) if error.is_not_found() => {}
                read => read?,
            }
        }
        Ok(())
    }

    /// Removes all segments below `segment`, which [`Wal::rotate`] gave out. Waits until what they
    /// hold has been written.
    ///
    /// # Errors
    /// When a file cannot be removed; calling again is fine.
    pub(crate) fn remove_before(&self, segment: u64) -> Result<()> {
        let (dropped, end) = self.shared.state().segments_before(segment);
        if dropped.is_empty() {
            return Ok(());
        }
        self.wait_durable(end)?;
        // First, so that what is left of an interrupted removal is known for what it is.
        self.shared.start.note_first(segment)?;
        for &segment in &dropped {
            match self.shared.vfs.remove(&self.directory.join(segment_name(segment))) {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        self.shared.end.forget_before(segment);
        self.shared.end.write();
        self.shared.vfs.sync_dir(&self.directory)?;
        self.shared.state().drop_before(segment);
        Ok(())
    }

    /// Bytes since the oldest segment that is kept, what is still to be written included.
    pub fn size(&self) -> u64 {
        self.shared.state().size()
    }

    /// The same since that segment.
    pub fn size_from(&self, segment: u64) -> u64 {
        self.shared.state().size_from(segment)
    }

    /// Counters for metrics.
    pub fn stats(&self) -> WalStats {
        let totals = self.shared.totals();
        let state = self.shared.state();
        WalStats {
            record_count: state.record_count(),
            commit_count: totals.commit_count,
            written_size: totals.written_size,
            commit_ns_total: totals.commit_ns_total,
            commit_ns_max: totals.commit_ns_max,
            pending_size: state.pending_size(),
            size: state.size(),
            segment: state.segment(),
        }
    }

    /// Takes no more records, writes and syncs what is pending, and ends the commit thread.
    /// Calling again is fine.
    ///
    /// # Errors
    /// [`Error::Latched`] or [`Error::Stalled`] when not all that was appended is durable.
    pub fn close(&self) -> Result<()> {
        {
            let mut state = self.shared.state();
            if state.phase == Phase::Open {
                state.phase = Phase::Closing;
            }
        }
        self.drain();
        {
            let mut state = self.shared.state();
            if state.phase == Phase::Closing && state.is_drained() {
                state.put_last_mark();
            }
        }
        self.drain();
        self.stop();
        self.shared.state().check_latched()?;
        self.shared.end.write();
        let state = self.shared.state();
        state.check_latched()?;
        state.check_stalled(0)
    }

    /// A kind that nobody declared would have no consumer at the next start, or keep the log from
    /// opening.
    pub(crate) fn check_kind(&self, kind: u8) {
        assert!(self.kinds.contains(kind), "nobody declared kind {kind}");
    }

    /// Writes what is pending if that is for the waiter to do, until `is_enough`. Returns how many
    /// vain attempts there may have been in all when it waits no longer.
    fn commit_as_waiter(&self, is_enough: impl Fn(&State) -> bool) -> u64 {
        let before = self.shared.state().stall_count();
        if self.config.committer == Committer::Thread {
            return before + STALL_COUNT_MAX;
        }
        loop {
            self.shared.commit();
            let state = self.shared.state();
            // What gathered behind a group that was stalled is the next one.
            if !state.has_pending() || state.is_stalled() || is_enough(&state) {
                return before + 1;
            }
        }
    }

    /// Returns when nothing is pending, or no file handle is there for it.
    fn drain(&self) {
        let stall_count_max = self.commit_as_waiter(State::is_drained);
        let mut state = self.shared.state();
        let may_end = |state: &State| {
            state.check_latched().is_ok() && state.check_stalled(stall_count_max).is_ok()
        };
        while !state.is_drained() && may_end(&state) {
            state.hurry();
            self.shared.notify_work();
            state = self.shared.wait_done(state);
        }
    }

    /// Ends the commit thread after it has written what is pending.
    fn stop(&self) {
        self.shared.state().phase = Phase::Stopped;
        self.shared.notify_work();
        let thread = self.thread.lock().expect("only taken here").take();
        if let Some(thread) = thread {
            // A panic of the thread has latched the log; there is nobody else to tell.
            let _ = thread.join();
        }
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Wal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wal({}, {:?})", self.directory.display(), self.stats())
    }
}

fn spawn(shared: &Arc<Shared>, directory: &Path) -> Result<JoinHandle<()>> {
    let shared = shared.clone();
    let builder = std::thread::Builder::new().name("wal-commit".to_owned());
    let spawned = builder.spawn(move || shared.run());
    spawned.map_err(|error| vfs::Error::new("spawn commit thread", directory, error).into())
}
