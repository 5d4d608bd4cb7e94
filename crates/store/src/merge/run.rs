//! Runs a merge: blocks in ascending order, from all inputs at once.

use super::input::{MergeInput, MergeOutcome, Pace, SliceLimits, Stop};
use super::sweep::{Pending, Sweep};
use super::window::{Block, WindowMerger};
use crate::Result;
use crate::part::slices::SliceIter;
use crate::part::{Part, PartWriter, Slice};
use model::{TimeRange, Timestamp};
use std::ops::ControlFlow;

/// Merges `inputs`, oldest first, into `writer`; samples before `keep_from` are dropped.
///
/// `pace` is called about every 100,000 samples with the number of samples dealt with so far; it may
/// sleep, and stops the merge with [`ControlFlow::Break`].
///
/// # Errors
/// [`crate::Error::Corrupt`] names the input that cannot be read; [`crate::Error::Io`] when writing fails.
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
        cursors: inputs.iter().map(|input| Cursor::new(input.part)).collect(),
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

/// A merge on its way through the slices of one input.
struct Cursor<'a> {
    slices: SliceIter<'a>,
    /// The next one, and its index.
    head: Option<Slice>,
    idx: usize,
}

impl<'a> Cursor<'a> {
    fn new(part: &'a Part) -> Cursor<'a> {
        let mut slices = part.slices().iter_from(0);
        Cursor { head: slices.next(), slices, idx: 0 }
    }

    fn step(&mut self) {
        self.head = self.slices.next();
        self.idx += 1;
    }
}

/// A merge on its way through the blocks.
struct Merge<'a> {
    inputs: &'a [MergeInput<'a>],
    keep_from: Timestamp,
    /// For each input, its next slice.
    cursors: Vec<Cursor<'a>>,
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
                assert!(start <= end, "each cut is behind the one before");
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
        let ends = self.inputs.iter().map(|input| input.part.slices().len());
        let reached = self.cursors.iter().map(|cursor| cursor.idx);
        assert!(ends.eq(reached), "every slice had its turn");
        Ok(())
    }

    /// Hands the slices of the next block to the sweep.
    fn next_block(&mut self) -> Result<Option<Block>> {
        let heads = self.cursors.iter().filter_map(|cursor| cursor.head);
        let starts = heads.map(|slice| slice.series_start);
        let Some(series_start) = starts.min() else { return Ok(None) };
        let mut block: Option<Block> = None;
        let series_end = self.series_end;
        let inputs = self.inputs.iter().zip(&mut self.cursors);
        for (input_idx, (input, cursor)) in inputs.enumerate() {
            while let Some(slice) = cursor.head.filter(|s| s.series_start == series_start) {
                let at = cursor.idx;
                let (capacity, columns) = (slice.capacity, slice.columns);
                let known = *block.get_or_insert(Block { series_start, capacity, columns });
                let is_shared = (known.capacity, known.columns) == (capacity, columns);
                if !is_shared || u64::from(series_start) < series_end {
                    return Err(input.part.corrupt_slice(at, "the block as other parts have it"));
                }
                if self.keep_from <= slice.max_ts {
                    self.sweep.add(Pending::new(input_idx, at, &slice));
                }
                self.series_end = slice.series_end();
                cursor.step();
            }
        }
        self.sweep.begin();
        Ok(block)
    }
}
