//! Which times changed since when: what a cache of answers has to know.
//!
//! ```text
//! version    counts up whenever a reader takes one; writers mark with the present one
//! partition  pages of 512 spans of 8.6 s, for each the version of its newest change:
//!
//!            page 0        page 1 (4)                      page 2        ...
//!            -             [- - 4 4 - - 3 - ... ]          -
//! ```
//!
//! A reader takes a version *before* it selects. Writers mark under the partition's write lock, a
//! selection holds the read lock: what the selection did not see is marked with a later version.
//! What it did see may be marked so too, which only costs the reader work.
//!
//! Marked are samples appended and deleted. Flushes and merges change no answer. What the retention hides is told by the instant that it has reached.

use crate::base::narrow::to_usize;
use model::{Row, TimeRange, Timestamp};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Bits of nanoseconds in a span: 8.6 seconds, less than most dashboards have between steps.
const SPAN_BITS: u32 = 33;
/// Spans of a page: 73 minutes, 4 KiB.
const SPANS_PER_PAGE: usize = 512;
/// Pages of a partition that know their spans: 256 KiB. Others know only of the page as a whole.
const DETAILED_MAX: usize = 64;
/// Of these, how many still do after a flush.
const DETAILED_KEPT: usize = 32;

/// The clock that changes are told by, one of a store.
#[derive(Debug)]
pub struct ChangeClock {
    version: AtomicU64,
    /// The latest instant that the retention has reached.
    hidden_before: AtomicI64,
}

impl Default for ChangeClock {
    fn default() -> ChangeClock {
        ChangeClock { version: AtomicU64::new(1), hidden_before: AtomicI64::new(i64::MIN) }
    }
}

impl ChangeClock {
    /// What writers mark with. To be asked for under the partition's write lock.
    pub fn now(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// A version to ask with what has changed since. To be taken before what is to be kept is
    /// selected.
    pub fn take_version(&self) -> u64 {
        self.version.fetch_add(1, Ordering::AcqRel)
    }

    /// The latest instant that the retention has reached.
    pub fn hidden_before(&self) -> Timestamp {
        self.hidden_before.load(Ordering::Acquire)
    }

    /// Notes that samples before an instant are hidden.
    pub fn note_hidden(&self, before: Timestamp) {
        self.hidden_before.fetch_max(before, Ordering::AcqRel);
    }
}

/// The changes of one partition.
pub struct ChangedTimes {
    /// The time of the partition.
    period: TimeRange,
    /// By time; none before the first change.
    pages: Vec<Page>,
    /// How many pages know their spans.
    detailed: usize,
}

#[derive(Default)]
struct Page {
    /// The version of the newest change, 0 for none.
    newest: u64,
    /// The same of each span.
    spans: Option<Box<[u64; SPANS_PER_PAGE]>>,
}

impl ChangedTimes {
    /// No change in a partition.
    pub fn new(period: TimeRange) -> ChangedTimes {
        assert!(!period.is_empty(), "a partition has some time");
        ChangedTimes { period, pages: Vec::new(), detailed: 0 }
    }

    /// Marks the times of rows, which are of this partition.
    #[inline]
    pub fn note_rows(&mut self, rows: &[Row], version: u64) {
        let mut last = usize::MAX;
        for row in rows {
            let span = self.span_of(row.timestamp);
            // Rows that come together are most often of one time.
            if span != last {
                self.mark(span, version);
                last = span;
            }
        }
    }

    /// Marks one time, which is of this partition.
    pub fn note(&mut self, timestamp: Timestamp, version: u64) {
        self.mark(self.span_of(timestamp), version);
    }

    /// Marks a range of time, by whole pages.
    pub fn note_range(&mut self, range: &TimeRange, version: u64) {
        let range = range.intersect(&self.period);
        if range.is_empty() {
            return;
        }
        self.begin();
        let first = self.span_of(range.start) / SPANS_PER_PAGE;
        let last = self.span_of(range.end) / SPANS_PER_PAGE;
        for page in &mut self.pages[first..=last] {
            page.newest = version;
            self.detailed -= usize::from(page.spans.take().is_some());
        }
    }

    /// Frees what is known of spans, but of the pages that changed last.
    pub fn trim(&mut self) {
        self.keep_detailed(DETAILED_KEPT);
    }

    /// Frees what is known of spans: nobody writes here at the moment.
    pub fn rest(&mut self) {
        self.keep_detailed(0);
    }

    /// Appends the times in `range` that changed after `version`.
    pub fn since(&self, version: u64, range: &TimeRange, out: &mut Vec<TimeRange>) {
        let range = range.intersect(&self.period);
        if range.is_empty() || self.pages.is_empty() {
            return;
        }
        let (first, last) = (self.span_of(range.start), self.span_of(range.end));
        let pages = first / SPANS_PER_PAGE..=last / SPANS_PER_PAGE;
        for (page, number) in self.pages[pages.clone()].iter().zip(pages) {
            if page.newest <= version {
                continue;
            }
            let start = number * SPANS_PER_PAGE;
            let Some(spans) = &page.spans else {
                push(out, self.times(start, start + SPANS_PER_PAGE - 1));
                continue;
            };
            for (mark, span) in spans.iter().zip(start..) {
                if version < *mark && (first..=last).contains(&span) {
                    push(out, self.times(span, span));
                }
            }
        }
    }

    #[inline]
    fn span_of(&self, timestamp: Timestamp) -> usize {
        debug_assert!(self.period.contains(timestamp));
        to_usize(timestamp.wrapping_sub(self.period.start).cast_unsigned() >> SPAN_BITS)
    }

    /// The instants from one span to another.
    fn times(&self, first: usize, last: usize) -> TimeRange {
        debug_assert!(first <= last, "spans in order");
        let at = |span: usize| self.period.start.saturating_add((span as i64) << SPAN_BITS);
        TimeRange::new(at(first), at(last + 1).saturating_sub(1).min(self.period.end))
    }

    fn begin(&mut self) {
        if self.pages.is_empty() {
            let last = self.span_of(self.period.end) / SPANS_PER_PAGE;
            self.pages.resize_with(last + 1, Page::default);
        }
    }

    fn mark(&mut self, span: usize, version: u64) {
        self.begin();
        let page = &mut self.pages[span / SPANS_PER_PAGE];
        debug_assert!(page.newest <= version, "the clock goes on");
        if page.spans.is_none() && self.detailed < DETAILED_MAX {
            // When each span changed is no longer known, at the latest with the page.
            page.spans = Some(Box::new([page.newest; SPANS_PER_PAGE]));
            self.detailed += 1;
        }
        page.newest = version;
        if let Some(spans) = &mut page.spans {
            spans[span % SPANS_PER_PAGE] = version;
        }
    }

    fn keep_detailed(&mut self, count: usize) {
        if self.detailed <= count {
            return;
        }
        let detailed = self.pages.iter().enumerate().filter(|(_, page)| page.spans.is_some());
        let mut by_age: Vec<(u64, usize)> = detailed.map(|(idx, p)| (p.newest, idx)).collect();
        assert_eq!(by_age.len(), self.detailed);
        by_age.sort_unstable();
        for (_, idx) in &by_age[..by_age.len() - count] {
            self.pages[*idx].spans = None;
        }
        self.detailed = count;
    }
}

/// Appends a range, or draws the last one out when it begins where that ends.
fn push(out: &mut Vec<TimeRange>, range: TimeRange) {
    match out.last_mut() {
        Some(last) if last.end.saturating_add(1) == range.start => last.end = range.end,
        _ => out.push(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartitionLength;

    const SPAN: i64 = 1 << SPAN_BITS;
    const PAGE: i64 = SPAN * SPANS_PER_PAGE as i64;
    /// Pages of a month of 31 days.
    const PAGES: i64 = ((31 * model::sample::NANOS_PER_DAY) >> SPAN_BITS) / 512 + 1;

    fn period() -> TimeRange {
        PartitionLength::Month.period(600).unwrap().range()
    }

    fn rows(times: &[i64]) -> Vec<Row> {
        let at = |time: &i64| Row {
            hash: 0,
            timestamp: period().start + time,
            key_offset: 0,
            key_size: 0,
            shape: 0,
            values_start: 0,
            position: 0,
        };
        times.iter().map(at).collect()
    }

    /// Changes since a version, as (first, last) spans of the partition.
    #[track_caller]
    fn check(changed: &ChangedTimes, version: u64, expected: &[(i64, i64)]) {
        let mut found = Vec::new();
        changed.since(version, &TimeRange::ALL, &mut found);
        let start = period().start;
        let spans: Vec<(i64, i64)> =
            found.iter().map(|r| ((r.start - start) / SPAN, (r.end - start) / SPAN)).collect();
        assert_eq!(spans, expected);
    }

    #[test]
    fn changes_are_told_by_span_and_version() {
        let mut changed = ChangedTimes::new(period());
        check(&changed, 0, &[]);
        changed.note_rows(&rows(&[0, 1, 5 * SPAN, 6 * SPAN, 6 * SPAN + 1]), 1);
        changed.note_rows(&rows(&[5 * SPAN - 1, 3 * PAGE]), 2);
        check(&changed, 0, &[(0, 0), (4, 6), (1536, 1536)]);
        check(&changed, 1, &[(4, 4), (1536, 1536)]);
        check(&changed, 2, &[]);
        let mut found = Vec::new();
        let start = period().start + 6 * SPAN;
        changed.since(0, &TimeRange::new(start, start), &mut found);
        assert_eq!(found, [TimeRange::new(start, start + SPAN - 1)]);
        changed.since(0, &TimeRange::new(period().end + 1, i64::MAX), &mut found);
        assert_eq!(found.len(), 1, "another partition's times are not asked for");
    }

    #[test]
    fn ranges_are_marked_by_pages() {
        let mut changed = ChangedTimes::new(period());
        changed.note_rows(&rows(&[0, 2 * PAGE]), 1);
        let at = |time: i64| period().start + time;
        changed.note_range(&TimeRange::new(at(PAGE + 5), at(2 * PAGE)), 3);
        check(&changed, 0, &[(0, 0), (512, 1535)]);
        check(&changed, 2, &[(512, 1535)]);
        changed.note_range(&TimeRange::ALL, 4);
        let mut found = Vec::new();
        changed.since(3, &TimeRange::ALL, &mut found);
        assert_eq!(found, [period()]);
        changed.note_range(&TimeRange::new(0, 1), 5);
        check(&changed, 4, &[]);
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_counts_as_changed() {
        let mut changed = ChangedTimes::new(period());
        for page in 0..PAGES - 10 {
            changed.note_rows(&rows(&[page * PAGE + SPAN]), 1 + page as u64);
        }
        assert_eq!(changed.detailed, DETAILED_MAX);
        // The first pages know their spans, a later one only itself.
        check(&changed, PAGES as u64 - 11, &[((PAGES - 11) * 512, (PAGES - 10) * 512 - 1)]);
        changed.trim();
        assert_eq!(changed.detailed, DETAILED_KEPT);
        let mut found = Vec::new();
        changed.since(0, &TimeRange::new(period().start, period().start + PAGE - 1), &mut found);
        assert_eq!(found, [TimeRange::new(period().start, period().start + PAGE - 1)]);
        changed.rest();
        assert_eq!(changed.detailed, 0);
        // A page that gets its spans back knows of none when it changed, but at the latest.
        changed.note_rows(&rows(&[9 * SPAN]), 1000);
        check(&changed, 999, &[(9, 9)]);
        changed.since(0, &TimeRange::new(period().start, period().start), &mut found);
        assert_eq!(found.len(), 2);
    }
}
