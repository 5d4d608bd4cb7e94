//! Head to disk.
//!
//! Per partition: take the arena, start a new log segment, seal, freeze the index in memory to a
//! segment file, merge the parts in memory into one part file, and make all of it the partition's
//! content by one manifest write. Only then may the log segments before go.

use crate::manifest::PartEntry;
use crate::merge::{self, MergeInput, MergeOutcome};
use crate::part::{PartInfo, PartSink, PartWriter};
use crate::partition::{INDEX_DIR, LivePart, MemoryPart, PARTS_DIR, Partition, State, open_part};
use crate::series_map::SeriesMap;
use crate::span::Month;
use crate::store::{Store, lock};
use crate::{Error, Result};
use codec::Effort;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
        Ok(())
    }

    /// As [`Store::flush`], for a caller that holds `flushing`.
    pub(crate) fn flush_all(&self) -> Result<()> {
        for partition in self.all_partitions() {
            let _change = partition.lock_change();
            if !partition.is_dropped() {
                self.flush_partition(&partition)?;
            }
        }
        self.shorten_log()
    }

    /// Flushes one partition; the caller holds its `change` lock.
    pub(crate) fn flush_partition(&self, partition: &Partition) -> Result<()> {
        {
            let mut state = partition.write();
            if state.dirty_from.is_none() && state.flushing_from.is_none() {
                // Those of a month to come were put there for its turn.
                if partition.month <= Month::of(self.vfs.now()) {
                    state.forget_idle_keys();
                    state.changed.rest();
                }
                return Ok(());
            }
            state.take_arena();
            state.flushing_from = state.flushing_from.or(state.dirty_from);
            state.dirty_from = None;
            state.wal_next = self.wal.rotate();
            // With the rotation, so that the new log segment registers behind what is sealed.
            state.index.seal();
        }
        partition.seal_taken()?;
        self.create_folders(partition)?;
        let freeze = partition.read().index.freeze_job();
        let frozen = freeze.map(|job| job.run()).transpose()?;
        let inputs = partition.read().memory_parts.clone();
        let sequence = partition.read().manifest.sequence_next;
        let entry = PartEntry { file: sequence, order: sequence, applied: sequence };
        let has_samples = self.write_part(partition, &inputs, &entry)?;

        let mut manifest = partition.read().manifest.clone();
        manifest.sequence_next += 1;
        manifest.wal_from = partition.read().wal_next;
        manifest.segments.extend(frozen.iter().map(|segment| segment.name().to_string()));
        if has_samples {
            manifest.parts.push(entry);
        }
        manifest.write(self.vfs.as_ref(), &partition.dir)?;

        let part = match has_samples {
            true => Some(open_part(self.vfs.as_ref(), &partition.part_path(entry.file))?),
            false => None,
        };
        let mut state = partition.write();
        if let Some(frozen) = &frozen {
            state.index.install(frozen)?;
        }
        state.manifest = manifest;
        state.parts.extend(part.map(|part| Arc::new(LivePart::new(part, entry))));
        state.memory_parts.retain(|m| inputs.iter().all(|input| input.number != m.number));
        state.flushing_from = None;
        state.changed.trim();
        state.note_index_size();
        partition.note_head_size(&state);
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn create_folders(&self, partition: &Partition) -> Result<()> {
        for folder in [PARTS_DIR, INDEX_DIR] {
            self.vfs.create_dir_all(&partition.dir.join(folder))?;
        }
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
        let path = partition.part_path(entry.file);
        // Left by a flush that failed: no manifest names it.
        if self.vfs.exists(&path)? {
            self.vfs.remove(&path)?;
        }
        let file = self.vfs.create(&path)?;
        let mut writer = PartWriter::new(PartSink::File(file), Effort::Dense);
        let inputs: Vec<MergeInput<'_>> = inputs
            .iter()
            .map(|input| MergeInput { part: &input.part.part, tombstones: &[] })
            .collect();
        let keep_from = self.config.retention_ns.map(|_| self.kept_span().start);
        let outcome = merge::run(&inputs, keep_from, &mut writer, &|_| ControlFlow::Continue(()))?;
        writer.finish(PartInfo { sequence: entry.order })?;
        if outcome == MergeOutcome::Empty {
            self.vfs.remove(&path)?;
            return Ok(false);
        }
        self.vfs.sync_dir(&partition.dir.join(PARTS_DIR))?;
        Ok(true)
    }

    /// Removes the log segments that neither a partition nor one of the books needs.
    ///
    /// The order counts: what is logged after the rotation is in segments that stay, and what was
    /// logged before it is seen by the books' files and by the look at the partitions that follow.
    pub(crate) fn shorten_log(&self) -> Result<()> {
        let next = self.exemplars.write(self.vfs.as_ref(), &self.dir, &self.wal)?;
        self.metadata.write(self.vfs.as_ref(), &self.dir)?;
        let needed = self.all_partitions().iter().filter_map(|p| p.read().log_needed_from()).min();
        let removed = self.wal.remove_before(needed.map_or(next, |needed| needed.min(next)));
        removed.map_err(|error| self.latch_if_failed(Error::Wal(error)))
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
