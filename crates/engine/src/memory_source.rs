//! A source in memory: for tests and test scripts. Simple, not fast.

use crate::error::Limit;
use crate::source::{
    LabelSink, MixedSink, SampleSink, SelectLimits, SeriesSet, Source, SourceError,
};
use histogram::Histogram;
use model::{Labels, MatchOp, Matcher, TimeRange};
use std::collections::BTreeMap;
use std::ops::Range;

/// Series by labels, samples by time in nanoseconds.
#[derive(Default)]
pub struct MemorySource {
    series: BTreeMap<Labels, Samples>,
    /// Milliseconds since the epoch by the time of a sample.
    starts: BTreeMap<Labels, Samples>,
}

type Samples = BTreeMap<i64, Stored>;

enum Stored {
    Number(f64),
    Histogram(Histogram),
}

impl MemorySource {
    /// A source without series.
    pub fn new() -> MemorySource {
        MemorySource::default()
    }

    /// Adds a sample; one at the same time is replaced.
    pub fn append(&mut self, labels: &Labels, timestamp: i64, value: f64) {
        self.put(labels, timestamp, Stored::Number(value));
    }

    /// Adds a histogram; a sample at the same time is replaced.
    pub fn append_histogram(&mut self, labels: &Labels, timestamp: i64, histogram: Histogram) {
        // A stale marker ends numbers and histograms alike.
        let stored = match histogram.is_stale() {
            true => Stored::Number(histogram.sum),
            false => Stored::Histogram(histogram),
        };
        self.put(labels, timestamp, stored);
    }

    /// Adds the start timestamp of a sample, in milliseconds since the epoch.
    pub fn append_start(&mut self, labels: &Labels, timestamp: i64, start_ms: i64) {
        let starts = self.starts.entry(labels.clone()).or_default();
        starts.insert(timestamp, Stored::Number(start_ms as f64));
    }

    fn put(&mut self, labels: &Labels, timestamp: i64, stored: Stored) {
        match self.series.get_mut(labels) {
            Some(samples) => {
                samples.insert(timestamp, stored);
            }
            None => {
                self.series.insert(labels.clone(), BTreeMap::from([(timestamp, stored)]));
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.series.clear();
        self.starts.clear();
    }
}

impl Source for MemorySource {
    fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Box<dyn SeriesSet + '_>, SourceError> {
        Ok(Box::new(select_of(&self.series, sets, range, limits)?))
    }

    fn select_starts(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Option<Box<dyn SeriesSet + '_>>, SourceError> {
        let set = select_of(&self.starts, sets, range, limits)?;
        Ok((!set.is_empty()).then(|| Box::new(set) as Box<dyn SeriesSet>))
    }
}

/// The series of a map that match.
fn select_of<'m>(
    map: &'m BTreeMap<Labels, Samples>,
    sets: &[Vec<Matcher>],
    range: TimeRange,
    limits: &SelectLimits,
) -> Result<MemorySet<'m>, SourceError> {
    let sets = store::confine(sets, &limits.filters)
        .map_err(|error| SourceError::Failed(error.to_string()))?;
    let mut compiled = Vec::new();
    for set in sets.iter() {
        let conditions: Result<Vec<_>, _> = set.iter().map(Condition::compile).collect();
        compiled.push(conditions?);
    }
    let series: Vec<_> = map
        .iter()
        .filter(|(labels, _)| {
            compiled.iter().any(|set| set.iter().all(|condition| condition.matches(labels)))
        })
        .collect();
    if limits.series_max < series.len() {
        let (count, max) = (series.len(), limits.series_max);
        let message = format!(
            "{count} series, the limit is {max} (query.max-series). Select fewer series, or raise \
             --query.max-series"
        );
        return Err(SourceError::LimitExceeded { limit: Limit::Series, message });
    }
    Ok(MemorySet { series, range })
}

/// A matcher, ready to be asked.
pub(crate) struct Condition<'a> {
    pub matcher: &'a Matcher,
    regex: Option<re2::Regexp>,
}

impl Condition<'_> {
    pub fn compile(matcher: &Matcher) -> Result<Condition<'_>, SourceError> {
        let regex = match matcher.op {
            MatchOp::Equal | MatchOp::NotEqual => None,
            MatchOp::Regex | MatchOp::NotRegex => Some(
                re2::Expression::parse(&matcher.value, true)
                    .and_then(|parsed| parsed.compile_anchored(re2::Limits::new(10 << 20)))
                    .map_err(|error| SourceError::Failed(error.to_string()))?,
            ),
        };
        Ok(Condition { matcher, regex })
    }

    fn matches(&self, labels: &Labels) -> bool {
        self.matches_value(labels.get(&self.matcher.name).unwrap_or(""))
    }

    pub fn matches_value(&self, value: &str) -> bool {
        let is_match = match &self.regex {
            Some(regex) => regex.is_match(value),
            None => value == self.matcher.value,
        };
        is_match == matches!(self.matcher.op, MatchOp::Equal | MatchOp::Regex)
    }
}

struct MemorySet<'a> {
    series: Vec<(&'a Labels, &'a Samples)>,
    range: TimeRange,
}

impl MemorySet<'_> {
    /// The samples of a series in the selected time.
    fn samples(&self, idx: usize) -> impl Iterator<Item = (&i64, &Stored)> {
        let range = self.range.start..=self.range.end.max(self.range.start);
        let samples = self.series[idx].1.range(range);
        samples.filter(|_| !self.range.is_empty())
    }

    /// Times and values of a series' numbers.
    fn numbers(&self, idx: usize) -> (Vec<i64>, Vec<f64>) {
        let number = |(time, stored): (&i64, &Stored)| match stored {
            Stored::Number(value) => Some((*time, *value)),
            Stored::Histogram(_) => None,
        };
        self.samples(idx).filter_map(number).unzip()
    }
}

impl SeriesSet for MemorySet<'_> {
    fn len(&self) -> usize {
        self.series.len()
    }

    fn labels(&self, idx: usize) -> Result<Labels, SourceError> {
        Ok(self.series[idx].0.clone())
    }

    fn read_labels(
        &self,
        range: Range<usize>,
        _wanted: Option<&[&str]>,
        sink: &mut LabelSink<'_>,
    ) -> Result<(), SourceError> {
        for idx in range {
            sink(idx, self.series[idx].0.clone());
        }
        Ok(())
    }

    fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<(), SourceError> {
        for idx in range {
            let (timestamps, values) = self.numbers(idx);
            sink(idx, &timestamps, &values);
        }
        Ok(())
    }

    fn has_histograms(&self) -> bool {
        let is_histogram = |stored: &Stored| matches!(stored, Stored::Histogram(_));
        (0..self.len()).any(|idx| self.samples(idx).any(|(_, stored)| is_histogram(stored)))
    }

    fn read_mixed(&self, range: Range<usize>, sink: &mut MixedSink<'_>) -> Result<(), SourceError> {
        for idx in range {
            let (timestamps, values) = self.numbers(idx);
            let histogram = |(time, stored): (&i64, &Stored)| match stored {
                Stored::Number(_) => None,
                Stored::Histogram(histogram) => Some((*time, histogram.clone())),
            };
            let (histogram_timestamps, histograms): (Vec<i64>, Vec<Histogram>) =
                self.samples(idx).filter_map(histogram).unzip();
            sink(idx, &timestamps, &values, &histogram_timestamps, &histograms);
        }
        Ok(())
    }
}
