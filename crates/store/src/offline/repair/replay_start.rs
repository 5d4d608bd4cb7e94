//! From where on the log is replayed for a partition whose manifest is made again.
//!
//! All records that the log still has are replayed. Those that are in parts, too, do
//! no harm: the log is an end of history, in order, so the last value of each sample wins as it
//! did; registrations that segments hold are skipped. But a record may have a row of an entity that
//! was deleted since and left the index, which replay would refuse. Who leaves the index was
//! flushed before, with all records of the partition up to that segment: replay starts behind it,
//! and not before the segment that `dropped` says if the partition was dropped and made anew.

use crate::Result;
use crate::base::period::Period;
use crate::offline::verify::judge::Judge;
use crate::offline::verify::partition_index::PartitionIndex;
use crate::partition::dropped::DroppedPartitions;
use std::collections::BTreeMap;
use std::path::Path;
use vfs::Vfs;
use wal::Found;

/// Finds out where replay starts for the partitions whose manifest is made again, by their indexes.
///
/// # Errors
/// When the log cannot be listed, or is of a later version.
pub fn find_replay_starts(
    vfs: &dyn Vfs,
    wal: &Path,
    dropped: &DroppedPartitions,
    indexes: BTreeMap<Period, PartitionIndex>,
) -> Result<BTreeMap<Period, u64>> {
    let mut starts: BTreeMap<Period, u64> =
        indexes.keys().map(|period| (*period, dropped.from(*period))).collect();
    if starts.is_empty() {
        return Ok(starts);
    }
    let mut judge = Judge::new(indexes, dropped.clone(), None);
    wal::inspect(vfs, wal, &mut |found| {
        if let Found::Record(record) = found
            && let Some(period) = judge.has_row_of_the_dead(&record)
            && let Some(start) = starts.get_mut(&period)
        {
            *start = (*start).max(record.segment + 1);
        }
    })?;
    Ok(starts)
}
