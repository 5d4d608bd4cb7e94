//! Series from here and from elsewhere as one list.
//!
//! ```text
//! here       a  c  d           (in the order of their labels, so that it does not depend on
//! elsewhere  a  b  d            what was copied meanwhile)
//! list       a  b  c  d
//! ```

use super::{FoundSeries, Grain};
use crate::base::narrow::to_u32;
use crate::{Result, Selection};
use hashbrown::HashMap;
use histogram::Histogram;
use model::sample::NANOS_PER_MILLI;
use model::{Labels, TimeRange, Timestamp};
use std::cmp::Ordering;
use std::ops::Range;

/// Takes floats and histograms of a series.
type Sink<'a> = dyn FnMut(usize, &[i64], &[f64], &[i64], &[Histogram]) + 'a;
/// Reads series that are here.
type ReadOwn<'a> = dyn FnMut(Range<usize>, &mut Sink<'_>) -> Result<()> + 'a;

/// Reads labels of series that are here.
type ReadLabels<'a> = dyn FnMut(Range<usize>, &mut dyn FnMut(Labels)) -> Result<()> + 'a;

/// That a series is not there.
const NONE: u32 = u32::MAX;

/// The series of a selection that asked elsewhere.
pub(crate) struct Joined {
    list: Vec<Whence>,
    found: Vec<FoundSeries>,
    has_histograms: bool,
}

/// Where a series is.
#[derive(Clone, Copy)]
struct Whence {
    /// How many series before it are here.
    own_before: u32,
    is_own: bool,
    /// Its place among those from elsewhere, or none.
    found: u32,
}

/// Where a series that is here stands among those from elsewhere: before one of them, or as that one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    Before(u32),
    At(u32),
}

impl Ord for Rank {
    fn cmp(&self, other: &Rank) -> Ordering {
        let key = |rank: &Rank| match *rank {
            Rank::Before(at) => (at, 0),
            Rank::At(at) => (at, 1),
        };
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Rank) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The rank of each series among those found, which are sorted. Most are the same series: one is found by
/// its hash sooner than by its place.
fn ranks_among(found: &[FoundSeries], own: &[Labels]) -> Vec<Rank> {
    if own.is_empty() {
        return Vec::new();
    }
    let places: HashMap<&[u8], u32> =
        found.iter().map(|series| series.labels.as_bytes()).zip(0u32..).collect();
    let rank = |labels: &Labels| match places.get(labels.as_bytes()) {
        Some(at) => Rank::At(*at),
        None => Rank::Before(to_u32(found.partition_point(|series| series.labels < *labels))),
    };
    own.iter().map(rank).collect()
}

/// Buffers for a series that is in both places.
#[derive(Default)]
struct Both {
    times: Vec<Timestamp>,
    values: Vec<f64>,
    histogram_times: Vec<Timestamp>,
    histograms: Vec<Histogram>,
}

impl Joined {
    /// One list of what was found elsewhere, sorted by labels, and what is here: returns in which
    /// order that stands from now on.
    pub fn new(found: Vec<FoundSeries>, own: Vec<Labels>) -> (Joined, Vec<u32>) {
        debug_assert!(found.is_sorted_by(|a, b| a.labels < b.labels), "sorted, each once");
        let ranks = ranks_among(&found, &own);
        let mut order: Vec<u32> = (0..to_u32(own.len())).collect();
        order.sort_by(|a, b| {
            let [a, b] = [*a as usize, *b as usize];
            ranks[a].cmp(&ranks[b]).then_with(|| own[a].cmp(&own[b]))
        });
        let mut list = Vec::with_capacity(own.len().max(found.len()));
        let mut next = 0;
        for (own_before, idx) in (0u32..).zip(&order) {
            let (at, is_both) = match ranks[*idx as usize] {
                Rank::At(at) => (at, true),
                Rank::Before(at) => (at, false),
            };
            for found in next..at {
                list.push(Whence { own_before, is_own: false, found });
            }
            next = at + u32::from(is_both);
            list.push(Whence { own_before, is_own: true, found: if is_both { at } else { NONE } });
        }
        let own_before = to_u32(order.len());
        let rest = next..to_u32(found.len());
        list.extend(rest.map(|found| Whence { own_before, is_own: false, found }));
        let has_histograms = found.iter().any(|series| !series.histograms.is_empty());
        (Joined { list, found, has_histograms }, order)
    }

    /// How many series there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// How many floats from elsewhere there are for each series.
    pub fn samples_each(&self) -> u64 {
        let all: usize = self.found.iter().map(|series| series.times.len()).sum();
        (all / self.list.len().max(1)) as u64
    }

    /// Whether any from elsewhere has histograms.
    pub fn has_histograms(&self) -> bool {
        self.has_histograms
    }

    /// Calls `sink` with the labels of each series of a range, in order.
    pub fn read_labels(
        &self,
        range: Range<usize>,
        read_own: &mut ReadLabels<'_>,
        sink: &mut dyn FnMut(usize, Labels),
    ) -> Result<()> {
        let mut next = range.start;
        read_own(self.own_of(&range), &mut |labels| {
            while !self.list[next].is_own {
                sink(next, self.found[self.list[next].found as usize].labels.clone());
                next += 1;
            }
            sink(next, labels);
            next += 1;
        })?;
        for idx in next..range.end {
            sink(idx, self.found[self.list[idx].found as usize].labels.clone());
        }
        Ok(())
    }

    /// Calls `sink` with the samples of each series of a range, in order.
    pub fn read(
        &self,
        range: Range<usize>,
        read_own: &mut ReadOwn<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let (mut next, mut both) = (range.start, Both::default());
        read_own(self.own_of(&range), &mut |_, times, values, histogram_times, histograms| {
            while !self.list[next].is_own {
                self.give_found(next, sink);
                next += 1;
            }
            match self.found.get(self.list[next].found as usize) {
                None => sink(next, times, values, histogram_times, histograms),
                Some(found) => {
                    both.floats((times, values), found, histogram_times);
                    both.histograms((histogram_times, histograms), found, times);
                    let Both { times, values, histogram_times, histograms } = &both;
                    sink(next, times, values, histogram_times, histograms);
                }
            }
            next += 1;
        })?;
        (next..range.end).for_each(|idx| self.give_found(idx, sink));
        Ok(())
    }

    fn give_found(&self, idx: usize, sink: &mut Sink<'_>) {
        let series = &self.found[self.list[idx].found as usize];
        let FoundSeries { times, values, histogram_times, histograms, .. } = series;
        sink(idx, times, values, histogram_times, histograms);
    }

    /// Those of a range that are here.
    fn own_of(&self, range: &Range<usize>) -> Range<usize> {
        let before = |idx: usize| match self.list.get(idx) {
            Some(whence) => whence.own_before as usize,
            None => self
                .list
                .last()
                .map_or(0, |last| last.own_before as usize + usize::from(last.is_own)),
        };
        before(range.start)..before(range.end)
    }
}

impl Both {
    /// Floats of both places; none from elsewhere where something is here.
    fn floats(&mut self, own: (&[i64], &[f64]), found: &FoundSeries, taken: &[i64]) {
        let Both { times, values, .. } = self;
        times.clear();
        values.clear();
        let theirs = Theirs { times: &found.times, values: &found.values, grain: found.grain };
        merge(own, theirs, taken, (times, values), |value| *value);
    }

    /// The same of histograms.
    fn histograms(&mut self, own: (&[i64], &[Histogram]), found: &FoundSeries, taken: &[i64]) {
        let Both { histogram_times, histograms, .. } = self;
        histogram_times.clear();
        histograms.clear();
        let (times, values) = (&found.histogram_times, &found.histograms);
        let theirs = Theirs { times, values, grain: found.grain };
        merge(own, theirs, taken, (histogram_times, histograms), Histogram::clone);
    }
}

/// Samples of another database.
struct Theirs<'a, V> {
    times: &'a [i64],
    values: &'a [V],
    grain: Grain,
}

/// Whether a sample that is here, not before `time`, is the one that another database has at that time:
/// most know milliseconds alone, and who wrote nanoseconds to both wrote one sample.
fn is_same(at: Timestamp, time: Timestamp, grain: Grain) -> bool {
    let is_cut = grain == Grain::Milli && time % NANOS_PER_MILLI == 0;
    at == time || (is_cut && at.saturating_sub(time) < NANOS_PER_MILLI)
}

/// Whether all samples of another database are older than those that are here, which is so where a copy has
/// come to between them.
fn is_all_before(theirs: &[i64], own: &[i64]) -> bool {
    match (theirs.last(), own.first()) {
        (Some(last), Some(first)) => last.saturating_add(NANOS_PER_MILLI) <= *first,
        _ => true,
    }
}

/// Joins two sorted lists; of equal times the first one's counts, and where something is `taken`
/// the second one's does not.
fn merge<V>(
    (own_times, own_values): (&[i64], &[V]),
    Theirs { times, values, grain }: Theirs<'_, V>,
    mut taken: &[i64],
    (out_times, out_values): (&mut Vec<i64>, &mut Vec<V>),
    copy: impl Fn(&V) -> V,
) {
    if taken.is_empty() && is_all_before(times, own_times) {
        out_times.extend_from_slice(times);
        out_times.extend_from_slice(own_times);
        out_values.extend(values.iter().map(&copy));
        out_values.extend(own_values.iter().map(copy));
        return;
    }
    let mut own = own_times.iter().zip(own_values).peekable();
    for (time, value) in times.iter().zip(values) {
        while let Some((at, one)) = own.next_if(|(at, _)| **at < *time) {
            out_times.push(*at);
            out_values.push(copy(one));
        }
        while taken.first().is_some_and(|at| *at < *time) {
            taken = &taken[1..];
        }
        let is_here = own.peek().is_some_and(|(at, _)| is_same(**at, *time, grain));
        if !is_here && taken.first() != Some(time) {
            out_times.push(*time);
            out_values.push(copy(value));
        }
    }
    for (at, one) in own {
        out_times.push(*at);
        out_values.push(copy(one));
    }
}

impl FoundSeries {
    /// Adds the samples of another series of these labels; of equal times those that are here
    /// count.
    pub(crate) fn join(&mut self, other: FoundSeries) {
        let mut both = Both::default();
        both.floats((&self.times, &self.values), &other, &self.histogram_times);
        both.histograms((&self.histogram_times, &self.histograms), &other, &self.times);
        let Both { times, values, histogram_times, histograms } = both;
        let labels = std::mem::take(&mut self.labels);
        let grain = if self.grain == other.grain { self.grain } else { Grain::Milli };
        *self = FoundSeries { labels, times, values, histogram_times, histograms, grain };
    }
}

/// Leaves what a selection may hold: samples of a range, by time, each time once and in one list.
pub(crate) fn tidy(series: &mut FoundSeries, range: &TimeRange) {
    let FoundSeries { times, values, histogram_times, histograms, .. } = series;
    tidy_list(times, values, range);
    tidy_list(histogram_times, histograms, range);
    if !histogram_times.is_empty() {
        let taken = std::mem::take(histogram_times);
        let whole = std::mem::take(histograms);
        for (time, histogram) in taken.into_iter().zip(whole) {
            if times.binary_search(&time).is_err() {
                histogram_times.push(time);
                histograms.push(histogram);
            }
        }
    }
}

fn tidy_list<V>(times: &mut Vec<i64>, values: &mut Vec<V>, range: &TimeRange) {
    values.truncate(times.len());
    times.truncate(values.len());
    let is_good = times.is_sorted_by(|a, b| a < b);
    let is_within = |time: Option<&i64>| time.is_none_or(|time| range.contains(*time));
    if is_good && is_within(times.first()) && is_within(times.last()) {
        return;
    }
    let mut pairs: Vec<(i64, V)> = times.drain(..).zip(values.drain(..)).collect();
    pairs.retain(|(time, _)| range.contains(*time));
    // Stable: of equal times the last one came last.
    pairs.sort_by_key(|(time, _)| *time);
    pairs.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            std::mem::swap(next, kept);
        }
        is_same
    });
    (*times, *values) = pairs.into_iter().unzip();
}

impl Selection {
    /// This selection with what was found elsewhere.
    pub(crate) fn joined_with(mut self, found: Vec<FoundSeries>) -> Result<Selection> {
        let own = self.labels_of(0..self.len())?;
        let (joined, order) = Joined::new(found, own);
        self.limits().check_series(joined.len())?;
        self.put_in_order(joined, &order);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(name: &str) -> Labels {
        Labels::from_pairs(&[("__name__", name)])
    }

    fn found(name: &str, times: &[i64]) -> FoundSeries {
        let values = times.iter().map(|time| -(*time as f64)).collect();
        FoundSeries { labels: labels(name), times: times.to_vec(), values, ..Default::default() }
    }

    fn histogram(count: f64) -> Histogram {
        Histogram { count, ..Histogram::default() }
    }

    /// Series of `own`, each with the samples (1, 1) and (3, 3).
    fn read_own(range: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        range.for_each(|idx| sink(idx, &[1, 3], &[1.0, 3.0], &[], &[]));
        Ok(())
    }

    #[test]
    fn series_of_both_places_are_one_list_by_labels() {
        let own: Vec<Labels> = ["d", "a", "c"].map(labels).to_vec();
        let there = vec![found("a", &[2, 3, 4]), found("b", &[7]), found("e", &[8])];
        let (joined, order) = Joined::new(there, own.clone());
        assert_eq!(order, [1, 2, 0]);
        assert_eq!(joined.len(), 5);
        for (start, end) in [(0, 5), (0, 1), (1, 2), (1, 4), (4, 5), (3, 3), (5, 5)] {
            let mut names = String::new();
            let mut own_labels = |range: Range<usize>, sink: &mut dyn FnMut(Labels)| {
                range.for_each(|at| sink(own[order[at] as usize].clone()));
                Ok(())
            };
            let mut name = |_: usize, labels: Labels| names.push_str(labels.metric_name());
            joined.read_labels(start..end, &mut own_labels, &mut name).unwrap();
            assert_eq!(names, "abcde"[start..end]);
            let (mut next, mut times) = (start, Vec::new());
            let mut sink = |idx: usize, some: &[i64], values: &[f64], _: &[i64], _: &[_]| {
                assert_eq!((idx, some.len()), (next, values.len()));
                next += 1;
                times.push(some.to_vec());
            };
            joined.read(start..end, &mut read_own, &mut sink).unwrap();
            let all: [&[i64]; 5] = [&[1, 2, 3, 4], &[7], &[1, 3], &[1, 3], &[8]];
            assert_eq!(times, all[start..end]);
        }
    }

    #[test]
    fn of_equal_times_ours_counts() {
        let mut there = found("a", &[-1, 1, 2, 3, 9]);
        there.histogram_times = vec![3, 4, 5];
        there.histograms = vec![histogram(30.0), histogram(40.0), histogram(50.0)];
        let (joined, _) = Joined::new(vec![there], vec![labels("a")]);
        assert!(joined.has_histograms());
        let mut own = |_: Range<usize>, sink: &mut Sink<'_>| {
            sink(0, &[1, 3], &[1.0, 3.0], &[2, 5], &[histogram(2.0), histogram(5.0)]);
            Ok(())
        };
        let mut seen = Vec::new();
        let mut sink = |_: usize, t: &[i64], v: &[f64], ht: &[i64], h: &[Histogram]| {
            let counts: Vec<f64> = h.iter().map(|one| one.count).collect();
            seen.push((t.to_vec(), v.to_vec(), ht.to_vec(), counts));
        };
        joined.read(0..1, &mut own, &mut sink).unwrap();
        let (times, values, histogram_times, counts) = seen.remove(0);
        assert_eq!(times, [-1, 1, 3, 9]);
        assert_eq!(values, [1.0, 1.0, 3.0, -9.0]);
        assert_eq!((histogram_times, counts), (vec![2, 4, 5], vec![2.0, 40.0, 5.0]));
    }

    #[test]
    fn a_sample_of_nanoseconds_is_the_one_of_its_millisecond() {
        let milli = NANOS_PER_MILLI;
        let theirs = [4 * milli, 5 * milli, 6 * milli, 7 * milli + 1, -milli];
        let own = [5 * milli + 137, 6 * milli + 999_999, 7 * milli + 2, -1];
        let joined = |theirs: &[i64], own: &[i64], grain: Grain| {
            let (mut times, mut values) = (Vec::new(), Vec::new());
            let (zeros, ones) = (vec![0; own.len()], vec![1; theirs.len()]);
            let out = (&mut times, &mut values);
            let theirs = Theirs { times: theirs, values: &ones, grain };
            merge((own, &zeros), theirs, &[], out, |value| *value);
            times
        };
        let all = [4 * milli, own[0], own[1], theirs[3], own[2]];
        assert_eq!(joined(&theirs[..4], &own[..3], Grain::Milli), all);
        assert_eq!(joined(&theirs[4..], &own[3..], Grain::Milli), [-1]);
        // Of who knows nanoseconds these are other samples.
        assert_eq!(joined(&theirs[..4], &own[..3], Grain::Nano).len(), 7);
        assert_eq!(joined(&[5 * milli, 7 * milli], &[5 * milli], Grain::Nano).len(), 2);
        assert_eq!(joined(&[0], &[milli - 1], Grain::Milli), [milli - 1], "the same millisecond");
        assert_eq!(joined(&[0], &[milli], Grain::Milli), [0, milli]);
        assert_eq!(joined(&[], &own[..2], Grain::Milli), own[..2]);
        assert_eq!(joined(&theirs[..3], &[], Grain::Milli), theirs[..3]);
    }

    #[test]
    fn what_comes_is_made_good() {
        let range = TimeRange::new(2, 8);
        let mut good = found("a", &[2, 5, 8]);
        tidy(&mut good, &range);
        assert_eq!(good, found("a", &[2, 5, 8]));
        let mut bad = found("a", &[9, 5, 1, 5, 3]);
        bad.values[3] = 7.0;
        bad.values.push(1.0);
        bad.histogram_times = vec![4, 5, 9];
        bad.histograms = vec![histogram(1.0)];
        tidy(&mut bad, &range);
        assert_eq!((bad.times, bad.values), (vec![3, 5], vec![-3.0, 7.0]));
        assert_eq!(bad.histogram_times, [4], "as many times as histograms, none that is a float's");
        let mut one = found("a", &[1, 5]);
        one.join(FoundSeries { values: vec![0.0; 3], ..found("a", &[4, 5, 6]) });
        assert_eq!((one.times, one.values), (vec![1, 4, 5, 6], vec![-1.0, 0.0, -5.0, 0.0]));
    }
}
