//! A selection: the series that matched, and their samples on demand.
//!
//! ```text
//! matchers ──► per partition: index.search ──► PartitionView ──► places (view, group, column, slot)
//! series i = places[starts[i] .. starts[i + 1]], one for each partition it lives in, oldest first
//! ```

use crate::histograms::hidden::{Hidden, search_histograms};
use crate::histograms::marker::may_be_marker;
use crate::histograms::names;
use crate::histograms::read::HistogramReader;
use crate::missing::Watch;
use crate::page_headers::PageHeaders;
use crate::partition::{Partition, State};
use crate::read::{ColumnRequest, ReadScratch, Samples, Span, read_column};
use crate::view::PartitionView;
use crate::{Error, Limit, Result, path_matcher};
use hashbrown::HashMap;
use index::{BlockMatch, CompiledMatchers};
use model::{Labels, LabelsBuilder, Matcher, TimeRange};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Most series whose samples are gathered at once by [`Selection::read`].
const READ_SERIES_MAX: u64 = 512;
/// From so many series on, those of one column are gathered alone.
const COLUMN_SERIES_MIN: usize = 64;
/// Columns of blocks up to which a selection's page_headers are kept for the next. More would fill
/// the room of all page_headers, and parsing them is little beside the rest of so large a query.
const KEPT_HEADERS_COLUMNS_MAX: usize = 1 << 14;
/// Samples gathered at once, about: half a megabyte, which stays in a core's cache.
const READ_SAMPLES: u64 = 32 << 10;

/// What takes the samples of a selection: index of the series, timestamps, as many values.
pub type SampleSink<'a> = dyn FnMut(usize, &[i64], &[f64]) + 'a;

/// Bounds on one selection.
#[derive(Clone, Debug)]
pub struct SelectLimits {
    /// Series that may match.
    pub series_max: usize,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// What the selection and its samples may cost, about, in samples; more is refused before it
    /// is done. For who must not be kept waiting: [`u64::MAX`] for all others.
    pub cost_max: u64,
}

/// What it costs to find a series and begin to read it, in samples.
const SERIES_COST: u64 = 1000;
/// What it costs to look at a block or a string of the index, in samples.
const LOOK_COST: u64 = 16;

impl SelectLimits {
    /// Fails once the deadline has passed.
    pub fn check_deadline(&self) -> Result<()> {
        match self.deadline {
            Some(deadline) if deadline < Instant::now() => Err(Error::DeadlineExceeded),
            _ => Ok(()),
        }
    }

    /// Fails when the work would be more than `cost_max`.
    pub fn check_cost(&self, cost: u64) -> Result<()> {
        if cost <= self.cost_max {
            return Ok(());
        }
        Err(Error::LimitExceeded {
            limit: Limit::SelectionCost,
            what: "samples' worth of work",
            value: cost,
            max: self.cost_max,
        })
    }

    /// Fails when there are more than `series_max` series.
    pub fn check_series(&self, count: usize) -> Result<()> {
        if self.series_max < count {
            return Err(Error::LimitExceeded {
                limit: Limit::Series,
                what: "matching series",
                value: count as u64,
                max: self.series_max as u64,
            });
        }
        Ok(())
    }
}

/// Where one partition keeps a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    view: u16,
    group: u32,
    column: u16,
    slot: u16,
}

impl Place {
    /// Which column of which block of which partition.
    fn column_place(&self) -> (u16, u32, u16) {
        (self.view, self.group, self.column)
    }
}

/// Matched series and a frozen view of their samples. `Send + Sync`; reads may run in parallel.
pub struct Selection {
    views: Vec<PartitionView>,
    /// Of those that have histograms.
    pub(crate) hidden: Option<Hidden>,
    places: Vec<Place>,
    /// Where each series' places start; one more entry than series. Empty when every series has
    /// exactly one place.
    starts: Vec<u32>,
    range: TimeRange,
    limits: SelectLimits,
    page_headers: Arc<PageHeaders>,
    /// What is done about rot.
    watch: Watch,
    /// Series gathered at once.
    read_series: usize,
    /// Those that nobody uses just now, so that reads that follow each other find buffers that
    /// have grown already.
    readers: Mutex<Vec<SelectionReader>>,
}

impl Selection {
    /// Selects from partitions, oldest first, what [`compile`] made of matchers.
    pub(crate) fn new(
        partitions: &[Arc<Partition>],
        mut sets: Vec<CompiledMatchers>,
        range: TimeRange,
        limits: &SelectLimits,
        page_headers: &Arc<PageHeaders>,
        watch: Watch,
    ) -> Result<Selection> {
        if limits.cost_max < u64::MAX {
            let look_max = limits.cost_max / LOOK_COST;
            sets = sets.into_iter().map(|set| set.costing_at_most(look_max)).collect();
        }
        let (mut views, mut hidden, mut cost) = (Vec::new(), Vec::new(), 0u64);
        let (mut count, mut hidden_cost, mut hidden_lost) = (0, 0u64, Vec::new());
        for partition in partitions {
            limits.check_deadline()?;
            let Views { view, hidden: view_of_hidden, is_whole } =
                views_of(partition, &sets, &range, limits, &watch)?;
            if !is_whole {
                hidden_lost.push(partition.period.range());
            }
            let series = view.groups.iter().map(BlockMatch::series_count).sum::<u64>();
            cost = cost.saturating_add(samples_of(&view, &range));
            let of_hidden = view_of_hidden.as_ref().map_or(0, |view| cost_of_hidden(view, &range));
            hidden_cost = hidden_cost.saturating_add(of_hidden);
            let places = SERIES_COST.saturating_mul(series).saturating_add(hidden_cost);
            limits.check_cost(cost.saturating_add(places))?;
            count += series as usize;
            // Sets may name a series twice and partitions share series, so this bound is generous.
            limits.check_series(count / (sets.len() * partitions.len()).max(1))?;
            if !view.groups.is_empty() {
                partition.note_queried(&view.groups);
                if let Some(view) = &view_of_hidden {
                    partition.note_queried(&view.groups);
                }
                views.push(view);
                hidden.extend(view_of_hidden);
            }
        }
        let groups = views.iter().flat_map(|view| &view.groups);
        let columns = groups.map(|group| group.columns.len()).sum::<usize>();
        let keeps_headers = columns <= KEPT_HEADERS_COLUMNS_MAX;
        let mut selection = Selection {
            views,
            hidden: Hidden::new(hidden, hidden_lost),
            places: Vec::with_capacity(count),
            starts: Vec::new(),
            range,
            limits: limits.clone(),
            page_headers: if keeps_headers {
                Arc::clone(page_headers)
            } else {
                Arc::new(PageHeaders::none())
            },
            read_series: (READ_SAMPLES / (cost / count.max(1) as u64).max(1))
                .clamp(16, READ_SERIES_MAX) as usize,
            readers: Mutex::default(),
            watch,
        };
        selection.place_series(1 < sets.len())?;
        limits.check_series(selection.len())?;
        Ok(selection)
    }

    /// How many series matched.
    pub fn len(&self) -> usize {
        if self.starts.is_empty() { self.places.len() } else { self.starts.len() - 1 }
    }

    /// How many series are best read at once: about half a megabyte of samples.
    pub fn batch_len(&self) -> usize {
        self.read_series
    }

    /// Whether none did.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The labels of series `idx`.
    ///
    /// # Errors
    /// When the index turns out to be corrupt.
    pub fn labels(&self, idx: usize) -> Result<Labels> {
        self.labels_at(&self.places_of(idx)[0])
    }

    /// Calls `sink(idx, labels)` for each series of `range`, in order. When names are `wanted`, the
    /// labels of others may be missing. A partition is locked meanwhile, so `sink` must not come
    /// back to the store.
    ///
    /// # Errors
    /// As [`Selection::labels`].
    pub fn read_labels(
        &self,
        range: Range<usize>,
        wanted: Option<&[&str]>,
        sink: &mut dyn FnMut(usize, Labels),
    ) -> Result<()> {
        let places = range.clone().map(|idx| &self.places_of(idx)[0]);
        let mut indexes = range;
        self.labels_of_places(places, wanted, &mut |_, labels| {
            sink(indexes.next().expect("a place for each series"), labels);
        })
    }

    /// Calls `sink(place, labels)` for each place, in order; as [`Selection::read_labels`]. Quick
    /// where neighbours are of one partition.
    fn labels_of_places<'p>(
        &self,
        places: impl IntoIterator<Item = &'p Place>,
        wanted: Option<&[&str]>,
        sink: &mut dyn FnMut(&Place, Labels),
    ) -> Result<()> {
        let mut builder = LabelsBuilder::new();
        let mut places = places.into_iter().peekable();
        while let Some(view_idx) = places.peek().map(|first| first.view) {
            let view = &self.views[usize::from(view_idx)];
            let state = view.partition.read();
            let mut reader = match wanted {
                Some(wanted) => state.series.index.label_reader_of(wanted),
                None => state.series.index.label_reader(),
            };
            while let Some(place) = places.next_if(|place| place.view == view_idx) {
                let group = &view.groups[place.group as usize];
                builder.clear();
                let read = reader.match_labels(group, place.column, place.slot, &mut builder);
                read.map_err(|error| self.watch.found_rot(&view.partition, error))?;
                sink(place, builder.finish());
            }
        }
        Ok(())
    }

    /// The labels of the series of a range, in order; quicker than one by one.
    ///
    /// # Errors
    /// When the index turns out to be corrupt.
    pub fn labels_of(&self, range: Range<usize>) -> Result<Vec<Labels>> {
        let mut out = Vec::with_capacity(range.len());
        self.read_labels(range, None, &mut |_, labels| out.push(labels))?;
        Ok(out)
    }

    /// Calls `sink(idx, timestamps, values)` once for each series of `range`, in order; the slices
    /// are empty when the series has no sample in the selected time. Histograms are left out.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::DeadlineExceeded`].
    pub fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<()> {
        if let Some(hidden) = &self.hidden {
            return self.read_floats(hidden, range, sink);
        }
        self.read_batches(range, &mut |reader, batch| {
            reader.gather(self, &batch)?;
            for idx in 0..batch.len() {
                let (times, values) = reader.series(idx);
                sink(batch.start + idx, times, values);
            }
            Ok(())
        })
    }

    /// Calls `read` for as many series of `range` as are best gathered at once, until all are done.
    pub(crate) fn read_batches(
        &self,
        range: Range<usize>,
        read: &mut dyn FnMut(&mut SelectionReader, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut reader = self.readers().pop().unwrap_or_default();
        let mut start = range.start;
        while start < range.end {
            self.limits.check_deadline()?;
            let end = self.gathered_end(start..range.end);
            read(&mut reader, start..end)?;
            start = end;
        }
        self.readers().push(reader);
        Ok(())
    }

    /// Calls `sink` with the fingerprint of each of these series, in order.
    pub(crate) fn for_each_fingerprint(
        &self,
        series: &[usize],
        sink: &mut dyn FnMut(u128),
    ) -> Result<()> {
        let places = series.iter().map(|idx| &self.places_of(*idx)[0]);
        self.labels_of_places(places, None, &mut |_, labels| sink(labels.fingerprint()))
    }

    /// What holds for the selection and all that is read of it.
    pub(crate) fn limits(&self) -> &SelectLimits {
        &self.limits
    }

    /// The time that is selected.
    pub(crate) fn range(&self) -> TimeRange {
        self.range
    }

    /// What is done about rot.
    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// What is known of parts already.
    pub(crate) fn page_headers(&self) -> &PageHeaders {
        &self.page_headers
    }

    /// Where the series end that are gathered at once, from the first of `range` on.
    fn gathered_end(&self, range: Range<usize>) -> usize {
        let end = range.end.min(range.start + self.read_series);
        if !self.starts.is_empty() {
            return end;
        }
        // The samples of one column are not copied once more.
        let first = self.places[range.start].column_place();
        let places = &self.places[range.start..end];
        let count = places.partition_point(|place| place.column_place() == first);
        if count < COLUMN_SERIES_MIN { end } else { range.start + count }
    }

    fn readers(&self) -> MutexGuard<'_, Vec<SelectionReader>> {
        self.readers.lock().expect("no panic while held")
    }

    fn places_of(&self, idx: usize) -> &[Place] {
        match self.starts.get(idx..idx + 2) {
            Some(bounds) => &self.places[bounds[0] as usize..bounds[1] as usize],
            None => &self.places[idx..idx + 1],
        }
    }

    fn labels_at(&self, place: &Place) -> Result<Labels> {
        let view = &self.views[usize::from(place.view)];
        let block = &view.groups[place.group as usize].block;
        let mut builder = LabelsBuilder::new();
        let state = view.partition.read();
        let read = state.series.index.labels(block, place.column, place.slot, &mut builder);
        read.map_err(|error| self.watch.found_rot(&view.partition, error))?;
        Ok(builder.finish())
    }

    /// Lists the places of all views and joins those of one series.
    fn place_series(&mut self, may_repeat: bool) -> Result<()> {
        for (view, view_idx) in self.views.iter().zip(0u16..) {
            let first = self.places.len();
            for (group, group_idx) in view.groups.iter().zip(0u32..) {
                for column in group.columns.iter() {
                    let place = |slot| Place { view: view_idx, group: group_idx, column, slot };
                    self.places.extend(group.slots.iter().map(place));
                }
            }
            if may_repeat {
                let mut seen = roaring::RoaringBitmap::new();
                let mut kept = first;
                for idx in first..self.places.len() {
                    let place = self.places[idx];
                    let block = &view.groups[place.group as usize].block;
                    if seen.insert(block.ordinal(place.column, place.slot)) {
                        self.places[kept] = place;
                        kept += 1;
                    }
                }
                self.places.truncate(kept);
            }
        }
        if 1 < self.views.len() {
            self.join_partitions()?;
        }
        Ok(())
    }

    /// Brings the places of one series together, in the order in which series are first met.
    fn join_partitions(&mut self) -> Result<()> {
        let mut series_of: HashMap<u128, u32> = HashMap::with_capacity(self.places.len() / 2);
        let mut by_series: Vec<(u32, Place)> = Vec::with_capacity(self.places.len());
        self.labels_of_places(&self.places, None, &mut |place, labels| {
            let next = series_of.len() as u32;
            let series = *series_of.entry(labels.fingerprint()).or_insert(next);
            by_series.push((series, *place));
        })?;
        by_series.sort_unstable();
        self.starts.clear();
        for (idx, (series, _)) in by_series.iter().enumerate() {
            if *series as usize == self.starts.len() {
                self.starts.push(idx as u32);
            }
        }
        self.starts.push(by_series.len() as u32);
        self.places = by_series.into_iter().map(|(_, place)| place).collect();
        Ok(())
    }
}

/// Compiles selector sets; no set at all stands for every series, but for those that hold
/// histograms: nobody can select them.
pub fn compile(sets: &[Vec<Matcher>]) -> Result<Vec<CompiledMatchers>> {
    if sets.is_empty() {
        return Ok(vec![CompiledMatchers::compile(&[])?.and_lacks(names::LABEL)]);
    }
    let one = |set: &Vec<Matcher>| {
        let compiled = CompiledMatchers::compile(&path_matcher::without_patterns(set)?);
        Ok(compiled.map_err(refusal)?.and_lacks(names::LABEL))
    };
    sets.iter().map(one).collect()
}

/// A matcher that does not compile is the caller's mistake, not a fault of the index.
fn refusal(error: index::Error) -> Error {
    match error {
        index::Error::InvalidMatcher { .. } => Error::Invalid(error.to_string()),
        other => Error::Index(other),
    }
}

/// What a partition has of the selected series.
struct Views {
    view: PartitionView,
    /// Of the hidden series that belong to them.
    hidden: Option<PartitionView>,
    /// Whether these are all hidden series that there are, as far as is known.
    is_whole: bool,
}

/// What a partition has of the selected series, and of the hidden ones that belong to them, frozen
/// at the same moment.
fn views_of(
    partition: &Arc<Partition>,
    sets: &[CompiledMatchers],
    range: &TimeRange,
    limits: &SelectLimits,
    watch: &Watch,
) -> Result<Views> {
    // Singles of taken rows have no chain heads any more; they are rare, so they are sealed first.
    // Writers may take others before the lock is there again, so it is looked once more.
    for _ in 0..SEAL_TRIES {
        let state = partition.read();
        if !has_taken_singles(&state) {
            return views_in(partition, &state, sets, range, watch);
        }
        drop(state);
        limits.check_cost(SEAL_COST)?;
        partition.seal_taken()?;
    }
    // They are faster: nobody writes while these are sealed and looked at.
    let state = partition.write_sealed()?;
    views_in(partition, &state, sets, range, watch)
}

/// How often taken rows are sealed without keeping writers out.
const SEAL_TRIES: usize = 3;

fn has_taken_singles(state: &State) -> bool {
    state.head.taken().iter().any(|taken| !taken.view.singles().is_empty())
}

fn views_in(
    partition: &Arc<Partition>,
    state: &State,
    sets: &[CompiledMatchers],
    range: &TimeRange,
    watch: &Watch,
) -> Result<Views> {
    let mut is_whole = true;
    let mut on_rot = |segment: &index::Segment, error| {
        is_whole = false;
        watch.leave_out_segment(partition, segment, error)
    };
    let mut matches = Vec::new();
    for set in sets {
        matches.extend(state.series.index.search_noting(set, &mut on_rot)?);
    }
    let view = PartitionView::new(partition, state, matches, range, None);
    let hidden = search_histograms(state, sets, &mut on_rot)?;
    if view.groups.is_empty() || hidden.is_empty() {
        return Ok(Views { view, hidden: None, is_whole });
    }
    let hidden = PartitionView::new(partition, state, hidden, range, Some(&view));
    let has_any = !hidden.groups.is_empty();
    Ok(Views { view, hidden: has_any.then_some(hidden), is_whole })
}

/// What it costs to read a view of hidden series, in samples.
fn cost_of_hidden(view: &PartitionView, range: &TimeRange) -> u64 {
    let entities = view.groups.iter().map(|group| group.slots.len() as u64).sum::<u64>();
    SERIES_COST.saturating_mul(entities).saturating_add(samples_of(view, range))
}

/// What sealing costs: always too much for who has a limit.
const SEAL_COST: u64 = 1 << 40;

/// How many samples a view's parts have of its series, about.
fn samples_of(view: &PartitionView, range: &TimeRange) -> u64 {
    let mut samples = 0u64;
    for group in &view.groups {
        let mut series_samples = 0;
        for source in &view.sources {
            let part = &source.part.part;
            let slices = &part.slices()[part.find(group.block.series_start)];
            for slice in slices {
                if range.overlaps(&TimeRange::new(slice.min_ts, slice.max_ts)) {
                    let cells = u64::from(slice.slots) * u64::from(slice.columns);
                    series_samples += 1 + slice.samples / cells.max(1);
                }
            }
        }
        samples = samples.saturating_add(series_samples.saturating_mul(group.series_count()));
    }
    samples
}

/// Buffers of one thread that reads a selection.
#[derive(Default)]
pub(crate) struct SelectionReader {
    scratch: ReadScratch,
    samples: Samples,
    /// (place, its index among the places of the series that are being read).
    order: Vec<(Place, u32)>,
    /// By that index, the span in `samples`.
    spans: Vec<Span>,
    /// Where the spans of each series start, and where they end.
    starts: Vec<usize>,
    /// For those that read histograms.
    pub(crate) histograms: HistogramReader,
    slots: Vec<u16>,
    times: Vec<i64>,
    values: Vec<f64>,
}

impl SelectionReader {
    /// The samples of a series that was gathered, by its place among those.
    pub(crate) fn series(&mut self, idx: usize) -> (&[i64], &[f64]) {
        let spans = &self.spans[self.starts[idx]..self.starts[idx + 1]];
        if let [span] = spans {
            return self.samples.of(span);
        }
        self.times.clear();
        self.values.clear();
        for span in spans {
            let (times, values) = self.samples.of(span);
            self.times.extend_from_slice(times);
            self.values.extend_from_slice(values);
        }
        (&self.times, &self.values)
    }

    /// How many values of a series that was gathered look like the markers of histograms.
    pub(crate) fn markers(&self, idx: usize) -> usize {
        let spans = &self.spans[self.starts[idx]..self.starts[idx + 1]];
        let of_span = |span| {
            let (_, values) = self.samples.of(span);
            values.iter().filter(|value| may_be_marker(**value)).count()
        };
        spans.iter().map(of_span).sum()
    }

    /// Reads all places of the series, those of one column of one block together.
    pub(crate) fn gather(&mut self, selection: &Selection, range: &Range<usize>) -> Result<()> {
        self.samples.clear();
        self.order.clear();
        self.starts.clear();
        for idx in range.clone() {
            self.starts.push(self.order.len());
            for place in selection.places_of(idx) {
                self.order.push((*place, self.order.len() as u32));
            }
        }
        self.starts.push(self.order.len());
        self.order.sort_unstable();
        self.spans.clear();
        self.spans.resize(self.order.len(), Span::default());
        for same in self.order.chunk_by(|a, b| a.0.column_place() == b.0.column_place()) {
            let place = &same[0].0;
            self.slots.clear();
            self.slots.extend(same.iter().map(|(place, _)| place.slot));
            let request = ColumnRequest {
                view: &selection.views[usize::from(place.view)],
                group: place.group as usize,
                column: place.column,
                slots: &self.slots,
                range: selection.range,
                page_headers: &selection.page_headers,
                watch: &selection.watch,
                without: &[],
            };
            let first = self.samples.spans.len();
            read_column(&request, &mut self.scratch, &mut self.samples)?;
            for ((_, idx), span) in same.iter().zip(&self.samples.spans[first..]) {
                self.spans[*idx as usize] = span.clone();
            }
        }
        Ok(())
    }
}
