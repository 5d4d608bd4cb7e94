//! Deletion by matchers and time range.
//!
//! The head is flushed first, so that all that exists is in parts; then a tombstone, which reads apply at
//! once and merges apply for good. Samples written later are newer than the tombstone and stay.
//! Exemplars go at once, and their file is written again.

use crate::changes::ChangeClock;
use crate::exemplars::ExemplarQueue;
use crate::flush::Flusher;
use crate::ground::Ground;
use crate::histograms::hidden::search_hidden;
use crate::manifest::Tombstone;
use crate::partition::Partition;
use crate::partitions::Partitions;
use crate::select::matchers::compile;
use crate::shared::Shared;
use crate::{Error, Result};
use hashbrown::HashSet;
use index::CompiledMatchers;
use model::{LabelsBuilder, Matcher, TimeRange};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// What deletes series; no flush meanwhile.
pub(crate) struct Deleter {
    ground: Arc<Ground>,
    partitions: Arc<Partitions>,
    flusher: Arc<Flusher>,
    /// Tells readers what changed.
    changes: Arc<ChangeClock>,
    exemplars: Arc<ExemplarQueue>,
}

impl Deleter {
    pub fn new(shared: &Shared, flusher: Arc<Flusher>) -> Deleter {
        Deleter {
            ground: shared.ground.clone(),
            partitions: shared.partitions.clone(),
            flusher,
            changes: shared.changes.clone(),
            exemplars: shared.exemplars.clone(),
        }
    }

    /// Deletes the samples in `range` of the series that match; returns how many series matched.
    /// Durable on return.
    ///
    /// # Errors
    /// [`Error::Invalid`] without any matcher or for a bad regular expression, [`Error::Damaged`]
    /// when a partition could not be reached (all others were), otherwise I/O errors.
    pub fn delete(&self, sets: &[Vec<Matcher>], range: TimeRange) -> Result<u64> {
        if sets.is_empty() || sets.iter().any(Vec::is_empty) {
            return Err(Error::Invalid("a deletion needs at least one matcher".into()));
        }
        let sets = compile(sets)?;
        let _one = self.flusher.lock();
        self.ground.health.check_disk_is_trusted()?;
        let mut deleted = HashSet::new();
        for partition in self.partitions.overlapping(&range) {
            let _change = partition.lock_change();
            if !partition.is_dropped() {
                let done = self.delete_in(&partition, &sets, &range, &mut deleted);
                done.map_err(|error| self.ground.health.latch_if_failed(error))?;
            }
        }
        self.exemplars.delete(&sets, &range)?;
        self.flusher.shorten_log().map_err(|error| self.ground.health.latch_if_failed(error))?;
        // Of a partition that cannot be read nothing was deleted, which must be said.
        self.partitions.check_whole(&range)?;
        Ok(deleted.len() as u64)
    }

    fn delete_in(
        &self,
        partition: &Partition,
        sets: &[CompiledMatchers],
        range: &TimeRange,
        deleted: &mut HashSet<u128>,
    ) -> Result<()> {
        self.flusher.flush_partition(partition)?;
        let mut series = RoaringBitmap::new();
        let mut manifest = {
            let state = partition.read();
            let mut labels = LabelsBuilder::new();
            for set in sets {
                for group in state.series.index.search(set)? {
                    series.extend(group.ordinals());
                    for column in group.columns.iter() {
                        for slot in group.slots.iter() {
                            labels.clear();
                            state.series.index.labels(&group.block, column, slot, &mut labels)?;
                            deleted.insert(labels.finish().fingerprint());
                        }
                    }
                }
            }
            for group in search_hidden(&state, sets, &mut index::refuse_rot)? {
                series.extend(group.ordinals());
            }
            state.disk.manifest().clone()
        };
        if series.is_empty() {
            return Ok(());
        }
        let sequence = manifest.sequence_next;
        manifest.sequence_next += 1;
        manifest.tombstones.push(Tombstone { sequence, series, range: *range });
        manifest.remove_applied_tombstones();
        manifest.write(self.ground.vfs.as_ref(), &partition.dir)?;
        let mut state = partition.write();
        state.disk.install(manifest, None);
        state.changed.note_range(range, self.changes.now());
        Ok(())
    }
}
