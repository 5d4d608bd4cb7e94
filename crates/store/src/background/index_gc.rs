//! Entities of which no sample is left leave the index, and their strings with them.
//!
//! ```text
//! dead = entities of a segment - entities with a sample in parts, rows, singles
//! a segment with many dead is written again without them (no lock), then, under the write lock:
//!   one of them got a sample meanwhile ► the new segment goes, another time
//!   none did                           ► their keys go, the segments swapped
//! ```
//!
//! Ids are never given again, so that a sample of a series that comes back is one of a new entity.

use crate::background::partition_files::remove_done;
use crate::background::segment_jobs::{
    MergeEffort, has_room_for, install_segment, manifest_with, run_segment_job,
};
use crate::base::file_names::{CORRUPT_SUFFIX, PARTS_DIR};
use crate::base::ground::Ground;
use crate::partition::disk::manifest::Manifest;
use crate::partition::{Partition, PartitionState};
use crate::read::missing::Watch;
use crate::{Error, Result};
use index::{MergeJob, OnRot, Segment};
use model::TimeRange;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// A segment is rewritten when at least one in so many of its entities is dead.
const DEAD_SHARE: u64 = 8;

/// Entities of one segment that had no sample when they were looked for.
pub(crate) struct DeadEntities {
    segment: Arc<Segment>,
    pub entities: RoaringBitmap,
    /// Writes the segment again.
    job: MergeJob,
    /// Parts from this number on were not looked at.
    next_file: u64,
}

/// Rewrites segments without their dead entities where it pays, or all that have any. Tells
/// whether something went. The caller holds `merging`.
pub(crate) fn remove_dead(
    ground: &Ground,
    partition: &Partition,
    effort: MergeEffort,
) -> Result<bool> {
    if !partition.take_loss() && effort == MergeEffort::AsNeeded {
        return Ok(false);
    }
    // Whoever repairs a part needs its label sets.
    if has_parts_aside(ground, partition)? {
        return Ok(false);
    }
    let mut has_gone = false;
    // A rotten segment stays as it is, and does not keep the others from being looked at.
    let watch = Watch::new(ground, None);
    let mut on_rot = |segment: &Segment, error| {
        drop(watch.leave_out_segment(partition, segment, error));
        Ok(())
    };
    let all = find_dead(&partition.read(), effort, &mut on_rot)?;
    for dead in &all {
        match rewrite_without(ground, partition, dead, effort) {
            Err(Error::Index(error)) if error.is_corrupt() => on_rot(&dead.segment, error)?,
            gone => has_gone |= gone?,
        }
    }
    Ok(has_gone)
}

/// Whether a part is damaged, or was set aside by repair or by an older program.
fn has_parts_aside(ground: &Ground, partition: &Partition) -> Result<bool> {
    if partition.read().disk.has_damaged() {
        return Ok(true);
    }
    let folder = partition.dir.join(PARTS_DIR);
    if !ground.vfs.exists(&folder)? {
        return Ok(false);
    }
    Ok(ground.vfs.list(&folder)?.iter().any(|name| name.ends_with(CORRUPT_SUFFIX)))
}

/// Writes a segment again without its dead entities, unless one of them has got a sample since.
pub(crate) fn rewrite_without(
    ground: &Ground,
    partition: &Partition,
    dead: &DeadEntities,
    effort: MergeEffort,
) -> Result<bool> {
    if !has_room_for(ground, partition, dead.job.size(), effort)? {
        return Ok(false);
    }
    let is_dead = |entity| dead.entities.contains(entity);
    let rewritten = run_segment_job(ground, partition, &dead.job, Some(&is_dead))?;
    let _change = partition.lock_change();
    {
        // Held while the manifest is written, so that nobody finds an entity about to go.
        let mut state = partition.write();
        if state.has_revived(dead)? {
            partition.note_loss();
            drop(state);
            remove_done(ground, partition, &[Manifest::segment_file(rewritten.name())])?;
            return Ok(false);
        }
        let manifest = manifest_with(state.disk.next_manifest(), &rewritten);
        manifest.write(ground.vfs.as_ref(), &partition.dir)?;
        install_segment(ground, &mut state, &rewritten, manifest)?;
        state.series.remove_keys(&dead.entities);
    }
    remove_done(ground, partition, &[Manifest::segment_file(dead.segment.name())])?;
    Ok(true)
}

/// The segments to rewrite.
pub(crate) fn find_dead(
    state: &PartitionState,
    effort: MergeEffort,
    on_rot: &mut OnRot<'_>,
) -> Result<Vec<DeadEntities>> {
    let live = state.ordinals_in_parts_from(0)?;
    let mut out = Vec::new();
    for (idx, segment) in state.series.index.segments().iter().enumerate() {
        let mut entities = match segment.entities_without(&live) {
            Err(error) if error.is_corrupt() => {
                on_rot(segment, error)?;
                continue;
            }
            entities => entities?,
        };
        state.leave_unsealed(&mut entities);
        let is_worth_it = match effort {
            MergeEffort::Everything => !entities.is_empty(),
            MergeEffort::AsNeeded => segment.entity_count() < entities.len() * DEAD_SHARE,
        };
        if is_worth_it {
            out.push(DeadEntities {
                segment: Arc::clone(segment),
                entities,
                job: state.series.index.merge_job(idx..idx + 1),
                next_file: state.disk.manifest().sequence_next,
            });
        }
    }
    Ok(out)
}

impl PartitionState {
    /// The series with a sample in a part in memory, or on disk with this number or a later one.
    fn ordinals_in_parts_from(&self, file: u64) -> Result<RoaringBitmap> {
        let on_disk = self.disk.parts().iter().filter(|part| file <= part.entry.file);
        let (first_day, last_day) = TimeRange::ALL.days();
        let mut ordinals = RoaringBitmap::new();
        for part in on_disk.chain(self.head.parts()) {
            ordinals |= part.part.live_on(first_day, last_day)?;
        }
        Ok(ordinals)
    }

    /// Removes the entities that have rows or singles that are not sealed yet.
    fn leave_unsealed(&self, entities: &mut RoaringBitmap) {
        let oldest = self.head.first_unsealed_row();
        let has_row = |entity: &u32| oldest <= self.head.arena.last_row(*entity);
        let with_row: RoaringBitmap = entities.iter().filter(has_row).collect();
        *entities -= with_row;
        for single in self.head.singles() {
            entities.remove(single.entity);
        }
    }

    /// Whether one of the dead got a sample since.
    fn has_revived(&self, dead: &DeadEntities) -> Result<bool> {
        let count = dead.entities.len();
        let mut still_dead = dead.entities.clone();
        self.leave_unsealed(&mut still_dead);
        let newer = self.ordinals_in_parts_from(dead.next_file)?;
        if !newer.is_empty() {
            still_dead &= dead.segment.entities_without(&newer)?;
        }
        Ok(still_dead.len() < count)
    }
}
