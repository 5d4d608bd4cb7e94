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

    /// The same of samples in milliseconds.
    pub fn of_series(series: Series) -> Exact {
        let when =
            |millis: i64| When { nanos: millis.saturating_mul(NANOS_PER_MILLI), start_ms: 0 };
        let samples = series.samples.into_iter().map(|one| (when(one.millis), one.value));
        let histograms = series.histograms.into_iter().map(|one| (when(one.millis), one.histogram));
        Exact {
            labels: series.labels,
            samples: samples.collect(),
            histograms: histograms.collect(),
        }
    }

    /// The same in milliseconds, of equal ones the last.
    pub fn into_series(mut self) -> Series {
        self.samples.sort_by_key(|(when, _)| when.nanos);
        self.histograms.sort_by_key(|(when, _)| when.nanos);
        let millis = |when: When| when.nanos.div_euclid(NANOS_PER_MILLI);
        let sample = |(when, value)| MillisSample { millis: millis(when), value };
        let histogram = |(when, histogram)| MillisHistogram {
            millis: millis(when),
            histogram,
            form: CountForm::Float,
        };
        let mut series = Series {
            labels: self.labels,
            samples: self.samples.into_iter().map(sample).collect(),
            histograms: self.histograms.into_iter().map(histogram).collect(),
            repeated: Vec::new(),
        };
        series.tidy(&TimeRange::ALL);
        series
    }
}

fn split(whens: impl Iterator<Item = When>) -> (Vec<i64>, Vec<i64>) {
    whens.map(|when| (when.nanos, when.start_ms)).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_millisecond_the_last_sample_counts() {
        let at = |nanos, value| (When { nanos, start_ms: 0 }, value);
        let samples = vec![at(2_000_001, 3.0), at(1_999_999, 1.0), at(2_000_000, 2.0)];
        let exact = Exact { samples, ..Exact::default() };
        let series = exact.clone().into_series();
        let sample = |(millis, value)| MillisSample { millis, value };
        assert_eq!(series.samples, [(1, 1.0), (2, 3.0)].map(sample));
        assert_eq!(Exact::of_series(series).samples, [at(1_000_000, 1.0), at(2_000_000, 3.0)]);
        let mut lines = Vec::new();
        exact.push_lines(&mut lines);
        assert!(String::from_utf8(lines).unwrap().contains("[2.000001,1.999999,2]"));
    }
}
