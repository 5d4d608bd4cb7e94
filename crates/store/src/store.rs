//! The store: append, select, close. It is opened in [`crate::opening`].
//!
//! ```text
//! DIR/quipu.lock            who has the store open
//! DIR/wal/NNNNNNNNNN.wal    the log of all partitions
//! DIR/metadata              what metrics are
//! DIR/exemplars             exemplars of the samples
//! DIR/damage                what is known to be missing or rotten
//! DIR/dropped               from where on the log's records of dropped partitions count
//! DIR/clock                 the time that the retention trusts
//! DIR/partition-length      how long partitions are: a day, a week, a month or a year
//! DIR/partitions/YYYY-MM/   MANIFEST, parts/, index/: all there is of one partition
//! DIR/snapshots/NAME/       hard links to a store of its own
//! ```

use crate::append::{AppendContext, AppendScratch, Postponed, Taken};
use crate::backoff::Backoff;
use crate::changes::ChangeClock;
use crate::counters::Counters;
use crate::damage::DamageBook;
use crate::damaged::DamagedPartition;
use crate::dropped::DroppedPartitions;
use crate::exemplars::ExemplarBook;
use crate::jobs::Jobs;
use crate::metadata::MetadataBook;
use crate::missing::Watch;
use crate::opening::{DirectoryLock, Ground};
use crate::outlines::Outlines;
use crate::partition::Partition;
use crate::period::{PartitionLength, Period};
use crate::recover::Recovered;
use crate::retention_clock::{ClockRecord, RetentionClock};
use crate::scrub::Scrub;
use crate::select::compile;
use crate::series_limits::{Refusals, SeriesGate};
use crate::turn::Turn;
use crate::{Durability, Error, Limit, Result, SelectLimits, Selection, StoreConfig};
use index::CompiledMatchers;
use model::{KeyHasher, Matcher, Metadata, Rejection, Row, TimeRange, WriteBatch};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use vfs::Vfs;
use wal::{Log, Lsn, Wal};

/// Folder of the log.
pub const WAL_DIR: &str = "wal";
/// Folder of the partitions.
pub const PARTITIONS_DIR: &str = "partitions";
/// Folder of the snapshots.
pub const SNAPSHOTS_DIR: &str = "snapshots";

/// Partitions at most: all months there are, or 22 years of days. Each has its index and parts
/// mapped, of which Linux lets a process have 65,530, and is written by each flush that finds rows
/// in it.
pub const PARTITIONS_MAX: usize = 8192;
/// Partitions of the present that there may be besides: backfill, or one sender whose clock is wrong,
/// must not keep out what everybody sends now. Nearly three years of days.
pub const PRESENT_PARTITIONS_MAX: usize = 1024;
// Selections count them so.
const _: () = assert!(PARTITIONS_MAX + PRESENT_PARTITIONS_MAX <= u16::MAX as usize);
/// Rows that go into one record of the log: bounds its size and the time the lock is held.
pub(crate) const RECORD_ROWS_MAX: usize = 32 * 1024;
/// Values that go into one record of the log.
pub(crate) const RECORD_VALUES_MAX: usize = 512 * 1024;
/// Of the bytes that may wait for the disk, the share from which on writers wait too: those who
/// come at one moment have room all the same.
const WAL_PENDING_SOFT_SHARE: usize = 4;

/// What became of a batch.
#[derive(Clone, Debug, Default)]
pub struct Appended {
    /// Samples taken.
    pub samples: u64,
    /// Rows refused, all of them counted.
    pub rejected: u64,
    /// The first refused rows, with reasons.
    pub rejections: Vec<Rejection>,
    /// Rows that must come again.
    pub(crate) postponed: Postponed,
}

/// A store on one directory.
pub struct Store {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
    pub(crate) config: StoreConfig,
    /// Of all partitions.
    pub(crate) length: PartitionLength,
    /// What records are appended to.
    pub(crate) wal: Arc<Wal>,
    /// The same for who shortens it.
    pub(crate) log: Arc<Log>,
    log_owner: LogOwner,
    pub(crate) metadata: MetadataBook,
    pub(crate) exemplars: ExemplarBook,
    /// The time that the retention goes by.
    pub(crate) clock: RetentionClock,
    pub(crate) counters: Counters,
    /// What readers have missed.
    pub(crate) changes: ChangeClock,
    /// What is known to be missing or rotten.
    pub(crate) damage: Arc<DamageBook>,
    /// Where the reading of everything is.
    pub(crate) scrub: Mutex<Scrub>,
    /// What queries have parsed of parts.
    pub(crate) outlines: Arc<Outlines>,
    /// All partitions, oldest first. Locked briefly, to find or add one.
    pub(crate) partitions: RwLock<BTreeMap<Period, Arc<Partition>>>,
    /// Partitions of which nothing is read. None of them is among the partitions.
    pub(crate) damaged: Mutex<BTreeMap<Period, DamagedPartition>>,
    /// Held while a partition is dropped. May be locked under `partitions`, not the other way
    /// round.
    pub(crate) dropped: Mutex<DroppedPartitions>,
    /// Files that no manifest names and that nobody knows, found at the start.
    pub(crate) orphans: Vec<PathBuf>,
    /// Held by the one flush that may run.
    pub(crate) flushing: Mutex<()>,
    /// When a flush that failed is tried again.
    pub(crate) flush_backoff: Backoff,
    /// Bytes of the log that no flush lets go: those of damaged partitions, of ones that could not
    /// be flushed, or of another consumer.
    pub(crate) log_pinned_size: AtomicU64,
    /// Why writes are refused until a restart.
    latch: Mutex<Option<String>>,
    /// Why writes are refused at the moment.
    pub(crate) low_disk: Mutex<Option<String>>,
    /// The last failure of background work, for people.
    pub(crate) last_failure: Mutex<Option<String>>,
    pub(crate) gate: SeriesGate,
    is_memory_tight: AtomicBool,
    /// The preparation of the next partition, when there is one.
    pub(crate) turn: Mutex<Option<Turn>>,
    hasher: KeyHasher,
    jobs: Jobs,
    /// Buffers of appending threads that are not appending.
    scratches: Mutex<Vec<AppendScratch>>,
    /// Keeps other processes out.
    _lock: DirectoryLock,
}

/// Who closes the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogOwner {
    /// The store: nobody shares it.
    Store,
    /// The program that opened it, after all who share it.
    Program,
}

impl Store {
    /// The store of what was looked at and recovered.
    pub(crate) fn assemble(
        ground: Ground,
        recovered: Recovered,
        log: Arc<Log>,
        log_owner: LogOwner,
    ) -> Result<Arc<Store>> {
        let Ground { vfs, dir, config, counters, damage, length, lock } = ground;
        let newest = recovered.partitions.values().map(|p| p.read().newest()).max();
        let newest = newest.filter(|newest| *newest != i64::MIN);
        let wait_ns = config.retention_clock_wait_ns;
        let clock = RetentionClock::new(wait_ns, recovered.clock, newest, vfs.as_ref());
        let gate = SeriesGate::new(&config.series_limits)?;
        let hasher = KeyHasher::new(vfs.random());
        Ok(Arc::new(Store {
            vfs,
            dir,
            config,
            length,
            wal: Arc::clone(log.wal()),
            log,
            log_owner,
            metadata: recovered.metadata,
            exemplars: recovered.exemplars,
            clock,
            counters,
            changes: ChangeClock::default(),
            damage,
            scrub: Mutex::default(),
            outlines: Arc::default(),
            partitions: RwLock::new(recovered.partitions),
            damaged: Mutex::new(recovered.damaged),
            dropped: Mutex::new(recovered.dropped),
            orphans: recovered.orphans,
            flushing: Mutex::new(()),
            flush_backoff: Backoff::default(),
            log_pinned_size: AtomicU64::new(0),
            latch: Mutex::new(None),
            low_disk: Mutex::new(None),
            last_failure: Mutex::new(None),
            gate,
            is_memory_tight: AtomicBool::new(false),
            turn: Mutex::new(None),
            hasher,
            jobs: Jobs::default(),
            scratches: Mutex::new(Vec::new()),
            _lock: lock,
        }))
    }

    /// Begins the work in the background of a store that has just been opened; `clock` is what its
    /// file said.
    pub(crate) fn start(self: &Arc<Store>, clock: Option<ClockRecord>) {
        self.settle_damage();
        self.check_disk();
        if clock.is_some_and(|clock| self.vfs.now() < clock.trusted_ns) {
            // Now, so that no later start trusts it again. A failure has latched the store.
            let _ = self.write_clock();
        }
        if self.config.background {
            self.jobs.start(self);
        }
    }

    /// The hasher that batches for [`Store::append`] must be built with.
    pub fn hasher(&self) -> KeyHasher {
        self.hasher
    }

    /// How long the partitions are.
    pub fn partition_length(&self) -> PartitionLength {
        self.length
    }

    /// The clock, nanoseconds since the epoch.
    pub fn now(&self) -> i64 {
        self.vfs.now()
    }

    /// Appends a batch; blocks until it is as durable as asked.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] and [`Error::HeadFull`] before anything of the batch is taken;
    /// [`wal::Error::Busy`] when the log has no room for all of it, [`Error::NewSeriesRefused`] when
    /// only known series could be taken: the batch must come again. Other [`Error::Wal`] when the
    /// log fails: what was taken may then be lost.
    pub fn append(&self, batch: &WriteBatch<'_>, durability: Durability) -> Result<Appended> {
        self.append_with(durability, |scratch| self.append_rows(batch, scratch))
    }

    /// Appends with the buffers of a thread that is not appending, then waits for the disk if it
    /// is asked for.
    pub(crate) fn append_with(
        &self,
        durability: Durability,
        append: impl FnOnce(&mut AppendScratch) -> Result<(Appended, Option<Lsn>)>,
    ) -> Result<Appended> {
        self.check_writable()?;
        let mut scratch = lock(&self.scratches).pop().unwrap_or_default();
        let result = append(&mut scratch);
        lock(&self.scratches).push(scratch);
        let (mut appended, last) = result?;
        self.count_appended(&appended);
        if let (Some(lsn), Durability::Synced) = (last, durability) {
            self.wait_durable(lsn)?;
        }
        std::mem::take(&mut appended.postponed).check()?;
        Ok(appended)
    }

    fn append_rows(
        &self,
        batch: &WriteBatch<'_>,
        scratch: &mut AppendScratch,
    ) -> Result<(Appended, Option<Lsn>)> {
        let mut appended = Appended::default();
        let mut last = None;
        let accepted = self.accepted_span();
        let mut start = 0;
        while start < batch.rows.len() {
            let end = record_end(batch, start);
            let rows = &batch.rows[start..end];
            start = end;
            if let Some(period) = common_period(self.length, rows, &accepted) {
                last = self.append_to(period, batch, rows, scratch, &mut appended)?.or(last);
                continue;
            }
            for (period, rows) in rows_by_period(self.length, rows, &accepted, &mut appended) {
                last = self.append_to(period, batch, &rows, scratch, &mut appended)?.or(last);
            }
        }
        Ok((appended, last))
    }

    fn append_to(
        &self,
        period: Period,
        batch: &WriteBatch<'_>,
        rows: &[Row],
        scratch: &mut AppendScratch,
        appended: &mut Appended,
    ) -> Result<Option<Lsn>> {
        let (mut rest, mut last) = (rows, None);
        while !rest.is_empty() {
            let taken = self.append_in_turn(period, |partition, context| {
                partition.append(batch, rest, context, scratch, appended)
            });
            let Taken { lsn, count } = match taken {
                // Sent again it is refused again.
                Err(error @ Error::LimitExceeded { .. }) => {
                    let positions = rest.iter().map(|row| row.position);
                    appended.reject_all(positions, &error.to_string());
                    break;
                }
                taken => taken?,
            };
            assert!(0 < count, "a record takes a row, or says why not");
            rest = &rest[count..];
            last = lsn.or(last);
        }
        Ok(last)
    }

    /// Appends to the partition of a period, made if it is not there, once the log has room.
    pub(crate) fn append_in_turn(
        &self,
        period: Period,
        mut append: impl FnMut(&Partition, &AppendContext<'_>) -> Result<Taken>,
    ) -> Result<Taken> {
        self.wait_for_log()?;
        let context = AppendContext {
            wal: &self.wal,
            limits: &self.config.limits,
            gate: &self.gate,
            changes: &self.changes,
            arena_words_max: self.config.arena_words_max,
            now_ns: self.vfs.now(),
        };
        loop {
            let partition = self.partition(period)?;
            match append(&partition, &context) {
                Err(Error::PartitionDropped) => {
                    self.check_disk_is_trusted()?;
                    // Until it is gone, or is kept after all.
                    drop(partition.lock_change());
                }
                Err(error) => match partition.unsealable() {
                    None => return Err(self.latch_if_failed(error)),
                    Some(reason) => {
                        let _change = partition.lock_change();
                        self.give_up(&partition, reason);
                    }
                },
                Ok(taken) => return Ok(taken),
            }
        }
    }

    /// The partition of a period, made if it is not there.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::LimitExceeded`] when there are [`PARTITIONS_MAX`] of others, and
    /// [`PRESENT_PARTITIONS_MAX`] more for one of the present.
    pub(crate) fn partition(&self, period: Period) -> Result<Arc<Partition>> {
        if let Some(partition) = self.partitions_read().get(&period) {
            return Ok(Arc::clone(partition));
        }
        let mut partitions = self.partitions.write().unwrap_or_else(|p| p.into_inner());
        if let Some(partition) = partitions.get(&period) {
            return Ok(Arc::clone(partition));
        }
        if let Some(damaged) = lock(&self.damaged).get(&period) {
            return Err(damaged.error());
        }
        let present = self.length.of(self.vfs.now());
        let is_present = (present.previous()..=present.next()).contains(&period);
        let reserve = if is_present { PRESENT_PARTITIONS_MAX } else { 0 };
        check_partition_count(partitions.len() + 1, PARTITIONS_MAX + reserve)?;
        let dir = self.dir.join(PARTITIONS_DIR).join(period.name());
        let from = lock(&self.dropped).from(period);
        let partition = Partition::open(&self.vfs, dir, period, from, &self.damage)?;
        let partition = Arc::new(partition);
        partitions.insert(period, Arc::clone(&partition));
        Ok(partition)
    }

    pub(crate) fn partitions_read(
        &self,
    ) -> std::sync::RwLockReadGuard<'_, BTreeMap<Period, Arc<Partition>>> {
        self.partitions.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// All partitions, oldest first.
    pub(crate) fn all_partitions(&self) -> Vec<Arc<Partition>> {
        self.partitions_read().values().cloned().collect()
    }

    /// Partitions that overlap the range, oldest first.
    pub(crate) fn partitions_in(&self, range: &TimeRange) -> Vec<Arc<Partition>> {
        if range.is_empty() {
            return Vec::new();
        }
        let periods = self.length.of(range.start)..=self.length.of(range.end);
        self.partitions_read().range(periods).map(|(_, p)| Arc::clone(p)).collect()
    }

    /// The series that match any of `sets` (each a conjunction) and may have samples in `range`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a regular expression that does not compile, [`Error::LimitExceeded`],
    /// [`Error::DeadlineExceeded`], [`Error::Corrupt`] or [`Error::Index`] where something is rotten:
    /// who takes what is left asks with [`Store::noting`].
    pub fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Selection> {
        self.select_watched(sets, range, limits, self.watch(None))
    }

    pub(crate) fn select_watched(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
        watch: Watch,
    ) -> Result<Selection> {
        self.select_compiled(compile(sets)?, range, limits, watch)
    }

    pub(crate) fn select_compiled(
        &self,
        sets: Vec<CompiledMatchers>,
        range: TimeRange,
        limits: &SelectLimits,
        watch: Watch,
    ) -> Result<Selection> {
        let range = range.intersect(&self.kept_span());
        self.note_lost(&range, &watch)?;
        Selection::new(&self.partitions_in(&range), sets, range, limits, &self.outlines, watch)
    }

    /// Remembers what metrics are; durable on return.
    ///
    /// # Errors
    /// When the log fails.
    pub fn put_metadata(&self, metadata: &[Metadata]) -> Result<()> {
        self.check_writable()?;
        self.wait_for_log()?;
        let appended = self.metadata.append(&self.wal, metadata);
        match appended.map_err(|error| self.latch_if_failed(error))? {
            Some(lsn) => self.wait_durable(lsn),
            None => Ok(()),
        }
    }

    /// What is known of `metric`, or of all metrics by name, at most `limit`.
    pub fn metadata(&self, metric: Option<&str>, limit: usize) -> Vec<Metadata> {
        self.metadata.get(metric, limit)
    }

    /// Flushes, syncs, stops the background threads. Calling again is fine. A log that others share
    /// is left open, and the store takes no more.
    ///
    /// # Errors
    /// When flushing or the log fails; what was acknowledged is in the log all the same.
    pub fn close(&self) -> Result<()> {
        self.jobs.stop();
        let flushed = if self.is_latched() { Ok(()) } else { self.flush() };
        let noted = if self.is_latched() { Ok(()) } else { self.write_clock() };
        match self.log_owner {
            LogOwner::Store => self.log.close()?,
            LogOwner::Program => {
                self.latch("it is closed");
                self.wal.wait_durable(self.wal.end())?;
            }
        }
        flushed.and(noted)
    }

    /// The instants that samples may have: from the retention's edge to a bit into the future.
    pub(crate) fn accepted_span(&self) -> TimeRange {
        let latest = self.clock.latest(self.vfs.as_ref());
        TimeRange::new(self.kept_span().start, latest.saturating_add(self.config.future_ns_max))
    }

    /// The instants that queries may see.
    pub(crate) fn kept_span(&self) -> TimeRange {
        let Some(kept) = self.config.retention_ns else { return TimeRange::ALL };
        let start = self.clock.now(self.vfs.as_ref()).saturating_sub(kept);
        self.changes.note_hidden(start);
        TimeRange::new(start, i64::MAX)
    }

    fn count_appended(&self, appended: &Appended) {
        self.counters.samples_appended.fetch_add(appended.samples, Ordering::Relaxed);
        self.counters.rows_rejected.fetch_add(appended.rejected, Ordering::Relaxed);
        if self.flush_size() <= self.head_size() {
            self.jobs.wake();
        }
    }

    /// Takes no new series from now on, for this reason, or again those that the limits allow.
    pub fn refuse_new_series(&self, reason: Option<String>) {
        self.gate.set_closed(reason);
    }

    /// The new series that were refused since the last call; `None` when none was.
    pub fn take_refusals(&self) -> Option<Refusals> {
        self.gate.take_refusals()
    }

    /// Bytes of heads of all partitions.
    pub(crate) fn head_size(&self) -> usize {
        self.partitions_read().values().map(|partition| partition.head_size()).sum()
    }

    /// Head size that starts a flush: while it runs, as much again may come in.
    pub(crate) fn flush_size(&self) -> usize {
        let share = if self.is_memory_tight.load(Ordering::Relaxed) { 8 } else { 2 };
        self.config.head_size_max / share
    }

    /// Keeps less in memory from now on, or as much as configured again: caches are emptied, the
    /// head is flushed early.
    pub fn set_memory_tight(&self, is_tight: bool) {
        self.is_memory_tight.store(is_tight, Ordering::Relaxed);
        if is_tight {
            self.outlines.clear();
            self.jobs.wake();
        }
    }

    /// Keeps writers from running ahead of the disk: what waits for it stays bounded. Never called
    /// with room reserved in the log, or under a lock that is needed to make use of it.
    pub(crate) fn wait_for_log(&self) -> Result<()> {
        let stats = self.wal.stats();
        if self.config.wal_pending_max / WAL_PENDING_SOFT_SHARE <= stats.pending_size {
            self.wait_durable(self.wal.end())?;
        }
        Ok(())
    }

    pub(crate) fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        self.wal.wait_durable(lsn).map_err(|error| self.latch_if_failed(Error::Wal(error)))
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        for reason in [&self.latch, &self.low_disk] {
            if let Some(reason) = lock(reason).as_ref() {
                return Err(Error::ReadOnly { reason: reason.clone() });
            }
        }
        let (size, max) = (self.head_size(), self.config.head_size_max);
        if max <= size {
            self.jobs.wake();
            return Err(Error::HeadFull { size, max });
        }
        Ok(())
    }

    /// Turns the store read-only, until it is opened again, when the disk can no longer be trusted:
    /// a write or sync failed, so nobody knows what the disk holds, and building on it (a manifest
    /// on top of one that may be there) could lose what was acknowledged. A full disk is no such
    /// failure where nothing named was touched: it passes once there is room.
    pub(crate) fn latch_if_failed(&self, error: Error) -> Error {
        if error.leaves_disk_in_doubt() {
            self.latch(&error.to_string());
        }
        error
    }

    /// Turns the store read-only until it is opened again.
    pub(crate) fn latch(&self, reason: &str) {
        lock(&self.latch).get_or_insert_with(|| reason.to_string());
    }

    /// Whether the store is closing: long work gives up.
    pub(crate) fn is_stopping(&self) -> bool {
        self.jobs.is_stopping()
    }

    pub(crate) fn is_latched(&self) -> bool {
        lock(&self.latch).is_some()
    }

    /// Refuses to change anything on a disk that has failed.
    pub(crate) fn check_disk_is_trusted(&self) -> Result<()> {
        match lock(&self.latch).as_ref() {
            Some(reason) => Err(Error::ReadOnly { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Why writes are refused, if they are.
    pub fn read_only_reason(&self) -> Option<String> {
        lock(&self.latch).clone().or_else(|| lock(&self.low_disk).clone())
    }

    /// Refuses writes while the disk is nearly full, and takes them again once it is not.
    pub fn check_disk(&self) {
        let free = self.vfs.free_space(&self.dir).unwrap_or(u64::MAX);
        let min = self.config.free_disk_min;
        *lock(&self.low_disk) = (free < min).then(|| {
            format!("{free} bytes are free on the disk, {min} must be (free-disk-min); free some")
        });
    }
}

/// Locks a mutex whose content is valid whatever a panicking thread left.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Whether a store may have so many partitions.
pub(crate) fn check_partition_count(count: usize, max: usize) -> Result<()> {
    let (value, max) = (count as u64, max as u64);
    let (limit, what) = (Limit::Partitions, "partitions");
    match value <= max {
        true => Ok(()),
        false => Err(Error::LimitExceeded { limit, what, value, max }),
    }
}

/// Where the rows from `start` on stop fitting one record.
fn record_end(batch: &WriteBatch<'_>, start: usize) -> usize {
    let most = batch.rows.len().min(start + RECORD_ROWS_MAX);
    let first_value = batch.rows[start].values_start as usize;
    let fits =
        |row: &Row| (row.values_start as usize).wrapping_sub(first_value) < RECORD_VALUES_MAX;
    if fits(&batch.rows[most - 1]) {
        return most;
    }
    start + batch.rows[start..most].iter().take_while(|row| fits(row)).count().max(1)
}

/// The period of all rows, when it is one and all may be taken: no row need be copied then.
fn common_period(length: PartitionLength, rows: &[Row], accepted: &TimeRange) -> Option<Period> {
    let period = length.of(rows.first()?.timestamp);
    let range = period.range().intersect(accepted);
    rows.iter().all(|row| range.contains(row.timestamp)).then_some(period)
}

/// Rows by period, each in order of arrival; rows whose time is not accepted are rejected.
fn rows_by_period(
    length: PartitionLength,
    rows: &[Row],
    accepted: &TimeRange,
    appended: &mut Appended,
) -> BTreeMap<Period, Vec<Row>> {
    let mut by_period: BTreeMap<Period, Vec<Row>> = BTreeMap::new();
    for row in rows {
        if accepted.contains(row.timestamp) {
            by_period.entry(length.of(row.timestamp)).or_default().push(*row);
        } else {
            reject_time(row.position, row.timestamp, accepted, appended);
        }
    }
    by_period
}

/// Rejects a row for its time.
pub(crate) fn reject_time(
    position: u32,
    timestamp: i64,
    accepted: &TimeRange,
    appended: &mut Appended,
) {
    let reason = if timestamp < accepted.start {
        format!("timestamp {timestamp} ns is older than the retention keeps")
    } else {
        format!("timestamp {timestamp} ns is too far in the future (future-retention)")
    };
    appended.reject(position, reason);
}
