//! Samples that another database still has: what a store asks of it, and what becomes of its answers.
//!
//! ```text
//! a question ── begins before `until`? ─ no ─► partitions alone
//!                     │ yes
//!                     ├─► each database, at once ────────────────► series, cut to its `until` ─┐
//!                     └─► partitions ────────────────────────────────────────────► join ◄──────┘
//! ```
//!
//! - The store knows no network: who is asked is an [`Elsewhere`].
//! - Samples before `until` count wherever they are, those from `until` on only here. Of equal
//!   timestamps of one series the one that is here counts: it was copied, or written over.
//! - What does not come is missing from the answer, and the answer says so, as of rot
//!   ([`crate::Missing`]). What comes is not believed: series that nobody asked for, times outside
//!   of what was asked and samples out of order do not get in.
//! - More than a limit allows is an error, for a part of a series would be a lie.
//! - What the retention hides here is asked for again where somebody had it: a copy that was dropped
//!   is nowhere else.

pub(crate) mod asking;
pub(crate) mod fold;
pub(crate) mod joined;
pub(crate) mod moved;
pub(crate) mod waiting;

use crate::Limit;
use crate::base::locks::lock;
use fold::{Fold, FoldedRow};
use histogram::Histogram;
use model::{Labels, Matcher, TimeRange, Timestamp};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A database that has samples from before this store's time. Its methods block.
pub trait Elsewhere: Send + Sync {
    /// How people call it, as warnings have it.
    fn name(&self) -> &str;

    /// It has what is before this time. It moves within [`crate::Store::move_until`] alone.
    fn until(&self) -> Timestamp;

    /// Before which time it had everything when it was named, before [`Elsewhere::until`] moved.
    fn until_at_first(&self) -> Timestamp {
        self.until()
    }

    /// The series that match, with their samples.
    ///
    /// # Errors
    /// When it does not answer as it should, or with too much.
    fn select(&self, asked: &Asked<'_>) -> Answer<Vec<FoundSeries>>;

    /// The labels of the series that match, as far as its index tells.
    ///
    /// # Errors
    /// As [`Elsewhere::select`].
    fn series(&self, asked: &Asked<'_>) -> Answer<Vec<Labels>>;

    /// The names of their labels.
    ///
    /// # Errors
    /// As [`Elsewhere::select`].
    fn label_names(&self, asked: &Asked<'_>) -> Answer<Vec<String>>;

    /// The values of one of their labels.
    ///
    /// # Errors
    /// As [`Elsewhere::select`].
    fn label_values(&self, name: &str, asked: &Asked<'_>) -> Answer<Vec<String>>;

    /// What it makes itself of the samples of the series that match; `None` where it cannot, or makes
    /// something else of them than would be made here.
    ///
    /// # Errors
    /// As [`Elsewhere::select`].
    fn fold(&self, _fold: &Fold<'_>, _asked: &Asked<'_>) -> Answer<Option<Vec<FoldedRow>>> {
        Ok(None)
    }
}

/// What is asked.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Series that match any of these conjunctions; of none at all every series.
    pub sets: &'a [Vec<Matcher>],
    /// Their time. It ends before `until`.
    pub range: TimeRange,
    /// When nobody waits any longer.
    pub deadline: Option<Instant>,
    /// Series that the question may find.
    pub series_max: usize,
    /// What the question has taken so far.
    pub taken: &'a Taken,
    /// What the answer lacks.
    pub lacks: &'a Lacks,
}

/// Sentences about what one answer lacks.
const LACKS_MAX: usize = 8;

/// What one that answers leaves out of its answer, in words.
#[derive(Debug, Default)]
pub struct Lacks(Mutex<Vec<String>>);

impl Lacks {
    /// Notes that something is left out; those beyond a few are not told.
    pub fn note(&self, words: String) {
        let mut all = lock(&self.0);
        if all.len() < LACKS_MAX && !all.contains(&words) {
            all.push(words);
        }
    }

    /// All of it in one sentence; nothing of an answer that is whole.
    pub(crate) fn words(&self) -> Option<String> {
        let all = lock(&self.0);
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// What other databases have given for one question, so that it can be bounded.
#[derive(Debug, Default)]
pub struct Taken {
    samples: AtomicU64,
    bytes: AtomicU64,
}

impl Taken {
    /// Counts samples; how many there are by now.
    pub fn add_samples(&self, count: u64) -> u64 {
        self.samples.fetch_add(count, Ordering::Relaxed).saturating_add(count)
    }

    /// Counts bytes; how many there are by now.
    pub fn add_bytes(&self, count: u64) -> u64 {
        self.bytes.fetch_add(count, Ordering::Relaxed).saturating_add(count)
    }
}

/// A series that another database has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundSeries {
    /// Whose samples they are.
    pub labels: Labels,
    /// When its floats are, in nanoseconds.
    pub times: Vec<Timestamp>,
    /// Its floats.
    pub values: Vec<f64>,
    /// When its native histograms are.
    pub histogram_times: Vec<Timestamp>,
    /// Its native histograms.
    pub histograms: Vec<Histogram>,
    /// How exact its times are.
    pub grain: Grain,
}

/// How exactly a database knows times, which says whether a sample that is here is the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grain {
    /// To the millisecond: what is here within the same one was written to both.
    #[default]
    Milli,
    /// To the nanosecond.
    Nano,
}

/// What comes of asking.
pub type Answer<T> = Result<T, Fault>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is away, slow, or says what cannot be: who takes answers that are not whole goes without.
    Away(String),
    /// It has more than may be taken.
    TooMuch {
        /// By which limit.
        limit: Limit,
        /// What is counted.
        what: &'static str,
        /// How many there would be.
        value: u64,
        /// How many there may be.
        max: u64,
    },
}
