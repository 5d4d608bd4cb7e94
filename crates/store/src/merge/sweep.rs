//! The sweep: opens a block's input slices in time order and cuts time into windows.
//!
//! A window may end anywhere before the first slice that is not open yet, because up to there every
//! sample is known. Slices are opened until the window is full; where the inputs follow each other
//! in time the cut falls between them, so that no slice is decoded twice, and only where one cut
//! has to go through slices their timestamps are counted.
//!
//! Invariants: every pending slice that begins before the cut is open; every open slice reaches
//! beyond the last cut; a window holds at least one sample of some input.

use super::input::{MergeInput, SliceLimits};
use super::track::{Count, Track};
use crate::Result;
use crate::base::narrow::to_usize;
use crate::part::reader::Check;
use crate::part::{ColumnTimes, Part, Slice};

/// Timestamps drawn to find a cut.
const DRAWN_COUNT: usize = 1024;

/// An input slice that is not open yet.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    input: usize,
    idx: usize,
    min_ts: i64,
    max_ts: i64,
    /// What it probably holds.
    estimate: Count,
}

impl Pending {
    /// Slice `idx` of the input.
    pub fn new(input: usize, idx: usize, slice: &Slice) -> Pending {
        assert!(0 < slice.columns && 0 < slice.slots, "a directory has no empty slices");
        let samples = to_usize((slice.samples / u64::from(slice.columns)).max(1));
        let rows = samples.div_ceil(slice.slots as usize);
        let (min_ts, max_ts) = (slice.min_ts, slice.max_ts);
        Pending { input, idx, min_ts, max_ts, estimate: Count { samples, rows } }
    }
}

/// An input slice whose timestamps are decoded.
#[derive(Debug)]
pub struct OpenSlice {
    /// Which input; the higher one wins.
    pub input: usize,
    /// Which of its slices.
    pub idx: usize,
    /// The slice's earliest timestamp.
    pub min_ts: i64,
    /// The slice's latest timestamp.
    pub max_ts: i64,
    /// The shared timestamps; without any, those of the largest column, to find cuts by.
    pub track: Track,
    /// Upper bound of what is still to be merged.
    rest: Count,
}

/// The slices of one block.
pub struct Sweep<'a> {
    inputs: &'a [MergeInput<'a>],
    limits: SliceLimits,
    pending: Vec<Pending>,
    /// Index of the first pending slice that is not open.
    next: usize,
    open: Vec<OpenSlice>,
    /// Tracks to be used again.
    spare: Vec<Track>,
    drawn: Vec<i64>,
}

impl<'a> Sweep<'a> {
    /// A sweep without slices.
    pub fn new(inputs: &'a [MergeInput<'a>], limits: SliceLimits) -> Sweep<'a> {
        Sweep {
            inputs,
            limits,
            pending: Vec::new(),
            next: 0,
            open: Vec::new(),
            spare: Vec::new(),
            drawn: Vec::new(),
        }
    }

    /// Adds a slice of the next block.
    pub fn add(&mut self, pending: Pending) {
        assert!(self.open.is_empty() && self.next == 0, "the last block was closed");
        self.pending.push(pending);
    }

    /// Starts with the slices that were added.
    pub fn begin(&mut self) {
        assert!(self.open.is_empty() && self.next == 0, "the last block was closed");
        self.pending.sort_unstable_by_key(|slice| (slice.min_ts, slice.input));
    }

    /// Ends the block.
    pub fn close(&mut self) {
        self.spare.extend(self.open.drain(..).map(|source| source.track));
        self.pending.clear();
        self.next = 0;
    }

    /// The open slices, by input; not all of them reach into the window.
    pub fn sources(&mut self) -> &[OpenSlice] {
        self.open.sort_unstable_by_key(|source| (source.input, source.idx));
        &self.open
    }

    /// Closes the slices that end before `start`: everything up to there is merged.
    pub fn consumed(&mut self, start: i64) {
        let spare = &mut self.spare;
        self.open.retain_mut(|source| {
            if start <= source.max_ts {
                if source.min_ts < start {
                    source.rest = source.track.count(start, i64::MAX);
                }
                return true;
            }
            spare.push(std::mem::take(&mut source.track));
            false
        });
    }

    /// The last instant of the window that begins at `start`, after opening all slices that have a
    /// sample in it; `None` when nothing is left.
    pub fn next_cut(&mut self, start: i64) -> Result<Option<i64>> {
        loop {
            let bound = self.open.iter().fold(Count::default(), |sum, s| sum.plus(s.rest));
            let Some(next) = self.pending.get(self.next).copied() else {
                return Ok(match self.open.is_empty() {
                    true => None,
                    false if bound.fits(&self.limits) => Some(i64::MAX),
                    false => Some(self.cut(start, i64::MAX)),
                });
            };
            let is_tight = !bound.plus(next.estimate).fits(&self.limits);
            // Up to here the open slices tell all.
            if let Some(known) = next.min_ts.checked_sub(1).filter(|&known| start <= known)
                && is_tight
            {
                let count = self.count(start, known);
                if !count.fits(&self.limits) {
                    return Ok(Some(self.cut(start, known)));
                }
                if count.is_ample(&self.limits) {
                    return Ok(Some(known));
                }
            }
            self.open_next(next)?;
        }
    }

    fn open_next(&mut self, next: Pending) -> Result<()> {
        let part = self.inputs[next.input].part;
        let mut track = self.spare.pop().unwrap_or_default();
        match part.shared_times_with(next.idx, Check::Always)? {
            Some(reader) => track.load(part, next.idx, &reader)?,
            None => {
                let column = largest_column(part, next.idx);
                let reader = part.own_times_with(next.idx, column, Check::Always)?;
                track.load(part, next.idx, &reader)?;
            }
        }
        let rest = track.count(i64::MIN, i64::MAX);
        self.next += 1;
        let Pending { input, idx, min_ts, max_ts, .. } = next;
        self.open.push(OpenSlice { input, idx, min_ts, max_ts, track, rest });
        Ok(())
    }

    fn count(&self, start: i64, end: i64) -> Count {
        let reach_in = self.open.iter().filter(|source| source.min_ts <= end);
        reach_in.fold(Count::default(), |sum, source| sum.plus(source.track.count(start, end)))
    }

    /// Where to end a window between `start` and `known` that would otherwise be too large: the
    /// samples are dealt out evenly to as few windows as will hold them.
    fn cut(&mut self, start: i64, known: i64) -> i64 {
        assert!(start <= known && !self.open.is_empty(), "there is something to cut");
        let all = self.count(start, known);
        if all.fits(&self.limits) {
            return known;
        }
        let by_samples = all.samples.div_ceil(self.limits.samples_max);
        let by_rows = all.rows.div_ceil(self.limits.rows_max);
        let target = all.samples.div_ceil(by_samples.max(by_rows));
        self.drawn.clear();
        let share = DRAWN_COUNT / self.open.len() + 1;
        for source in &self.open {
            source.track.draw(start, known, share, &mut self.drawn);
        }
        self.drawn.sort_unstable();
        let fits = |end: i64| {
            let count = self.count(start, end);
            count.fits(&self.limits) && count.samples <= target
        };
        let fitting = self.drawn.partition_point(|&end| fits(end));
        match fitting.checked_sub(1) {
            Some(last) => self.drawn[last],
            None => self.cut_exactly(start, known),
        }
    }

    /// The latest cut before which at most a slice's worth lies, but at least one timestamp.
    fn cut_exactly(&self, start: i64, known: i64) -> i64 {
        debug_assert!(0 < self.count(start, known).samples, "there is something to cut");
        let (mut low, mut high) = (start, known);
        while low < high {
            let middle = low + (high.abs_diff(low) / 2) as i64;
            if 0 < self.count(start, middle).samples { high = middle } else { low = middle + 1 }
        }
        // Now `low` is the first timestamp there is.
        let mut high = known;
        while low < high {
            // Rounded up, so that it ends.
            let middle = high - (high.abs_diff(low) / 2) as i64;
            if self.count(start, middle).fits(&self.limits) {
                low = middle
            } else {
                high = middle - 1
            }
        }
        low
    }
}

/// The column with the most bytes among those with their own timestamps.
fn largest_column(part: &Part, idx: usize) -> usize {
    let columns = 0..part.slice(idx).columns as usize;
    let own = columns.filter(|&column| part.column_times(idx, column) == ColumnTimes::Own);
    own.max_by_key(|&column| part.column_size(idx, column)).unwrap_or(0)
}
