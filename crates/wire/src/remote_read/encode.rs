//! Both kinds of answer, series by series.

use super::chunk::push_chunk;
use super::{CHUNK_SAMPLES_MAX, FRAME_SIZE_MAX};
use crate::crc32c::crc32c;
use crate::protobuf::{put_bytes, put_number, put_varint};
use crate::remote_write::encode::{MillisSample, put_label, put_sample};
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
            let is_full = FRAME_SIZE_MAX < self.series.len() + self.chunk.len();
            if is_full && labels_size < self.series.len() {
                self.frame(out, query_idx);
                self.series.truncate(labels_size);
            }
            put_bytes(&mut self.series, 2, &self.chunk);
        }
        if labels_size < self.series.len() {
            self.frame(out, query_idx);
        }
        self.samples = samples;
    }

    fn make_chunk(&mut self, samples: &[MillisSample]) {
        self.data.clear();
        push_chunk(&mut self.data, samples);
        self.chunk.clear();
        let millis = |sample: Option<&MillisSample>| sample.map_or(0, |s| s.millis) as u64;
        put_number(&mut self.chunk, 1, millis(samples.first()));
        put_number(&mut self.chunk, 2, millis(samples.last()));
        put_number(&mut self.chunk, 3, ENCODING_XOR);
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
