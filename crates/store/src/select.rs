//! A selection: the series that matched, and their samples on demand.
//!
//! ```text
//! matchers ──► per partition: index.search ──► PartitionView ──► places (view, group, column, slot)
//! series i = places[starts[i] .. starts[i + 1]], one for each month it lives in, oldest first
//! ```

use crate::partition::Partition;
use crate::read::{ColumnRequest, ReadScratch, Samples, read_column};
use crate::view::PartitionView;
use crate::{Error, Result, path_matcher};
use hashbrown::HashMap;
use index::CompiledMatchers;
use model::{Labels, LabelsBuilder, Matcher, TimeRange};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Series whose samples are gathered at once by [`Selection::read`].
const READ_SERIES: usize = 512;

/// What takes the samples of a selection: index of the series, timestamps, as many values.
pub type SampleSink<'a> = dyn FnMut(usize, &[i64], &[f64]) + 'a;

/// Bounds on one selection.
#[derive(Clone, Debug)]
pub struct SelectLimits {
    /// Series that may match.
    pub series_max: usize,
    /// When to give up.
    pub deadline: Option<Instant>,
}

impl SelectLimits {
    /// Fails once the deadline has passed.
    pub fn check_deadline(&self) -> Result<()> {
        match self.deadline {
            Some(deadline) if deadline < Instant::now() => Err(Error::DeadlineExceeded),
            _ => Ok(()),
        }
    }

    /// Fails when there are more than `series_max` series.
    pub fn check_series(&self, count: usize) -> Result<()> {
        if self.series_max < count {
            return Err(Error::LimitExceeded {
                limit: "query.max-series",
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

/// Matched series and a frozen view of their samples. `Send + Sync`; reads may run in parallel.
pub struct Selection {
    views: Vec<PartitionView>,
    places: Vec<Place>,
    /// Where each series' places start; one more entry than series. Empty when every series has
    /// exactly one place.
    starts: Vec<u32>,
    range: TimeRange,
    limits: SelectLimits,
}

impl Selection {
    /// Selects from partitions, oldest first.
    pub fn new(
        partitions: &[Arc<Partition>],
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Selection> {
        let sets = compile(sets)?;
        let mut views = Vec::new();
        let mut count = 0;
        for partition in partitions {
            limits.check_deadline()?;
            let view = view_of(partition, &sets, &range)?;
            count += view.groups.iter().map(|g| g.series_count() as usize).sum::<usize>();
            // Sets may name a series twice and months share series, so this bound is generous.
            limits.check_series(count / (sets.len() * partitions.len()).max(1))?;
            if !view.groups.is_empty() {
                views.push(view);
            }
        }
        assert!(views.len() <= usize::from(u16::MAX), "fewer partitions than months in an i64");
        let mut selection = Selection {
            views,
            places: Vec::with_capacity(count),
            starts: Vec::new(),
            range,
            limits: limits.clone(),
        };
        selection.place_series(1 < sets.len())?;
        limits.check_series(selection.len())?;
        Ok(selection)
    }

    /// How many series matched.
    pub fn len(&self) -> usize {
        if self.starts.is_empty() { self.places.len() } else { self.starts.len() - 1 }
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

    /// Calls `sink(idx, timestamps, values)` once for each series of `range`, in order; the slices
    /// are empty when the series has no sample in the selected time.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::DeadlineExceeded`].
    pub fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<()> {
        let mut reader = SelectionReader::default();
        let mut start = range.start;
        while start < range.end {
            self.limits.check_deadline()?;
            let end = range.end.min(start + READ_SERIES);
            reader.read(self, start..end, sink)?;
            start = end;
        }
        Ok(())
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
        view.partition.read().index.labels(block, place.column, place.slot, &mut builder)?;
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
            self.join_months()?;
        }
        Ok(())
    }

    /// Brings the places of one series together, in the order in which series are first met.
    fn join_months(&mut self) -> Result<()> {
        let mut series_of: HashMap<u128, u32> = HashMap::with_capacity(self.places.len() / 2);
        let mut by_series: Vec<(u32, Place)> = Vec::with_capacity(self.places.len());
        for place in &self.places {
            let next = series_of.len() as u32;
            let fingerprint = self.labels_at(place)?.fingerprint();
            by_series.push((*series_of.entry(fingerprint).or_insert(next), *place));
        }
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

/// Compiles selector sets; no set at all stands for every series.
pub fn compile(sets: &[Vec<Matcher>]) -> Result<Vec<CompiledMatchers>> {
    if sets.is_empty() {
        return Ok(vec![CompiledMatchers::compile(&[])?]);
    }
    let one = |set: &Vec<Matcher>| {
        CompiledMatchers::compile(&path_matcher::without_patterns(set)?).map_err(refusal)
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

fn view_of(
    partition: &Arc<Partition>,
    sets: &[CompiledMatchers],
    range: &TimeRange,
) -> Result<PartitionView> {
    // Singles of taken rows have no chain heads any more; they are rare, so seal first.
    if partition.read().taken.iter().any(|taken| !taken.view.singles().is_empty()) {
        partition.seal_taken()?;
    }
    let state = partition.read();
    let mut matches = Vec::new();
    for set in sets {
        matches.extend(state.index.search(set)?);
    }
    Ok(PartitionView::new(partition, &state, matches, range))
}

/// Buffers of one thread that reads a selection.
#[derive(Default)]
struct SelectionReader {
    scratch: ReadScratch,
    samples: Samples,
    /// (place, its index among the places of the series that are being read).
    order: Vec<(Place, u32)>,
    /// By that index, the span in `samples`.
    spans: Vec<Range<usize>>,
    slots: Vec<u16>,
    times: Vec<i64>,
    values: Vec<f64>,
}

impl SelectionReader {
    fn read(
        &mut self,
        selection: &Selection,
        range: Range<usize>,
        sink: &mut SampleSink<'_>,
    ) -> Result<()> {
        self.gather(selection, &range)?;
        let mut next = 0;
        for idx in range {
            let count = selection.places_of(idx).len();
            let spans = &self.spans[next..next + count];
            next += count;
            if let [span] = spans {
                let span = span.clone();
                sink(idx, &self.samples.times[span.clone()], &self.samples.values[span]);
                continue;
            }
            self.times.clear();
            self.values.clear();
            for span in spans {
                self.times.extend_from_slice(&self.samples.times[span.clone()]);
                self.values.extend_from_slice(&self.samples.values[span.clone()]);
            }
            sink(idx, &self.times, &self.values);
        }
        Ok(())
    }

    /// Reads all places of the series, those of one column of one block together.
    fn gather(&mut self, selection: &Selection, range: &Range<usize>) -> Result<()> {
        self.samples.times.clear();
        self.samples.values.clear();
        self.samples.spans.clear();
        self.order.clear();
        for idx in range.clone() {
            for place in selection.places_of(idx) {
                self.order.push((*place, self.order.len() as u32));
            }
        }
        self.order.sort_unstable();
        self.spans.clear();
        self.spans.resize(self.order.len(), 0..0);
        let column_of = |place: &Place| (place.view, place.group, place.column);
        for same in self.order.chunk_by(|a, b| column_of(&a.0) == column_of(&b.0)) {
            let place = &same[0].0;
            self.slots.clear();
            self.slots.extend(same.iter().map(|(place, _)| place.slot));
            let request = ColumnRequest {
                view: &selection.views[usize::from(place.view)],
                group: place.group as usize,
                column: place.column,
                slots: &self.slots,
                range: selection.range,
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
