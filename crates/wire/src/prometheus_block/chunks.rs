//! The files of chunks of a block.

use crate::Error;
use crate::crc32c::crc32c;
use crate::protobuf::Message;
use crate::remote_read::{chunk, histogram_chunk};
use crate::remote_write::encode::MillisSample;
use crate::remote_write::encode_histograms::{CountForm, MillisHistogram};

/// Bytes before the first chunk.
pub const HEADER_SIZE: usize = 8;
/// Bytes of the encoding and the checksum, which the size of a chunk does not count.
pub const AROUND_SIZE: usize = 5;

pub(super) const MAGIC: u32 = 0x85bd_40dd;
pub(super) const VERSION: u8 = 1;

/// The encoding of what Thanos has downsampled: five chunks, each with its size before its encoding.
const AGGREGATES: u8 = 0xff;

/// What a chunk holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// Numbers.
    Samples(Vec<MillisSample>),
    /// Native histograms.
    Histograms(Vec<MillisHistogram>),
    /// What is left of samples that Thanos has downsampled.
    Aggregates(Aggregates),
}

/// What is left of the samples of a chunk, of each piece of time a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aggregates {
    /// Their averages: sums by counts.
    pub averages: Vec<MillisSample>,
    /// As a counter, which begins with its first sample, rises over resets, and ends with the last sample as
    /// it was, at the same time as the one before.
    pub counter: Vec<MillisSample>,
    /// Whether they were native histograms, of which nothing is read.
    pub is_of_histograms: bool,
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
    match *encoding {
        1 => Ok(Chunk::Samples(chunk::decode_chunk(data)?)),
        2 => Ok(histograms(histogram_chunk::decode_whole_chunk(data)?, CountForm::Whole)),
        3 => Ok(histograms(histogram_chunk::decode_chunk(data)?, CountForm::Float)),
        AGGREGATES => Ok(Chunk::Aggregates(aggregates(data)?)),
        _ => Err(Error::malformed("chunk", 0, "an encoding that is known")),
    }
}

/// Count, sum, smallest, largest and counter; one of no bytes is not there.
fn aggregates(data: &[u8]) -> Result<Aggregates, Error> {
    let (mut at, mut is_of_histograms) = (0, false);
    let mut next = || -> Result<Vec<MillisSample>, Error> {
        let rest = data.get(at..).unwrap_or_default();
        let mut message = Message::new(rest);
        let size = message.varint()?;
        let start = message.offset();
        if size == 0 {
            at += start;
            return Ok(Vec::new());
        }
        // The size does not count the encoding.
        let end = usize::try_from(size).ok().and_then(|size| size.checked_add(start + 1));
        let inner = end.and_then(|end| rest.get(start..end));
        let inner =
            inner.ok_or_else(|| Error::malformed("aggregates", at, "five chunks within them"))?;
        at += start + inner.len();
        match inner.split_first() {
            Some((1, data)) => chunk::decode_chunk(data),
            Some((2 | 3, _)) => {
                is_of_histograms = true;
                Ok(Vec::new())
            }
            _ => Err(Error::malformed("aggregates", at, "an encoding that is known")),
        }
    };
    let (counts, sums) = (next()?, next()?);
    let (_smallest, _largest, counter) = (next()?, next()?, next()?);
    if is_of_histograms {
        return Ok(Aggregates { is_of_histograms, ..Aggregates::default() });
    }
    if counts.len() != sums.len() || counts.iter().zip(&sums).any(|(a, b)| a.millis != b.millis) {
        return Err(Error::malformed("aggregates", 0, "as many sums as counts, of the same times"));
    }
    let average = |(count, sum): (&MillisSample, &MillisSample)| MillisSample {
        millis: sum.millis,
        value: sum.value / count.value,
    };
    let averages = counts.iter().zip(&sums).map(average).collect();
    Ok(Aggregates { averages, counter, is_of_histograms })
}
