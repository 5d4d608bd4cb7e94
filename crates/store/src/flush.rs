//! Head to disk.
//!
//! Per partition: take the arena, start a new log segment, both under one lock, seal, freeze the
//! index in memory to a segment file, merge the parts in memory into one part file, and make all of
//! it the partition's content by one manifest write. Only then may the log segments before go, if
//! no other consumer of the log needs them. A flush that fails removes what it began to write, and
//! the next one takes other numbers.

use crate::manifest::{Manifest, PartEntry};
use crate::merge::{self, MergeInput, MergeOutcome};
use crate::part::{Part, PartInfo, PartSink, PartWriter};
use crate::partition::{INDEX_DIR, LivePart, MemoryPart, PARTS_DIR, Partition, State, open_part};
use crate::series_map::SeriesMap;
use crate::store::{Store, lock};
use crate::{Error, Result};
use codec::Effort;
use index::{FreezeJob, NewSegment};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    fn new(state: &mut State) -> FlushPlan {
        let freeze = state.index.freeze_job();
        let file = state.reserve_part();
        let segment = freeze.as_ref().map(|job| Manifest::segment_file(&job.name()));
        let files: Vec<String> = segment.into_iter().chain([Manifest::part_file(file)]).collect();
        files.iter().for_each(|file| state.manifest.disown(file.clone()));
        let entry = PartEntry { file, order: file, applied: file };
        // What came after the log was rotated stays: it may be of series that nothing but the log
        // knows, and the log may not be durable when the manifest is.
        let is_meant = |memory: &&MemoryPart| memory.number < state.flush_end;
        let inputs = state.memory_parts.iter().filter(is_meant).cloned().collect();
        FlushPlan { inputs, freeze, entry, files }
    }

    /// The manifest that names what was written.
    fn manifest(&self, state: &State, flushed: &Flushed) -> Manifest {
        let mut manifest = state.manifest.clone();
        manifest.wal_from = state.wal_next;
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

impl Store {
    /// Writes all heads to disk and shortens the log.
    ///
    /// # Errors
    /// On I/O errors; nothing is lost then, the log still has what was not written.
    pub fn flush(&self) -> Result<()> {
        let _one = lock(&self.flushing);
        self.check_disk_is_trusted()?;
        self.flush_all().map_err(|error| self.latch_if_failed(error))?;
        // What was flushed is flushed: the list of damage is tried again next time.
        drop(self.write_damage());
        match self.clock.is_write_due(self.vfs.as_ref()) {
            true => self.write_clock(),
            false => Ok(()),
        }
    }

    /// As [`Store::flush`], for a caller that holds `flushing`. A partition that cannot be flushed
    /// keeps its log and does not keep the others from being flushed; its error is returned.
    pub(crate) fn flush_all(&self) -> Result<()> {
        let mut first_error = None;
        for partition in self.all_partitions() {
            let _change = partition.lock_change();
            if partition.is_dropped() {
                continue;
            }
            match self.flush_partition(&partition) {
                Err(error) if error.leaves_disk_in_doubt() => return Err(error),
                Err(error) => {
                    if let Some(reason) = partition.unsealable() {
                        self.give_up(&partition, reason);
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
    pub(crate) fn flush_partition(&self, partition: &Partition) -> Result<()> {
        if !self.begin_flush(partition) {
            return Ok(());
        }
        partition.seal_taken()?;
        self.create_on_disk(partition)?;
        let plan = FlushPlan::new(&mut partition.write());
        let flushed = self.write_flushed(partition, &plan);
        let flushed = flushed.and_then(|flushed| {
            let manifest = plan.manifest(&partition.read(), &flushed);
            manifest.write(self.vfs.as_ref(), &partition.dir)?;
            Ok((flushed, manifest))
        });
        match flushed {
            Ok((flushed, manifest)) => self.install_flushed(partition, plan, flushed, manifest),
            Err(error) => {
                self.remove_failed(partition, &plan.files, &error)?;
                Err(error)
            }
        }
    }

    /// Takes out what is to be flushed; `false` when there is nothing.
    fn begin_flush(&self, partition: &Partition) -> bool {
        let mut state = partition.write();
        if state.dirty_from.is_none() && state.flushing_from.is_none() {
            // Those of a partition to come were put there for its turn.
            if partition.period <= self.length.of(self.vfs.now()) {
                state.forget_idle_keys();
                state.changed.rest();
            }
            return false;
        }
        state.take_arena();
        state.flush_end = state.taken_end();
        state.flushing_from = state.flushing_from.or(state.dirty_from);
        state.dirty_from = None;
        state.wal_next = self.wal.rotate();
        // With the rotation, so that the new log segment registers behind what is sealed.
        state.index.seal();
        true
    }

    /// Makes the folders of a partition that has none yet, and a manifest before anything is in
    /// them: content without one is damage.
    fn create_on_disk(&self, partition: &Partition) -> Result<()> {
        let manifest = {
            let state = partition.read();
            if state.is_on_disk {
                return Ok(());
            }
            state.manifest.clone()
        };
        for folder in [PARTS_DIR, INDEX_DIR] {
            self.vfs.create_dir_all(&partition.dir.join(folder))?;
        }
        manifest.write(self.vfs.as_ref(), &partition.dir)?;
        partition.write().is_on_disk = true;
        Ok(())
    }

    /// Writes segment and part, and opens what it wrote: nothing may fail once the manifest names
    /// them.
    fn write_flushed(&self, partition: &Partition, plan: &FlushPlan) -> Result<Flushed> {
        let frozen = plan.freeze.as_ref().map(|job| job.run()).transpose()?;
        let part = match self.write_part(partition, &plan.inputs, &plan.entry)? {
            true => {
                let path = partition.part_path(plan.entry.file);
                Some(open_part(self.vfs.as_ref(), &path)?)
            }
            false => None,
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
            && let Err(error) = state.index.install(frozen)
        {
            // The manifest names what the index does not have.
            self.latch(&error.to_string());
            return Err(error.into());
        }
        let is_empty = flushed.part.is_none();
        state.manifest = manifest;
        let entry = plan.entry;
        state.parts.extend(flushed.part.map(|part| Arc::new(LivePart::new(part, entry))));
        let is_flushed = |m: &MemoryPart| plan.inputs.iter().any(|one| one.number == m.number);
        state.memory_parts.retain(|memory| !is_flushed(memory));
        state.flushing_from = None;
        state.changed.trim();
        state.note_index_size();
        partition.note_head_size(&state);
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        drop(state);
        if is_empty && !plan.inputs.is_empty() {
            self.remove_done(partition, &[Manifest::part_file(entry.file)])?;
        }
        Ok(())
    }

    /// Removes what a failure left, unless nobody knows any more what the disk holds.
    pub(crate) fn remove_failed(
        &self,
        partition: &Partition,
        files: &[String],
        error: &Error,
    ) -> Result<()> {
        match error.leaves_disk_in_doubt() {
            true => Ok(()),
            false => self.remove_done(partition, files),
        }
    }

    /// Removes files of the list of those that may go. What cannot be removed stays in the list.
    ///
    /// # Errors
    /// When a removal cannot be made durable.
    pub(crate) fn remove_done(&self, partition: &Partition, files: &[String]) -> Result<()> {
        let mut gone = Vec::new();
        for file in files {
            match self.vfs.remove(&partition.dir.join(file)) {
                Err(error) if !error.is_not_found() => self.note_failure("Remove", &error.into()),
                _ => gone.push(file.clone()),
            }
        }
        for folder in [PARTS_DIR, INDEX_DIR] {
            if gone.iter().any(|file| file.starts_with(folder)) {
                self.vfs.sync_dir(&partition.dir.join(folder))?;
            }
        }
        partition.write().manifest.unlist(&gone);
        Ok(())
    }

    /// Merges parts in memory into a part file; `false` when they hold no sample.
    fn write_part(
        &self,
        partition: &Partition,
        inputs: &[MemoryPart],
        entry: &PartEntry,
    ) -> Result<bool> {
        if inputs.is_empty() {
            return Ok(false);
        }
        let file = self.vfs.create(&partition.part_path(entry.file))?;
        let mut writer = PartWriter::new(PartSink::File(file), Effort::Dense);
        let inputs: Vec<MergeInput<'_>> = inputs
            .iter()
            .map(|input| MergeInput { part: &input.part.part, tombstones: &[] })
            .collect();
        let keep_from = self.config.retention_ns.map(|_| self.kept_span().start);
        let outcome = merge::run(&inputs, keep_from, &mut writer, &|_| ControlFlow::Continue(()))?;
        writer.finish(PartInfo { sequence: entry.order })?;
        if outcome == MergeOutcome::Empty {
            return Ok(false);
        }
        self.vfs.sync_dir(&partition.dir.join(PARTS_DIR))?;
        Ok(true)
    }

    /// Writes the books, and lets the log remove the segments that neither the store nor another
    /// of its consumers needs.
    ///
    /// The order counts: what is logged after the rotation is in segments that stay, and what was
    /// logged before it is seen by the books' files and by the look at the partitions that follows.
    pub(crate) fn shorten_log(&self) -> Result<()> {
        let next = self.exemplars.write(self.vfs.as_ref(), &self.dir, &self.wal)?;
        self.metadata.write(self.vfs.as_ref(), &self.dir)?;
        let cut = self.log.cut().map_err(|error| self.latch_if_failed(Error::Wal(error)))?;
        // What stays though all is written is no reason to flush again.
        let pinned = cut.filter(|pin| pin.segment < next).map_or(0, |_| self.wal.size());
        self.log_pinned_size.store(pinned, Ordering::Relaxed);
        Ok(())
    }

    /// The oldest log segment with rows that are in no part, those of partitions of which
    /// nothing is read included.
    pub(crate) fn rows_needed_from(&self) -> Option<u64> {
        let needed = self.all_partitions().into_iter().filter_map(|p| p.read().log_needed_from());
        let needed = needed.min();
        // One that is given up is among these before it leaves the partitions.
        let damaged = self.damaged_partitions().into_iter().filter_map(|damaged| damaged.log_from);
        needed.into_iter().chain(damaged).min()
    }
}

impl State {
    /// The oldest log segment with a record that is not in a part.
    pub(crate) fn log_needed_from(&self) -> Option<u64> {
        self.flushing_from.into_iter().chain(self.dirty_from).min()
    }

    /// Frees the key map of a partition that nobody has written to since the last flush.
    fn forget_idle_keys(&mut self) {
        if !self.map.is_empty() {
            self.map = SeriesMap::new();
            self.pieces = Vec::new();
        }
    }
}
