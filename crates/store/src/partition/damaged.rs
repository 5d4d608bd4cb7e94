//! Whole partitions of which nothing is read.
//!
//! Damage costs what it hits. A part that does not open is left out of its partition
//! ([`crate::partition::disk::live_part::LostPart`]); a partition whose manifest, index or log records cannot be
//! read is left out of the store: it is kept beside the partitions as a [`DamagedPartition`].
//! Nothing of it is changed, appends to it are refused, and its records stay in the log. Only
//! retention drops it.

use crate::base::damage::{Damage, DamagePlace};
use crate::base::error::Error;
use crate::base::file_names::PARTITIONS_DIR;
use crate::base::period::Period;
use crate::partition::disk::live_part::LostPart;

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
    /// The same as an entry of the list of damage.
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
    /// The same as an entry of the list of damage, where files are `relative` to the store's directory.
    pub(crate) fn damage(&self, period: Period, relative: String) -> Damage {
        Damage::of_partition(period, DamagePlace::Part, relative, self.reason.clone())
    }
}
