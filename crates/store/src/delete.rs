//! Deletion by matchers and time range.
//!
//! The head is flushed first, so that all that exists is in parts; then a tombstone, which reads apply at
//! once and merges apply for good. Samples written later are newer than the tombstone and stay.
//! Exemplars go at once, with the book's file.

use crate::histograms::hidden::search_hidden;
use crate::manifest::Tombstone;
use crate::partition::Partition;
use crate::select::compile;
use crate::store::{Store, lock};
use crate::{Error, Result};
use hashbrown::HashSet;
use index::CompiledMatchers;
use model::{LabelsBuilder, Matcher, TimeRange};
use roaring::RoaringBitmap;

impl Store {
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
        let _one = lock(&self.flushing);
        self.check_disk_is_trusted()?;
        let mut deleted = HashSet::new();
        for partition in self.partitions_in(&range) {
            let _change = partition.lock_change();
            if !partition.is_dropped() {
                let done = self.delete_in(&partition, &sets, &range, &mut deleted);
                done.map_err(|error| self.latch_if_failed(error))?;
            }
        }
        self.exemplars.delete(&sets, &range)?;
        self.shorten_log().map_err(|error| self.latch_if_failed(error))?;
        // Of a partition that cannot be read nothing was deleted, which must be said.
        self.check_whole(&range)?;
        Ok(deleted.len() as u64)
    }

    fn delete_in(
        &self,
        partition: &Partition,
        sets: &[CompiledMatchers],
        range: &TimeRange,
        deleted: &mut HashSet<u128>,
    ) -> Result<()> {
        self.flush_partition(partition)?;
        let mut series = RoaringBitmap::new();
        let mut manifest = {
            let state = partition.read();
            let mut labels = LabelsBuilder::new();
            for set in sets {
                for group in state.index.search(set)? {
                    series.extend(group.ordinals());
                    for column in group.columns.iter() {
                        for slot in group.slots.iter() {
                            labels.clear();
                            state.index.labels(&group.block, column, slot, &mut labels)?;
                            deleted.insert(labels.finish().fingerprint());
                        }
                    }
                }
            }
            for group in search_hidden(&state, sets, &mut index::refuse_rot)? {
                series.extend(group.ordinals());
            }
            state.manifest.clone()
        };
        if series.is_empty() {
            return Ok(());
        }
        let sequence = manifest.sequence_next;
        manifest.sequence_next += 1;
        manifest.tombstones.push(Tombstone { sequence, series, range: *range });
        manifest.forget_applied_tombstones();
        manifest.write(self.vfs.as_ref(), &partition.dir)?;
        let mut state = partition.write();
        state.manifest = manifest;
        state.changed.note_range(range, self.changes.now());
        Ok(())
    }
}
