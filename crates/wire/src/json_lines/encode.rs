//! Series to lines, in pieces, so that no series is ever whole in memory.

use super::HISTOGRAMS_PER_LINE_MAX;
use super::histograms::push_histogram;
use super::value::push_exact;
use crate::prom_json::string::push_labels;
use histogram::Histogram;
use model::sample::NANOS_PER_MILLI;
use model::{Labels, Timestamp};

/// Writes series as lines of at most so many samples each (`max_rows_per_line`).
pub struct LineWriter {
    rows_per_line: usize,
}

/// Samples in a line when the request does not say.
const ROWS_PER_LINE: usize = 10_000;

impl Default for LineWriter {
    fn default() -> LineWriter {
        LineWriter::new(0)
    }
}

impl LineWriter {
    /// Lines of at most `rows_per_line` samples; 0 is the default of 10,000.
    pub fn new(rows_per_line: usize) -> LineWriter {
        let rows_per_line = if rows_per_line == 0 { ROWS_PER_LINE } else { rows_per_line };
        LineWriter { rows_per_line: rows_per_line.min(super::SAMPLES_PER_LINE_MAX) }
    }

    /// Appends the series' lines; none when it has no samples.
    ///
    /// Samples beyond the shorter of the two slices are left out.
    pub fn push_series(
        &self,
        out: &mut Vec<u8>,
        labels: &Labels,
        timestamps: &[Timestamp],
        values: &[f64],
    ) {
        debug_assert_eq!(timestamps.len(), values.len());
        let timestamps = timestamps.chunks(self.rows_per_line);
        for (timestamps, values) in timestamps.zip(values.chunks(self.rows_per_line)) {
            push_line(out, labels, timestamps, values);
        }
    }

    /// Appends the series' lines of native histograms; none when it has none. A line ends early
    /// when it is large, whatever the number of its histograms.
    ///
    /// Histograms beyond the shorter of the two slices are left out.
    pub fn push_histograms(
        &self,
        out: &mut Vec<u8>,
        labels: &Labels,
        mut timestamps: &[Timestamp],
        mut histograms: &[Histogram],
    ) {
        debug_assert_eq!(timestamps.len(), histograms.len());
        let max = self.rows_per_line.min(HISTOGRAMS_PER_LINE_MAX);
        while !histograms.is_empty() && !timestamps.is_empty() {
            let part = histograms.get(..max).unwrap_or(histograms);
            let taken = push_histogram_line(out, labels, timestamps, part);
            histograms = histograms.get(taken..).unwrap_or_default();
            timestamps = timestamps.get(taken..).unwrap_or_default();
        }
    }
}

/// Bytes of histograms after which their line ends.
const HISTOGRAMS_SIZE_MAX: usize = 1 << 20;

/// Returns how many histograms are in the line: at least one.
fn push_histogram_line(
    out: &mut Vec<u8>,
    labels: &Labels,
    timestamps: &[Timestamp],
    histograms: &[Histogram],
) -> usize {
    out.extend_from_slice(b"{\"metric\":");
    push_labels(out, labels);
    out.extend_from_slice(b",\"histograms\":[");
    let start = out.len();
    let mut count = 0;
    for (histogram, _) in histograms.iter().zip(timestamps) {
        if HISTOGRAMS_SIZE_MAX < out.len() - start {
            break;
        }
        if 0 < count {
            out.push(b',');
        }
        push_histogram(out, histogram);
        count += 1;
    }
    out.extend_from_slice(b"],\"histogram_timestamps\":[");
    for (idx, &timestamp) in timestamps.iter().take(count).enumerate() {
        if 0 < idx {
            out.push(b',');
        }
        push_timestamp(out, timestamp);
    }
    out.extend_from_slice(b"]}\n");
    count
}

fn push_line(out: &mut Vec<u8>, labels: &Labels, timestamps: &[Timestamp], values: &[f64]) {
    out.extend_from_slice(b"{\"metric\":");
    push_labels(out, labels);
    out.extend_from_slice(b",\"values\":[");
    for (idx, &value) in values.iter().enumerate() {
        if 0 < idx {
            out.push(b',');
        }
        push_exact(out, value);
    }
    out.extend_from_slice(b"],\"timestamps\":[");
    for (idx, &timestamp) in timestamps.iter().enumerate() {
        if 0 < idx {
            out.push(b',');
        }
        push_timestamp(out, timestamp);
    }
    out.extend_from_slice(b"]}\n");
}

/// Appends milliseconds, and what is left as decimals.
fn push_timestamp(out: &mut Vec<u8>, timestamp: Timestamp) {
    if timestamp < 0 {
        out.push(b'-');
    }
    let nanos = timestamp.unsigned_abs();
    let unit = NANOS_PER_MILLI.unsigned_abs();
    out.extend_from_slice(itoa::Buffer::new().format(nanos / unit).as_bytes());
    if !nanos.is_multiple_of(unit) {
        out.extend_from_slice(format!(".{:06}", nanos % unit).as_bytes());
    }
}
