//! What became of rows: how many were taken, which were refused and whose fault that is.

use crate::{Error, Result};
use model::{LabelError, Rejection, TimeRange};
use std::fmt;

/// Rejections that are told with their reasons; the rest is only counted.
pub(crate) const REJECTIONS_TOLD_MAX: usize = 100;

/// What became of a batch.
#[derive(Clone, Debug, Default)]
pub struct Appended {
    /// Samples taken.
    pub samples: u64,
    /// Rows refused, all of them counted.
    pub rejected: u64,
    /// The first refused rows, with reasons.
    pub rejections: Vec<Rejection>,
    /// Rows that must come again.
    pub(crate) postponed: Postponed,
}

/// Why a row was not taken.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Its own fault, told to the client: sent again it is refused again.
    Row(String),
    /// Trouble of the store that may pass: the row must come again.
    Store(String),
    /// The log has no room. Nothing of the row was applied.
    Log(wal::Error),
}

/// A result whose error says whose fault it is.
pub(crate) type Told<T> = std::result::Result<T, Refusal>;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Row(text) | Refusal::Store(text) => f.write_str(text),
            Refusal::Log(error) => error.fmt(f),
        }
    }
}

impl From<LabelError> for Refusal {
    fn from(error: LabelError) -> Refusal {
        Refusal::Row(error.to_string())
    }
}

impl From<index::Error> for Refusal {
    fn from(error: index::Error) -> Refusal {
        use index::Error as E;
        match error {
            // Ids that are used up do not come back while the partition lasts.
            E::InvalidMatcher { .. } | E::InvalidEntity(_) | E::Full { .. } => {
                Refusal::Row(error.to_string())
            }
            _ => Refusal::Store(error.to_string()),
        }
    }
}

impl Refusal {
    /// What to tell of the row, or, when it does not fit beside the others of its record, the error
    /// that ends the record: then the row comes again in the next one. What does not fit a record
    /// that `is_empty` never will.
    pub fn unless_full(self, is_empty: bool) -> std::result::Result<Refusal, wal::Error> {
        match self {
            Refusal::Log(error @ wal::Error::RecordTooLarge { .. }) if is_empty => {
                Ok(Refusal::Row(format!("labels and values are too large: {error}")))
            }
            Refusal::Log(error) => Err(error),
            told => Ok(told),
        }
    }
}

/// Rows that were not taken for trouble of the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Postponed {
    count: u64,
    /// Why the first one was not.
    reason: String,
}

impl Postponed {
    pub(crate) fn add(&mut self, reason: String) {
        if self.count == 0 {
            self.reason = reason;
        }
        self.count += 1;
    }

    /// The error that makes the client send all again, if there is need.
    pub(crate) fn check(self) -> Result<()> {
        let Postponed { count, reason } = self;
        match count {
            0 => Ok(()),
            _ => Err(Error::NewSeriesRefused { count, reason }),
        }
    }
}

impl Appended {
    /// Counts a row as refused, or as one that must come again.
    pub(crate) fn refuse(&mut self, position: u32, refusal: Refusal) {
        match refusal {
            Refusal::Row(reason) => self.reject(position, reason),
            Refusal::Store(reason) => self.postponed.add(reason),
            Refusal::Log(error) => self.postponed.add(error.to_string()),
        }
    }

    /// Rejects rows that have nothing wrong with them but what the reason says of all.
    pub(crate) fn reject_all(&mut self, positions: impl Iterator<Item = u32>, reason: &str) {
        positions.for_each(|position| self.reject(position, reason.to_string()));
    }

    /// Counts a row as refused, and tells why if there is room for it.
    pub(crate) fn reject(&mut self, position: u32, reason: String) {
        self.rejected += 1;
        if self.rejections.len() < REJECTIONS_TOLD_MAX {
            self.rejections.push(Rejection { position, reason });
        }
    }

    /// Rejects a row for its time.
    pub(crate) fn reject_time(&mut self, position: u32, timestamp: i64, accepted: &TimeRange) {
        self.reject(position, refused_time(timestamp, accepted));
    }
}

/// Why a time is not accepted that is not.
pub(crate) fn refused_time(timestamp: i64, accepted: &TimeRange) -> String {
    match timestamp < accepted.start {
        true => format!(
            "timestamp {timestamp} ns is older than the retention keeps (retention); raise \
             --retention to store it"
        ),
        false => format!(
            "timestamp {timestamp} ns is too far in the future (future-retention); check the \
             sender's clock and unit of time, or raise --future-retention"
        ),
    }
}
