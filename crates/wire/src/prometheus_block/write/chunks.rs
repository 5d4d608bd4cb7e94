//! Samples to chunks, and chunks to files of them.

use crate::crc32c::crc32c;
use crate::prometheus_block::chunks::{HEADER_SIZE, MAGIC, VERSION};
use crate::protobuf::put_varint;
use crate::remote_read::{CHUNK_SAMPLES_MAX, chunk, histogram_chunk, whole_chunk};
use crate::remote_write::encode::MillisSample;
use histogram::Histogram;

/// Bytes of a file of chunks, as Prometheus has it.
pub const FILE_SIZE_MAX: u64 = 512 << 20;

const SAMPLES: u8 = 1;
const WHOLE_HISTOGRAMS: u8 = 2;
const FLOAT_HISTOGRAMS: u8 = 3;

/// What a file of chunks begins with.
pub fn header() -> [u8; HEADER_SIZE] {
    let [a, b, c, d] = MAGIC.to_be_bytes();
    [a, b, c, d, VERSION, 0, 0, 0]
}

/// What a chunk holds that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Milliseconds of its first sample.
    pub first_ms: i64,
    /// Milliseconds of its last sample.
    pub last_ms: i64,
    /// How many samples were taken from the beginning of those given.
    pub samples: usize,
}

/// Appends a chunk of the first samples, whose times rise; nothing of none.
pub fn push_samples(out: &mut Vec<u8>, samples: &[MillisSample]) -> Option<Written> {
    let samples = samples.get(..CHUNK_SAMPLES_MAX).unwrap_or(samples);
    let (first, last) = (samples.first()?, samples.last()?);
    let mut data = Vec::with_capacity(samples.len() * 2 + 32);
    chunk::push_chunk(&mut data, samples);
    frame(out, SAMPLES, &data);
    Some(Written { first_ms: first.millis, last_ms: last.millis, samples: samples.len() })
}

/// Appends a chunk of as many of the histograms as fit into one, whose times rise; nothing of none. Those
/// whose counts are whole are told so, as Prometheus tells those that it has scraped.
pub fn push_histograms(out: &mut Vec<u8>, histograms: &[(i64, &Histogram)]) -> Option<Written> {
    let (first_ms, first) = *histograms.first()?;
    let is_whole = whole_chunk::is_whole(first);
    let alike = |one: &&(i64, &Histogram)| whole_chunk::is_whole(one.1) == is_whole;
    let count = histograms.iter().take_while(alike).count();
    let run = histograms.get(..count).unwrap_or_default();
    let mut data = Vec::new();
    let (encoding, samples) = match is_whole {
        true => (WHOLE_HISTOGRAMS, whole_chunk::push_chunk(&mut data, run, CHUNK_SAMPLES_MAX)),
        false => (FLOAT_HISTOGRAMS, histogram_chunk::push_chunk(&mut data, run, CHUNK_SAMPLES_MAX)),
    };
    frame(out, encoding, &data);
    let last_ms = run.get(samples.saturating_sub(1)).map_or(first_ms, |last| last.0);
    Some(Written { first_ms, last_ms, samples })
}

fn frame(out: &mut Vec<u8>, encoding: u8, data: &[u8]) {
    put_varint(out, data.len() as u64);
    let start = out.len();
    out.push(encoding);
    out.extend_from_slice(data);
    let sum = crc32c(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_be_bytes());
}
