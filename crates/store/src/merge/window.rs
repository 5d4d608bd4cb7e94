//! Merges one window of one block: all columns, between two instants.
//!
//! Columns fall into *classes* with the same timestamps. The regular class takes the shared
//! timestamps of the same inputs; a column with its own timestamps anywhere, or with deleted
//! samples, is a class of its own. If there is more than one class, their merged timestamps are
//! compared, and the list that most columns have becomes the shared one.

use super::decoded::{Decoded, OpenColumn};
use super::input::{MergeInput, Pace, SliceLimits, Stop};
use super::order::{Order, View};
use super::sweep::OpenSlice;
use crate::Result;
use crate::base::narrow::{to_ordinal, to_u32};
use crate::part::{ColumnTimes, PartWriter, SliceKey};
use model::TimeRange;
use roaring::RoaringBitmap;
use std::ops::Range;

/// The block that is being merged.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Ordinal of its first series.
    pub series_start: u32,
    /// Slots it has room for.
    pub capacity: u32,
    /// Its columns.
    pub columns: u32,
}

impl Block {
    /// The ordinal of slot 0 in the column.
    fn ordinal(&self, column: usize) -> u32 {
        self.series_start + to_u32(column) * self.capacity
    }

    /// The ordinals of all series.
    fn series(&self) -> Range<u64> {
        let start = u64::from(self.series_start);
        start..start + u64::from(self.capacity) * u64::from(self.columns)
    }

    /// The ordinals of one column.
    fn column_series(&self, column: usize) -> Range<u64> {
        let start = u64::from(self.ordinal(column));
        start..start + u64::from(self.capacity)
    }
}

/// Windows that a source must fill to be kept decoded.
const LONG_WINDOWS: usize = 4;

/// Columns that have the same timestamps.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// One of them.
    column: usize,
    /// Which inputs have samples, mixed into a number; `None` for a column that is alone.
    key: Option<u64>,
    /// How many there are.
    count: usize,
    /// Merged samples of one column, once known.
    samples: usize,
    /// Hash of the merged timestamps, once known.
    hash: u64,
}

/// Merges windows, one after the other; holds the buffers.
pub struct WindowMerger<'a> {
    inputs: &'a [MergeInput<'a>],
    limits: SliceLimits,
    classes: Vec<Class>,
    /// The class of each column; `None` without samples.
    class_of: Vec<Option<usize>>,
    /// The merge order of the shared timestamps.
    shared: Order,
    /// The merge order of the class that was needed last.
    other: Order,
    decoded: Decoded,
    gathered: Vec<f64>,
}

/// A window and what reaches into it.
struct Window<'a> {
    block: Block,
    range: TimeRange,
    /// By input.
    sources: Vec<&'a OpenSlice>,
    /// Slots that any of them knows.
    slots: usize,
    /// Samples of one source from which on it is kept decoded for the next windows.
    long_from: usize,
}

impl<'a> Window<'a> {
    /// The window with those of `sources` that reach into it.
    fn new(
        block: Block,
        range: TimeRange,
        sources: impl Iterator<Item = &'a OpenSlice>,
        limits: &SliceLimits,
    ) -> Window<'a> {
        let reach_in = |s: &&OpenSlice| s.min_ts <= range.end && range.start <= s.max_ts;
        let sources: Vec<&OpenSlice> = sources.filter(reach_in).collect();
        let slots = sources.iter().map(|s| s.track.lens().len()).max().unwrap_or(0);
        let window_samples = limits.samples_max.min(limits.rows_max.saturating_mul(slots));
        let long_from = window_samples.saturating_mul(LONG_WINDOWS);
        Window { block, range, sources, slots, long_from }
    }

    /// The column in each source that has samples in it, by input.
    fn places<'s>(
        &'s self,
        inputs: &'s [MergeInput<'s>],
        column: usize,
    ) -> impl Iterator<Item = OpenColumn<'s>> {
        self.sources.iter().enumerate().filter_map(move |(at, &source)| {
            let goes_on = self.range.end < source.max_ts;
            let is_long = goes_on && self.long_from <= source.track.samples();
            let place = OpenColumn { at, source, part: inputs[source.input].part, column, is_long };
            (place.times() != ColumnTimes::Empty).then_some(place)
        })
    }
}

impl<'a> WindowMerger<'a> {
    /// A merger without buffers.
    pub fn new(inputs: &'a [MergeInput<'a>], limits: SliceLimits) -> WindowMerger<'a> {
        WindowMerger {
            inputs,
            limits,
            classes: Vec::new(),
            class_of: Vec::new(),
            shared: Order::default(),
            other: Order::default(),
            decoded: Decoded::default(),
            gathered: Vec::new(),
        }
    }

    /// Ends the block.
    pub fn close(&mut self) {
        self.decoded.clear();
    }

    /// Writes the samples of `sources`, which are sorted by input, that lie within `range`.
    pub fn merge(
        &mut self,
        block: &Block,
        sources: &[OpenSlice],
        range: TimeRange,
        writer: &mut PartWriter,
        pace: &mut Pace<'_>,
    ) -> std::result::Result<(), Stop> {
        debug_assert!(sources.is_sorted_by_key(|source| source.input), "later inputs win");
        self.decoded.keep_only(sources);
        let window = Window::new(*block, range, sources.iter(), &self.limits);
        self.merge_window(&window, writer, pace)
    }

    fn merge_window(
        &mut self,
        window: &Window<'_>,
        writer: &mut PartWriter,
        pace: &mut Pace<'_>,
    ) -> std::result::Result<(), Stop> {
        if let Some(only) = self.whole_slice(window, writer) {
            let part = self.inputs[only.input].part;
            writer.copy_slice(part, only.idx)?;
            return pace.add(part.slice(only.idx).samples);
        }
        self.classify(window);
        let Some(shared) = self.agree(window)? else {
            return self.merge_halves(window, writer, pace);
        };
        if self.classes[shared].samples == 0 {
            // All deleted.
            return pace.add(window.sources.iter().map(|s| s.track.samples() as u64).sum());
        }
        self.write(window, shared, writer, pace)
    }

    /// The slice that can be taken over byte for byte, if the window is exactly one.
    fn whole_slice<'s>(&self, window: &Window<'s>, writer: &PartWriter) -> Option<&'s OpenSlice> {
        let [only] = window.sources.as_slice() else { return None };
        let input = &self.inputs[only.input];
        let is_whole = window.range.covers(&TimeRange::new(only.min_ts, only.max_ts))
            && input.part.summary().encoding == writer.encoding();
        let is_touched = || !tombstones_of(input, only, window.block.series()).is_empty();
        (is_whole && !is_touched()).then_some(only)
    }

    /// Puts the columns into classes.
    fn classify(&mut self, window: &Window<'_>) {
        self.classes.clear();
        self.class_of.clear();
        let block = window.block;
        let block_is_touched = self.is_touched(window, block.series());
        let mut last_class = 0;
        for column in 0..block.columns as usize {
            let Some(mut key) = self.key_of(window, column) else {
                self.class_of.push(None);
                continue;
            };
            if block_is_touched && self.is_touched(window, block.column_series(column)) {
                key = None;
            }
            // The last class is the likely one.
            let candidates = (last_class..self.classes.len()).chain(0..last_class);
            let mut same = candidates.filter(|&class| {
                let class = self.classes[class];
                key.is_some() && class.key == key && self.same_inputs(window, class.column, column)
            });
            last_class = match same.next() {
                Some(class) => class,
                None => self.classes.len(),
            };
            if last_class == self.classes.len() {
                self.classes.push(Class { column, key, count: 0, samples: 0, hash: 0 });
            }
            self.classes[last_class].count += 1;
            self.class_of.push(Some(last_class));
        }
    }

    /// Whether something may be deleted of some of the series.
    fn is_touched(&self, window: &Window<'_>, series: Range<u64>) -> bool {
        let tombstones = |s: &OpenSlice| tombstones_of(&self.inputs[s.input], s, series.clone());
        window.sources.iter().any(|source| !tombstones(source).is_empty())
    }

    /// The key of a column's class; `None` without samples, `Some(None)` when it has timestamps of
    /// its own.
    fn key_of(&self, window: &Window<'_>, column: usize) -> Option<Option<u64>> {
        let mut key = 0u64;
        let mut has_samples = false;
        let mut has_own = false;
        for (at, source) in window.sources.iter().enumerate() {
            match self.inputs[source.input].part.column_times(source.idx, column) {
                ColumnTimes::Empty => continue,
                ColumnTimes::Shared => key = (key ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                ColumnTimes::Own => has_own = true,
            }
            has_samples = true;
        }
        has_samples.then_some((!has_own).then_some(key))
    }

    fn same_inputs(&self, window: &Window<'_>, a: usize, b: usize) -> bool {
        window.sources.iter().all(|source| {
            let part = self.inputs[source.input].part;
            part.column_times(source.idx, a) == part.column_times(source.idx, b)
        })
    }

    /// Finds the class whose timestamps are to be shared and puts its order into `self.shared`.
    /// `None` when a column has too many samples for one slice.
    fn agree(&mut self, window: &Window<'_>) -> Result<Option<usize>> {
        assert!(!self.classes.is_empty(), "a window has samples");
        let mut order = std::mem::take(&mut self.shared);
        for at in 0..self.classes.len() {
            self.order_of(window, self.classes[at].column, &mut order)?;
            self.classes[at].samples = order.times.len();
            if self.limits.column_samples_max < order.times.len()
                && window.range.start < window.range.end
                && order.times.iter().any(|&timestamp| timestamp != order.times[0])
            {
                self.shared = order;
                return Ok(None);
            }
            if 1 < self.classes.len() {
                self.classes[at].hash = order.hash();
            }
        }
        let votes = |class: &Class| -> usize {
            let same = self.classes.iter().filter(|other| other.hash == class.hash);
            same.map(|other| other.count).sum()
        };
        let with_samples = |&at: &usize| 0 < self.classes[at].samples;
        // Of equals the first: a part does not depend on chance.
        let winner = (0..self.classes.len())
            .filter(with_samples)
            .max_by_key(|&at| (votes(&self.classes[at]), std::cmp::Reverse(at)))
            .unwrap_or(0);
        if winner + 1 != self.classes.len() {
            self.order_of(window, self.classes[winner].column, &mut order)?;
        }
        self.shared = order;
        Ok(Some(winner))
    }

    /// Computes the merge order of a column; leaves its own timestamps in `self.decoded`.
    fn order_of(&mut self, window: &Window<'_>, column: usize, order: &mut Order) -> Result<()> {
        self.load_times(window, column)?;
        let series = window.block.column_series(column);
        let view = |place: OpenColumn<'_>| {
            let input = &self.inputs[place.source.input];
            tombstones_of(input, place.source, series.clone())
        };
        let views: Vec<View<'_>> = window
            .places(self.inputs, column)
            .map(|place| View { track: self.decoded.times(place), tombstones: view(place) })
            .collect();
        order.compute(&views, window.block.ordinal(column), window.slots, window.range);
        Ok(())
    }

    fn load_times(&mut self, window: &Window<'_>, column: usize) -> Result<()> {
        let inputs = self.inputs;
        window.places(inputs, column).try_for_each(|place| self.decoded.load_times(place))
    }

    /// Merges each half of a window that is too large.
    fn merge_halves(
        &mut self,
        window: &Window<'_>,
        writer: &mut PartWriter,
        pace: &mut Pace<'_>,
    ) -> std::result::Result<(), Stop> {
        // The order that was found too large is still there; half of its samples come before this.
        let middle = self.shared.times.len() / 2;
        let (_, &mut median, _) = self.shared.times.select_nth_unstable(middle);
        let max = self.shared.times[middle..].iter().copied().max().unwrap_or(median);
        let last = if median < max { median } else { median - 1 };
        let (start, end) = (window.range.start, window.range.end);
        assert!(start <= last && last < end, "each half is smaller than the whole");
        for range in [TimeRange::new(start, last), TimeRange::new(last + 1, end)] {
            let sources = window.sources.iter().copied();
            let half = Window::new(window.block, range, sources, &self.limits);
            self.merge_window(&half, writer, pace)?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        window: &Window<'_>,
        shared: usize,
        writer: &mut PartWriter,
        pace: &mut Pace<'_>,
    ) -> std::result::Result<(), Stop> {
        let Block { series_start, capacity, columns } = window.block;
        assert_eq!(self.class_of.len(), columns as usize, "each column was looked at");
        let slots = to_u32(window.slots);
        writer.begin_slice(SliceKey { series_start, capacity, columns, slots });
        writer.shared_times(&self.shared.lens, &self.shared.times)?;
        let mut other_class = None;
        for column in 0..columns as usize {
            let Some(at) = self.class_of[column].filter(|&at| 0 < self.classes[at].samples) else {
                writer.column_empty();
                continue;
            };
            if at == shared {
                self.load_times(window, column)?;
            } else if other_class != Some(at) {
                let mut other = std::mem::take(&mut self.other);
                let computed = self.order_of(window, column, &mut other);
                self.other = other;
                computed?;
                other_class = Some(at);
            }
            let samples = self.write_column(window, column, at == shared, writer)?;
            pace.add(samples)?;
        }
        writer.end_slice();
        Ok(())
    }

    /// Writes a column in the merge order of its class; gives its samples.
    fn write_column(
        &mut self,
        window: &Window<'_>,
        column: usize,
        is_shared: bool,
        writer: &mut PartWriter,
    ) -> Result<u64> {
        let inputs = self.inputs;
        window.places(inputs, column).try_for_each(|place| self.decoded.load_values(place))?;
        let values: Vec<&[f64]> =
            window.places(inputs, column).map(|place| self.decoded.values(place)).collect();
        let order = if is_shared { &self.shared } else { &self.other };
        let merged = match order.whole_input(&values) {
            Some(input) => values[input],
            None => {
                self.gathered.clear();
                order.gather(&values, &mut self.gathered);
                &self.gathered
            }
        };
        assert_eq!(merged.len(), order.times.len(), "a value for each timestamp");
        if is_shared || (order.lens == self.shared.lens && order.times == self.shared.times) {
            writer.column_shared(merged)?;
        } else {
            writer.column_own(&order.lens, &order.times, merged)?;
        }
        Ok(order.times.len() as u64)
    }
}

/// The tombstones of an input that may concern the series of a slice.
fn tombstones_of<'a>(
    input: &MergeInput<'a>,
    source: &OpenSlice,
    series: Range<u64>,
) -> Vec<&'a (RoaringBitmap, TimeRange)> {
    let span = TimeRange::new(source.min_ts, source.max_ts);
    let ordinals = to_ordinal(series.start)..=to_ordinal(series.end - 1);
    let may_concern = |tombstone: &&(RoaringBitmap, TimeRange)| {
        tombstone.1.overlaps(&span) && 0 < tombstone.0.range_cardinality(ordinals.clone())
    };
    input.tombstones.iter().filter(may_concern).collect()
}
