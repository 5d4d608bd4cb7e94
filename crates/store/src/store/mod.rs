//! The store: its parts, and what may be asked of them. It is opened in [`crate::store::opening`].
//!
//! ```text
//!               appender     reader        flusher  merger  expirer  scrubber  rollover    jobs
//!               └─ what is written  └─ what is asked  └─ what is done in the background ──────┘
//!
//!               partitions: the data        store_log: the log's end       retention: what counts
//!               ground: disk, configuration, counters, damage, health
//! ```
//!
//! Parts stand on those below them, never the other way round, and no part is reached through the
//! store: it only hands on.
//!
//! ```text
//! DIR/quipu.lock            who has the store open
//! DIR/wal/NNNNNNNNNN.wal    the log of all partitions
//! DIR/metadata              what metrics are
//! DIR/exemplars             exemplars of the samples
//! DIR/damage                what is known to be missing or rotten
//! DIR/deletion              a deletion that is not finished
//! DIR/dropped               from where on the log's records of dropped partitions count
//! DIR/clock                 the time that the retention trusts
//! DIR/partition-length      how long partitions are: a day, a week, a month or a year
//! DIR/partitions/YYYY-MM/   MANIFEST, parts/, index/: all there is of one partition
//! DIR/snapshots/NAME/       hard links to a store of its own
//! ```

pub(crate) mod opening;
pub(crate) mod recover;
pub(crate) mod rebuild;
pub(crate) mod data_directory;
pub(crate) mod snapshot;
pub(crate) mod backup;
pub(crate) mod delete;
pub(crate) mod emptied;
pub(crate) mod stats;

use crate::background::damage_review::DamageReview;
use crate::background::expire::Expirer;
use crate::background::flush::Flusher;
use crate::background::jobs::{Job, Jobs, Load, Work, choose};
use crate::background::merger::Merger;
use crate::background::rollover::Rollover;
use crate::background::scrub::{ScrubStats, Scrubber};
use crate::background::segment_jobs::MergeEffort;
use crate::base::damage::Damage;
use crate::base::directory::needs::{Need, Needs};
use crate::base::ground::Ground;
use crate::base::period::PartitionLength;
use crate::log::store_log::{LogOwner, StoreLog};
use crate::log::string_numbers::StringNumbers;
use crate::part::reencoded_pages;
use crate::partition::changes::ChangeClock;
use crate::partition::damaged::DamagedPartition;
use crate::partition::partitions::Partitions;
use crate::partition::retention::Retention;
use crate::partition::retention::retention_clock::ClockRecord;
use crate::partition::shared::Shared;
use crate::partition::unfinished_deletion::UnfinishedDeletion;
use crate::read::cardinality::{self, CardinalityRequest, NewSeries};
use crate::read::missing::Missing;
use crate::read::questions::Questions;
use crate::read::reader::Reader;
use crate::store::delete::{Deleter, RecordChange};
use crate::store::recover::Recovered;
use crate::store::snapshot::Snapshots;
use crate::store::stats::StoreStats;
use crate::write::append_exemplars::AppendedExemplars;
use crate::write::append_starts::{AppendedStarts, StartBatch};
use crate::write::appender::Appender;
use crate::write::refusal::Appended;
use crate::write::series_limits::Refusals;
use crate::write::{append_histograms, append_starts};
use crate::{Durability, Elsewhere, Result, SelectLimits, Selection};
use histogram::HistogramBatch;
use model::{
    ExemplarRow, KeyHasher, Labels, Matcher, Metadata, Rejection, TimeRange, Timestamp, WriteBatch,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use wal::Log;

/// A store on one directory.
pub struct Store {
    pub(crate) shared: Shared,
    damage_review: Arc<DamageReview>,
    appender: Appender,
    reader: Reader,
    flusher: Arc<Flusher>,
    pub(crate) merger: Merger,
    expirer: Expirer,
    scrubber: Scrubber,
    rollover: Rollover,
    snapshots: Snapshots,
    deleter: Deleter,
    jobs: Jobs,
    /// Files that no manifest names and that nobody knows, found at the start.
    orphans: Vec<PathBuf>,
    needs: Needs,
    string_numbers: StringNumbers,
}

/// Opening and closing.
impl Store {
    /// The store of what was looked at and recovered.
    pub(crate) fn assemble(
        ground: Ground,
        recovered: Recovered,
        log: Arc<Log>,
        log_owner: LogOwner,
    ) -> Result<Arc<Store>> {
        let Recovered { metadata, exemplars, dropped, clock, partitions, damaged, orphans, .. } =
            recovered;
        let (ground, changes) = (Arc::new(ground), Arc::<ChangeClock>::default());
        let partitions = Partitions::new(ground.clone(), partitions, damaged, dropped);
        let newest = partitions.newest_sample();
        let needs = Needs::read(ground.vfs.as_ref(), &ground.dir)?;
        let string_numbers = StringNumbers::open(&ground);
        let shared = Shared {
            log: Arc::new(StoreLog::new(ground.clone(), log, log_owner)),
            partitions: Arc::new(partitions),
            retention: Arc::new(Retention::new(ground.clone(), changes.clone(), clock, newest)),
            ground,
            changes,
            metadata: Arc::new(metadata),
            exemplars: Arc::new(exemplars),
        };
        let damage_review = Arc::new(DamageReview::new(&shared));
        let flusher = Arc::new(Flusher::new(&shared, damage_review.clone()));
        Ok(Arc::new(Store {
            appender: Appender::new(&shared)?,
            reader: Reader::new(&shared),
            merger: Merger::new(&shared),
            expirer: Expirer::new(&shared),
            scrubber: Scrubber::new(&shared, damage_review.clone()),
            rollover: Rollover::new(&shared),
            snapshots: Snapshots::new(&shared, flusher.clone()),
            deleter: Deleter::new(&shared, flusher.clone()),
            flusher,
            damage_review,
            jobs: Jobs::default(),
            orphans,
            needs,
            string_numbers,
            shared,
        }))
    }

    /// Begins the work in the background of a store that has just been opened; `clock` is what its
    /// file said.
    pub(crate) fn start(self: &Arc<Store>, clock: Option<ClockRecord>) -> Result<()> {
        self.damage_review.settle();
        self.check_disk();
        if clock.is_some_and(|clock| self.now() < clock.trusted_ns) {
            // Now, so that no later start trusts it again. A failure has latched the store.
            let _ = self.shared.retention.write_clock();
        }
        if self.shared.ground.config.background {
            let store: Weak<Store> = Arc::downgrade(self);
            let work: Weak<dyn Work> = store;
            let started = self.jobs.start(&work, &self.shared.ground.signals);
            started.map_err(|error| {
                vfs::Error::new("start a thread", &self.shared.ground.dir, error)
            })?;
        }
        Ok(())
    }

    /// Flushes, syncs, stops the background threads. Calling again is fine. A log that others share
    /// is left open, and the store takes no more.
    ///
    /// # Errors
    /// When flushing or the log fails; what was acknowledged is in the log all the same.
    pub fn close(&self) -> Result<()> {
        self.shared.ground.signals.stop();
        self.jobs.join();
        let health = &self.shared.ground.health;
        let flushed = if health.is_latched() { Ok(()) } else { self.flush() };
        let noted = if health.is_latched() { Ok(()) } else { self.shared.retention.write_clock() };
        self.shared.log.close()?;
        flushed.and(noted)
    }
}

/// Writing.
impl Store {
    /// The hasher that batches for [`Store::append`] must be built with.
    pub fn hasher(&self) -> KeyHasher {
        self.appender.hasher
    }

    /// The first row of a batch whose time [`Store::append`] would refuse now, by its place, and why.
    pub fn first_refused_time(&self, batch: &WriteBatch<'_>) -> Option<(usize, String)> {
        self.appender.first_refused_time(batch)
    }

    /// The rows of a batch whose keys are not known yet, by their places: what
    /// [`Store::append`] would have to look at for the first time. Others were looked at before.
    pub fn unknown_keys(&self, batch: &WriteBatch<'_>) -> Vec<usize> {
        self.appender.unknown_keys(batch)
    }

    /// Appends a batch; blocks until it is as durable as asked.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`] and [`crate::Error::HeadFull`] before anything of the batch is
    /// taken; [`wal::Error::Busy`] when the log has no room for all of it,
    /// [`crate::Error::NewSeriesRefused`] when only known series could be taken: the batch must come
    /// again. Other [`crate::Error::Wal`] when the log fails: what was taken may then be lost.
    pub fn append(&self, batch: &WriteBatch<'_>, durability: Durability) -> Result<Appended> {
        self.appender.append(batch, durability)
    }

    /// Takes rows out of a batch that [`Store::append`] would refuse now, and says why: those of
    /// which `is_checked` says so by their values. Others may be refused yet when they are appended.
    pub fn take_refused(
        &self,
        batch: &mut WriteBatch<'_>,
        is_checked: &dyn Fn(&[f64]) -> bool,
    ) -> Vec<Rejection> {
        self.appender.take_refused(batch, is_checked)
    }

    /// Appends histograms as [`Store::append`] does rows; each counts as one sample.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn append_histograms(
        &self,
        batch: &HistogramBatch<'_>,
        durability: Durability,
    ) -> Result<Appended> {
        append_histograms::append(&self.appender, batch, durability)
    }

    /// Takes the start timestamps of samples that were appended; blocks until both are as durable
    /// as asked.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn append_starts(
        &self,
        batch: &StartBatch<'_>,
        durability: Durability,
    ) -> Result<AppendedStarts> {
        append_starts::append(&self.appender, batch, durability)
    }

    /// Blocks until all that was appended so far is on disk, by whomever and however it was.
    ///
    /// # Errors
    /// When it never will be.
    pub fn wait_durable(&self) -> Result<()> {
        self.appender.log.wait_for_all()
    }

    /// Takes exemplars of a batch whose samples were appended; blocks until both are as durable as
    /// asked.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn append_exemplars(
        &self,
        batch: &WriteBatch<'_>,
        rows: &[ExemplarRow],
        durability: Durability,
    ) -> Result<AppendedExemplars> {
        self.appender.append_exemplars(batch, rows, durability)
    }

    /// Remembers what metrics are; durable on return.
    ///
    /// # Errors
    /// When the log fails.
    pub fn put_metadata(&self, metadata: &[Metadata]) -> Result<()> {
        self.appender.put_metadata(metadata)
    }

    /// Makes it durable that a program must know this to read the store; one that does not will
    /// refuse to open it. To be called before the first of it is written; later calls cost a lock.
    ///
    /// # Errors
    /// On I/O errors: nothing of it must be written then.
    pub fn need(&self, need: Need) -> Result<()> {
        let ground = &self.shared.ground;
        self.needs.add(need, ground.vfs.as_ref(), &ground.dir, ground.length)
    }

    /// Makes it durable that samples may have numbers of strings up to `number`: no later start may
    /// give them to other strings, whatever happens to the dictionary. The dictionary has its file
    /// already, so that its loss is noticed.
    ///
    /// # Errors
    /// On I/O errors; no sample may then have the number.
    pub fn reserve_string_numbers(&self, number: u32) -> Result<()> {
        self.string_numbers.reserve(number, &self.shared.ground)
    }

    /// Last number of a string that samples may have; `None` if that is not recorded.
    pub fn reserved_string_number(&self) -> Option<u32> {
        self.string_numbers.reserved(&self.shared.ground)
    }

    /// Whether the store has said that it has this.
    pub fn has(&self, need: Need) -> bool {
        self.needs.has(need)
    }

    /// Takes no new series from now on, for this reason, or again those that the limits allow.
    pub fn refuse_new_series(&self, reason: Option<String>) {
        self.appender.gate.set_closed(reason);
    }

    /// The new series that were refused since the last call; `None` when none was.
    pub fn take_refusals(&self) -> Option<Refusals> {
        self.appender.gate.take_refusals()
    }

    /// Deletes the samples in `range` of the series that match; returns how many series matched.
    /// Durable on return.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] without any matcher or for a bad regular expression,
    /// [`crate::Error::Damaged`] when a partition could not be reached (all others were), otherwise
    /// I/O errors.
    pub fn delete(&self, sets: &[Vec<Matcher>], range: TimeRange) -> Result<u64> {
        self.delete_within(sets, range, &SelectLimits::UNLIMITED)
    }

    /// The same for matchers that a client chose: flushes wait while their series are searched.
    ///
    /// # Errors
    /// As [`Store::delete`]; [`crate::Error::DeadlineExceeded`] and [`crate::Error::Cancelled`], after
    /// which nothing is deleted.
    pub fn delete_within(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<u64> {
        self.deleter.delete(sets, range, limits, None)
    }

    /// As [`Store::delete`], with schema records that change at the same time: after a crash both are
    /// done, or none. `apply` makes the changes durable that `records` encodes; some may have changed
    /// since they were encoded.
    ///
    /// # Errors
    /// As [`Store::delete`], and those of `apply`, after which the store is read-only until it is opened
    /// again. With [`crate::Error::Damaged`] the records stay.
    pub fn delete_with_records(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        records: &[u8],
        apply: &mut dyn FnMut() -> Result<()>,
    ) -> Result<u64> {
        let change = Some(RecordChange { encoded: records, apply });
        self.deleter.delete(sets, range, &SelectLimits::UNLIMITED, change)
    }

    pub(crate) fn finish_deletion(
        &self,
        deletion: &UnfinishedDeletion,
        apply_records: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.deleter.finish(deletion, apply_records)
    }
}

/// Reading.
impl Store {
    /// The store for who wants all or nothing.
    pub fn strict(&self) -> Questions<'_> {
        Questions::new(&self.reader, None)
    }

    /// The store for who takes answers that are not whole, as long as `missing` is told.
    pub fn noting<'a>(&'a self, missing: &'a Arc<Missing>) -> Questions<'a> {
        Questions::new(&self.reader, Some(missing))
    }

    /// Asks other databases too, for what is before their `until`; to be said once, before anybody
    /// asks anything.
    pub fn ask_too(&self, others: Vec<Arc<dyn Elsewhere>>) {
        self.reader.others.set(others);
    }

    /// Makes a change after which one of them has another `until`. One call at a time. Who keeps
    /// answers is told by [`Store::changed_since`].
    pub fn move_until(&self, change: impl FnOnce()) {
        self.reader.others.move_until(&self.reader.changes, change);
    }

    /// As [`Questions::select`] of who wants all or nothing.
    ///
    /// # Errors
    /// As [`Questions::select`].
    pub fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Selection> {
        self.strict().select(sets, range, limits)
    }

    /// Whether the series with exactly these labels, whose rows have this hash in batches for
    /// [`Store::append`], has no sample from `start` on, for sure, told without reading any. If not,
    /// nothing is known.
    pub fn surely_none_since(&self, labels: &Labels, hash: u128, start: Timestamp) -> bool {
        self.reader.surely_none_since(labels, hash, start)
    }

    /// What is known of `metric`, or of all metrics by name, at most `limit`.
    pub fn metadata(&self, metric: Option<&str>, limit: usize) -> Vec<Metadata> {
        self.shared.metadata.get(metric, limit)
    }

    /// At most `limit` metrics whose names come after `name`, in order, with what is known of them.
    pub fn metadata_after(&self, name: &str, limit: usize) -> Vec<Metadata> {
        self.shared.metadata.get_after(name, limit)
    }

    /// From now on metrics whose names end so are found only by who asks for them by name, or for
    /// all ([`Questions::showing_all`]). The ending is plain text, one of a few; those that were said
    /// before hold, too.
    pub fn hide_names(&self, ending: &str) {
        self.reader.hide_names(ending);
    }

    /// Schema of InfluxDB data that an earlier version kept among the metadata, under names that begin
    /// with a zero byte; with what an unfinished deletion has changed in it.
    pub fn legacy_schema(&self) -> Vec<Metadata> {
        self.shared.metadata.legacy_schema()
    }

    /// Removes the legacy schema from the metadata, once another consumer has all of it durably. On a full
    /// disk the next flush does.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn drop_legacy_schema(&self) -> Result<()> {
        let Shared { ground, metadata, .. } = &self.shared;
        if !metadata.drop_legacy_schema() {
            return Ok(());
        }
        match metadata.write(ground.vfs.as_ref(), &ground.dir) {
            Err(crate::Error::Io(error)) if error.is_disk_full() => Ok(()),
            written => written,
        }
    }

    /// Counts the series registered in the last hours, up to a day of them and since start; of two
    /// partitions around a rollover.
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn new_series(&self, request: &CardinalityRequest, hours: u32) -> Result<NewSeries> {
        cardinality::new_series(&self.reader, request, hours)
    }

    /// A version to ask [`Store::changed_since`] with, later. To be taken before what is to be kept
    /// is selected.
    pub fn take_version(&self) -> u64 {
        self.reader.changes.take_version()
    }

    /// The times in `range` whose samples may read differently than to a selection that was made
    /// after `version` was taken. By and large in order; they may overlap.
    pub fn changed_since(&self, version: u64, range: &TimeRange) -> Vec<TimeRange> {
        self.reader.changed_since(version, range)
    }

    /// Whether selections within `range` list the series they share in the same order, whatever
    /// part of the range each is for. Across partitions that is not so: series stand where they are
    /// first met.
    pub fn keeps_order(&self, range: &TimeRange) -> bool {
        self.reader.keeps_order(range)
    }
}

/// What the background does, and what may be asked of it by hand.
impl Store {
    /// Whether a flush is due.
    pub fn is_flush_due(&self) -> bool {
        choose(&self.flusher.load(0)).contains(&Job::Flush)
    }

    /// Writes all heads to disk and shortens the log.
    ///
    /// # Errors
    /// On I/O errors; nothing is lost then, the log still has what was not written.
    pub fn flush(&self) -> Result<()> {
        self.flusher.flush()
    }

    /// Does all merges that pay, as the background does.
    ///
    /// # Errors
    /// On I/O errors; the parts are then as they were.
    pub fn merge_as_needed(&self) -> Result<()> {
        self.merger.merge_all("", MergeEffort::AsNeeded)
    }

    /// Merges each partition whose name (`YYYY-MM`) starts with `partition_prefix` down to as few
    /// parts as can be.
    ///
    /// # Errors
    /// [`crate::Error::NoRoom`], and I/O errors; the parts are then as they were.
    pub fn force_merge(&self, partition_prefix: &str) -> Result<()> {
        self.merger.merge_all(partition_prefix, MergeEffort::Everything)
    }

    /// Drops partitions and parts that hold nothing the retention keeps.
    ///
    /// # Errors
    /// On I/O errors; what could not be removed is tried again next time.
    pub fn expire(&self) -> Result<()> {
        self.expirer.expire()
    }

    /// The time by which what is old may be dropped, nanoseconds: the wall clock's, unless that has jumped
    /// ahead and was not there for long enough to be believed.
    pub fn trusted_now(&self) -> i64 {
        self.shared.retention.trusted_now()
    }

    /// How far the wall clock is ahead of the time that the retention goes by, and how long it will
    /// be until it is believed, nanoseconds; `None` when it is.
    pub fn retention_clock_waits(&self) -> Option<(i64, i64)> {
        self.shared.retention.clock_waits()
    }

    /// Goes on preparing the next partition for the series of this one, if it is time.
    ///
    /// # Errors
    /// When an index is corrupt, or the log fails. One that has no room is asked again later.
    pub fn prepare_rollover(&self) -> Result<()> {
        let prepared = self.rollover.prepare();
        prepared.map_err(|error| self.shared.ground.health.latch_if_failed(error))
    }

    /// Prepares all there is to prepare of the next partition, at once.
    ///
    /// # Errors
    /// As [`Store::prepare_rollover`], and when the log has no room.
    pub fn prepare_rollover_fully(&self) -> Result<()> {
        self.rollover.prepare_fully()
    }

    /// Reads about `budget` bytes of what is to be read, to find rot, if anything is; returns how
    /// many it were.
    pub fn scrub_some(&self, budget: u64) -> u64 {
        self.scrubber.read_some(budget)
    }

    /// Freezes the store's files under `snapshots/<name>`; returns the name, which is made of the
    /// time and a random number. `quipu serve --data-dir` on that directory (or a copy) works.
    /// Partitions that are damaged are in it as they are, with their records in the log.
    ///
    /// It has all that was acknowledged before the call and nothing that was deleted before it. What
    /// comes meanwhile may be in it, month by month, also if it is deleted before the call returns;
    /// a deletion is in it whole or not at all.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn create_snapshot(&self) -> Result<String> {
        self.snapshots.create(None, &mut |_| Ok(()))
    }

    /// The same, with what others keep beside the store: `also` is given the snapshot's directory
    /// before it has its name, which ends with `ending`, if that is given, as 8 hexadecimal digits.
    ///
    /// # Errors
    /// On I/O errors, those of `also` included: then there is no snapshot.
    pub fn create_snapshot_with(
        &self,
        ending: Option<u32>,
        also: &mut dyn FnMut(&Path) -> vfs::Result<()>,
    ) -> Result<String> {
        self.snapshots.create(ending, also)
    }

    /// Names of the snapshots, oldest first.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn snapshots(&self) -> Result<Vec<String>> {
        self.snapshots.names()
    }

    /// Removes a snapshot: it is gone, or it is whole.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] when there is none of that name.
    pub fn delete_snapshot(&self, name: &str) -> Result<()> {
        self.snapshots.delete(name)
    }

    fn run_job(&self, job: Job) -> Result<()> {
        match job {
            Job::Flush => self.flusher.flush_or_wait(),
            Job::Expire => self.expire(),
            Job::PrepareRollover => self.prepare_rollover(),
            Job::Merge => self.merge_as_needed(),
            Job::Scrub => self.scrubber.round(),
        }
    }
}

/// How the store is.
impl Store {
    /// How long the partitions are.
    pub fn partition_length(&self) -> PartitionLength {
        self.shared.ground.length
    }

    /// The clock, nanoseconds since the epoch.
    pub fn now(&self) -> i64 {
        self.shared.ground.vfs.now()
    }

    /// Fails as [`Store::append`] does while nothing may be written, for another consumer of the log.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`] and [`crate::Error::HeadFull`].
    pub fn check_writable(&self) -> Result<()> {
        self.appender.check_writable()
    }

    /// Why writes are refused, if they are.
    pub fn read_only_reason(&self) -> Option<String> {
        let of_log = || self.shared.log.shared().wal().refusal();
        self.shared.ground.health.read_only_reason().or_else(of_log)
    }

    /// Refuses writes while the disk is nearly full, and takes them again once it is not.
    pub fn check_disk(&self) {
        let Ground { health, config, .. } = &*self.shared.ground;
        let held = self.shared.log.tell_held();
        health.set_free_space(self.shared.ground.free_space(), config.free_disk_min, held);
    }

    /// Keeps less in memory from now on, or as much as configured again: caches are emptied, the
    /// head is flushed early.
    pub fn set_memory_tight(&self, is_tight: bool) {
        self.shared.partitions.set_memory_tight(is_tight);
        if is_tight {
            self.reader.page_headers.clear();
        }
    }

    /// Bytes of memory that tables will need at once when they grow next, if that is near.
    pub fn memory_ahead(&self) -> u64 {
        let partitions = self.shared.partitions.all();
        partitions.iter().map(|one| one.read().series.map.growth_ahead() as u64).sum()
    }

    /// Consumers of the log that are switched off and have records in it, which it keeps.
    pub fn off_in_log(&self) -> &[wal::Off] {
        self.shared.log.shared().off()
    }

    /// The partitions of which nothing is read, oldest first.
    pub fn damaged_partitions(&self) -> Vec<DamagedPartition> {
        self.shared.partitions.damaged()
    }

    /// What is known to be missing or rotten.
    pub fn damage(&self) -> Vec<Damage> {
        self.shared.ground.damage.list()
    }

    /// Lists damage that another consumer of the log has found in its files.
    pub fn note_damage(&self, damage: Damage) {
        self.shared.ground.damage.note(damage, self.now());
    }

    /// The damage that is new since the last call, to be told people.
    pub fn take_damage_news(&self) -> Vec<Damage> {
        self.shared.ground.damage.take_news()
    }

    /// How far the scrub is.
    pub fn scrub_stats(&self) -> ScrubStats {
        self.scrubber.stats()
    }

    /// How many failures of background work there were, and the last one, if there were more than
    /// `known`: for a log.
    pub fn failures_since(&self, known: u64) -> Option<(u64, String)> {
        let (count, last) = self.shared.ground.health.failures();
        (known < count).then_some((count, last.unwrap_or_default()))
    }

    /// Counters and sizes.
    pub fn stats(&self) -> StoreStats {
        let Ground { vfs, dir, counters, health, damage, .. } = &*self.shared.ground;
        let log = self.shared.log.wal.stats();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (job_failures_total, last_job_failure) = health.failures();
        let mut stats = StoreStats {
            wal_bytes: log.size,
            wal_pinned_bytes: self.shared.log.size_and_pinned().1.min(log.size),
            wal_pinned_by: self.shared.log.shared().pin().map(|pin| pin.consumer),
            wal_commits_total: log.commit_count,
            wal_commit_ns_total: log.commit_ns_total,
            log_cut_bytes: self.shared.log.wal.recovery().cut_size,
            samples_appended_total: read(&counters.samples_appended),
            rows_rejected_total: read(&counters.rows_rejected),
            flushes_total: read(&counters.flushes),
            merges_total: read(&counters.merges),
            merges_without_room_total: read(&counters.merges_without_room),
            corrupt_parts_total: read(&counters.corrupt_parts),
            reencoded_pages_total: reencoded_pages(),
            samples_replayed: read(&counters.samples_replayed),
            damaged_partitions: self.shared.partitions.damaged_count() as u64,
            orphans: self.orphans.len() as u64,
            job_failures_total,
            last_job_failure,
            read_only_reason: health.read_only_reason(),
            free_disk_bytes: vfs.free_space(dir).unwrap_or(0),
            series_active: self.appender.gate.active(vfs.now()),
            exemplars: self.shared.exemplars.stats(),
            scrub: self.scrub_stats(),
            page_header_bytes: self.reader.page_headers.size() as u64,
            ..StoreStats::default()
        };
        (stats.series_new_total, stats.series_refused_total) = self.appender.gate.totals();
        (stats.damage, stats.damage_noticed_total) = damage.counts();
        (stats.page_header_hits_total, stats.page_header_misses_total) =
            self.reader.page_headers.hits_and_misses();
        for partition in self.shared.partitions.all() {
            stats.add_partition(&partition.read());
        }
        stats
    }
}

impl Work for Store {
    fn load(&self, round: u64) -> Load {
        self.flusher.load(round)
    }

    /// A panic is a failure, too: what it left half done nobody knows, so the store takes no more
    /// writes until it is opened again.
    fn run(&self, job: Job) {
        let health = &self.shared.ground.health;
        if health.is_latched() {
            return;
        }
        match catch_unwind(AssertUnwindSafe(|| self.run_job(job))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => health.note_failure(&format!("{job:?}"), &error),
            Err(panic) => {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
                let reason = format!("{job:?} ended in a panic: {}", words.unwrap_or("no words"));
                health.latch(&reason);
                health.keep_failure(reason);
            }
        }
    }

    fn end_round(&self) {
        self.check_disk();
    }
}

#[cfg(test)]
mod tests;
