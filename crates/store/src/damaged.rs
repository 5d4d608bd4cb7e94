//! Whole partitions of which nothing is read.
//!
//! Damage costs what it hits. A part that does not open is left out of its partition
//! ([`crate::partition::LostPart`]); a partition whose manifest, index or log records cannot be
//! read is left out of the store: it is kept beside the partitions as a [`DamagedPartition`].
//! Nothing of it is changed, appends to it are refused, and its records stay in the log. Only
//! retention drops it.

use crate::damage::{Damage, DamagePlace};
use crate::partition::{LostPart, Partition};
use crate::period::Period;
use crate::store::{PARTITIONS_DIR, Store, lock};
use crate::{Error, Result};
use model::TimeRange;

/// A partition of which nothing is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPartition {
    /// The partition.
    pub period: Period,
    /// What is wrong, in words.
    pub reason: String,
    /// Records in log segments before this one are in its parts, as far as that is known.
    pub(crate) wal_from: u64,
    /// The oldest log segment with a record of the partition, which must stay.
    pub(crate) log_from: Option<u64>,
}

impl DamagedPartition {
    /// The same as an entry of the damage book.
    pub(crate) fn damage(&self) -> Damage {
        let file = format!("{PARTITIONS_DIR}/{}", self.period.name());
        Damage::of_partition(self.period, DamagePlace::Partition, file, self.reason.clone())
    }

    /// The error of whoever needs the partition.
    pub(crate) fn error(&self) -> Error {
        Error::Damaged { what: format!("{} is damaged: {}", self.period.name(), self.reason) }
    }
}

impl LostPart {
    /// The same as an entry of the damage book, where files are `relative` to the store's directory.
    pub(crate) fn damage(&self, period: Period, relative: String) -> Damage {
        Damage::of_partition(period, DamagePlace::Part, relative, self.reason.clone())
    }
}

impl Store {
    /// Takes a partition out of use whose rows cannot be sealed, as a start would that meets their
    /// records: so memory and log do not grow with what can never be flushed. Nothing of it is read
    /// or changed from now on, its records stay in the log, and whoever appends is told to come again.
    /// The caller holds its `change` lock.
    pub(crate) fn give_up(&self, partition: &Partition, reason: &str) {
        let (wal_from, log_from) = {
            // Under the lock, so that no record comes after the look.
            let state = partition.write();
            if partition.is_dropped() {
                return;
            }
            partition.set_dropped();
            (state.manifest.wal_from, state.log_needed_from())
        };
        let (period, reason) = (partition.period, reason.to_string());
        let damaged = DamagedPartition { period, reason, wal_from, log_from };
        self.damage.note(damaged.damage(), self.vfs.now());
        // First here: who looks at both, as the shortening of the log does, looks here last.
        lock(&self.damaged).insert(period, damaged);
        self.partitions.write().unwrap_or_else(|p| p.into_inner()).remove(&period);
    }

    /// What nobody reads of a range, because it cannot be opened: partitions, and parts of others.
    pub(crate) fn lost_in(&self, range: &TimeRange) -> Vec<Damage> {
        let partitions = lock(&self.damaged);
        let overlapping = partitions.values().filter(|one| one.period.range().overlaps(range));
        let mut lost: Vec<Damage> = overlapping.map(DamagedPartition::damage).collect();
        drop(partitions);
        let of_partition = |partition: &Partition| -> Vec<Damage> {
            let state = partition.read();
            let relative = |part: &LostPart| self.damage.relative(&part.file);
            state
                .lost_parts
                .iter()
                .map(|part| part.damage(partition.period, relative(part)))
                .collect()
        };
        for partition in self.partitions_in(range) {
            lost.extend(of_partition(&partition));
        }
        lost
    }

    /// The partitions of which nothing is read, oldest first.
    pub fn damaged_partitions(&self) -> Vec<DamagedPartition> {
        lock(&self.damaged).values().cloned().collect()
    }

    /// Fails when something of these times is in a partition that cannot be read.
    pub(crate) fn check_whole(&self, range: &TimeRange) -> Result<()> {
        let damaged = lock(&self.damaged);
        let hit = damaged.values().find(|damaged| damaged.period.range().overlaps(range));
        hit.map_or(Ok(()), |damaged| Err(damaged.error()))
    }
}
