//! Both kinds of answer, series by series.

use super::chunk::push_chunk;
use super::{CHUNK_SAMPLES_MAX, FRAME_SIZE_MAX, histogram_chunk};
use crate::crc32c::crc32c;
use crate::protobuf::{put_bytes, put_number, put_varint};
use crate::remote_write::encode::{MillisSample, put_label, put_sample};
use crate::remote_write::encode_histograms::{CountForm, push_histogram};
use histogram::Histogram;
use model::sample::NANOS_PER_MILLI;
use model::{Labels, Timestamp};

/// `XOR` of the chunks' encodings.
const ENCODING_XOR: u64 = 1;

/// Replaces `out` by the samples as the wire has them: of one millisecond, the newest.
fn to_millis(out: &mut Vec<MillisSample>, timestamps: &[Timestamp], values: &[f64]) {
    out.clear();
    for (timestamp, value) in timestamps.iter().zip(values) {
        let sample = MillisSample { millis: timestamp.div_euclid(NANOS_PER_MILLI), value: *value };
        match out.last_mut() {
            Some(last) if last.millis == sample.millis => *last = sample,
            _ => out.push(sample),
        }
    }
}

/// What a series with native histograms has, floats and histograms each by time. No time is in
/// both.
#[derive(Clone, Copy)]
pub struct Mixed<'a> {
    /// Of the floats.
    pub timestamps: &'a [Timestamp],
    /// The floats.
    pub values: &'a [f64],
    /// Of the histograms.
    pub histogram_timestamps: &'a [Timestamp],
    /// The histograms.
    pub histograms: &'a [Histogram],
}

/// The same as the wire has it: of one millisecond, the newest.
struct MixedMillis<'a> {
    samples: Vec<MillisSample>,
    histograms: Vec<(i64, &'a Histogram)>,
}

impl Mixed<'_> {
    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.values.len() + self.histograms.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> MixedMillis<'a> {
    fn of(mixed: &Mixed<'a>) -> MixedMillis<'a> {
        let mut found = MixedMillis { samples: Vec::new(), histograms: Vec::new() };
        let mut floats = mixed.timestamps.iter().zip(mixed.values).peekable();
        let histograms = mixed.histogram_timestamps.iter().zip(mixed.histograms);
        for (timestamp, histogram) in histograms {
            while let Some((earlier, value)) = floats.next_if(|(earlier, _)| *earlier < timestamp) {
                found.push_float(*earlier, *value);
            }
            let millis = timestamp.div_euclid(NANOS_PER_MILLI);
            found.forget(millis);
            found.histograms.push((millis, histogram));
        }
        floats.for_each(|(timestamp, value)| found.push_float(*timestamp, *value));
        found
    }

    fn push_float(&mut self, timestamp: Timestamp, value: f64) {
        let millis = timestamp.div_euclid(NANOS_PER_MILLI);
        self.forget(millis);
        self.samples.push(MillisSample { millis, value });
    }

    /// Takes back what was told of this millisecond.
    fn forget(&mut self, millis: i64) {
        self.samples.pop_if(|last| last.millis == millis);
        self.histograms.pop_if(|last| last.0 == millis);
    }
}

fn put_labels(out: &mut Vec<u8>, part: &mut Vec<u8>, labels: &Labels) {
    for (name, value) in labels.iter() {
        put_label(out, part, name, value);
    }
}

/// Builds `prometheus.ReadResponse`, query by query.
#[derive(Default)]
pub struct SamplesMessage {
    bytes: Vec<u8>,
    /// The query that is being answered.
    result: Vec<u8>,
    /// Reused for each series and its parts.
    series: Vec<u8>,
    part: Vec<u8>,
    samples: Vec<MillisSample>,
}

impl SamplesMessage {
    /// An answer to no query.
    pub fn new() -> SamplesMessage {
        SamplesMessage::default()
    }

    /// Adds a series to the query's result.
    pub fn series(&mut self, labels: &Labels, timestamps: &[Timestamp], values: &[f64]) {
        to_millis(&mut self.samples, timestamps, values);
        self.series.clear();
        put_labels(&mut self.series, &mut self.part, labels);
        for sample in &self.samples {
            put_sample(&mut self.series, &mut self.part, sample);
        }
        put_bytes(&mut self.result, 1, &self.series);
    }

    /// Adds a series with native histograms to the query's result.
    pub fn mixed_series(&mut self, labels: &Labels, mixed: &Mixed<'_>) {
        if mixed.histograms.is_empty() {
            return self.series(labels, mixed.timestamps, mixed.values);
        }
        let MixedMillis { samples, histograms } = MixedMillis::of(mixed);
        self.series.clear();
        put_labels(&mut self.series, &mut self.part, labels);
        for sample in &samples {
            put_sample(&mut self.series, &mut self.part, sample);
        }
        for (millis, histogram) in histograms {
            self.part.clear();
            push_histogram(&mut self.part, histogram, millis, CountForm::Float);
            put_bytes(&mut self.series, 4, &self.part);
        }
        put_bytes(&mut self.result, 1, &self.series);
    }

    /// Ends the query's result; the next series is the next query's.
    pub fn end_query(&mut self) {
        put_bytes(&mut self.bytes, 1, &self.result);
        self.result.clear();
    }

    /// Bytes so far.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.result.len()
    }

    /// The message, uncompressed.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Writes frames of `prometheus.ChunkedReadResponse`.
#[derive(Default)]
pub struct FrameWriter {
    samples: Vec<MillisSample>,
    /// Labels and chunks of the series, as far as they are in the next frame.
    series: Vec<u8>,
    message: Vec<u8>,
    chunk: Vec<u8>,
    data: Vec<u8>,
}

impl FrameWriter {
    /// A writer that has written nothing.
    pub fn new() -> FrameWriter {
        FrameWriter::default()
    }

    /// Appends a series to the answer of query number `query_idx`: as many frames as it takes,
    /// each with the labels, none when there are no samples.
    pub fn series(
        &mut self,
        out: &mut Vec<u8>,
        query_idx: usize,
        labels: &Labels,
        timestamps: &[Timestamp],
        values: &[f64],
    ) {
        let mut samples = std::mem::take(&mut self.samples);
        to_millis(&mut samples, timestamps, values);
        self.series.clear();
        put_labels(&mut self.series, &mut self.chunk, labels);
        let labels_size = self.series.len();
        for samples in samples.chunks(CHUNK_SAMPLES_MAX) {
            self.make_chunk(samples);
            self.put_chunk(out, query_idx, labels_size);
        }
        if labels_size < self.series.len() {
            self.frame(out, query_idx);
        }
        self.samples = samples;
    }

    /// As [`FrameWriter::series`], of a series with native histograms: chunks of floats and of
    /// histograms take turns as the samples do.
    pub fn mixed_series(
        &mut self,
        out: &mut Vec<u8>,
        query_idx: usize,
        labels: &Labels,
        mixed: &Mixed<'_>,
    ) {
        if mixed.histograms.is_empty() {
            return self.series(out, query_idx, labels, mixed.timestamps, mixed.values);
        }
        let MixedMillis { samples, histograms } = MixedMillis::of(mixed);
        let (mut samples, mut histograms) = (samples.as_slice(), histograms.as_slice());
        self.series.clear();
        put_labels(&mut self.series, &mut self.chunk, labels);
        let labels_size = self.series.len();
        loop {
            let next_float = samples.first().map_or(i64::MAX, |sample| sample.millis);
            let next_histogram = histograms.first().map_or(i64::MAX, |(millis, _)| *millis);
            if samples.is_empty() && histograms.is_empty() {
                break;
            }
            if next_float < next_histogram {
                let run = samples.partition_point(|sample| sample.millis < next_histogram);
                let (chunk, rest) = samples.split_at(run.min(CHUNK_SAMPLES_MAX));
                self.make_chunk(chunk);
                samples = rest;
            } else {
                let run = histograms.partition_point(|(millis, _)| *millis < next_float);
                let taken = self.make_histogram_chunk(histograms.get(..run).unwrap_or_default());
                histograms = histograms.get(taken..).unwrap_or_default();
            }
            self.put_chunk(out, query_idx, labels_size);
        }
        if labels_size < self.series.len() {
            self.frame(out, query_idx);
        }
    }

    /// Adds the chunk to the frame, which goes out before when it is full. The labels are the
    /// first `labels_size` bytes of the series.
    fn put_chunk(&mut self, out: &mut Vec<u8>, query_idx: usize, labels_size: usize) {
        let is_full = FRAME_SIZE_MAX < self.series.len() + self.chunk.len();
        if is_full && labels_size < self.series.len() {
            self.frame(out, query_idx);
            self.series.truncate(labels_size);
        }
        put_bytes(&mut self.series, 2, &self.chunk);
    }

    fn make_chunk(&mut self, samples: &[MillisSample]) {
        self.data.clear();
        push_chunk(&mut self.data, samples);
        let millis = |sample: Option<&MillisSample>| sample.map_or(0, |s| s.millis);
        self.wrap_data(millis(samples.first()), millis(samples.last()), ENCODING_XOR);
    }

    /// Returns how many of the histograms are in it.
    fn make_histogram_chunk(&mut self, histograms: &[(i64, &Histogram)]) -> usize {
        self.data.clear();
        let taken = histogram_chunk::push_chunk(&mut self.data, histograms, CHUNK_SAMPLES_MAX);
        let millis = |idx: usize| histograms.get(idx).map_or(0, |(millis, _)| *millis);
        let last = millis(taken.saturating_sub(1));
        self.wrap_data(millis(0), last, histogram_chunk::ENCODING);
        taken
    }

    fn wrap_data(&mut self, first_ms: i64, last_ms: i64, encoding: u64) {
        self.chunk.clear();
        put_number(&mut self.chunk, 1, first_ms as u64);
        put_number(&mut self.chunk, 2, last_ms as u64);
        put_number(&mut self.chunk, 3, encoding);
        put_bytes(&mut self.chunk, 4, &self.data);
    }

    fn frame(&mut self, out: &mut Vec<u8>, query_idx: usize) {
        self.message.clear();
        put_bytes(&mut self.message, 1, &self.series);
        if query_idx != 0 {
            put_number(&mut self.message, 2, query_idx as u64);
        }
        put_varint(out, self.message.len() as u64);
        out.extend_from_slice(&crc32c(&self.message).to_be_bytes());
        out.extend_from_slice(&self.message);
    }
}
