//! Deletion by matchers and time range.
//!
//! Heads are flushed first, so that all that exists is in parts; then each partition gets a tombstone,
//! which reads apply at once and merges apply for good. Samples written later are newer than the
//! tombstones and stay. Exemplars go at once, and their file is written again.
//!
//! What takes more than one write is done after a crash, or not at all: see
//! [`crate::partition::unfinished_deletion`]. A write that fails makes the store read-only until it is opened
//! again, which finishes the deletion.

use crate::background::flush::Flusher;
use crate::base::ground::Ground;
use crate::log::exemplars::ExemplarQueue;
use crate::log::metadata::{MetadataTable, RECORD_METRICS_MAX};
use crate::log::store_log::StoreLog;
use crate::partition::changes::ChangeClock;
use crate::partition::histograms::names::LABEL;
use crate::partition::partitions::Partitions;
use crate::partition::shared::Shared;
use crate::partition::unfinished_deletion::{
    ExemplarDeletion, PartitionDeletion, UnfinishedDeletion,
};
use crate::partition::{Partition, PartitionState};
use crate::read::hidden_series::matchers_of_hidden;
use crate::read::select::matchers::compile;
use crate::store::emptied::EmptiedSeries;
use crate::{Error, Result, SelectLimits};
use hashbrown::HashSet;
use index::{BlockMatch, CompiledMatchers, Completeness, Search};
use model::{Labels, LabelsBuilder, Matcher, Metadata, TimeRange};
use roaring::RoaringBitmap;
use std::sync::{Arc, MutexGuard};

/// Schema records that change together with what a deletion deletes.
pub(crate) struct RecordChange<'a> {
    /// The changes, as their consumer encodes them.
    pub encoded: &'a [u8],
    /// Makes them durable.
    pub apply: &'a mut dyn FnMut() -> Result<()>,
}

/// Matched blocks whose labels are read under one lock.
const GROUPS_PER_LOCK: usize = 64;

/// What deletes series; no flush meanwhile.
pub(crate) struct Deleter {
    ground: Arc<Ground>,
    log: Arc<StoreLog>,
    partitions: Arc<Partitions>,
    flusher: Arc<Flusher>,
    /// Tells readers what changed.
    changes: Arc<ChangeClock>,
    exemplars: Arc<ExemplarQueue>,
    metadata: Arc<MetadataTable>,
}

/// A tombstone that is about to be written. The manifest stays as it was read until then.
struct Step<'a> {
    partition: &'a Partition,
    _change: MutexGuard<'a, ()>,
    deletion: PartitionDeletion,
}

impl Deleter {
    pub fn new(shared: &Shared, flusher: Arc<Flusher>) -> Deleter {
        Deleter {
            ground: shared.ground.clone(),
            log: shared.log.clone(),
            partitions: shared.partitions.clone(),
            flusher,
            changes: shared.changes.clone(),
            exemplars: shared.exemplars.clone(),
            metadata: shared.metadata.clone(),
        }
    }

    /// Deletes the samples in `range` of the series that match, and changes records with them; returns
    /// how many series matched. Durable on return. Flushes wait meanwhile, so `limits` say when to
    /// give up.
    ///
    /// # Errors
    /// [`Error::Invalid`] without any matcher or for a bad regular expression, [`Error::Damaged`]
    /// when a partition could not be reached (all others were, and the records stay),
    /// [`Error::DeadlineExceeded`] and [`Error::Cancelled`], after which nothing is deleted, otherwise
    /// I/O errors.
    pub fn delete(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
        records: Option<RecordChange<'_>>,
    ) -> Result<u64> {
        if sets.is_empty() || sets.iter().any(Vec::is_empty) {
            return Err(Error::Invalid("a deletion needs at least one matcher".into()));
        }
        let sets = compile(sets, limits)?;
        let _one = self.flusher.lock();
        self.ground.health.check_disk_is_trusted()?;
        let partitions = self.partitions.overlapping(&range);
        self.flush(&partitions).map_err(|error| self.ground.health.latch_if_failed(error))?;
        // Of a partition that cannot be read nothing is deleted, which must be said.
        let whole = self.partitions.check_whole(&range);
        let records = records.filter(|_| whole.is_ok());
        let mut matched = HashSet::new();
        let mut steps = Vec::new();
        for partition in &partitions {
            limits.check_interrupt()?;
            steps.extend(self.plan(partition, &sets, limits, &mut matched)?);
        }
        let exemplars = self.exemplars.series_in(&sets, &range, limits)?;
        self.carry_out(range, steps, &exemplars, records)?;
        self.hide_emptied(&partitions, range, EmptiedSeries::new(&self.ground, &sets, limits))?;
        let shortened = self.flusher.shorten_log();
        shortened.map_err(|error| self.ground.health.latch_if_failed(error))?;
        self.partitions.name_manifests()?;
        whole.map(|()| matched.len() as u64)
    }

    /// Hides the series of which nothing is left in the partitions that the range cuts. Their samples are
    /// deleted already, so that what cannot be read is left as it is.
    fn hide_emptied(
        &self,
        partitions: &[Arc<Partition>],
        range: TimeRange,
        mut emptied: EmptiedSeries<'_>,
    ) -> Result<()> {
        let is_cut = |one: &&Arc<Partition>| !range.covers(&one.period.range());
        for partition in partitions.iter().filter(is_cut) {
            let _change = partition.lock_change();
            if partition.is_dropped() {
                continue;
            }
            let Ok(series) = emptied.find(partition) else { return Ok(()) };
            if series.is_empty() {
                continue;
            }
            let (content, sequence) = {
                let state = partition.read();
                let manifest = state.disk.manifest();
                (manifest.content_checksum(partition.period), manifest.sequence_next)
            };
            let period = partition.period;
            let deletion = PartitionDeletion { period, content, sequence, series };
            let written = self.write_tombstone(partition, period.range(), &deletion);
            written.map_err(|error| self.ground.health.latch_if_failed(error))?;
        }
        Ok(())
    }

    fn flush(&self, partitions: &[Arc<Partition>]) -> Result<()> {
        for partition in partitions {
            let _change = partition.lock_change();
            if !partition.is_dropped() {
                self.flusher.flush_partition(partition)?;
            }
        }
        Ok(())
    }

    /// The tombstone of a partition, if any of its parts may need one.
    fn plan<'a>(
        &self,
        partition: &'a Partition,
        sets: &[CompiledMatchers],
        limits: &SelectLimits,
        matched: &mut HashSet<u128>,
    ) -> Result<Option<Step<'a>>> {
        let change = partition.lock_change();
        if partition.is_dropped() {
            return Ok(None);
        }
        let strict = &mut index::refuse_rot;
        let found = partition.search(Search::new(sets, Completeness::AtStart), strict)?;
        let mut series: RoaringBitmap = found.iter().flat_map(BlockMatch::ordinals).collect();
        for found in found.chunks(GROUPS_PER_LOCK) {
            limits.check_interrupt()?;
            add_fingerprints(&partition.read(), found, matched)?;
        }
        if partition.read().series.index.knows_tag(LABEL)? {
            let hidden = matchers_of_hidden(sets);
            let found = partition.search(Search::new(&hidden, Completeness::AtStart), strict)?;
            series.extend(found.iter().flat_map(BlockMatch::ordinals));
        }
        let state = partition.read();
        let manifest = state.disk.manifest();
        if series.is_empty() || manifest.parts.is_empty() {
            return Ok(None);
        }
        let content = manifest.content_checksum(partition.period);
        let (period, sequence) = (partition.period, manifest.sequence_next);
        let deletion = PartitionDeletion { period, content, sequence, series };
        Ok(Some(Step { partition, _change: change, deletion }))
    }

    /// Does what was planned. If that takes several writes, a file says so until they are durable.
    fn carry_out(
        &self,
        range: TimeRange,
        steps: Vec<Step<'_>>,
        exemplars: &[Arc<Labels>],
        records: Option<RecordChange<'_>>,
    ) -> Result<()> {
        let Ground { vfs, dir, health, .. } = &*self.ground;
        let writes =
            steps.len() + usize::from(!exemplars.is_empty()) + usize::from(records.is_some());
        let is_one_write = writes <= 1;
        if !is_one_write {
            let written = self.write_file(range, &steps, exemplars, records.as_ref());
            written.map_err(|error| health.latch_if_failed(error))?;
        }
        let done = self.apply(range, steps, exemplars, records).and_then(|()| match is_one_write {
            true => Ok(()),
            false => UnfinishedDeletion::remove(vfs.as_ref(), dir),
        });
        done.map_err(|error| match is_one_write {
            true => health.latch_if_failed(error),
            false => self.latch_unfinished(error),
        })
    }

    /// Lets nothing be written behind a deletion that the next start finishes.
    fn latch_unfinished(&self, error: Error) -> Error {
        let reason = format!("the next start finishes a deletion that failed: {error}");
        self.ground.health.latch(&reason);
        error
    }

    fn write_file(
        &self,
        range: TimeRange,
        steps: &[Step<'_>],
        series: &[Arc<Labels>],
        records: Option<&RecordChange<'_>>,
    ) -> Result<()> {
        let Ground { vfs, dir, .. } = &*self.ground;
        let exemplars = match series.is_empty() {
            true => None,
            // Their file has those that are deleted, and none that come later.
            false => {
                let log_end = self.write_exemplars()?;
                Some(ExemplarDeletion { log_end, series: series.to_vec() })
            }
        };
        let partitions = steps.iter().map(|step| step.deletion.clone()).collect();
        let records = records.map_or_else(Vec::new, |change| change.encoded.to_vec());
        let legacy_schema = Vec::new();
        let deletion = UnfinishedDeletion { range, partitions, exemplars, legacy_schema, records };
        deletion.write(vfs.as_ref(), dir)
    }

    fn apply(
        &self,
        range: TimeRange,
        steps: Vec<Step<'_>>,
        exemplars: &[Arc<Labels>],
        records: Option<RecordChange<'_>>,
    ) -> Result<()> {
        for step in steps {
            self.write_tombstone(step.partition, range, &step.deletion)?;
        }
        self.exemplars.delete(exemplars, &range);
        records.map_or(Ok(()), |change| (change.apply)())?;
        match exemplars.is_empty() {
            true => Ok(()),
            false => self.write_exemplars().map(drop),
        }
    }

    /// Writes their file; returns the segment that the log goes on with.
    fn write_exemplars(&self) -> Result<u64> {
        let Ground { vfs, dir, .. } = &*self.ground;
        self.exemplars.write(vfs.as_ref(), dir, &self.log.wal)
    }

    /// Hides the deleted samples of a partition. The caller holds its `change` lock.
    fn write_tombstone(
        &self,
        partition: &Partition,
        range: TimeRange,
        deletion: &PartitionDeletion,
    ) -> Result<()> {
        let manifest = deletion.apply(range, partition.read().disk.next_manifest());
        manifest.write(self.ground.vfs.as_ref(), &partition.dir)?;
        let mut state = partition.write();
        state.disk.install(manifest, None);
        state.changed.note_range(&range, self.changes.now());
        Ok(())
    }

    /// Finishes a deletion that a crash or a failure has interrupted, before anybody reads or writes.
    /// Its exemplars are gone from the queue already. A disk without room for that makes the store
    /// read-only; the samples are hidden all the same.
    ///
    /// # Errors
    /// On I/O errors, and those of `apply_records`.
    pub fn finish(
        &self,
        deletion: &UnfinishedDeletion,
        apply_records: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let _one = self.flusher.lock();
        let Ground { vfs, dir, .. } = &*self.ground;
        let written = self.finish_partitions(deletion);
        let finished = written.and_then(|()| {
            self.put_legacy_schema(&deletion.legacy_schema)?;
            if !deletion.records.is_empty() {
                apply_records(&deletion.records)?;
            }
            self.write_exemplars()?;
            UnfinishedDeletion::remove(vfs.as_ref(), dir)
        });
        match finished {
            Err(error) if is_for_want_of_room(&error) => {
                self.latch_unfinished(error);
                Ok(())
            }
            finished => finished,
        }?;
        match self.partitions.name_manifests() {
            Err(error) if is_for_want_of_room(&error) => Ok(()),
            named => named,
        }
    }

    /// Makes the entries durable that a deletion of an earlier version changes.
    fn put_legacy_schema(&self, entries: &[Metadata]) -> Result<()> {
        for some in entries.chunks(RECORD_METRICS_MAX) {
            while let Err(error) = self.metadata.append_legacy_schema(&self.log.wal, some) {
                match error {
                    Error::Wal(wal::Error::Busy { .. }) => self.log.wait_for_all()?,
                    error => return Err(self.ground.health.latch_if_failed(error)),
                }
            }
        }
        match entries.is_empty() {
            true => Ok(()),
            false => self.log.wait_for_all(),
        }
    }

    /// Writes the tombstones that are not there. Readers see those that find no room, too.
    fn finish_partitions(&self, deletion: &UnfinishedDeletion) -> Result<()> {
        let mut first_error = None;
        for one in &deletion.partitions {
            let Some(partition) = self.partitions.get(one.period) else { continue };
            let _change = partition.lock_change();
            let before = partition.read().disk.manifest().clone();
            if before.content_checksum(one.period) != one.content {
                continue;
            }
            if let Err(error) = self.write_tombstone(&partition, deletion.range, one) {
                let unwritten = one.apply(deletion.range, before);
                partition.write().disk.install_unwritten(unwritten, None);
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}

/// Whether a start goes on after this error, read-only: the disk is full. A log that found no room when
/// it was opened is latched.
fn is_for_want_of_room(error: &Error) -> bool {
    match error {
        Error::Io(error) => error.is_disk_full(),
        Error::Wal(error) => matches!(
            error,
            wal::Error::Latched { .. } | wal::Error::Stalled { is_disk_full: true, .. }
        ),
        _ => false,
    }
}

/// Adds the fingerprints of the series that matched.
fn add_fingerprints(
    state: &PartitionState,
    found: &[BlockMatch],
    deleted: &mut HashSet<u128>,
) -> Result<()> {
    let mut labels = LabelsBuilder::new();
    for group in found {
        for column in group.columns.iter() {
            for slot in group.slots.iter() {
                labels.clear();
                state.series.index.labels(&group.block, column, slot, &mut labels)?;
                deleted.insert(labels.finish().fingerprint());
            }
        }
    }
    Ok(())
}
