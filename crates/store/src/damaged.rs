//! What of a store is damaged: noted as it is met, and whole months of which nothing is read.
//!
//! Damage costs what it hits. A part that does not open is left out of its month
//! ([`crate::partition::LostPart`]); a month whose manifest, index or log records cannot be read is
//! left out of the store: it is kept beside the partitions as a [`DamagedMonth`]. Nothing of it is
//! changed, appends to it are refused, and its records stay in the log. Only retention drops it.

use crate::span::Month;
use crate::store::{Store, lock};
use crate::{Error, Result};
use model::TimeRange;
use std::sync::Mutex;

/// Notes that are kept; of a disk that rots all over the first ones say enough.
const NOTES_MAX: usize = 10_000;

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

/// One thing found damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamageNote {
    /// The month it is of, if it is of one.
    pub month: Option<Month>,
    /// The file.
    pub file: String,
    /// The times that it may be missing from; `None` when that is not known.
    pub span: Option<TimeRange>,
    /// What is wrong, in words.
    pub what: String,
}

/// What was found damaged since the store was opened.
#[derive(Debug, Default)]
pub struct DamageNotes {
    notes: Mutex<Vec<DamageNote>>,
}

impl DamageNotes {
    /// Notes damage; the same is noted once.
    pub fn note_damage(
        &self,
        month: Option<Month>,
        file: String,
        span: Option<TimeRange>,
        what: String,
    ) {
        let note = DamageNote { month, file, span, what };
        let mut notes = lock(&self.notes);
        if notes.len() < NOTES_MAX && !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// All notes, oldest first.
    pub fn all(&self) -> Vec<DamageNote> {
        lock(&self.notes).clone()
    }
}

impl DamagedMonth {
    /// The error of whoever needs the month.
    pub(crate) fn error(&self) -> Error {
        Error::Damaged { what: format!("{} is damaged: {}", self.month.name(), self.reason) }
    }
}

impl Store {
    /// The months of which nothing is read, oldest first.
    pub fn damaged_months(&self) -> Vec<DamagedMonth> {
        lock(&self.damaged).values().cloned().collect()
    }

    /// What was found damaged since the store was opened.
    pub fn damage_notes(&self) -> Vec<DamageNote> {
        self.notes.all()
    }

    /// Fails when something of these times is in a month that cannot be read.
    pub(crate) fn check_whole(&self, range: &TimeRange) -> Result<()> {
        let damaged = lock(&self.damaged);
        let hit = damaged.values().find(|damaged| damaged.month.range().overlaps(range));
        hit.map_or(Ok(()), |damaged| Err(damaged.error()))
    }
}
