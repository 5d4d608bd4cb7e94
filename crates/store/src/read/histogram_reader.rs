//! From markers and columns back to histograms.
//!
//! ```text
//! floats of a batch of series ── those with markers ──► places ──► columns, block by block
//! marker at t ─ base row at t, same layout? ─ no ──► a float like any other
//!                                           └ yes ─► each run with a row at t of the layout: its buckets
//! ```

use super::hidden_series::{Hidden, HiddenPlace, view_corrupt};
use crate::Result;
use crate::base::narrow::{to_u16, to_u32};
use crate::partition::histograms::lower::layout_parts;
use crate::partition::histograms::marker::{Marker, may_be_marker};
use crate::partition::histograms::names::{BASE_LAYOUT, Piece, RUN_LEN, RUN_STEP};
use crate::read::read_column::{ColumnRequest, ReadScratch, Samples, read_column};
use crate::read::select::floats::FloatReader;
use crate::read::select::places::Places;
use crate::read::select::scope::SelectScope;
use histogram::{Bucket, Histogram};
use model::{TimeRange, Timestamp};
use std::ops::Range;

/// What takes the samples of a selection: index of the series, timestamps and values of its floats,
/// timestamps and values of its histograms.
pub type MixedSink<'a> = dyn FnMut(usize, &[i64], &[f64], &[i64], &[Histogram]) + 'a;

/// Values of hidden columns that are read at once, about: two megabytes. With fewer, pages that hold
/// many series would be decoded again for each few of them.
const READ_VALUES: usize = 256 << 10;

/// The series that are read, what holds for all of them, and the hidden ones that belong to them.
type Selected<'a> = (&'a Places, &'a SelectScope, &'a Hidden);

/// What is to be read of histograms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Which markers are ones.
    Presence,
    /// All there is.
    Everything,
}

/// A series with markers.
struct Marked {
    /// Its place in the batch.
    series: usize,
    /// How many.
    markers: usize,
    /// Its places among those of all.
    places: Range<usize>,
}

/// The samples of some slots of one hidden block.
#[derive(Default)]
struct Block {
    /// By column; of columns that nobody needs, nothing.
    columns: Vec<Samples>,
}

/// The rows of one hidden entity, from the oldest on.
struct Stream {
    /// The series' place in the batch.
    series: usize,
    piece: Piece,
    /// Index of the block, and of the slot in it.
    block: usize,
    slot: usize,
    /// Rows before this one are older than what is looked for.
    next: usize,
    /// By column, where the values of its rows start.
    starts: [u32; RUN_LEN + 1],
}

/// Buffers of one thread that reads histograms.
#[derive(Default)]
pub(crate) struct HistogramReader {
    scratch: ReadScratch,
    marked: Vec<Marked>,
    places: Vec<(HiddenPlace, usize)>,
    slots: Vec<u16>,
    /// The first ones are in use.
    blocks: Vec<Block>,
    streams: Vec<Stream>,
    mixed: Mixed,
    /// Times of which some columns are rotten: what is left of their histograms is not told.
    lost: Vec<TimeRange>,
}

/// The samples of one series, floats and histograms apart.
#[derive(Default)]
struct Mixed {
    times: Vec<Timestamp>,
    values: Vec<f64>,
    histogram_times: Vec<Timestamp>,
    /// As many as there were once; those of this series come first.
    histograms: Vec<Histogram>,
}

impl HistogramReader {
    /// Hands over the series of a batch, whose floats have been gathered.
    pub fn read(
        &mut self,
        selected: Selected<'_>,
        floats: &mut FloatReader,
        batch: &Range<usize>,
        wanted: Wanted,
        sink: &mut MixedSink<'_>,
    ) -> Result<()> {
        let (_, scope, hidden) = selected;
        self.find_marked(selected, floats, batch)?;
        let marked = std::mem::take(&mut self.marked);
        let (mut done, mut rest) = (0, marked.as_slice());
        while !rest.is_empty() {
            scope.limits.check_interrupt()?;
            let (some, others) = rest.split_at(read_at_once(rest));
            rest = others;
            self.gather((scope, hidden), some, wanted)?;
            let mut streams = std::mem::take(&mut self.streams);
            let mut own = streams.as_mut_slice();
            for one in some {
                hand_over(floats, batch, done..one.series, sink);
                done = one.series + 1;
                let count = own.partition_point(|stream| stream.series == one.series);
                let (streams, others) = own.split_at_mut(count);
                own = others;
                let (times, values) = floats.series(one.series);
                let rot = Rot { is_any: hidden.is_rotten(), lost: &self.lost };
                let count = self.mixed.fill(times, values, &self.blocks, streams, wanted, rot)?;
                let Mixed { times, values, histogram_times, histograms } = &self.mixed;
                sink(
                    batch.start + one.series,
                    times,
                    values,
                    histogram_times,
                    &histograms[..count],
                );
            }
            debug_assert!(own.is_empty(), "each is of a series that was handed over");
            self.streams = streams;
        }
        assert!(done <= batch.len(), "series of the batch, in its order");
        hand_over(floats, batch, done..batch.len(), sink);
        self.marked = marked;
        Ok(())
    }

    /// Lists the series of a batch that have markers and hidden entities.
    fn find_marked(
        &mut self,
        (all, scope, hidden): Selected<'_>,
        floats: &mut FloatReader,
        batch: &Range<usize>,
    ) -> Result<()> {
        self.marked.clear();
        for series in 0..batch.len() {
            let markers = floats.markers(series);
            if markers != 0 {
                self.marked.push(Marked { series, markers, places: 0..0 });
            }
        }
        if self.marked.is_empty() {
            return Ok(());
        }
        let places = hidden.places(&scope.limits, &scope.watch)?;
        let indexes: Vec<usize> = self.marked.iter().map(|one| batch.start + one.series).collect();
        let fingerprints = all.fingerprints(&indexes, &scope.watch)?;
        for (one, fingerprint) in self.marked.iter_mut().zip(fingerprints) {
            one.places = Hidden::range_of(places, fingerprint);
        }
        // Where something is rotten, a marker alone may be what is left of a histogram.
        let is_rotten = hidden.is_rotten();
        self.marked.retain(|one| is_rotten || !one.places.is_empty());
        Ok(())
    }

    /// Reads the hidden entities of some series, those of one block together.
    fn gather(
        &mut self,
        (scope, hidden): (&SelectScope, &Hidden),
        some: &[Marked],
        wanted: Wanted,
    ) -> Result<()> {
        let all = hidden.places(&scope.limits, &scope.watch)?;
        self.places.clear();
        self.lost.clear();
        self.lost.extend_from_slice(hidden.lost());
        for one in some {
            let needed =
                |place: &&HiddenPlace| wanted == Wanted::Everything || place.piece == Piece::Base;
            let places = all[one.places.clone()].iter().filter(needed);
            self.places.extend(places.map(|place| (*place, one.series)));
        }
        self.places.sort_unstable_by_key(|(place, _)| (place.view, place.group, place.slot));
        self.streams.clear();
        let same_block = |a: &(HiddenPlace, usize), b: &(HiddenPlace, usize)| {
            (a.0.view, a.0.group) == (b.0.view, b.0.group)
        };
        let places = std::mem::take(&mut self.places);
        for (same, block) in places.chunk_by(same_block).zip(0..) {
            if self.blocks.len() == block {
                self.blocks.push(Block::default());
            }
            self.slots.clear();
            self.slots.extend(same.iter().map(|(place, _)| place.slot));
            self.read_block((scope, hidden), &same[0].0, block, wanted)?;
            let columns = &self.blocks[block].columns;
            let streams = same.iter().zip(0..).map(|((place, series), slot)| Stream {
                series: *series,
                piece: place.piece,
                block,
                slot,
                next: 0,
                starts: starts_of(columns, slot),
            });
            self.streams.extend(streams);
        }
        self.places = places;
        // Stable: entities of one piece stay in the order of their partitions.
        self.streams.sort_by_key(|stream| (stream.series, stream.piece));
        Ok(())
    }

    /// Reads the columns of the slots in `self.slots`, those of runs that have buckets only. Rows of
    /// which a column is rotten are left out of all columns, so that none stands without its others.
    fn read_block(
        &mut self,
        (scope, hidden): (&SelectScope, &Hidden),
        place: &HiddenPlace,
        block: usize,
        wanted: Wanted,
    ) -> Result<()> {
        let mut without = Vec::new();
        loop {
            self.scratch.lost.clear();
            self.read_columns((scope, hidden), place, block, wanted, &without)?;
            let known = without.len();
            for lost in &self.scratch.lost {
                if !without.contains(lost) {
                    without.push(*lost);
                }
            }
            if without.len() == known {
                break;
            }
            hidden.set_rotten();
        }
        self.lost.extend(without);
        let columns = &self.blocks[block].columns;
        let layout = &columns[place.piece.layout_column()];
        let is_read = |column: &&Samples| !column.spans.is_empty();
        match columns.iter().filter(is_read).all(|column| column.is_shaped_as(layout)) {
            true => Ok(()),
            false => {
                let view = &hidden.views[usize::from(place.view)];
                Err(view_corrupt(view, "columns of a histogram of different lengths"))
            }
        }
    }

    fn read_columns(
        &mut self,
        (scope, hidden): (&SelectScope, &Hidden),
        place: &HiddenPlace,
        block: usize,
        wanted: Wanted,
        without: &[TimeRange],
    ) -> Result<()> {
        let view = &hidden.views[usize::from(place.view)];
        let block = &mut self.blocks[block];
        block.columns.resize_with(RUN_LEN + 1, Samples::default);
        block.columns.iter_mut().for_each(Samples::clear);
        let layout = place.piece.layout_column();
        let request = ColumnRequest {
            view,
            group: place.group as usize,
            column: to_u16(to_u32(layout)),
            slots: &self.slots,
            range: scope.range,
            page_headers: &scope.page_headers,
            watch: &scope.watch,
            without,
        };
        read_column(&request, &mut self.scratch, &mut block.columns[layout])?;
        let columns = match (place.piece, wanted) {
            (_, Wanted::Presence) => 0,
            (Piece::Base, Wanted::Everything) => (1 << BASE_LAYOUT) - 1,
            _ => {
                let layouts = &block.columns[layout].values;
                layouts.iter().fold(0, |masks, value| masks | u32::from(layout_parts(*value).1))
            }
        };
        for column in (0..layout).filter(|column| columns >> column & 1 == 1) {
            let request = ColumnRequest { column: to_u16(to_u32(column)), ..request };
            read_column(&request, &mut self.scratch, &mut block.columns[column])?;
        }
        Ok(())
    }
}

/// What is known to be rotten of hidden series.
#[derive(Clone, Copy)]
struct Rot<'a> {
    /// Whether anything is.
    is_any: bool,
    /// The times of it.
    lost: &'a [TimeRange],
}

/// Where the values of a slot start, by column.
fn starts_of(columns: &[Samples], slot: usize) -> [u32; RUN_LEN + 1] {
    std::array::from_fn(|column| {
        let span = columns.get(column).and_then(|samples| samples.spans.get(slot));
        span.map_or(0, |span| to_u32(span.values().start))
    })
}

/// How many of these series to read at once; at least one.
fn read_at_once(marked: &[Marked]) -> usize {
    let mut values = 0;
    let fits = |one: &&Marked| {
        let is_first = values == 0;
        values += one.markers * one.places.len() * (RUN_LEN + 1);
        is_first || values <= READ_VALUES
    };
    marked.iter().take_while(fits).count()
}

/// Hands over series without histograms.
fn hand_over(
    floats: &mut FloatReader,
    batch: &Range<usize>,
    series: Range<usize>,
    sink: &mut MixedSink<'_>,
) {
    for idx in series {
        let (times, values) = floats.series(idx);
        sink(batch.start + idx, times, values, &[], &[]);
    }
}

impl Stream {
    /// The row at this time, which is later than the one before that was asked for.
    fn row_at(&mut self, blocks: &[Block], time: Timestamp) -> Option<(usize, f64)> {
        let (times, layouts) = self.layouts(blocks);
        let skipped = times[self.next..].iter().take_while(|one| **one < time).count();
        self.next += skipped;
        (times.get(self.next) == Some(&time)).then(|| (self.next, layouts[self.next]))
    }

    fn layouts<'b>(&self, blocks: &'b [Block]) -> (&'b [Timestamp], &'b [f64]) {
        let samples = &blocks[self.block].columns[self.piece.layout_column()];
        samples.of(&samples.spans[self.slot])
    }

    /// A value of a column that was read: all columns have the same rows.
    #[inline]
    fn value(&self, columns: &[Samples], column: usize, row: usize) -> f64 {
        columns[column].values[self.starts[column] as usize + row]
    }
}

impl Mixed {
    /// Splits the samples of a series into floats and histograms; returns how many of these there
    /// are.
    fn fill(
        &mut self,
        times: &[Timestamp],
        values: &[f64],
        blocks: &[Block],
        streams: &mut [Stream],
        wanted: Wanted,
        rot: Rot<'_>,
    ) -> Result<usize> {
        self.times.clear();
        self.values.clear();
        self.histogram_times.clear();
        let base_count = streams.partition_point(|stream| stream.piece == Piece::Base);
        let (bases, runs) = streams.split_at_mut(base_count);
        debug_assert!(runs.iter().all(|run| run.piece != Piece::Base), "streams are by piece");
        let mut count = 0;
        for (time, value) in times.iter().zip(values) {
            let Some((marker, base, row)) = found(*value, *time, bases, blocks) else {
                if !rot.is_any || !may_be_marker(*value) {
                    self.times.push(*time);
                    self.values.push(*value);
                }
                continue;
            };
            if rot.lost.iter().any(|lost| lost.contains(*time)) {
                continue;
            }
            if wanted == Wanted::Presence {
                continue;
            }
            self.histogram_times.push(*time);
            if self.histograms.len() == count {
                self.histograms.push(Histogram::default());
            }
            let out = &mut self.histograms[count];
            count += 1;
            out.schema = marker.schema;
            out.reset_hint = marker.reset_hint;
            let columns = &blocks[base.block].columns;
            out.count = base.value(columns, 0, row);
            out.sum = base.value(columns, 1, row);
            out.zero_count = base.value(columns, 2, row);
            out.zero_threshold = base.value(columns, 3, row);
            push_runs(out, *time, marker.layout, runs, blocks);
        }
        Ok(count)
    }
}

/// The marker that a float is, and the row of the numbers that every histogram has.
fn found<'s>(
    value: f64,
    time: Timestamp,
    bases: &'s mut [Stream],
    blocks: &[Block],
) -> Option<(Marker, &'s Stream, usize)> {
    let marker = Marker::of(value)?;
    for base in bases {
        if let Some((row, layout)) = base.row_at(blocks, time) {
            let is_its = layout_parts(layout).0 == marker.layout;
            return is_its.then_some((marker, &*base, row));
        }
    }
    None
}

/// Fills in buckets and bounds from the runs that have a row of this time and layout.
fn push_runs(
    out: &mut Histogram,
    time: Timestamp,
    layout: u32,
    runs: &mut [Stream],
    blocks: &[Block],
) {
    out.positive.clear();
    out.negative.clear();
    out.custom_bounds.clear();
    for run in runs {
        let Some((row, value)) = run.row_at(blocks, time) else { continue };
        let (of_run, mut mask) = layout_parts(value);
        if of_run != layout {
            // Of a histogram that was replaced by one without this run.
            continue;
        }
        let values = &blocks[run.block].columns;
        let columns = std::iter::from_fn(|| {
            let column = (mask != 0).then(|| mask.trailing_zeros())?;
            mask &= mask - 1;
            Some(column)
        });
        let (buckets, number) = match run.piece {
            Piece::Positive(number) => (&mut out.positive, number),
            Piece::Negative(number) => (&mut out.negative, number),
            Piece::Bounds(_) => {
                let bounds = columns.map(|column| run.value(values, column as usize, row));
                out.custom_bounds.extend(bounds);
                continue;
            }
            // It has no buckets.
            Piece::Base => continue,
        };
        let first = number.wrapping_mul(RUN_STEP);
        buckets.extend(columns.map(|column| Bucket {
            index: first.wrapping_add_unsigned(column),
            count: run.value(values, column as usize, row),
        }));
    }
}
