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
        times: Times<'_>,
        values: &[f64],
    ) {
        debug_assert_eq!(times.timestamps.len(), values.len());
        for (idx, values) in values.chunks(self.rows_per_line).enumerate() {
            push_line(out, labels, times.from(idx * self.rows_per_line), values);
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
        mut times: Times<'_>,
        mut histograms: &[Histogram],
    ) {
        debug_assert_eq!(times.timestamps.len(), histograms.len());
        let max = self.rows_per_line.min(HISTOGRAMS_PER_LINE_MAX);
        while !histograms.is_empty() && !times.timestamps.is_empty() {
            let part = histograms.get(..max).unwrap_or(histograms);
            let taken = push_histogram_line(out, labels, times, part);
            histograms = histograms.get(taken..).unwrap_or_default();
            times = times.from(taken);
        }
    }
}

/// When samples were, and since when each counts.
#[derive(Clone, Copy, Debug)]
pub struct Times<'a> {
    /// One for each sample.
    pub timestamps: &'a [Timestamp],
    /// One for each sample, in milliseconds, 0 for none; or empty.
    pub starts_ms: &'a [i64],
}

impl<'a> Times<'a> {
    /// Times of samples without start timestamps.
    pub fn plain(timestamps: &'a [Timestamp]) -> Times<'a> {
        Times { timestamps, starts_ms: &[] }
    }

    /// Those of the samples from `first` on.
    fn from(self, first: usize) -> Times<'a> {
        Times {
            timestamps: self.timestamps.get(first..).unwrap_or_default(),
            starts_ms: self.starts_ms.get(first..).unwrap_or_default(),
        }
    }

    /// Appends the members for the first `count` samples; none for start timestamps where no sample
    /// has any.
    fn push(self, out: &mut Vec<u8>, count: usize, names: [&str; 2]) {
        push_member(out, names[0]);
        push_list(out, self.timestamps.iter().take(count), |out, time| push_timestamp(out, *time));
        let starts = self.starts_ms.get(..count).unwrap_or(self.starts_ms);
        if starts.iter().any(|start| *start != 0) {
            push_member(out, names[1]);
            push_list(out, starts.iter(), |out, start| {
                out.extend_from_slice(itoa::Buffer::new().format(*start).as_bytes());
            });
        }
    }
}

fn push_member(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn push_list<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, push: impl Fn(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (idx, item) in items.enumerate() {
        if 0 < idx {
            out.push(b',');
        }
        push(out, item);
    }
    out.push(b']');
}

/// A histogram as lines have it.
pub fn histogram_text(histogram: &Histogram) -> String {
    let mut out = Vec::new();
    push_histogram(&mut out, histogram);
    String::from_utf8(out).unwrap_or_default()
}

/// Appends the line of one histogram that is a text already: whoever reads the line finds out whether
/// it makes sense. `start_ms` is 0 where nobody knows it.
pub fn push_histogram_text(
    out: &mut Vec<u8>,
    labels: &Labels,
    timestamp: Timestamp,
    start_ms: i64,
    text: &str,
) {
    out.extend_from_slice(b"{\"metric\":");
    push_labels(out, labels);
    out.extend_from_slice(b",\"histograms\":[");
    // A line has one end; between members others do as well.
    out.extend(text.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
    out.push(b']');
    let times = Times { timestamps: &[timestamp], starts_ms: &[start_ms] };
    times.push(out, 1, ["histogram_timestamps", "histogram_start_timestamps"]);
    out.extend_from_slice(b"}\n");
}

/// Bytes of histograms after which their line ends.
const HISTOGRAMS_SIZE_MAX: usize = 1 << 20;

/// Returns how many histograms are in the line: at least one.
fn push_histogram_line(
    out: &mut Vec<u8>,
    labels: &Labels,
    times: Times<'_>,
    histograms: &[Histogram],
) -> usize {
    out.extend_from_slice(b"{\"metric\":");
    push_labels(out, labels);
    out.extend_from_slice(b",\"histograms\":[");
    let start = out.len();
    let mut count = 0;
    for (histogram, _) in histograms.iter().zip(times.timestamps) {
        if HISTOGRAMS_SIZE_MAX < out.len() - start {
            break;
        }
        if 0 < count {
            out.push(b',');
        }
        push_histogram(out, histogram);
        count += 1;
    }
    out.push(b']');
    times.push(out, count, ["histogram_timestamps", "histogram_start_timestamps"]);
    out.extend_from_slice(b"}\n");
    count
}

fn push_line(out: &mut Vec<u8>, labels: &Labels, times: Times<'_>, values: &[f64]) {
    let count = values.len().min(times.timestamps.len());
    out.extend_from_slice(b"{\"metric\":");
    push_labels(out, labels);
    push_member(out, "values");
    push_list(out, values.iter().take(count), |out, value| push_exact(out, *value));
    times.push(out, count, ["timestamps", "start_timestamps"]);
    out.extend_from_slice(b"}\n");
}

/// Appends milliseconds, and what is left as decimals.
pub(super) fn push_timestamp(out: &mut Vec<u8>, timestamp: Timestamp) {
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
