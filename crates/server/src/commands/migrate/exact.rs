//! Samples with all that JSON lines can say of them: nanoseconds, native histograms, start timestamps.

use super::series::Series;
use histogram::Histogram;
use model::sample::NANOS_PER_MILLI;
use model::{Labels, TimeRange};
use wire::json_lines::{LineWriter, Times};
use wire::remote_write::encode::MillisSample;
use wire::remote_write::encode_histograms::{CountForm, MillisHistogram};

/// When something was, and since when it counts: nanoseconds, and milliseconds that are 0 where nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// Nanoseconds.
    pub nanos: i64,
    /// Milliseconds.
    pub start_ms: i64,
}

/// Samples of one series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exact {
    /// Whose.
    pub labels: Labels,
    /// Numbers.
    pub samples: Vec<(When, f64)>,
    /// Native histograms.
    pub histograms: Vec<(When, Histogram)>,
}

impl Exact {
    /// How many samples there are of both kinds.
    pub fn len(&self) -> usize {
        self.samples.len() + self.histograms.len()
    }

    /// Only what is of a time.
    pub fn tidy(&mut self, range: &TimeRange) {
        self.samples.retain(|(when, _)| range.contains(when.nanos));
        self.histograms.retain(|(when, _)| range.contains(when.nanos));
    }

    /// Appends them as lines.
    pub fn push_lines(&self, out: &mut Vec<u8>) {
        let writer = LineWriter::default();
        let (timestamps, starts_ms) = split(self.samples.iter().map(|(when, _)| *when));
        let values: Vec<f64> = self.samples.iter().map(|(_, value)| *value).collect();
        let times = Times { timestamps: &timestamps, starts_ms: &starts_ms };
        writer.push_series(out, &self.labels, times, &values);
        let (timestamps, starts_ms) = split(self.histograms.iter().map(|(when, _)| *when));
        let histograms: Vec<Histogram> =
            self.histograms.iter().map(|(_, histogram)| histogram.clone()).collect();
        let times = Times { timestamps: &timestamps, starts_ms: &starts_ms };
        writer.push_histograms(out, &self.labels, times, &histograms);
    }

    /// The same in milliseconds, of equal ones the last.
    pub fn into_series(self) -> Series {
        let millis = |when: &When| when.nanos.div_euclid(NANOS_PER_MILLI);
        let sample =
            |(when, value): &(When, f64)| MillisSample { millis: millis(when), value: *value };
        let histogram = |(when, histogram): &(When, Histogram)| MillisHistogram {
            millis: millis(when),
            histogram: histogram.clone(),
            form: CountForm::Float,
        };
        let mut series = Series {
            samples: self.samples.iter().map(sample).collect(),
            histograms: self.histograms.iter().map(histogram).collect(),
            labels: self.labels,
        };
        series.tidy(&TimeRange::ALL);
        series
    }
}

fn split(whens: impl Iterator<Item = When>) -> (Vec<i64>, Vec<i64>) {
    whens.map(|when| (when.nanos, when.start_ms)).unzip()
}
