//! Index segments that take the place of others: joined, or without what is dead.
//!
//! A segment is written without a lock, listed as one that may go until the manifest names it. Who
//! reads the partition finds the old ones or the new one.

use crate::background::partition_files::{remove_done, remove_failed};
use crate::base::ground::Ground;
use crate::partition::disk::manifest::Manifest;
use crate::partition::{Partition, PartitionState};
use crate::{Error, Result};
use index::{EntityId, MergeJob, NewSegment, SegmentEntry};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Fewest index segments worth a merge.
const SEGMENTS_TO_JOIN: usize = 4;

/// How much to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeEffort {
    /// Only what pays.
    AsNeeded,
    /// Down to as few parts as can be; applies tombstones.
    Everything,
}

/// Whether the disk has room for a merge of so many bytes. Who asked for it is told if not.
pub(crate) fn has_room_for(
    ground: &Ground,
    partition: &Partition,
    size: u64,
    effort: MergeEffort,
) -> Result<bool> {
    let free = ground.free_space();
    let min = ground.config.free_disk_min;
    if size.saturating_add(min) <= free {
        partition.lacks_room.store(false, Ordering::Relaxed);
        return Ok(true);
    }
    let error = Error::NoRoom { size, free, min };
    if effort == MergeEffort::Everything {
        return Err(error);
    }
    if !partition.lacks_room.swap(true, Ordering::Relaxed) {
        ground.counters.merges_without_room.fetch_add(1, Ordering::Relaxed);
        ground.health.note_failure("Merge", &error);
    }
    Ok(false)
}

/// Joins index segments when it pays.
pub(crate) fn merge_segments(
    ground: &Ground,
    partition: &Partition,
    effort: MergeEffort,
) -> Result<()> {
    let job = {
        let state = partition.read();
        // A rotten segment stays as it is, between those that are joined.
        let size_of = |segment: &Arc<index::Segment>| match segment.is_damaged() {
            true => u64::MAX / 2,
            false => segment.size(),
        };
        let sizes: Vec<u64> = state.series.index.segments().iter().map(size_of).collect();
        let size_max = ground.config.segment_merge_size_max;
        let Some(range) = choose_segments(&sizes, size_max) else { return Ok(()) };
        state.series.index.merge_job(range)
    };
    if !has_room_for(ground, partition, job.size(), effort)? {
        return Ok(());
    }
    let merged = run_segment_job(ground, partition, &job, None)?;
    let _change = partition.lock_change();
    let manifest = manifest_with(partition.read().disk.next_manifest(), &merged);
    manifest.write(ground.vfs.as_ref(), &partition.dir)?;
    install_segment(ground, &mut partition.write(), &merged, manifest)?;
    let done: Vec<String> =
        merged.replaces().iter().map(|name| Manifest::segment_file(name)).collect();
    remove_done(ground, partition, &done)
}

/// Writes a segment that is to take the place of others. Its name is listed as one that may go
/// before the file is begun, and numbered then: what comes between has a lower number, or is
/// written with the list.
pub(crate) fn run_segment_job(
    ground: &Ground,
    partition: &Partition,
    job: &MergeJob,
    is_dead: Option<&dyn Fn(EntityId) -> bool>,
) -> Result<NewSegment> {
    let (job, file) = {
        let _change = partition.lock_change();
        let mut state = partition.write();
        let job = state.series.index.numbered(job);
        let file = Manifest::segment_file(&job.name());
        state.disk.disown(file.clone());
        (job, file)
    };
    match job.run(is_dead) {
        Ok(new) => Ok(new),
        Err(error) => {
            let error = error.into();
            remove_failed(ground, partition, &[file], &error)?;
            Err(error)
        }
    }
}

/// Makes a new segment, which the manifest names now, a part of the index.
pub(crate) fn install_segment(
    ground: &Ground,
    state: &mut PartitionState,
    new: &NewSegment,
    manifest: Manifest,
) -> Result<()> {
    if let Err(error) = state.series.index.install(new) {
        // The manifest names what the index does not have.
        ground.health.latch(&error.to_string());
        return Err(error.into());
    }
    state.disk.install(manifest, None);
    Ok(())
}

/// The manifest with a new segment in the place of those that it replaces.
pub(crate) fn manifest_with(mut manifest: Manifest, new: &NewSegment) -> Manifest {
    let is_old = |segment: &SegmentEntry| new.replaces().contains(&segment.name);
    let first = manifest.segments.iter().position(is_old).unwrap_or(0);
    let before = manifest.segments.len();
    manifest.segments.retain(|segment| !is_old(segment));
    let gone = before - manifest.segments.len();
    assert_eq!(gone, new.replaces().len(), "segments go that the manifest names");
    manifest.segments.insert(first.min(manifest.segments.len()), new.entry());
    manifest.unlist(&[Manifest::segment_file(new.name())]);
    new.replaces().iter().for_each(|name| manifest.disown(Manifest::segment_file(name)));
    manifest
}

/// Which neighbouring index segments to join: the longest tail in which no segment is more than
/// twice as large as all behind it, once it has four. So each is rewritten a logarithmic number of
/// times and about four per factor of three in size remain. All of them together have at most
/// `size_max` bytes. Pure.
fn choose_segments(sizes: &[u64], size_max: u64) -> Option<std::ops::Range<usize>> {
    let mut start = sizes.len();
    let mut behind = 0;
    for (idx, size) in sizes.iter().enumerate().rev() {
        if size_max < size.saturating_add(behind) {
            break;
        }
        if behind == 0 || *size <= 2 * behind {
            start = idx;
        }
        behind += size;
    }
    let is_worth_it = SEGMENTS_TO_JOIN <= sizes.len() - start;
    is_worth_it.then_some(start..sizes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_segments_of_like_size_are_joined() {
        let check = |sizes: &[u64], expected| assert_eq!(choose_segments(sizes, 60), expected);
        check(&[], None);
        check(&[5, 5, 5], None);
        check(&[5, 5, 5, 5], Some(0..4));
        check(&[100, 5, 5, 5], None);
        check(&[100, 5, 5, 5, 5], Some(1..5));
        check(&[30, 5, 5, 5, 5], Some(0..5));
        check(&[45, 30, 5, 5, 5, 5], Some(1..6));
        check(&[50, 50, 50, 50], None);
    }
}
