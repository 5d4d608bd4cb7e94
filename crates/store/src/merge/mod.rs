//! Merge: several parts become one, sample by sample the same answer. Flush is a merge, too: of the
//! head's parts in memory into one on disk.
//!
//! ```text
//! run      blocks in ascending order, from all inputs at once
//!  sweep   one block: opens its slices in time order and cuts time into windows of bounded size
//!   window one window: decides which columns share timestamps, then column by column:
//!          decode each input's values once > copy the rows in merge order > encode
//! ```
//!
//! The merge order of a list of timestamps is computed once (see `order`) and serves all columns
//! that have it, so a sample costs its decoding, a short copy and its encoding.
//! Memory is bounded by the input slices that overlap one window, however long the history is.
//! Among equal timestamps of a series the input that comes later in the list wins.
//! Tombstones and the retention cutoff drop rows on the way. A slice that nothing overlaps and that
//! is big enough already is taken over byte for byte.
//!
//! Read in this order: [`mod@choose`] (what to merge, pure), this file, then `sweep`, `window`,
//! `order`, `decoded`, `track`.

pub mod choose;
mod decoded;
#[doc(hidden)]
pub mod fuzzing;
mod order;
mod sweep;
mod track;
mod window;

use crate::part::{Part, PartWriter};
use crate::{Error, Result};
use model::{TimeRange, Timestamp};
use roaring::RoaringBitmap;
use std::ops::ControlFlow;
use sweep::{Pending, Sweep};
use window::{Block, WindowMerger};

pub use choose::{ChooseLimits, PartFacts, choose, choose_all};

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
enum Stop {
    Failed(Error),
    Aborted,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

/// Tells the caller how far the merge has come, and asks whether to go on.
struct Pace<'a> {
    callback: &'a dyn Fn(u64) -> ControlFlow<()>,
    /// Samples dealt with so far.
    done: u64,
    /// The same, when the callback was last called.
    told: u64,
}

impl Pace<'_> {
    fn add(&mut self, samples: u64) -> std::result::Result<(), Stop> {
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

/// Merges `inputs`, oldest first, into `writer`; samples before `keep_from` are dropped.
///
/// `pace` is called about every 100,000 samples with the number of samples dealt with so far; it may
/// sleep, and stops the merge with [`ControlFlow::Break`].
///
/// # Errors
/// [`Error::Corrupt`] names the input that cannot be read; [`Error::Io`] when writing fails.
/// The writer then holds a fragment.
pub fn run(
    inputs: &[MergeInput<'_>],
    keep_from: Option<Timestamp>,
    writer: &mut PartWriter,
    pace: &dyn Fn(u64) -> ControlFlow<()>,
) -> Result<MergeOutcome> {
    run_within(&SliceLimits::DEFAULT, inputs, keep_from, writer, pace)
}

/// [`run`] with slices of another size.
///
/// # Errors
/// As [`run`].
pub fn run_within(
    limits: &SliceLimits,
    inputs: &[MergeInput<'_>],
    keep_from: Option<Timestamp>,
    writer: &mut PartWriter,
    pace: &dyn Fn(u64) -> ControlFlow<()>,
) -> Result<MergeOutcome> {
    assert!(0 < limits.rows_max && 0 < limits.samples_max && 0 < limits.column_samples_max);
    let mut merge = Merge {
        inputs,
        keep_from: keep_from.unwrap_or(Timestamp::MIN),
        cursors: vec![0; inputs.len()],
        series_end: 0,
        sweep: Sweep::new(inputs, *limits),
        merger: WindowMerger::new(inputs, *limits),
        pace: Pace { callback: pace, done: 0, told: 0 },
    };
    let faults: Vec<u32> = inputs.iter().map(|input| input.part.faults()).collect();
    let merged = merge.blocks(writer);
    // Zeros that the disk gave instead of pages must not get a fresh checksum.
    for (input, before) in inputs.iter().zip(faults) {
        input.part.check_faults(before, 0)?;
    }
    match merged {
        Err(Stop::Aborted) => Ok(MergeOutcome::Aborted),
        Err(Stop::Failed(error)) => Err(error),
        Ok(()) if writer.samples() == 0 => Ok(MergeOutcome::Empty),
        Ok(()) => Ok(MergeOutcome::Written { samples: writer.samples() }),
    }
}

/// A merge on its way through the blocks.
struct Merge<'a> {
    inputs: &'a [MergeInput<'a>],
    keep_from: Timestamp,
    /// For each input, the next slice.
    cursors: Vec<usize>,
    /// Where the series of the last block end.
    series_end: u64,
    sweep: Sweep<'a>,
    merger: WindowMerger<'a>,
    pace: Pace<'a>,
}

impl Merge<'_> {
    fn blocks(&mut self, writer: &mut PartWriter) -> std::result::Result<(), Stop> {
        while let Some(block) = self.next_block()? {
            let mut start = self.keep_from;
            while let Some(end) = self.sweep.next_cut(start)? {
                let window = TimeRange::new(start, end);
                let sources = self.sweep.sources();
                self.merger.merge(&block, sources, window, writer, &mut self.pace)?;
                if end == Timestamp::MAX {
                    break;
                }
                start = end + 1;
                self.sweep.consumed(start);
            }
            self.sweep.close();
            self.merger.close();
        }
        Ok(())
    }

    /// Hands the slices of the next block to the sweep.
    fn next_block(&mut self) -> Result<Option<Block>> {
        let heads = self.inputs.iter().zip(&self.cursors);
        let starts =
            heads.filter_map(|(input, &at)| Some(input.part.slices().get(at)?.series_start));
        let Some(series_start) = starts.min() else { return Ok(None) };
        let mut block: Option<Block> = None;
        let series_end = self.series_end;
        for (input_idx, input) in self.inputs.iter().enumerate() {
            let slices = input.part.slices();
            let mut at = self.cursors[input_idx];
            while let Some(slice) = slices.get(at).filter(|s| s.series_start == series_start) {
                let (capacity, columns) = (slice.capacity, slice.columns);
                let known = *block.get_or_insert(Block { series_start, capacity, columns });
                let is_shared = (known.capacity, known.columns) == (capacity, columns);
                if !is_shared || u64::from(series_start) < series_end {
                    return Err(input.part.corrupt_slice(at, "the block as other parts have it"));
                }
                if self.keep_from <= slice.max_ts {
                    self.sweep.add(Pending::new(input_idx, at, slice));
                }
                self.series_end = slice.series_end();
                at += 1;
            }
            self.cursors[input_idx] = at;
        }
        self.sweep.begin();
        Ok(block)
    }
}

#[cfg(test)]
mod tests;
