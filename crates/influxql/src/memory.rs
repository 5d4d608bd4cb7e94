//! A source in memory, for tests.

use crate::ast::DataType;
use crate::source::{EvalError, Fields, Place, SampleSink, SeriesSet, Source};
use model::{Labels, MatchOp, Matcher};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Samples by time.
type Samples = BTreeMap<i64, f64>;
/// By measurement, then field and tags.
type Measurements = BTreeMap<String, Stored>;

#[derive(Default)]
struct Stored {
    fields: Fields,
    series: BTreeMap<(String, Vec<(String, String)>), Samples>,
}

/// One database.
#[derive(Default)]
pub struct MemorySource {
    measurements: Measurements,
    /// What samples of fields of strings are numbers of, from 0.
    texts: Vec<Arc<str>>,
    /// How often series were looked up.
    pub lookups: AtomicUsize,
    /// Bytes of memory that each set of selected series says to hold.
    pub set_size: usize,
}

impl MemorySource {
    /// Adds a sample.
    pub fn add(
        &mut self,
        measurement: &str,
        tags: &[(&str, &str)],
        (field, kind): (&str, DataType),
        (time, value): (i64, f64),
    ) {
        let stored = self.measurements.entry(measurement.to_string()).or_default();
        stored.fields.insert(field.to_string(), kind);
        let mut tags: Vec<(String, String)> =
            tags.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        tags.sort();
        stored.series.entry((field.to_string(), tags)).or_default().insert(time, value);
    }

    /// Adds a string.
    pub fn add_text(
        &mut self,
        measurement: &str,
        tags: &[(&str, &str)],
        field: &str,
        (time, text): (i64, &str),
    ) {
        self.texts.push(text.into());
        let number = (self.texts.len() - 1) as f64;
        self.add(measurement, tags, (field, DataType::String), (time, number));
    }

    fn matching<'s>(
        &'s self,
        place: &'s Place<'_>,
        matchers: &'s [Matcher],
    ) -> impl Iterator<Item = (&'s str, Labels, &'s Samples)> {
        let stored = self.measurements.get(place.measurement);
        let series = stored.into_iter().flat_map(|stored| &stored.series);
        series.filter_map(move |((field, tags), samples)| {
            let labels = Labels::from_pairs(tags);
            let is_match = matchers.iter().all(|matcher| matches(matcher, &labels));
            is_match.then_some((field.as_str(), labels, samples))
        })
    }
}

fn matches(matcher: &Matcher, labels: &Labels) -> bool {
    let value = labels.get(&matcher.name).unwrap_or("");
    let regex = || {
        let parsed = re2::Expression::parse(&matcher.value, false);
        let regex = parsed.and_then(|parsed| parsed.compile_anchored(re2::Limits::new(1 << 20)));
        regex.is_ok_and(|regex| regex.is_match(value))
    };
    match matcher.op {
        MatchOp::Equal => value == matcher.value,
        MatchOp::NotEqual => value != matcher.value,
        MatchOp::Regex => regex(),
        MatchOp::NotRegex => !regex(),
    }
}

impl Source for MemorySource {
    fn has_database(&self, database: &str) -> Result<bool, EvalError> {
        Ok(database == "db" || database == "x")
    }

    fn databases(&self) -> Result<Vec<String>, EvalError> {
        Ok(vec!["db".to_string()])
    }

    fn measurements(&self, _database: &str) -> Result<Vec<String>, EvalError> {
        Ok(self.measurements.keys().cloned().collect())
    }

    fn fields(&self, _database: &str, measurement: &str) -> Result<Fields, EvalError> {
        let stored = self.measurements.get(measurement);
        Ok(stored.map(|stored| stored.fields.clone()).unwrap_or_default())
    }

    fn tag_keys(&self, place: &Place<'_>, matchers: &[Matcher]) -> Result<Vec<String>, EvalError> {
        let mut keys = BTreeSet::new();
        for (_, labels, _) in self.matching(place, matchers) {
            keys.extend(labels.iter().map(|(name, _)| name.to_string()));
        }
        Ok(keys.into_iter().collect())
    }

    fn tag_values(
        &self,
        place: &Place<'_>,
        key: &str,
        matchers: &[Matcher],
    ) -> Result<Vec<String>, EvalError> {
        let found = self.matching(place, matchers);
        let values: BTreeSet<String> =
            found.filter_map(|(_, labels, _)| labels.get(key).map(str::to_string)).collect();
        Ok(values.into_iter().collect())
    }

    fn tag_sets(&self, place: &Place<'_>, matchers: &[Matcher]) -> Result<Vec<Labels>, EvalError> {
        let mut sets: Vec<Labels> =
            self.matching(place, matchers).map(|(_, labels, _)| labels).collect();
        sets.sort();
        sets.dedup();
        Ok(sets)
    }

    fn select(
        &self,
        place: &Place<'_>,
        field: &str,
        matchers: &[Matcher],
    ) -> Result<Box<dyn SeriesSet + '_>, EvalError> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let found = self.matching(place, matchers).filter(|(other, _, _)| *other == field);
        let series = found.filter_map(|(_, labels, samples)| {
            let range = place.range.start..=place.range.end;
            let (times, values): (Vec<i64>, Vec<f64>) = samples.range(range).unzip();
            (!times.is_empty()).then_some((labels, times, values))
        });
        let (series, texts) = (series.collect(), self.texts.clone());
        Ok(Box::new(MemorySet { series, texts, size: self.set_size }))
    }
}

struct MemorySet {
    series: Vec<(Labels, Vec<i64>, Vec<f64>)>,
    texts: Vec<Arc<str>>,
    size: usize,
}

impl SeriesSet for MemorySet {
    fn len(&self) -> usize {
        self.series.len()
    }

    fn memory_size(&self) -> usize {
        self.size
    }

    fn tags(&self, _wanted: Option<&[&str]>) -> Result<Vec<Labels>, EvalError> {
        Ok(self.series.iter().map(|(labels, _, _)| labels.clone()).collect())
    }

    fn text(&self, sample: f64) -> Option<Arc<str>> {
        self.texts.get(sample as usize).cloned()
    }

    fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<(), EvalError> {
        for idx in range {
            let (_, times, values) = &self.series[idx];
            sink(idx, times, values);
        }
        Ok(())
    }
}
