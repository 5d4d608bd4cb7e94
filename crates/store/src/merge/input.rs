//! What a merge is given: parts, how large slices become, who may stop it.

use crate::Error;
use crate::part::Part;
use model::TimeRange;
use roaring::RoaringBitmap;
use std::ops::ControlFlow;

/// One of the parts to merge.
pub struct MergeInput<'a> {
    /// The part.
    pub part: &'a Part,
    /// Its samples that have been deleted: these series within that range.
    pub tombstones: &'a [(RoaringBitmap, TimeRange)],
}

/// How a merge ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The writer holds all that is left and can be finished.
    Written {
        /// Samples in the output.
        samples: u64,
    },
    /// Nothing is left: no part is needed in place of the inputs.
    Empty,
    /// `pace` asked to stop. The writer holds a fragment: drop it and its file.
    Aborted,
}

/// How large the slices of a part become.
#[derive(Clone, Copy, Debug)]
pub struct SliceLimits {
    /// Rows of one slot: what a query for one series may have to decode in one go.
    pub rows_max: usize,
    /// Samples of one column: what a merge has to hold in memory for each input.
    pub samples_max: usize,
    /// Samples of one column at the very most: columns with their own timestamps can be larger
    /// than the shared ones by which windows are cut.
    pub column_samples_max: usize,
}

impl SliceLimits {
    /// The limits of all parts; tests use smaller ones.
    pub const DEFAULT: SliceLimits =
        SliceLimits { rows_max: 8192, samples_max: 1 << 20, column_samples_max: 1 << 22 };
}

// What the codec refuses must never be asked of it.
const _: () = assert!(SliceLimits::DEFAULT.column_samples_max * 2 <= codec::column::SAMPLES_MAX);

/// Samples between two calls of `pace`.
const PACE_SAMPLES: u64 = 1 << 17;

/// Why a merge does not go on.
pub(super) enum Stop {
    Failed(Error),
    Aborted,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

/// Tells the caller how far the merge has come, and asks whether to go on.
pub(super) struct Pace<'a> {
    pub callback: &'a dyn Fn(u64) -> ControlFlow<()>,
    /// Samples dealt with so far.
    pub done: u64,
    /// The same, when the callback was last called.
    pub told: u64,
}

impl Pace<'_> {
    pub fn add(&mut self, samples: u64) -> Result<(), Stop> {
        self.done += samples;
        if self.done - self.told < PACE_SAMPLES {
            return Ok(());
        }
        self.told = self.done;
        match (self.callback)(self.done) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Aborted),
        }
    }
}
