//! Everything that is wrong with a part that opens: page by page, so that one bad page hides no
//! other, and what is lost with each.

use crate::Result;
use crate::base::narrow::to_u32;
use crate::part::liveness::{DayRuns, Liveness};
use crate::part::reader::Check;
use crate::part::{ColumnTimes, Part, Slice};
use model::TimeRange;
use roaring::RoaringBitmap;

/// Pages whose faults are listed; a part with more is as good as lost.
pub const PAGES_LISTED_MAX: usize = 100_000;

/// A page that cannot be read.
#[derive(Debug)]
pub struct BadPage {
    /// Index of the slice.
    pub slice: usize,
    /// The columns that are lost with it.
    pub columns: Vec<u32>,
    /// What is wrong.
    pub what: String,
    /// Ordinals of the series that lose samples, or may.
    pub series: RoaringBitmap,
    /// When.
    pub range: TimeRange,
}

/// What is wrong with a part.
#[derive(Debug, Default)]
pub struct PartFaults {
    /// Pages that cannot be read.
    pub pages: Vec<BadPage>,
    /// What does not hold beside them.
    pub others: Vec<String>,
    /// The series that have readable samples.
    pub live: RoaringBitmap,
    /// Samples that were decoded.
    pub samples: u64,
}

impl PartFaults {
    /// Reads all of a part.
    pub fn of(part: &Part) -> PartFaults {
        let mut finder = Finder::default();
        for idx in 0..part.slices().len() {
            finder.slice(part, idx);
            if PAGES_LISTED_MAX < finder.found.pages.len() {
                finder.found.others.push("more bad pages than are listed".into());
                break;
            }
        }
        finder.days(part);
        finder.found
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.others.is_empty()
    }
}

/// Buffers.
#[derive(Default)]
struct Finder {
    found: PartFaults,
    liveness: Liveness,
    shared: Times,
    own: Times,
    values: Vec<f64>,
}

/// One list of timestamps, decoded.
#[derive(Default)]
pub(crate) struct Times {
    /// How many each slot has.
    pub lens: Vec<u32>,
    /// One slot after the other.
    pub times: Vec<i64>,
    days: DayRuns,
}

impl Times {
    /// Reads the shared timestamps of a slice; `false` when it has none.
    pub fn read_shared(&mut self, part: &Part, idx: usize) -> Result<bool> {
        let Some(reader) = part.shared_times_with(idx, Check::Always)? else { return Ok(false) };
        part.read_all_times(idx, &reader, &mut self.times)?;
        self.set_lens(reader.lens());
        Ok(true)
    }

    /// Reads a column's own timestamps.
    pub fn read_own(&mut self, part: &Part, idx: usize, column: usize) -> Result<()> {
        let reader = part.own_times_with(idx, column, Check::Always)?;
        part.read_all_times(idx, &reader, &mut self.times)?;
        self.set_lens(reader.lens());
        Ok(())
    }

    fn set_lens(&mut self, lens: &[u32]) {
        self.lens.clear();
        self.lens.extend_from_slice(lens);
        self.days.compute(&self.lens, &self.times);
    }

    /// Replaces `values` by a column's values at these times.
    pub fn read_values(
        &self,
        part: &Part,
        idx: usize,
        column: usize,
        values: &mut Vec<f64>,
    ) -> Result<()> {
        values.clear();
        let reader = part.values_with(idx, column, &self.lens, Check::Always)?;
        let read = reader.read(0..self.lens.len(), values);
        read.map_err(|error| part.corrupt_slice(idx, error.what))?;
        match !self.times.is_empty() && values.len() == self.times.len() {
            true => Ok(()),
            false => Err(part.corrupt_slice(idx, "a value for each timestamp")),
        }
    }

    fn span(&self) -> Option<TimeRange> {
        let (min, max) = (self.times.iter().min()?, self.times.iter().max()?);
        Some(TimeRange::new(*min, *max))
    }
}

impl Finder {
    fn slice(&mut self, part: &Part, idx: usize) {
        let slice = &part.slice(idx);
        let bad_pages = self.found.pages.len();
        let mut span = None;
        let shared = self.shared.read_shared(part, idx);
        if let Err(error) = &shared {
            self.shared_is_lost(part, idx, error.without_file());
        } else if matches!(shared, Ok(true)) {
            widen(&mut span, self.shared.span());
        }
        let mut samples = 0;
        for column in 0..slice.columns as usize {
            samples += match part.column_times(idx, column) {
                ColumnTimes::Empty => 0,
                ColumnTimes::Shared if shared.is_err() => 0,
                ColumnTimes::Shared => self.shared_column(part, idx, column),
                ColumnTimes::Own => self.own_column(part, idx, column, &mut span),
            };
        }
        self.found.samples += samples;
        let is_whole = self.found.pages.len() == bad_pages;
        let said = TimeRange::new(slice.min_ts, slice.max_ts);
        if is_whole && (samples != slice.samples || span != Some(said)) {
            let what = part.corrupt_slice(idx, "counts and span that agree").without_file();
            self.found.others.push(what);
        }
    }

    fn shared_column(&mut self, part: &Part, idx: usize, column: usize) -> u64 {
        let first = part.slice(idx).ordinal(column, 0);
        if let Err(error) = self.shared.read_values(part, idx, column, &mut self.values) {
            let page = values_lost(&self.shared, part, idx, column, error.without_file());
            self.found.pages.push(page);
            return 0;
        }
        self.liveness.add(first, &self.shared.days);
        self.values.len() as u64
    }

    fn own_column(
        &mut self,
        part: &Part,
        idx: usize,
        column: usize,
        span: &mut Option<TimeRange>,
    ) -> u64 {
        let slice = &part.slice(idx);
        if let Err(error) = self.own.read_own(part, idx, column) {
            let page = BadPage {
                slice: idx,
                columns: vec![to_u32(column)],
                what: error.without_file(),
                series: column_series(slice, column),
                range: TimeRange::new(slice.min_ts, slice.max_ts),
            };
            self.found.pages.push(page);
            return 0;
        }
        if let Err(error) = self.own.read_values(part, idx, column, &mut self.values) {
            let page = values_lost(&self.own, part, idx, column, error.without_file());
            self.found.pages.push(page);
            return 0;
        }
        widen(span, self.own.span());
        self.liveness.add(slice.ordinal(column, 0), &self.own.days);
        self.values.len() as u64
    }

    fn shared_is_lost(&mut self, part: &Part, idx: usize, what: String) {
        let slice = &part.slice(idx);
        let is_shared = |column: &usize| part.column_times(idx, *column) == ColumnTimes::Shared;
        let columns: Vec<usize> = (0..slice.columns as usize).filter(is_shared).collect();
        let mut series = RoaringBitmap::new();
        columns.iter().for_each(|column| series |= column_series(slice, *column));
        let columns = columns.iter().map(|column| to_u32(*column)).collect();
        let range = TimeRange::new(slice.min_ts, slice.max_ts);
        self.found.pages.push(BadPage { slice: idx, columns, what, series, range });
    }

    /// The sets of each day, against what was decoded.
    fn days(&mut self, part: &Part) {
        let expected = self.liveness.finish();
        match part.live_days() {
            Err(error) => self.found.others.push(error.without_file()),
            Ok(found) => {
                let is_same = expected.iter().eq(found.iter().map(|(day, set)| (day, set)));
                if self.found.pages.is_empty() && !is_same {
                    self.found.others.push("the sets of series of its days do not agree".into());
                }
            }
        }
        expected.values().for_each(|set| self.found.live |= set);
    }
}

/// What is lost with the values of a column whose timestamps are known.
fn values_lost(times: &Times, part: &Part, idx: usize, column: usize, what: String) -> BadPage {
    let slice = &part.slice(idx);
    let with_samples = times.lens.iter().enumerate().filter(|(_, len)| 0 < **len);
    BadPage {
        slice: idx,
        columns: vec![to_u32(column)],
        what,
        series: with_samples.map(|(slot, _)| slice.ordinal(column, slot)).collect(),
        range: times.span().unwrap_or(TimeRange::new(slice.min_ts, slice.max_ts)),
    }
}

fn column_series(slice: &Slice, column: usize) -> RoaringBitmap {
    let first = slice.ordinal(column, 0);
    RoaringBitmap::from_iter(first..=first + (slice.slots - 1))
}

fn widen(span: &mut Option<TimeRange>, with: Option<TimeRange>) {
    let Some(with) = with else { return };
    *span = Some(match *span {
        None => with,
        Some(span) => TimeRange::new(span.start.min(with.start), span.end.max(with.end)),
    });
}
