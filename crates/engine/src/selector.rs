//! From a selector to rows: which samples each step sees.
//!
//! A step at time t looks at the window `(t - range, t]`, open on the left. An instant selector
//! is the same with the lookback as range, of which it takes the newest sample. Windows move
//! forward with the steps, so two indexes that only grow find all of them in one pass; series
//! that were scraped together share their timestamps, so the windows of one series serve the
//! next ones too, after one comparison of the lists.
//!
//! Rows come in the source's order, one series at a time: nothing here holds more than one series'
//! samples, but for the batches that threads make ahead when there are many: of rows, which are
//! smaller than samples, where nobody asks for these.

use crate::context::{Collision, Context};
use crate::error::{QueryError, Result};
use crate::gap::{ABSENT, is_absent};
use crate::histograms::edges::interpolate_steps;
use crate::histograms::notes::Notes;
use crate::histograms::samples::{MixedSamples, MixedWindows};
use crate::histograms::select::{MixedMaker, MixedVisitor};
use crate::names::{Key, NameState, without_metadata};
use crate::names_kept::demands_one_name;
use crate::read_ahead::{
    SERIES_PER_CHECK, SampleBatch, batch_len, read_ahead, read_labels, threads_for,
};
use crate::rollup::EdgedWindows;
use crate::row::{Row, RowSink, RowVisitor, SeriesVisitor, Wanted};
use crate::rows::{RowBatch, RowMaker};
use crate::source::SeriesSet;
use crate::staleness::{NewestRows, StaleFilter};
use crate::time::{Grid, Reference, seconds};
use crate::vector::Vector;
use crate::windows::Windows;
use model::{Labels, Matcher, TimeRange};
use promql::{At, Edges, VectorSelector};
use std::collections::HashSet;
use std::ops::Range;
use std::time::Instant;

/// As many at first when rows are watched for collisions.
const SERIES_WATCHED: usize = 16;

/// How many threads read the series of a range; less than two: none but the caller.
fn threads_for_series(set: &dyn SeriesSet, range: &Range<usize>) -> usize {
    threads_for(range.len() / batch_len(set))
}

/// How far the series of a selector are read.
struct SeriesReader<'a> {
    set: &'a dyn SeriesSet,
    wanted: Wanted<'a>,
    next: usize,
    labels: Vec<Labels>,
}

impl Context<'_> {
    /// Where a selector with these modifiers looks from the steps of `grid`.
    pub fn reference(&self, grid: Grid, at: Option<At>, offset_ms: i64) -> Reference {
        let fixed_ms = match at {
            None => None,
            Some(At::Timestamp(ms)) => Some(ms),
            Some(At::Start) => Some(self.start_ms),
            Some(At::End) => Some(self.end_ms),
        };
        Reference {
            first_ms: fixed_ms.unwrap_or(grid.start_ms).saturating_sub(offset_ms),
            step_ms: if fixed_ms.is_some() { 0 } else { grid.step_ms },
            len: grid.len,
        }
    }

    /// Calls `visit` with the labels and samples of every series that matches one of `sets` and has
    /// samples in `range`, in the source's order. Labels that are not `wanted` may be missing, and
    /// histograms are left out.
    pub fn read_series(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        wanted: Wanted<'_>,
        visit: &mut SeriesVisitor<'_>,
    ) -> Result<()> {
        match self.select(sets, range)? {
            Some(set) => self.read_series_of(&*set, wanted, visit),
            None => Ok(()),
        }
    }

    /// As [`Context::read_series`] with the histograms.
    pub fn read_samples(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        wanted: Wanted<'_>,
        visit: &mut MixedVisitor<'_>,
    ) -> Result<()> {
        let Some(set) = self.select(sets, range)? else { return Ok(()) };
        if set.has_histograms() {
            return self.read_mixed(&*set, visit);
        }
        self.read_series_of(&*set, wanted, &mut |labels, times, values| {
            visit(labels, &MixedSamples::numbers(times, values))
        })
    }

    fn read_series_of(
        &self,
        set: &dyn SeriesSet,
        wanted: Wanted<'_>,
        visit: &mut SeriesVisitor<'_>,
    ) -> Result<()> {
        let left = self.read_alone(set, wanted, visit)?;
        if left.is_empty() {
            return Ok(());
        }
        let (batch_len, threads) = (batch_len(set), threads_for_series(set, &left));
        let begin = || {
            |range, batch: &mut SampleBatch| {
                batch.read(set, range, wanted).map_err(QueryError::from)
            }
        };
        read_ahead(left, batch_len, threads, &begin, |batch| {
            self.check()?;
            let mut samples = 0;
            for (labels, timestamps, values) in batch.series() {
                samples += timestamps.len() as u64;
                if !timestamps.is_empty() {
                    visit(labels, timestamps, values)?;
                }
            }
            self.count_samples_read(samples);
            Ok(())
        })
    }

    /// As [`Context::read_series`] for who wants rows of `steps` values: calls `visit` with what
    /// `begin`'s makers make of each series, or what `mixed` makes where there may be histograms.
    /// The row of a series without samples may be left out.
    pub fn read_rows<M: RowMaker>(
        &self,
        (sets, range): (&[Vec<Matcher>], TimeRange),
        wanted: Wanted<'_>,
        steps: usize,
        begin: &(impl Fn() -> M + Sync),
        mixed: &mut MixedMaker<'_>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        let Some(set) = self.select(sets, range)? else { return Ok(()) };
        if set.has_histograms() {
            return self.read_mixed_rows(&*set, steps, mixed, visit);
        }
        self.read_rows_of(&*set, wanted, steps, begin, |labels, row| visit(labels, row, &[]))
    }

    /// As [`Context::read_rows`] for who knows no histograms, and passes them over.
    pub fn read_number_rows<M: RowMaker>(
        &self,
        (sets, range): (&[Vec<Matcher>], TimeRange),
        wanted: Wanted<'_>,
        steps: usize,
        begin: &(impl Fn() -> M + Sync),
        visit: impl FnMut(&Labels, &[f64]) -> Result<()>,
    ) -> Result<()> {
        let Some(set) = self.select(sets, range)? else { return Ok(()) };
        self.read_rows_of(&*set, wanted, steps, begin, visit)
    }

    fn read_rows_of<M: RowMaker>(
        &self,
        set: &dyn SeriesSet,
        wanted: Wanted<'_>,
        steps: usize,
        begin: &(impl Fn() -> M + Sync),
        mut visit: impl FnMut(&Labels, &[f64]) -> Result<()>,
    ) -> Result<()> {
        let (mut maker, mut row) = (begin(), vec![ABSENT; steps]);
        let left = self.read_alone(set, wanted, &mut |labels, timestamps, values| {
            maker.make(timestamps, values, &mut row)?;
            visit(labels, &row)
        })?;
        if left.is_empty() {
            return Ok(());
        }
        let threads = threads_for_series(set, &left);
        let batch_len = RowBatch::len_max(batch_len(set), steps, left.len() / threads);
        let begin = || {
            let mut maker = begin();
            move |range, batch: &mut RowBatch| batch.read(set, range, wanted, steps, &mut maker)
        };
        read_ahead(left, batch_len, threads, &begin, |batch| {
            self.check()?;
            self.count_samples_read(batch.samples());
            batch.rows(steps).try_for_each(|(labels, row)| visit(labels, row))?;
            batch.take_failure()
        })
    }

    /// Selects series; `None` when there is no time in which they could have samples.
    fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
    ) -> Result<Option<Box<dyn SeriesSet + '_>>> {
        self.check()?;
        if range.is_empty() {
            return Ok(None);
        }
        let began = Instant::now();
        let set = self.source.select(sets, range, &self.select_limits())?;
        self.count_series(set.len(), began);
        Ok(Some(set))
    }

    /// Visits series until threads pay; returns which are left for them.
    fn read_alone(
        &self,
        set: &dyn SeriesSet,
        wanted: Wanted<'_>,
        visit: &mut SeriesVisitor<'_>,
    ) -> Result<Range<usize>> {
        let mut reader = SeriesReader { set, wanted, next: 0, labels: Vec::new() };
        // Rows that are watched most often collide soon, and need few labels from then on.
        let mut count = SERIES_WATCHED;
        while self.collision.get() == Collision::Watched && reader.next < set.len() {
            self.read_some(&mut reader, count, visit)?;
            count = (2 * count).min(SERIES_PER_CHECK);
        }
        if 1 < threads_for_series(set, &(reader.next..set.len())) {
            return Ok(reader.next..set.len());
        }
        while reader.next < set.len() {
            self.read_some(&mut reader, SERIES_PER_CHECK, visit)?;
        }
        Ok(set.len()..set.len())
    }

    /// Visits up to `count` more series.
    fn read_some(
        &self,
        reader: &mut SeriesReader<'_>,
        count: usize,
        visit: &mut SeriesVisitor<'_>,
    ) -> Result<()> {
        self.check()?;
        let SeriesReader { set, wanted, next, labels } = reader;
        let start = *next;
        *next = (start + count).min(set.len());
        let mut failure: Option<QueryError> = None;
        let mut samples = 0u64;
        read_labels(*set, start..*next, self.wanted_now(*wanted), labels)?;
        set.read(start..*next, &mut |idx, timestamps, values| {
            if timestamps.is_empty() || failure.is_some() {
                return;
            }
            debug_assert_eq!(timestamps.len(), values.len());
            samples += timestamps.len() as u64;
            failure = visit(&labels[idx - start], timestamps, values).err();
        })?;
        self.count_samples_read(samples);
        failure.map_or(Ok(()), Err)
    }

    /// All labels while rows are watched for collisions.
    fn wanted_now<'w>(&self, wanted: Wanted<'w>) -> Wanted<'w> {
        if self.collision.get() == Collision::Watched { None } else { wanted }
    }

    /// The rows of an instant selector.
    pub fn stream_selector(
        &self,
        selector: &VectorSelector,
        grid: Grid,
        wanted: Wanted<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<()> {
        let reference = self.reference(grid, selector.at, selector.offset_ms);
        if selector.edges == Edges::Smoothed {
            return self.stream_smoothed(selector, reference, wanted, sink);
        }
        let lookback_ms = self.options.lookback_ms;
        let range = Windows::new(reference, lookback_ms).time_range();
        let (tally, mut windows) = (self.tally(), None);
        self.read_rows(
            (std::slice::from_ref(&selector.matchers), range),
            wanted,
            grid.len,
            &|| NewestRows { windows: Windows::new(reference, lookback_ms), tally },
            &mut |_, samples, row, cells| {
                let new = || MixedWindows::new(reference, lookback_ms);
                windows.get_or_insert_with(new).newest(samples, row, cells);
                if let Some(tally) = tally {
                    tally.add_newest(row, cells);
                }
                Ok(())
            },
            &mut |labels, values, cells| {
                sink(&Row { labels, name: NameState::Kept, values, cells })
            },
        )
    }

    /// As [`Context::stream_selector`] for a selector that is interpolated.
    fn stream_smoothed(
        &self,
        selector: &VectorSelector,
        reference: Reference,
        wanted: Wanted<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<()> {
        let (edges, lookback_ms) = (selector.edges, self.options.lookback_ms);
        let windows = EdgedWindows { edges, reference, range_ms: 0, lookback_ms };
        let mut row = vec![ABSENT; reference.len];
        let mut filter = StaleFilter::default();
        let mut notes = Notes::default();
        let tally = self.tally();
        let sets = std::slice::from_ref(&selector.matchers);
        self.read_samples(sets, windows.time_range(), wanted, &mut |labels, samples| {
            let (times, values) = filter.apply(samples.times, samples.values);
            if let Some(tally) = tally {
                tally.add_around(&windows, &MixedSamples { times, values, ..*samples });
            }
            let mut cells = Vec::new();
            if samples.histograms.is_empty() {
                windows.interpolate(times, values, &mut row);
            } else {
                cells.resize(row.len(), None);
                let samples = MixedSamples { times, values, ..*samples };
                interpolate_steps(&windows, &samples, (&mut row, &mut cells), &mut notes);
                notes.tell(self, labels.metric_name(), selector.span);
            }
            sink(&Row { labels, name: NameState::Kept, values: &row, cells: &cells })
        })
    }

    /// As [`Context::stream_selector`], with the samples' times in seconds for values. Calls `check`
    /// with the labels of each series that has histograms among them.
    pub fn selector_times(
        &self,
        selector: &VectorSelector,
        grid: Grid,
        check: impl Fn(&Labels) -> Result<()>,
    ) -> Result<Vector> {
        let reference = self.reference(grid, selector.at, selector.offset_ms);
        let mut windows = Windows::new(reference, self.options.lookback_ms);
        let mut row = vec![ABSENT; grid.len];
        let mut vector = Vector::new(self, grid.len);
        let range = windows.time_range();
        let (tally, mut mixed) = (self.tally(), None);
        let sets = std::slice::from_ref(&selector.matchers);
        self.read_samples(sets, range, None, &mut |labels, samples| {
            if samples.histograms.is_empty() {
                let MixedSamples { times, values, .. } = samples;
                for (value, (low, high)) in row.iter_mut().zip(windows.of(times)) {
                    let is_there = low < high && !is_absent(values[*high as usize - 1]);
                    *value = if is_there { seconds(times[*high as usize - 1]) } else { ABSENT };
                }
            } else {
                let new = || MixedWindows::new(reference, self.options.lookback_ms);
                if mixed.get_or_insert_with(new).newest_times(samples, &mut row) {
                    check(labels)?;
                }
            }
            if let Some(tally) = tally {
                tally.add_newest(&row, &[]);
            }
            vector.push(self, Key::new(labels.clone()), &row)
        })?;
        Ok(vector)
    }
}

/// Refuses rows that have equal labels once their names are gone.
pub(crate) struct Uniqueness {
    /// Fingerprints of the labels seen; `None` when the rows cannot collide.
    seen: Option<HashSet<u128>>,
}

impl Uniqueness {
    /// For rows of a selector: one that demands one name cannot give two equal label sets.
    pub fn of_selector(selector: &VectorSelector, name: NameState) -> Uniqueness {
        match demands_one_name(selector) {
            true => Uniqueness { seen: None },
            false => Uniqueness::new(name),
        }
    }

    /// Whether rows need all their labels.
    pub fn is_needed(&self) -> bool {
        self.seen.is_some()
    }

    /// Whether a watched row collides with an earlier one.
    pub fn collides(&mut self, row: &Row<'_>) -> bool {
        self.add(row).is_err()
    }

    /// For any rows.
    pub fn new(name: NameState) -> Uniqueness {
        Uniqueness { seen: (name == NameState::Dropped).then(HashSet::new) }
    }

    /// Counts a row in.
    pub fn add(&mut self, row: &Row<'_>) -> Result<()> {
        let Some(seen) = &mut self.seen else { return Ok(()) };
        if row.values.iter().all(|value| is_absent(*value)) {
            return Ok(());
        }
        if seen.insert(without_metadata(row.labels).fingerprint()) {
            Ok(())
        } else {
            Err(QueryError::same_labels())
        }
    }
}
