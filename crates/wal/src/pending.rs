//! What was appended and is not on the disk yet, and where it will go. No I/O.
//!
//! ```text
//! State.group    bytes   |mark|record|record|record|record|mark ...    gathering
//!                chunks  ^segment 7         ^segment 8
//! ```
//!
//! An append decides the record's segment and offset, so its check is final. The group is written
//! chunk by chunk: a segment is synced before the next one is created. A group that continues a
//! segment begins with a mark, for groups are written only after the one before was synced.
//!
//! Room that was reserved counts as pending, so a record that has its room is always taken.
//!
//! A group that could not be written for want of room or of a file handle stands aside (`stalled`) and
//! is written alone, before what gathered since: its mark says that what is before it is synced.

use crate::config::WalConfig;
use crate::error::{Error, Result};
use crate::format::{HEADER_SIZE, Header, KIND_MARK, RECORD_HEADER_SIZE, SEGMENT_MAX, put_record};
use crate::recover::FoundSegment;
use std::collections::VecDeque;

/// A place in the log since it was opened: greater is later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(u64);

/// The part of a group that goes to one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) header: Header,
    /// Where it starts in [`Group::bytes`].
    pub(crate) start: usize,
}

/// Records that are written and synced together.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) bytes: Vec<u8>,
    /// By increasing segment and start; none is empty.
    pub(crate) chunks: Vec<Chunk>,
    /// What is durable once it is written.
    end: Lsn,
}

/// What became of a group.
#[derive(Debug)]
pub(crate) enum Commit {
    /// All of it is durable.
    Done,
    /// So many of its chunks are durable; the others are still to be written, for want of room or of
    /// a file handle.
    Stalled { written: usize, error: vfs::Error },
    /// Nobody knows what is on the disk.
    Failed(vfs::Error),
}

impl Lsn {
    /// Bytes of all records up to this place, since the log was opened.
    pub fn size(self) -> u64 {
        self.0
    }
}

impl Group {
    /// Each segment's header and bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Header, &[u8])> {
        self.chunks.iter().enumerate().map(|(i, chunk)| {
            let end = self.chunks.get(i + 1).map_or(self.bytes.len(), |next| next.start);
            (chunk.header, &self.bytes[chunk.start..end])
        })
    }

    /// Leaves out the first chunks, which are durable.
    fn drop_written(&mut self, written: usize) {
        assert!(written < self.chunks.len(), "what is stalled is a chunk");
        self.chunks.drain(..written);
        let start = self.chunks[0].start;
        self.bytes.drain(..start);
        self.chunks.iter_mut().for_each(|chunk| chunk.start -= start);
    }
}

/// The segment that appends go to; its file is created with its first chunk.
#[derive(Debug)]
struct CurrentSegment {
    header: Header,
    salt: u32,
    /// Size of the file once all appended so far is written.
    size: u64,
}

impl CurrentSegment {
    fn new(header: Header) -> CurrentSegment {
        CurrentSegment { header, salt: header.salt(), size: HEADER_SIZE }
    }

    fn is_empty(&self) -> bool {
        self.size == HEADER_SIZE
    }
}

/// A segment that is complete and not removed yet.
#[derive(Debug)]
struct KeptSegment {
    segment: u64,
    size: u64,
    /// Its last record's place.
    end: Lsn,
}

/// Whether the log takes records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Yes.
    Open,
    /// No more; what is pending is being written.
    Closing,
    /// No more; the commit thread ends when nothing is pending.
    Stopped,
}

/// Everything that appends, waits and the committer share.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// The first failure, if there was one.
    latched: Option<String>,
    /// Gathers records.
    group: Group,
    /// The buffers of an earlier group, for the next one.
    spare: Group,
    /// Whether a group is on its way to the disk.
    is_committing: bool,
    /// The group that is to be tried again before any other, and why it was not written.
    stalled: Option<(Group, Stall)>,
    /// Why the disk is full, until a group is durable again.
    full: Option<String>,
    /// How often a group was tried in vain.
    stall_count: u64,
    /// Whether what is pending is to be written now.
    is_urgent: bool,
    /// Bytes of records that have room and were not appended yet.
    reserved: usize,
    segment: CurrentSegment,
    /// By increasing number; without the current one.
    kept: VecDeque<KeptSegment>,
    appended: Lsn,
    durable: Lsn,
    record_count: u64,
}

/// Why a group was not written.
#[derive(Debug)]
struct Stall {
    reason: String,
    is_disk_full: bool,
}

/// Buffers larger than this are not kept for the next group.
const SPARE_SIZE_MAX: usize = 8 << 20;

impl State {
    /// The state of a log that has just been replayed.
    pub(crate) fn new(found: &[FoundSegment], header: Header) -> State {
        let keep = |&(segment, size): &FoundSegment| KeptSegment { segment, size, end: Lsn(0) };
        assert!(header.segment <= SEGMENT_MAX);
        assert!(found.iter().all(|&(segment, _)| segment < header.segment));
        State {
            phase: Phase::Open,
            latched: None,
            group: Group::default(),
            spare: Group::default(),
            is_committing: false,
            stalled: None,
            full: None,
            stall_count: 0,
            is_urgent: false,
            reserved: 0,
            segment: CurrentSegment::new(header),
            kept: found.iter().map(keep).collect(),
            appended: Lsn(0),
            durable: Lsn(0),
            record_count: 0,
        }
    }

    /// Adds a record to the group. `nonce` gives a random number, for a new segment.
    pub(crate) fn append(
        &mut self,
        config: &WalConfig,
        kind: u8,
        parts: &[&[u8]],
        nonce: impl FnOnce() -> u64,
    ) -> Result<Lsn> {
        let payload_size: usize = parts.iter().map(|part| part.len()).sum();
        let record_size = RECORD_HEADER_SIZE + payload_size;
        self.check_open()?;
        self.check_room(config, 0, record_size)?;
        Ok(self.add(config, kind, parts, nonce))
    }

    /// Adds a record whose room was reserved and has just been released.
    pub(crate) fn append_reserved(
        &mut self,
        config: &WalConfig,
        kind: u8,
        parts: &[&[u8]],
        nonce: impl FnOnce() -> u64,
    ) -> Result<Lsn> {
        self.check_latched()?;
        match self.phase {
            Phase::Open | Phase::Closing => Ok(self.add(config, kind, parts, nonce)),
            Phase::Stopped => Err(Error::Closed),
        }
    }

    /// Sets room aside for a record that has `held` bytes of it already.
    pub(crate) fn reserve(&mut self, config: &WalConfig, held: usize, more: usize) -> Result<()> {
        assert!(held <= self.reserved);
        self.check_open()?;
        self.check_room(config, held, more)?;
        self.reserved += more;
        Ok(())
    }

    /// Gives room back.
    pub(crate) fn release(&mut self, held: usize) {
        assert!(held <= self.reserved);
        self.reserved -= held;
    }

    fn add(
        &mut self,
        config: &WalConfig,
        kind: u8,
        parts: &[&[u8]],
        nonce: impl FnOnce() -> u64,
    ) -> Lsn {
        let payload_size: usize = parts.iter().map(|part| part.len()).sum();
        let record_size = RECORD_HEADER_SIZE + payload_size;
        // Room for a mark too.
        let end = self.segment.size + (RECORD_HEADER_SIZE + record_size) as u64;
        if config.segment_size_max < end && !self.segment.is_empty() {
            self.begin_segment(nonce());
        }
        if self.group.bytes.is_empty() && !self.segment.is_empty() {
            self.put(KIND_MARK, &[]);
        }
        self.put(kind, parts);
        self.record_count += 1;
        self.appended.0 += record_size as u64;
        self.appended
    }

    /// Ends the current segment, unless it is empty. Returns where the next record goes.
    pub(crate) fn rotate(&mut self, nonce: impl FnOnce() -> u64) -> u64 {
        if !self.segment.is_empty() {
            self.begin_segment(nonce());
        }
        self.segment.header.segment
    }

    /// Says that all that was appended is durable, by a mark; nothing may be pending.
    pub(crate) fn put_last_mark(&mut self) {
        assert!(self.is_drained());
        if self.latched.is_none() && !self.segment.is_empty() {
            self.put(KIND_MARK, &[]);
        }
    }

    fn put(&mut self, kind: u8, parts: &[&[u8]]) {
        let header = self.segment.header;
        if self.group.chunks.last().is_none_or(|chunk| chunk.header != header) {
            self.group.chunks.push(Chunk { header, start: self.group.bytes.len() });
        }
        let before = self.group.bytes.len();
        put_record(&mut self.group.bytes, self.segment.salt, self.segment.size, kind, parts);
        self.segment.size += (self.group.bytes.len() - before) as u64;
    }

    fn begin_segment(&mut self, nonce: u64) {
        assert!(!self.segment.is_empty());
        let Header { segment, .. } = self.segment.header;
        assert!(self.kept.back().is_none_or(|last| last.segment < segment), "numbers only grow");
        self.kept.push_back(KeptSegment { segment, size: self.segment.size, end: self.appended });
        self.segment = CurrentSegment::new(Header { segment: segment + 1, nonce });
    }

    fn check_open(&self) -> Result<()> {
        self.check_latched()?;
        if self.phase == Phase::Open { Ok(()) } else { Err(Error::Closed) }
    }

    /// Whether `more` bytes may come for a record that has room for `held`.
    fn check_room(&self, config: &WalConfig, held: usize, more: usize) -> Result<()> {
        let pending_size = self.group.bytes.len() + self.reserved;
        // A lone record may be larger than the limit.
        let is_alone = pending_size == held;
        if !is_alone && config.pending_size_max < pending_size + more {
            let max = config.pending_size_max;
            return Err(Error::Busy { pending_size, record_size: more, max });
        }
        Ok(())
    }

    pub(crate) fn check_latched(&self) -> Result<()> {
        match &self.latched {
            Some(reason) => Err(Error::Latched { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Refuses all from now on; the first reason stays.
    pub(crate) fn latch(&mut self, reason: String) {
        self.latched.get_or_insert(reason);
    }

    pub(crate) fn has_pending(&self) -> bool {
        !self.group.bytes.is_empty() || self.is_stalled()
    }

    /// Whether a group waits for a file handle.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.is_some()
    }

    /// How often a group was tried in vain since the log was opened.
    pub(crate) fn stall_count(&self) -> u64 {
        self.stall_count
    }

    /// Refuses to wait any longer once a group was tried in vain so often.
    pub(crate) fn check_stalled(&self, stall_count_max: u64) -> Result<()> {
        match &self.stalled {
            Some((_, stall)) if stall_count_max <= self.stall_count => {
                let Stall { reason, is_disk_full } = stall;
                Err(Error::Stalled { reason: reason.clone(), is_disk_full: *is_disk_full })
            }
            _ => Ok(()),
        }
    }

    /// Why what is appended now would not become durable: the log is latched, or the disk is full.
    pub(crate) fn refusal(&self) -> Option<Error> {
        let full = self.full.clone().map(|reason| Error::Stalled { reason, is_disk_full: true });
        self.check_latched().err().or(full)
    }

    /// Says that what is pending, or comes next, is to be written now. Returns whether that is new.
    pub(crate) fn hurry(&mut self) -> bool {
        !std::mem::replace(&mut self.is_urgent, true)
    }

    /// Whether there is something to write now.
    pub(crate) fn has_work(&self) -> bool {
        self.is_stalled() || self.is_urgent && self.has_pending()
    }

    /// Whether nothing waits for the disk.
    pub(crate) fn is_drained(&self) -> bool {
        !self.has_pending() && !self.is_committing
    }

    /// Takes the group to write it; `None` when there is none, or no hope.
    pub(crate) fn begin_commit(&mut self) -> Option<Group> {
        assert!(!self.is_committing, "one group at a time");
        if self.latched.is_some() {
            (self.group, self.stalled) = (Group::default(), None);
        }
        if !self.has_pending() {
            return None;
        }
        self.is_committing = true;
        if let Some((group, _)) = self.stalled.take() {
            return Some(group);
        }
        self.is_urgent = false;
        let mut group = std::mem::replace(&mut self.group, std::mem::take(&mut self.spare));
        assert!(self.group.bytes.is_empty() && self.group.chunks.is_empty());
        group.end = self.appended;
        Some(group)
    }

    /// Notes that a group is durable, or that it will never be.
    pub(crate) fn finish_commit(&mut self, mut group: Group, result: Commit) {
        assert!(self.is_committing && self.durable <= group.end);
        assert!(group.end <= self.appended, "what is written was appended");
        self.is_committing = false;
        match result {
            Commit::Done => (self.durable, self.full) = (group.end, None),
            // Whoever stops does not wait.
            Commit::Stalled { written, error } if self.phase != Phase::Stopped => {
                group.drop_written(written);
                let (reason, is_disk_full) = (error.to_string(), error.is_disk_full());
                self.full = is_disk_full.then(|| reason.clone());
                self.stalled = Some((group, Stall { reason, is_disk_full }));
                self.stall_count += 1;
                return;
            }
            Commit::Stalled { error, .. } | Commit::Failed(error) => self.latch(error.to_string()),
        }
        if group.bytes.capacity() <= SPARE_SIZE_MAX {
            group.bytes.clear();
            group.chunks.clear();
            self.spare = group;
        }
    }

    pub(crate) fn is_durable(&self, lsn: Lsn) -> bool {
        debug_assert!(lsn <= self.appended, "a place in another log");
        lsn <= self.durable
    }

    pub(crate) fn end(&self) -> Lsn {
        self.appended
    }

    /// The kept segments below `segment` and the place that must be durable before they go.
    pub(crate) fn segments_before(&self, segment: u64) -> (Vec<u64>, Lsn) {
        assert!(segment <= self.segment.header.segment, "the current segment stays");
        let dropped = self.kept.iter().take_while(|kept| kept.segment < segment);
        let end = dropped.clone().map(|kept| kept.end).max().unwrap_or_default();
        assert!(end <= self.appended, "or whoever waits for it waits for ever");
        (dropped.map(|kept| kept.segment).collect(), end)
    }

    /// Drops the segments below `segment`, whose files are gone.
    pub(crate) fn drop_before(&mut self, segment: u64) {
        let is_durable = |kept: &KeptSegment| segment <= kept.segment || kept.end <= self.durable;
        assert!(self.kept.iter().all(is_durable), "what is removed was written before");
        self.kept.retain(|kept| segment <= kept.segment);
    }

    /// Bytes of all segments, those that are still to be written included.
    pub(crate) fn size(&self) -> u64 {
        self.size_from(0)
    }

    /// The same of the segments from that one on.
    pub(crate) fn size_from(&self, segment: u64) -> u64 {
        let current = if self.segment.is_empty() { 0 } else { self.segment.size };
        let kept = self.kept.iter().filter(|kept| segment <= kept.segment);
        kept.map(|kept| kept.size).sum::<u64>() + current
    }

    pub(crate) fn segment(&self) -> u64 {
        self.segment.header.segment
    }

    pub(crate) fn pending_size(&self) -> usize {
        self.group.bytes.len()
    }

    pub(crate) fn record_count(&self) -> u64 {
        self.record_count
    }
}
