//! Where samples come from: the seam between the engine and the store.
//!
//! Contract: for the same stored series, [`SeriesSet`] lists them in the same order on every
//! call, whatever has been flushed or merged meanwhile. Sums add in that order, so answers are
//! the same bit for bit.

use crate::error::Limit;
use histogram::Histogram;
use model::{Labels, Matcher, TimeRange};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use store::{Asks, Fold, Folded, Missing};

/// Bounds on one selection.
#[derive(Clone)]
pub struct SelectLimits {
    /// Series that may match.
    pub series_max: usize,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Set by another thread to make the query stop.
    pub cancelled: Option<Arc<AtomicBool>>,
    /// What selecting and reading may cost, about, in samples; a source that cannot tell ignores it.
    pub cost_max: u64,
    /// Who is told what is missing; a source that finds something missing and can tell nobody fails.
    pub missing: Option<Arc<Missing>>,
    /// Who is asked.
    pub asks: Asks,
    /// Label filters that confine the selection: each series must match at least one. Empty: no restriction.
    pub filters: Arc<[Vec<Matcher>]>,
}

/// Receives a series' index, timestamps and values.
pub type SampleSink<'s> = dyn FnMut(usize, &[i64], &[f64]) + 's;

/// Receives a series' index, the timestamps and values of its floats, and the timestamps and
/// values of its histograms.
pub type MixedSink<'s> = dyn FnMut(usize, &[i64], &[f64], &[i64], &[Histogram]) + 's;

/// Receives a series' index and labels.
pub type LabelSink<'s> = dyn FnMut(usize, Labels) + 's;

/// Why a source gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The deadline passed.
    #[error("the deadline passed")]
    DeadlineExceeded,
    /// The query was cancelled.
    #[error("the query was cancelled")]
    Cancelled,
    /// More than a limit allows.
    #[error("{message}")]
    LimitExceeded {
        /// Which.
        limit: Limit,
        /// How many there are, and how many there may be.
        message: String,
    },
    /// Selected series are gone: select again.
    #[error("series were deleted while they were read")]
    Changed,
    /// A matcher is not valid.
    #[error("{0}")]
    Invalid(String),
    /// It could not be read.
    #[error("{0}")]
    Failed(String),
}

/// Series read at once from a source that does not care.
const BATCH_LEN: usize = 64;

/// Something that series can be selected from.
pub trait Source: Sync {
    /// The series that match any of `sets` and may have samples in `range`.
    ///
    /// # Errors
    /// A limit, or a failed read.
    fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Box<dyn SeriesSet + '_>, SourceError>;

    /// The start timestamps of the series that match any of `sets`: a set whose labels are those of
    /// the series, and whose values are milliseconds since the epoch at the times of the samples
    /// that have one. `None` when there are none.
    ///
    /// # Errors
    /// A limit, or a failed read.
    fn select_starts(
        &self,
        _sets: &[Vec<Matcher>],
        _range: TimeRange,
        _limits: &SelectLimits,
    ) -> Result<Option<Box<dyn SeriesSet + '_>>, SourceError> {
        Ok(None)
    }

    /// What another database makes itself of the series that match any of `sets`, at the first steps:
    /// no series of theirs have to be read. `None` where it cannot.
    ///
    /// # Errors
    /// A limit, or a failed read.
    fn fold(
        &self,
        _sets: &[Vec<Matcher>],
        _fold: &Fold<'_>,
        _limits: &SelectLimits,
    ) -> Result<Option<Folded>, SourceError> {
        Ok(None)
    }

    /// What can be asked about changes; `None` when nobody notes them, so that no answer may be
    /// kept.
    fn changes(&self) -> Option<&dyn ChangeClock> {
        None
    }
}

/// Tells when the samples of a source change.
pub trait ChangeClock {
    /// A version to ask [`ChangeClock::changed_since`] with, later; to be taken before a selection.
    fn take_version(&self) -> u64;

    /// Times in `range`, in nanoseconds, that hold every sample which reads differently than to a
    /// selection made after `version` was taken. They may overlap.
    fn changed_since(&self, version: u64, range: &TimeRange) -> Vec<TimeRange>;

    /// Whether selections within `range` list the series they share in the same order, whatever
    /// part of it each is for.
    fn keeps_order(&self, range: &TimeRange) -> bool;
}

/// Selected series and a frozen view of their samples.
pub trait SeriesSet: Send + Sync {
    /// How many series there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many series are best read at once: their samples should fit a core's cache.
    fn batch_len(&self) -> usize {
        BATCH_LEN
    }

    /// The labels of series `idx`.
    ///
    /// # Errors
    /// A failed read.
    fn labels(&self, idx: usize) -> Result<Labels, SourceError>;

    /// Calls `sink(idx, labels)` for each series of `range`, in order. When names are `wanted`, the
    /// labels of others may be missing. `sink` must not come back to the source.
    ///
    /// # Errors
    /// A failed read.
    fn read_labels(
        &self,
        range: Range<usize>,
        wanted: Option<&[&str]>,
        sink: &mut LabelSink<'_>,
    ) -> Result<(), SourceError>;

    /// Calls `sink(idx, timestamps, values)` once for each series of `range`, in order, with its
    /// samples in the selected time, oldest first; times in nanoseconds.
    ///
    /// # Errors
    /// A failed read.
    fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<(), SourceError>;

    /// Whether any of the series may have native histograms. While false, `read` is all there is;
    /// else `read` gives the floats and leaves the histograms out.
    fn has_histograms(&self) -> bool {
        false
    }

    /// As [`SeriesSet::read`], with the histograms of each series apart from its floats: calls
    /// `sink(idx, timestamps, values, histogram_timestamps, histograms)` once for each series of
    /// `range`, in order. A timestamp is in one list only. Stale markers end both: they are in the
    /// floats.
    ///
    /// # Errors
    /// A failed read.
    fn read_mixed(&self, range: Range<usize>, sink: &mut MixedSink<'_>) -> Result<(), SourceError> {
        self.read(range, &mut |idx, timestamps, values| sink(idx, timestamps, values, &[], &[]))
    }
}
