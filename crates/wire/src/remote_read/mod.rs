//! Prometheus remote read: the request, and both kinds of answer.
//!
//! ```text
//! ReadRequest  { queries = 1 { start_timestamp_ms = 1, end_timestamp_ms = 2, matchers = 3 { type = 1,
//!                name = 2, value = 3 }, hints = 4 }, accepted_response_types = 2 }
//! SAMPLES      ReadResponse { results = 1 { timeseries = 1 { labels = 1, samples = 2,
//!              histograms = 4 } } }, one message, snappy
//! STREAMED_XOR_CHUNKS   frames, each varint(size) crc32c(message, big endian) message:
//!              ChunkedReadResponse { chunked_series = 1 { labels = 1, chunks = 2 { min_time_ms = 1,
//!                max_time_ms = 2, type = 3, data = 4 } }, query_index = 2 }
//! ```
//!
//! Times of the wire are milliseconds, ours nanoseconds: a range goes to the end of its last
//! millisecond, and of the samples within one millisecond the newest is told.
//! Hints say what the reader will do with the samples; they change nothing here.

mod bits;
pub mod chunk;
pub mod decode;
pub mod encode;
pub mod histogram_chunk;
#[cfg(test)]
mod histogram_tests;
pub mod request;
#[cfg(test)]
mod tests;
pub mod whole_chunk;

pub use encode::{FrameWriter, Mixed, SamplesMessage};
pub use request::{ReadQuery, ReadRequest, ResponseType};

/// Queries of one request; Prometheus sends one, or a few.
pub const QUERIES_MAX: usize = 100;
/// Matchers of one query; expressions have about ten.
pub const MATCHERS_MAX: usize = 1000;
/// Bytes of one frame, as Prometheus has it; readers take fifty times as many.
pub const FRAME_SIZE_MAX: usize = 1 << 20;
/// Samples of one chunk, as Prometheus cuts them.
pub const CHUNK_SAMPLES_MAX: usize = 120;

/// `Content-Type` of one message with all samples.
pub const SAMPLES_TYPE: &str = "application/x-protobuf";
/// `Content-Type` of frames with chunks.
pub const CHUNKS_TYPE: &str =
    "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";
