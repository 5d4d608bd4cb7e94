//! The files of chunks of a block.

use crate::Error;
use crate::crc32c::crc32c;
use crate::remote_read::{chunk, histogram_chunk};
use crate::remote_write::encode::MillisSample;
use crate::remote_write::encode_histograms::{CountForm, MillisHistogram};

/// Bytes before the first chunk.
pub const HEADER_SIZE: usize = 8;
/// Bytes of the encoding and the checksum, which the size of a chunk does not count.
pub const AROUND_SIZE: usize = 5;

pub(super) const MAGIC: u32 = 0x85bd_40dd;
pub(super) const VERSION: u8 = 1;

/// What a chunk holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// Numbers.
    Samples(Vec<MillisSample>),
    /// Native histograms.
    Histograms(Vec<MillisHistogram>),
}

/// Whether a file begins as one of chunks does.
///
/// # Errors
/// It does not, or is of a version that is not known.
pub fn check_header(header: &[u8; HEADER_SIZE]) -> Result<(), Error> {
    let [a, b, c, d, version, ..] = *header;
    match (u32::from_be_bytes([a, b, c, d]), version) {
        (MAGIC, VERSION) => Ok(()),
        (MAGIC, _) => Err(Error::malformed("chunks", 4, "version 1")),
        _ => Err(Error::malformed("chunks", 0, "the magic number of chunks")),
    }
}

/// The chunk of its encoding, data and checksum, as they follow its size.
///
/// # Errors
/// The checksum is another, the encoding is not known, or the data end early.
pub fn decode(bytes: &[u8]) -> Result<Chunk, Error> {
    let short = || Error::malformed("chunk", bytes.len(), "a checksum");
    let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(short)?;
    if crc32c(body) != u32::from_be_bytes(*sum) {
        return Err(Error::malformed("chunk", 0, "its checksum"));
    }
    let (encoding, data) = body.split_first().ok_or_else(short)?;
    let histograms = |all: Vec<(i64, histogram::Histogram)>, form| {
        let one = |(millis, histogram)| MillisHistogram { millis, histogram, form };
        Chunk::Histograms(all.into_iter().map(one).collect())
    };
    match encoding {
        1 => Ok(Chunk::Samples(chunk::decode_chunk(data)?)),
        2 => Ok(histograms(histogram_chunk::decode_whole_chunk(data)?, CountForm::Whole)),
        3 => Ok(histograms(histogram_chunk::decode_chunk(data)?, CountForm::Float)),
        _ => Err(Error::malformed("chunk", 0, "an encoding that is known")),
    }
}
