//! From where on the log is replayed for a partition whose manifest is made again.
//!
//! All records that the log still has are replayed. Those that are in parts, too, do
//! no harm: the log is an end of history, in order, so the last value of each sample wins as it
//! did; registrations that segments hold are skipped. But a record may have a row of an entity that
//! was deleted since and left the index, which replay would refuse. Who leaves the index was
//! flushed before, with all records of the partition up to that segment: replay starts behind it,
//! and not before the segment that `dropped` says if the partition was dropped and made anew.

use super::partition::PartitionRepair;
use crate::Result;
use crate::dropped::DroppedPartitions;
use crate::period::Period;
use crate::verify::judge::Judge;
use std::collections::BTreeMap;
use std::path::Path;
use vfs::Vfs;
use wal::Found;

/// Finds out where replay starts for the partitions whose manifest is made again.
///
/// # Errors
/// When the log cannot be listed, or is of a later version.
pub fn find_wal_from(
    vfs: &dyn Vfs,
    wal: &Path,
    dropped: DroppedPartitions,
    repairs: &mut [PartitionRepair],
) -> Result<()> {
    let indexes: BTreeMap<Period, _> = repairs
        .iter()
        .filter(|repair| repair.is_rebuilt())
        .map(|repair| (repair.period, repair.index_as_found()))
        .collect();
    if indexes.is_empty() {
        return Ok(());
    }
    let mut judge = Judge::new(indexes, dropped.clone(), None);
    let mut from: BTreeMap<Period, u64> = BTreeMap::new();
    wal::inspect(vfs, wal, &mut |found| {
        if let Found::Record(record) = found
            && let Some(period) = judge.has_row_of_the_dead(&record)
        {
            from.insert(period, record.segment + 1);
        }
    })?;
    for repair in repairs.iter_mut().filter(|repair| repair.is_rebuilt()) {
        let after_dead = from.get(&repair.period).copied().unwrap_or(0);
        repair.manifest.wal_from = after_dead.max(dropped.from(repair.period));
    }
    Ok(())
}
