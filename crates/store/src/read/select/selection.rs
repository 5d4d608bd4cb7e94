//! A selection: the series that matched, and their samples on demand.

use super::floats::FloatReader;
use super::places::{Place, Places};
use super::scope::SelectScope;
use super::views::{Views, cost_of_hidden, samples_of, views_of};
use crate::Result;
use crate::base::locks::lock;
use crate::base::narrow::to_usize;
use crate::base::select_limits::{LOOK_COST, SERIES_COST, SelectLimits};
use crate::part::page_headers::PageHeaders;
use crate::partition::Partition;
use crate::read::elsewhere::joined::Joined;
use crate::read::hidden_series::Hidden;
use crate::read::histogram_reader::{HistogramReader, MixedSink, Wanted};
use crate::read::missing::Watch;
use index::{BlockMatch, CompiledMatchers};
use model::{Labels, TimeRange};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Most series whose samples are gathered at once by [`Selection::read`].
const READ_SERIES_MAX: u64 = 512;
/// Columns of blocks up to which the page headers that a selection reads are kept for the next.
/// More would fill the room of all headers, and parsing them is little beside the rest of so large
/// a query.
const HEADERS_KEPT_COLUMNS_MAX: usize = 1 << 14;
/// Samples gathered at once, about: half a megabyte, which stays in a core's cache.
const READ_SAMPLES: u64 = 32 << 10;

/// What takes the samples of a selection: index of the series, timestamps, as many values.
pub type SampleSink<'a> = dyn FnMut(usize, &[i64], &[f64]) + 'a;

/// Matched series and a frozen view of their samples. `Send + Sync`; reads may run in parallel.
pub struct Selection {
    places: Places,
    /// With series from elsewhere, where those were asked for.
    joined: Option<Joined>,
    /// Of those that have histograms.
    hidden: Option<Hidden>,
    scope: SelectScope,
    /// Series gathered at once.
    read_series: usize,
    /// Those that nobody uses just now, so that reads that follow each other find buffers that
    /// have grown already.
    readers: Mutex<Vec<Readers>>,
}

/// Buffers of one thread that reads a selection.
#[derive(Default)]
struct Readers {
    floats: FloatReader,
    histograms: HistogramReader,
}

/// What tells series of one selection apart, and says nothing outside of it. Series of different keys may be
/// alike all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesKeys {
    /// Series that have it differ by their names alone.
    pub entity: u64,
    /// Series that have it have one name.
    pub name: u64,
}

/// How many series of so many samples each are read at once.
fn series_read_at_once(samples_each: u64) -> usize {
    to_usize((READ_SAMPLES / samples_each.max(1)).clamp(16, READ_SERIES_MAX))
}

impl Selection {
    /// Selects from partitions, oldest first, what matchers were compiled to.
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
            limits.check_interrupt()?;
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
            count += to_usize(series);
            // Partitions share series, so this bound is generous.
            limits.check_series(count / partitions.len().max(1))?;
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
        let page_headers = match columns <= HEADERS_KEPT_COLUMNS_MAX {
            true => Arc::clone(page_headers),
            false => Arc::new(PageHeaders::none()),
        };
        let places = Places::new(views, count, (limits, &watch))?;
        limits.check_series(places.len())?;
        let samples_each = (cost / count.max(1) as u64).max(1);
        Ok(Selection {
            places,
            joined: None,
            hidden: Hidden::new(hidden, hidden_lost),
            scope: SelectScope { range, limits: limits.clone(), page_headers, watch },
            read_series: series_read_at_once(samples_each),
            readers: Mutex::default(),
        })
    }

    /// Stands in another order from now on, with series from elsewhere in between.
    pub(crate) fn put_in_order(&mut self, joined: Joined, order: &[u32]) {
        self.places.put_in_order(order);
        // What came has been read already; what is made of it has not.
        let own = self.read_series;
        self.read_series = own.min(series_read_at_once(joined.samples_each()));
        self.joined = Some(joined);
    }

    /// The bounds that it was made with.
    pub(crate) fn limits(&self) -> &SelectLimits {
        &self.scope.limits
    }

    /// How many series matched.
    pub fn len(&self) -> usize {
        self.joined.as_ref().map_or(self.places.len(), Joined::len)
    }

    /// Bytes of memory that the selection has for itself, about. What came from elsewhere has a limit
    /// of its own.
    pub fn memory_size(&self) -> usize {
        let hidden = self.hidden.as_ref().map_or(0, Hidden::memory_size);
        size_of::<Selection>() + self.places.memory_size() + hidden
    }

    /// The same selection, whose reading has no deadline: for streams that take as long as their
    /// clients.
    pub fn without_deadline(mut self) -> Selection {
        self.scope.limits.deadline = None;
        self
    }

    /// How many series are best read at once: about half a megabyte of samples.
    pub fn batch_len(&self) -> usize {
        self.read_series
    }

    /// Whether none did.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether any of the series may have native histograms.
    pub fn has_histograms(&self) -> bool {
        self.hidden.is_some() || self.joined.as_ref().is_some_and(Joined::has_histograms)
    }

    /// What tells series `idx` from others, without its labels.
    pub fn keys(&self, idx: usize) -> SeriesKeys {
        if self.joined.is_some() {
            return SeriesKeys { entity: idx as u64, name: idx as u64 };
        }
        let place = self.places.first_of(idx);
        let block = u64::from(place.view) << 48 | u64::from(place.group) << 16;
        SeriesKeys { entity: block | u64::from(place.slot), name: block | u64::from(place.column) }
    }

    /// The labels of series `idx`.
    ///
    /// # Errors
    /// When the index turns out to be corrupt.
    pub fn labels(&self, idx: usize) -> Result<Labels> {
        if self.joined.is_none() {
            return self.places.labels(idx, &self.scope.watch);
        }
        let mut found = Labels::default();
        self.read_labels(idx..idx + 1, None, &mut |_, labels| found = labels)?;
        Ok(found)
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
        let read_own = |range: Range<usize>, sink: &mut dyn FnMut(&Place, Labels)| {
            let places = range.map(|idx| self.places.first_of(idx));
            self.places.read_labels(places, (wanted, &self.scope.watch), sink)
        };
        if let Some(joined) = &self.joined {
            let mut read_own = |range, sink: &mut dyn FnMut(Labels)| {
                read_own(range, &mut |_, labels| sink(labels))
            };
            return joined.read_labels(range, &mut read_own, sink);
        }
        let mut next = range.start;
        read_own(range, &mut |_, labels| {
            sink(next, labels);
            next += 1;
        })
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
    /// [`crate::Error::Corrupt`], [`crate::Error::DeadlineExceeded`].
    pub fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<()> {
        if self.joined.is_some() {
            return self
                .read_mixed(range, &mut |idx, times, values, _, _| sink(idx, times, values));
        }
        self.read_own(range, sink)
    }

    /// The floats of series that are here.
    fn read_own(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<()> {
        if let Some(hidden) = &self.hidden {
            let mut floats = |idx, times: &[i64], values: &[f64], _: &[i64], _: &[_]| {
                sink(idx, times, values);
            };
            return self.read_hidden(hidden, range, Wanted::Presence, &mut floats);
        }
        self.read_batches(range, &mut |readers, batch| {
            for idx in 0..batch.len() {
                let (times, values) = readers.floats.series(idx);
                sink(batch.start + idx, times, values);
            }
            Ok(())
        })
    }

    /// As [`Selection::read`], with the histograms of each series apart from its floats.
    ///
    /// # Errors
    /// As [`Selection::read`]; [`crate::Error::SeriesDropped`] when a series was deleted meanwhile.
    pub fn read_mixed(&self, range: Range<usize>, sink: &mut MixedSink<'_>) -> Result<()> {
        let mut read_own = |range, sink: &mut MixedSink<'_>| match &self.hidden {
            Some(hidden) => self.read_hidden(hidden, range, Wanted::Everything, sink),
            None => {
                self.read_own(range, &mut |idx, times, values| sink(idx, times, values, &[], &[]))
            }
        };
        match &self.joined {
            Some(joined) => joined.read(range, &mut read_own, sink),
            None => read_own(range, sink),
        }
    }

    fn read_hidden(
        &self,
        hidden: &Hidden,
        range: Range<usize>,
        wanted: Wanted,
        sink: &mut MixedSink<'_>,
    ) -> Result<()> {
        self.read_batches(range, &mut |Readers { floats, histograms }, batch| {
            histograms.read((&self.places, &self.scope, hidden), floats, &batch, wanted, sink)
        })
    }

    /// Gathers the floats of as many series of `range` as are best gathered at once and calls
    /// `read`, until all are done.
    fn read_batches(
        &self,
        range: Range<usize>,
        read: &mut dyn FnMut(&mut Readers, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut readers = lock(&self.readers).pop().unwrap_or_default();
        let mut start = range.start;
        while start < range.end {
            self.scope.limits.check_interrupt()?;
            let end = self.places.gathered_end(start..range.end, self.read_series);
            assert!(start < end && end <= range.end, "some are gathered each time");
            readers.floats.gather(&self.places, &self.scope, &(start..end))?;
            read(&mut readers, start..end)?;
            start = end;
        }
        lock(&self.readers).push(readers);
        Ok(())
    }
}
