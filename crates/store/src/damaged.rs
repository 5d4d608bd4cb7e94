//! Whole months of which nothing is read.
//!
//! Damage costs what it hits. A part that does not open is left out of its month
//! ([`crate::partition::LostPart`]); a month whose manifest, index or log records cannot be read is
//! left out of the store: it is kept beside the partitions as a [`DamagedMonth`]. Nothing of it is
//! changed, appends to it are refused, and its records stay in the log. Only retention drops it.

use crate::damage::{Damage, DamagePlace};
use crate::partition::{LostPart, Partition};
use crate::span::Month;
use crate::store::{PARTITIONS_DIR, Store, lock};
use crate::{Error, Result};
use model::TimeRange;

/// A month of which nothing is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedMonth {
    /// The month.
    pub month: Month,
    /// What is wrong, in words.
    pub reason: String,
    /// Records in log segments before this one are in its parts, as far as that is known.
    pub(crate) wal_from: u64,
    /// The oldest log segment with a record of the month, which must stay.
    pub(crate) log_from: Option<u64>,
}

impl DamagedMonth {
    /// The same as an entry of the damage book.
    pub(crate) fn damage(&self) -> Damage {
        let file = format!("{PARTITIONS_DIR}/{}", self.month.name());
        Damage::of_month(self.month, DamagePlace::Month, file, self.reason.clone())
    }

    /// The error of whoever needs the month.
    pub(crate) fn error(&self) -> Error {
        Error::Damaged { what: format!("{} is damaged: {}", self.month.name(), self.reason) }
    }
}

impl LostPart {
    /// The same as an entry of the damage book, where files are `relative` to the store's directory.
    pub(crate) fn damage(&self, month: Month, relative: String) -> Damage {
        Damage::of_month(month, DamagePlace::Part, relative, self.reason.clone())
    }
}

impl Store {
    /// What nobody reads of a range, because it cannot be opened: months, and parts of others.
    pub(crate) fn lost_in(&self, range: &TimeRange) -> Vec<Damage> {
        let months = lock(&self.damaged);
        let overlapping = months.values().filter(|one| one.month.range().overlaps(range));
        let mut lost: Vec<Damage> = overlapping.map(DamagedMonth::damage).collect();
        drop(months);
        let of_partition = |partition: &Partition| -> Vec<Damage> {
            let state = partition.read();
            let relative = |part: &LostPart| self.damage.relative(&part.file);
            state
                .lost_parts
                .iter()
                .map(|part| part.damage(partition.month, relative(part)))
                .collect()
        };
        for partition in self.partitions_in(range) {
            lost.extend(of_partition(&partition));
        }
        lost
    }

    /// The months of which nothing is read, oldest first.
    pub fn damaged_months(&self) -> Vec<DamagedMonth> {
        lock(&self.damaged).values().cloned().collect()
    }

    /// Fails when something of these times is in a month that cannot be read.
    pub(crate) fn check_whole(&self, range: &TimeRange) -> Result<()> {
        let damaged = lock(&self.damaged);
        let hit = damaged.values().find(|damaged| damaged.month.range().overlaps(range));
        hit.map_or(Ok(()), |damaged| Err(damaged.error()))
    }
}
