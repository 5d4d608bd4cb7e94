//! Series that a comparison reads in pieces: the end of a piece waits for the next one, which may begin in
//! the same millisecond. A source of nanoseconds ends its pieces anywhere.

use crate::series::Series;
use model::sample::NANOS_PER_MILLI;
use model::{Labels, TimeRange};
use std::collections::BTreeMap;
use wire::json_lines::StringLine;

/// The last sample of each series that came.
#[derive(Default)]
pub struct Tails {
    numbers: BTreeMap<Labels, Series>,
    texts: BTreeMap<Labels, StringLine>,
}

impl Tails {
    /// Takes a piece of a series; returns what no later piece changes.
    pub fn series(&mut self, mut series: Series) -> Series {
        if let Some(mut before) = self.numbers.remove(&series.labels) {
            before.samples.append(&mut series.samples);
            before.histograms.append(&mut series.histograms);
            before.repeated.append(&mut series.repeated);
            before.tidy(&TimeRange::ALL);
            series = before;
        }
        let samples = series.samples.split_off(series.samples.len().saturating_sub(1));
        let histograms = series.histograms.split_off(series.histograms.len().saturating_sub(1));
        let tail =
            Series { labels: series.labels.clone(), samples, histograms, repeated: Vec::new() };
        self.numbers.insert(series.labels.clone(), tail);
        series
    }

    /// Holds back the last text of a line's series.
    pub fn texts(&mut self, mut line: StringLine) -> StringLine {
        if let Some(mut before) = self.texts.remove(&line.labels) {
            before.samples.append(&mut line.samples);
            line = before;
        }
        line.samples.sort_by_key(|(nanos, _)| *nanos);
        let Some(last) = line.samples.pop() else { return line };
        let millis = last.0.div_euclid(NANOS_PER_MILLI);
        // Of equal milliseconds the last sample counts.
        line.samples.retain(|(nanos, _)| nanos.div_euclid(NANOS_PER_MILLI) != millis);
        let tail = StringLine {
            labels: line.labels.clone(),
            measurement: line.measurement.clone(),
            field: line.field.clone(),
            samples: vec![last],
        };
        self.texts.insert(line.labels.clone(), tail);
        line
    }

    /// Returns the samples that are still held, at the end of the answer.
    pub fn end(self) -> (Vec<Series>, Vec<StringLine>) {
        (self.numbers.into_values().collect(), self.texts.into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use wire::remote_write::encode::MillisSample;

    #[test]
    fn of_a_millisecond_in_two_pieces_the_last_counts() {
        let labels = Labels::from_pairs(&[("__name__", "x")]);
        let sample = |(millis, value): (i64, f64)| MillisSample { millis, value };
        let piece = |samples: &[(i64, f64)]| Series {
            labels: labels.clone(),
            samples: samples.iter().copied().map(sample).collect(),
            histograms: Vec::new(),
            repeated: Vec::new(),
        };
        let mut tails = Tails::default();
        let mut found = Vec::new();
        for samples in [&[(1, 1.0), (2, 2.0)][..], &[(2, 3.0)], &[(2, 4.0), (3, 5.0)]] {
            found.extend(tails.series(piece(samples)).samples);
        }
        let text = |nanos: i64, text: &str| (nanos, Arc::<str>::from(text));
        let line =
            |samples| StringLine { labels: labels.clone(), samples, ..StringLine::default() };
        let mut texts = Vec::new();
        for samples in
            [vec![text(1, "a"), text(1_000_000, "b")], vec![text(1_000_001, "c")], Vec::new()]
        {
            texts.extend(tails.texts(line(samples)).samples);
        }
        let (numbers, lines) = tails.end();
        found.extend(numbers.into_iter().flat_map(|one| one.samples));
        texts.extend(lines.into_iter().flat_map(|one| one.samples));
        assert_eq!(found, [(1, 1.0), (2, 4.0), (3, 5.0)].map(sample));
        assert_eq!(texts, [text(1, "a"), text(1_000_001, "c")]);
    }
}
