//! What a script is run against: where its samples go, and who answers its queries.
//!
//! ```text
//! script ─ parse ─> commands ─ run ─┬─ load ─> Subject: samples in memory, a store, a server
//!                                   └─ ask ──> Subject ─> Answer ─> compared with the script
//! ```
//!
//! An [`Answer`] holds what every subject can tell, so the same expectations hold for all of them.
//! Of histograms a server's JSON tells less than the engine: [`Found::Shown`].

use super::parse::Times;
use crate::options::QueryOptions;
use crate::query::{instant, range};
use crate::result::{Matrix, QueryResult, Sample, Value};
use crate::time::StepRange;
use crate::{MemorySource, Source};
use histogram::{BucketRange, Histogram, nearly};
use model::Labels;
use model::sample::NANOS_PER_MILLI;
use std::fmt;

/// Takes the samples of a script and answers its queries.
pub trait Subject {
    /// Forgets all samples.
    fn clear(&mut self);

    /// Takes samples and their start timestamps; one at the same time as an earlier one of its
    /// series replaces it.
    ///
    /// # Errors
    /// Samples that are not taken; the text says why.
    fn load(&mut self, series: &[LoadedSeries]) -> Result<(), String>;

    /// Evaluates an expression.
    ///
    /// # Errors
    /// The query fails, or no answer comes.
    fn ask(&mut self, text: &str, times: Times) -> Result<Answer, Unanswered>;
}

/// A series and its samples.
pub type LoadedSeries = (Labels, Vec<LoadedSample>);

/// A sample of a `load`.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedSample {
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// Since when it counts, in milliseconds since the epoch, if it says so; never 0.
    pub start_ms: Option<i64>,
    /// What it tells.
    pub loaded: Loaded,
}

/// What a sample of a `load` tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Loaded {
    /// A number.
    Number(f64),
    /// A histogram, with the reset hint that Prometheus' store would tell of it.
    Histogram(Box<Histogram>),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The query failed, with this message.
    Failed(String),
    /// Whoever was asked did not say anything that could be an answer.
    Broken(String),
}

/// What a query gave.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its value.
    pub value: Answered,
    /// Texts that say why the value may be wrong.
    pub warnings: Vec<String>,
    /// Texts that say why the value may surprise.
    pub infos: Vec<String>,
}

/// The value of a query.
#[derive(Clone, Debug)]
pub enum Answered {
    /// A number.
    Scalar(f64),
    /// A string.
    String(String),
    /// One sample per series, in the order of the answer.
    Vector(Vec<(Labels, Found)>),
    /// Samples by time, milliseconds, of each series.
    Matrix(Vec<(Labels, Vec<(i64, Found)>)>),
}

/// A sample of an answer.
#[derive(Clone)]
pub enum Found {
    /// A number.
    Number(f64),
    /// A histogram.
    Histogram(Box<Histogram>),
    /// What is shown of a histogram.
    Shown(Box<ShownHistogram>),
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Number(value) => write!(f, "{value}"),
            Found::Histogram(histogram) => f.write_str(&histogram.to_notation()),
            Found::Shown(shown) => shown.fmt(f),
        }
    }
}

/// A histogram as Prometheus' API shows it: neither schema nor reset hint, no empty bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownHistogram {
    /// All observations.
    pub count: f64,
    /// Of their values.
    pub sum: f64,
    /// Buckets with observations, by rising values.
    pub buckets: Vec<BucketRange>,
}

impl ShownHistogram {
    /// Whether it shows `histogram`, but for small differences of counts and sums.
    pub fn shows(&self, histogram: &Histogram) -> bool {
        let expected: Vec<BucketRange> =
            histogram.ascending().filter(|bucket| bucket.count != 0.0).collect();
        nearly(histogram.count, self.count)
            && nearly(histogram.sum, self.sum)
            && expected.len() == self.buckets.len()
            && expected.iter().zip(&self.buckets).all(|(expected, found)| {
                nearly(expected.count, found.count)
                    && BucketRange { count: found.count, ..*expected } == *found
            })
    }
}

/// Samples in memory, evaluated in place.
pub struct InMemory {
    source: MemorySource,
    options: QueryOptions,
}

impl InMemory {
    /// No samples; evaluations have these options.
    pub fn new(options: QueryOptions) -> InMemory {
        InMemory { source: MemorySource::new(), options }
    }
}

impl Subject for InMemory {
    fn clear(&mut self) {
        self.source.clear();
    }

    fn load(&mut self, series: &[LoadedSeries]) -> Result<(), String> {
        for (labels, samples) in series {
            for LoadedSample { at_ms, start_ms, loaded } in samples {
                let timestamp = at_ms * NANOS_PER_MILLI;
                if let Some(start_ms) = start_ms {
                    self.source.append_start(labels, timestamp, *start_ms);
                }
                match loaded {
                    Loaded::Number(value) => self.source.append(labels, timestamp, *value),
                    Loaded::Histogram(histogram) => {
                        self.source.append_histogram(labels, timestamp, (**histogram).clone());
                    }
                }
            }
        }
        Ok(())
    }

    fn ask(&mut self, text: &str, times: Times) -> Result<Answer, Unanswered> {
        ask_source(&self.source, text, times, &self.options)
    }
}

/// Asks the engine, over any source.
///
/// # Errors
/// The query fails.
pub fn ask_source(
    source: &dyn Source,
    text: &str,
    times: Times,
    options: &QueryOptions,
) -> Result<Answer, Unanswered> {
    let result = match times {
        Times::Instant(at_ms) => instant(source, text, at_ms, options),
        Times::Range(start_ms, end_ms, step_ms) => {
            range(source, text, StepRange { start_ms, end_ms, step_ms }, options)
        }
    };
    result.map(Answer::from).map_err(|error| Unanswered::Failed(error.to_string()))
}

impl From<QueryResult> for Answer {
    fn from(result: QueryResult) -> Answer {
        let value = match result.value {
            Value::Scalar(value) => Answered::Scalar(value),
            Value::String(text) => Answered::String(text),
            Value::Vector(samples) => Answered::Vector(samples.into_iter().map(found_of).collect()),
            Value::Matrix(matrix) => {
                let series = |idx| (matrix.labels(idx).clone(), points_of(&matrix, idx));
                Answered::Matrix((0..matrix.len()).map(series).collect())
            }
        };
        Answer { value, warnings: result.warnings, infos: result.infos }
    }
}

fn found_of(sample: Sample) -> (Labels, Found) {
    match sample.histogram {
        Some(histogram) => (sample.labels, Found::Histogram(histogram)),
        None => (sample.labels, Found::Number(sample.value)),
    }
}

/// All samples of a series, oldest first.
fn points_of(matrix: &Matrix, idx: usize) -> Vec<(i64, Found)> {
    let numbers = matrix.points(idx).map(|(time, value)| (time, Found::Number(value)));
    let histograms = matrix.histograms(idx);
    let histograms = histograms.map(|(time, one)| (time, Found::Histogram(Box::new(one.clone()))));
    let mut points: Vec<(i64, Found)> = numbers.chain(histograms).collect();
    points.sort_by_key(|(time, _)| *time);
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use histogram::parse_notation;

    #[test]
    fn what_is_shown_is_compared_bucket_by_bucket() {
        let text = "{{schema:1 count:7 sum:3 z_bucket:1 z_bucket_w:0.5 buckets:[2 0 4]}}";
        let (noted, _) = parse_notation(text).unwrap();
        let histogram = noted.histogram;
        let filled = histogram.ascending().filter(|bucket| bucket.count != 0.0);
        let shown = ShownHistogram { count: 7.0, sum: 3.0, buckets: filled.collect() };
        assert_eq!(shown.buckets.len(), 3);
        assert!(shown.shows(&histogram));
        let mut changed = [(); 5].map(|()| shown.clone());
        changed[0].count = 8.0;
        changed[1].sum = 4.0;
        changed[2].buckets[1].count = 3.0;
        changed[3].buckets[2].has_upper = false;
        changed[4].buckets.truncate(2);
        for other in changed {
            assert!(!other.shows(&histogram), "{other:?}");
        }
    }
}
