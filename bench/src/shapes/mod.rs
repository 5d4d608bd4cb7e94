//! Ugly shapes: what production sends and a benchmark of equal hosts does not.
//!
//! A shape is two pure functions: `point(n)`, the n-th sample in order of sending, and
//! `labels(series)`. So shares of workers, protocols and repeats need no thought: worker w sends
//! every count-th request. Adding a shape is one file and one line in [`SHAPES`].

mod backfill;
mod churn;
mod long_values;
mod one_sample;
mod out_of_order;
mod random_labels;
mod requests;
pub mod unique_names;

use crate::payload::Protocol;
use crate::random::{mix_pair, unit};
use crate::workload::{LabelSet, RequestFormat, Requests, Share, Workload};
use anyhow::{Context, Result, ensure};

/// What all shapes are given; each uses what it needs.
#[derive(Clone, Copy, Debug)]
pub struct ShapeScale {
    /// Series at any one time.
    pub series: u64,
    /// Samples of each.
    pub samples_each: u64,
    /// Distance between two samples of a series.
    pub interval_ns: i64,
    /// The first instant.
    pub start_ns: i64,
    /// Chooses labels and values.
    pub seed: u64,
}

impl ShapeScale {
    /// The times of the first and the last row of shapes that send row after row.
    fn rows_span_ns(&self) -> (i64, i64) {
        (self.start_ns, self.start_ns + (self.samples_each as i64 - 1) * self.interval_ns)
    }
}

/// A sample in order of sending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Which series, as [`Shape::labels`] knows it.
    pub series: u64,
    /// When.
    pub timestamp_ns: i64,
    /// What.
    pub value: f64,
}

/// A kind of data.
pub trait Shape: Sync {
    /// How many series there are in the end.
    fn series(&self) -> u64;
    /// How many samples there are.
    fn samples(&self) -> u64;
    /// The times of the first and the last sample.
    fn span_ns(&self) -> (i64, i64);
    /// How many series the first `samples` samples belong to.
    fn series_of(&self, samples: u64) -> u64 {
        // Most shapes send a sample of each series, then the next of each.
        samples.min(self.series())
    }
    /// The `n`-th sample in order of sending.
    fn point(&self, n: u64) -> Point;
    /// Fills in a series' labels; `labels` is empty.
    fn labels(&self, series: u64, labels: &mut LabelSet);
}

type Build = fn(ShapeScale) -> Box<dyn Shape>;

/// All shapes: name, what it is, how to make it.
pub const SHAPES: [(&str, &str, Build); 7] = [
    ("random-labels", "10 labels each from 1,000 names and 100,000 values", random_labels::build),
    ("churn", "pods of which 10 % are replaced every hour", churn::build),
    ("one-sample", "each series has one sample", one_sample::build),
    ("long-values", "5 label values of 200 bytes each", long_values::build),
    ("out-of-order", "samples up to an hour late", out_of_order::build),
    ("backfill", "series after series, 5 years of each", backfill::build),
    (
        "unique-names",
        "each series has a metric name, label name and value of its own",
        unique_names::build,
    ),
];

/// A shape under its name.
pub struct ShapeWorkload {
    name: &'static str,
    shape: Box<dyn Shape>,
}

impl ShapeWorkload {
    /// The shape of that name.
    ///
    /// # Errors
    /// When there is none, or the scale is empty.
    pub fn new(name: &str, scale: ShapeScale) -> Result<ShapeWorkload> {
        let (name, _, build) = SHAPES
            .iter()
            .find(|(known, _, _)| *known == name)
            .with_context(|| format!("no shape {name:?}, use one of {}", names().join(", ")))?;
        ensure!(scale.series > 0 && scale.samples_each > 0, "--series and --samples must be > 0");
        ensure!(scale.interval_ns > 0, "--interval must be longer than nothing");
        Ok(ShapeWorkload { name, shape: build(scale) })
    }

    /// A shape made by hand.
    pub fn of(name: &'static str, shape: Box<dyn Shape>) -> ShapeWorkload {
        ShapeWorkload { name, shape }
    }
}

impl Workload for ShapeWorkload {
    fn name(&self) -> String {
        format!("shape {}", self.name)
    }

    fn series(&self) -> u64 {
        self.shape.series()
    }

    fn samples(&self) -> u64 {
        self.shape.samples()
    }

    fn span_ns(&self) -> (i64, i64) {
        self.shape.span_ns()
    }

    fn unsupported(&self, protocol: Protocol) -> Option<String> {
        (protocol == Protocol::Copy).then(|| "a shape has no wide rows to COPY".to_string())
    }

    fn series_of(&self, samples: u64) -> u64 {
        self.shape.series_of(samples)
    }

    fn requests(&self, share: Share, format: RequestFormat) -> Box<dyn Requests + '_> {
        Box::new(requests::ShapeRequests::new(self.shape.as_ref(), share, format))
    }
}

/// The names of all shapes.
pub fn names() -> Vec<&'static str> {
    SHAPES.iter().map(|(name, _, _)| *name).collect()
}

/// A plausible value: every other series is a counter with its own rate, the others are gauges
/// with two decimals around a level of their own.
fn plausible_value(seed: u64, series: u64, row: u64) -> f64 {
    let nature = mix_pair(seed, series);
    let noise = unit(mix_pair(nature, row));
    if nature & 1 == 0 {
        let rate = (nature >> 32) % 1000 + 1;
        (row * rate + (noise * rate as f64) as u64) as f64
    } else {
        let level = ((nature >> 32) % 10_000) as f64;
        (level + (noise * 500.0).round()) / 100.0
    }
}

#[cfg(test)]
mod tests;
