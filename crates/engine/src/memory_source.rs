//! A source in memory: for tests and test scripts. Simple, not fast.

use crate::source::{LabelSink, SampleSink, SelectLimits, SeriesSet, Source, SourceError};
use model::{Labels, MatchOp, Matcher, TimeRange};
use regex::Regex;
use std::collections::BTreeMap;
use std::ops::Range;

/// Series by labels, samples by time in nanoseconds.
#[derive(Default)]
pub struct MemorySource {
    series: BTreeMap<Labels, BTreeMap<i64, f64>>,
}

impl MemorySource {
    /// A source without series.
    pub fn new() -> MemorySource {
        MemorySource::default()
    }

    /// Adds a sample; one at the same time is replaced.
    pub fn append(&mut self, labels: &Labels, timestamp: i64, value: f64) {
        match self.series.get_mut(labels) {
            Some(samples) => {
                samples.insert(timestamp, value);
            }
            None => {
                self.series.insert(labels.clone(), BTreeMap::from([(timestamp, value)]));
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.series.clear();
    }
}

impl Source for MemorySource {
    fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Box<dyn SeriesSet + '_>, SourceError> {
        let mut compiled = Vec::new();
        for set in sets {
            let conditions: Result<Vec<_>, _> = set.iter().map(Condition::compile).collect();
            compiled.push(conditions?);
        }
        let series: Vec<_> = self
            .series
            .iter()
            .filter(|(labels, _)| {
                compiled.iter().any(|set| set.iter().all(|condition| condition.matches(labels)))
            })
            .collect();
        if limits.series_max < series.len() {
            return Err(SourceError::LimitExceeded(format!(
                "{} series, the limit is {} (query.max-series)",
                series.len(),
                limits.series_max
            )));
        }
        Ok(Box::new(MemorySet { series, range }))
    }
}

/// A matcher, ready to be asked.
pub(crate) struct Condition<'a> {
    pub matcher: &'a Matcher,
    regex: Option<Regex>,
}

impl Condition<'_> {
    pub fn compile(matcher: &Matcher) -> Result<Condition<'_>, SourceError> {
        let regex = match matcher.op {
            MatchOp::Equal | MatchOp::NotEqual => None,
            MatchOp::Regex | MatchOp::NotRegex => Some(
                Regex::new(&format!("^(?s:{})$", matcher.value))
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
    series: Vec<(&'a Labels, &'a BTreeMap<i64, f64>)>,
    range: TimeRange,
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
            let (timestamps, values): (Vec<i64>, Vec<f64>) = if self.range.is_empty() {
                (Vec::new(), Vec::new())
            } else {
                let samples = self.series[idx].1.range(self.range.start..=self.range.end);
                samples.map(|(timestamp, value)| (*timestamp, *value)).unzip()
            };
            sink(idx, &timestamps, &values);
        }
        Ok(())
    }
}
