//! Head to disk.
//!
//! Per partition: take the arena, start a new log segment, both under one lock, seal, freeze the
//! index in memory to a segment file, merge the parts in memory into one part file, and make all of
//! it the partition's content by one manifest write. Only then may the log segments before go, if
//! no other consumer of the log needs them. A flush that fails removes what it began to write, and
//! the next one takes other numbers.

use crate::Result;
use crate::background::damage_review::DamageReview;
use crate::background::jobs::Load;
use crate::background::partition_files::{remove_done, remove_failed};
use crate::base::backoff::Backoff;
use crate::base::directory::named_log::NamedLog;
use crate::base::file_names::PARTS_DIR;
use crate::base::ground::Ground;
use crate::base::locks::lock;
use crate::log::exemplars::ExemplarQueue;
use crate::log::metadata::MetadataTable;
use crate::log::store_log::StoreLog;
use crate::merge::{self, MergeInput, MergeOutcome};
use crate::part::reader::PartSummary;
use crate::part::{Part, PartInfo, PartSink, PartWriter};
use crate::partition::disk::live_part::{LivePart, open_part};
use crate::partition::disk::manifest::{Manifest, PartEntry};
use crate::partition::head::MemoryPart;
use crate::partition::partitions::Partitions;
use crate::partition::retention::Retention;
use crate::partition::shared::Shared;
use crate::partition::{Partition, PartitionState};
use codec::Effort;
use index::{FreezeJob, NewSegment};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

/// What writes heads to disk.
pub(crate) struct Flusher {
    ground: Arc<Ground>,
    log: Arc<StoreLog>,
    partitions: Arc<Partitions>,
    retention: Arc<Retention>,
    exemplars: Arc<ExemplarQueue>,
    metadata: Arc<MetadataTable>,
    damage_review: Arc<DamageReview>,
    /// Held by the one flush that may run, and by who wants all heads empty at one moment.
    flushing: Mutex<()>,
    /// When a flush that failed is tried again.
    backoff: Backoff,
}

/// What a flush of one partition writes.
struct FlushPlan {
    inputs: Vec<MemoryPart>,
    freeze: Option<FreezeJob>,
    entry: PartEntry,
    /// The files it makes.
    files: Vec<String>,
}

/// What it wrote.
struct Flushed {
    frozen: Option<NewSegment>,
    /// `None` when there is no sample.
    part: Option<Part>,
}

impl FlushPlan {
    fn new(state: &mut PartitionState) -> FlushPlan {
        let freeze = state.series.index.freeze_job();
        let file = state.disk.reserve_part();
        let segment = freeze.as_ref().map(|job| Manifest::segment_file(&job.name()));
        let files: Vec<String> = segment.into_iter().chain([Manifest::part_file(file)]).collect();
        files.iter().for_each(|file| state.disk.disown(file.clone()));
        let entry = PartEntry { file, order: file, applied: file };
        // What came after the log was rotated stays: it may be of series that nothing but the log
        // knows, and the log may not be durable when the manifest is.
        let is_meant = |memory: &&MemoryPart| state.unflushed.is_flushing(memory.number);
        let inputs: Vec<_> = state.head.memory_parts().iter().filter(is_meant).cloned().collect();
        let stays = state.head.memory_parts().iter().skip(inputs.len());
        assert!(!stays.clone().any(|memory| is_meant(&memory)), "what stays came later");
        FlushPlan { inputs, freeze, entry, files }
    }

    /// The manifest that names what was written.
    fn manifest(&self, state: &PartitionState, flushed: &Flushed) -> Manifest {
        let mut manifest = state.disk.next_manifest();
        manifest.wal_from = state.unflushed.wal_next();
        if let Some(frozen) = &flushed.frozen {
            manifest.segments.push(frozen.entry());
            manifest.unlist(&[Manifest::segment_file(frozen.name())]);
        }
        if flushed.part.is_some() {
            manifest.parts.push(self.entry);
        }
        if flushed.part.is_some() || self.inputs.is_empty() {
            manifest.unlist(&[Manifest::part_file(self.entry.file)]);
        }
        manifest
    }
}

impl Flusher {
    pub fn new(shared: &Shared, damage_review: Arc<DamageReview>) -> Flusher {
        Flusher {
            ground: shared.ground.clone(),
            log: shared.log.clone(),
            partitions: shared.partitions.clone(),
            retention: shared.retention.clone(),
            exemplars: shared.exemplars.clone(),
            metadata: shared.metadata.clone(),
            damage_review,
            flushing: Mutex::default(),
            backoff: Backoff::default(),
        }
    }

    /// What the choice of jobs looks at.
    pub fn load(&self, round: u64) -> Load {
        let Ground { vfs, config, .. } = &*self.ground;
        let partitions = self.partitions.all();
        let oldest = partitions.iter().filter_map(|one| one.read().unflushed.since()).min();
        // While a flush that failed waits to be tried again, only memory can hurry it.
        let oldest = oldest.filter(|_| !self.backoff.is_waiting(vfs.elapsed()));
        let (log_size, pinned) = self.log.size_and_pinned();
        Load {
            head_size: self.partitions.head_size(),
            flush_size: self.partitions.flush_size(),
            wal_size: log_size - pinned,
            wal_flush_size: config.wal_size_max / 2,
            // A clock that was set back says nothing: flushed is better.
            dirty_age_ns: oldest
                .map_or(0, |since| vfs.now().saturating_sub(since).saturating_abs()),
            dirty_age_ns_max: config.flush_age_ns_max,
            round,
        }
    }

    /// Flushes for the background: what fails is tried again later each time, for with each try the
    /// partitions that can be flushed get another small part.
    pub fn flush_or_wait(&self) -> Result<()> {
        let flushed = self.flush();
        match &flushed {
            Ok(()) => self.backoff.note_success(),
            Err(_) => self.backoff.note_failure(self.ground.vfs.elapsed()),
        }
        flushed
    }

    /// Writes all heads to disk and shortens the log.
    pub fn flush(&self) -> Result<()> {
        let _one = self.lock();
        self.flush_all()?;
        // What was flushed is flushed: the list of damage is tried again next time.
        drop(self.damage_review.write());
        let Ground { vfs, dir, root, health, .. } = &*self.ground;
        let made = self.partitions.made();
        let updated = root.update(vfs.as_ref(), dir, &made, NamedLog::of_open(&self.log.wal));
        updated.map_err(|error| health.latch_if_failed(error))?;
        self.retention.write_clock_if_due()
    }

    /// The right to flush; nobody else does meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        lock(&self.flushing)
    }

    /// Writes all heads to disk and shortens the log, for a caller that has [`Flusher::lock`].
    pub fn flush_all(&self) -> Result<()> {
        self.ground.health.check_disk_is_trusted()?;
        self.flush_partitions().map_err(|error| self.ground.health.latch_if_failed(error))
    }

    /// A partition that cannot be flushed keeps its log and does not keep the others from being
    /// flushed; its error is returned.
    fn flush_partitions(&self) -> Result<()> {
        let mut first_error = None;
        for partition in self.partitions.all() {
            let _change = partition.lock_change();
            if partition.is_dropped() {
                continue;
            }
            match self.flush_partition(&partition) {
                Err(error) if error.leaves_disk_in_doubt() => return Err(error),
                Err(error) => {
                    if let Some(reason) = partition.unsealable() {
                        self.partitions.give_up(&partition, reason);
                    }
                    first_error.get_or_insert(error);
                }
                Ok(()) => {}
            }
        }
        self.shorten_log()?;
        first_error.map_or(Ok(()), Err)
    }

    /// Flushes one partition; the caller holds its `change` lock.
    pub fn flush_partition(&self, partition: &Partition) -> Result<()> {
        if !self.begin_flush(partition) {
            return Ok(());
        }
        partition.seal_taken()?;
        partition.create_on_disk(self.ground.vfs.as_ref())?;
        let plan = FlushPlan::new(&mut partition.write());
        let flushed = self.write_flushed(partition, &plan);
        let flushed = flushed.and_then(|flushed| {
            let manifest = plan.manifest(&partition.read(), &flushed);
            manifest.write(self.ground.vfs.as_ref(), &partition.dir)?;
            Ok((flushed, manifest))
        });
        match flushed {
            Ok((flushed, manifest)) => self.install_flushed(partition, plan, flushed, manifest),
            Err(error) => {
                remove_failed(&self.ground, partition, &plan.files, &error)?;
                Err(error)
            }
        }
    }

    /// Takes out what is to be flushed; `false` when there is nothing.
    fn begin_flush(&self, partition: &Partition) -> bool {
        let mut state = partition.write();
        if state.unflushed.is_none() {
            // Those of a partition to come were put there for its rollover.
            if partition.period <= self.ground.length.of(self.ground.vfs.now()) {
                state.series.free_keys();
                state.changed.rest();
            }
            return false;
        }
        state.head.take_arena();
        let (next, head_end) = (self.log.wal.rotate(), state.head.taken_end());
        state.unflushed.begin_flush(next, head_end);
        // With the rotation, so that the new log segment registers behind what is sealed.
        state.series.index.seal();
        true
    }

    /// Writes segment and part, and opens what it wrote: nothing may fail once the manifest names
    /// them.
    fn write_flushed(&self, partition: &Partition, plan: &FlushPlan) -> Result<Flushed> {
        let frozen = plan.freeze.as_ref().map(|job| job.run()).transpose()?;
        let part = match self.write_part(partition, &plan.inputs, &plan.entry)? {
            Some(written) => {
                let path = partition.part_path(plan.entry.file);
                let part = open_part(self.ground.vfs.as_ref(), &path)?;
                assert_eq!(*part.summary(), written, "it reads back as it was written");
                Some(part)
            }
            None => None,
        };
        Ok(Flushed { frozen, part })
    }

    /// Makes what the manifest names now the partition's content.
    fn install_flushed(
        &self,
        partition: &Partition,
        plan: FlushPlan,
        flushed: Flushed,
        manifest: Manifest,
    ) -> Result<()> {
        let mut state = partition.write();
        if let Some(frozen) = &flushed.frozen
            && let Err(error) = state.series.index.install(frozen)
        {
            // The manifest names what the index does not have.
            self.ground.health.latch(&error.to_string());
            return Err(error.into());
        }
        let is_empty = flushed.part.is_none();
        let entry = plan.entry;
        state.disk.install(manifest, flushed.part.map(|part| Arc::new(LivePart::new(part, entry))));
        state.head.remove_flushed(&plan.inputs);
        state.unflushed.end_flush();
        state.changed.trim();
        state.series.note_unflushed_size();
        partition.note_head_size(&state);
        self.ground.counters.flushes.fetch_add(1, Ordering::Relaxed);
        drop(state);
        if is_empty && !plan.inputs.is_empty() {
            remove_done(&self.ground, partition, &[Manifest::part_file(entry.file)])?;
        }
        Ok(())
    }

    /// Merges parts in memory into a part file; `None` when they hold no sample.
    fn write_part(
        &self,
        partition: &Partition,
        inputs: &[MemoryPart],
        entry: &PartEntry,
    ) -> Result<Option<PartSummary>> {
        if inputs.is_empty() {
            return Ok(None);
        }
        let in_memory: u64 = inputs.iter().map(|input| input.part.part.summary().samples).sum();
        let file = self.ground.vfs.create(&partition.part_path(entry.file))?;
        let mut writer = PartWriter::new(PartSink::File(file), Effort::Dense);
        let inputs: Vec<MergeInput<'_>> = inputs
            .iter()
            .map(|input| MergeInput { part: &input.part.part, tombstones: &[] })
            .collect();
        let keep_from = self.retention.keep_from();
        let outcome = merge::run(&inputs, keep_from, &mut writer, &|_| ControlFlow::Continue(()))?;
        let finished = writer.finish(PartInfo { sequence: entry.order })?;
        assert!(finished.summary.samples <= in_memory, "a merge makes no samples");
        if outcome == MergeOutcome::Empty {
            return Ok(None);
        }
        self.ground.vfs.sync_dir(&partition.dir.join(PARTS_DIR))?;
        Ok(Some(finished.summary))
    }

    /// Writes the side files, and lets the log remove the segments that neither the store nor
    /// another of its consumers needs.
    ///
    /// The order counts: what is logged after the rotation is in segments that stay, and what was
    /// logged before it is seen by the side files and by the look at the partitions that follows.
    pub fn shorten_log(&self) -> Result<()> {
        let Ground { vfs, dir, .. } = &*self.ground;
        let next = self.exemplars.write(vfs.as_ref(), dir, &self.log.wal)?;
        self.metadata.write(vfs.as_ref(), dir)?;
        self.log.shorten(next)
    }
}
