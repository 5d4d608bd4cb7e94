//! Answers read back, for clients and tests: the counterpart of the encoders.

use super::chunk::decode_chunk;
use super::{FRAME_SIZE_MAX, histogram_chunk};
use crate::Error;
use crate::crc32c::crc32c;
use crate::protobuf::Message;
use crate::remote_write::encode::MillisSample;
use crate::remote_write::histograms::decode_histogram;
use histogram::Histogram;
use model::{Labels, LabelsBuilder};

/// `XOR` of the chunks' encodings.
const XOR_ENCODING: u64 = 1;
/// Bytes of the checksum before a frame's message.
const CHECKSUM_SIZE: usize = 4;
/// Bytes of a number of 64 bits.
const SIZE_SIZE_MAX: usize = 10;
/// Bytes of a frame that is read: one chunk and long labels may be more than a frame should have.
const FRAME_READ_MAX: usize = 16 * FRAME_SIZE_MAX;

/// A series of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadSeries {
    /// Which query it answers, from 0.
    pub query_idx: usize,
    /// Whose samples.
    pub labels: Labels,
    /// The samples of each chunk; those of one message are in one.
    pub chunks: Vec<Vec<MillisSample>>,
    /// Histograms of all chunks, with their times in milliseconds.
    pub histograms: Vec<(i64, Histogram)>,
}

/// The series of an uncompressed `ReadResponse`.
///
/// # Errors
/// The bytes are no such message.
pub fn decode_samples(bytes: &[u8]) -> Result<Vec<ReadSeries>, Error> {
    let mut found = Vec::new();
    let mut query_idx = 0;
    let mut message = Message::new(bytes);
    while let Some((number, result)) = message.next_field()? {
        let mut result = Message::new(if number == 1 { result.bytes() } else { &[] });
        while let Some((1, series)) = result.next_field()? {
            found.push(series_of_samples(series.bytes(), query_idx)?);
        }
        query_idx += 1;
    }
    Ok(found)
}

fn series_of_samples(bytes: &[u8], query_idx: usize) -> Result<ReadSeries, Error> {
    let mut labels = LabelsBuilder::new();
    let (mut samples, mut histograms) = (Vec::new(), Vec::new());
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 => push_label(&mut labels, field.bytes())?,
            2 => samples.push(sample(field.bytes())?),
            4 => histograms.push(decode_histogram(field.bytes())?),
            _ => {}
        }
    }
    Ok(ReadSeries { query_idx, labels: labels.finish(), chunks: vec![samples], histograms })
}

fn sample(bytes: &[u8]) -> Result<MillisSample, Error> {
    let mut sample = MillisSample { millis: 0, value: 0.0 };
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 => sample.value = field.double(),
            2 => sample.millis = field.signed(),
            _ => {}
        }
    }
    Ok(sample)
}

/// The messages of a stream of frames, their checksums compared.
///
/// # Errors
/// A frame that ends early, is too large, or has another checksum.
pub fn split_frames(mut bytes: &[u8]) -> Result<Vec<&[u8]>, Error> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let whole = first_frame(bytes)?;
        let bad = || Error::malformed("frame", frames.len(), "a whole frame");
        let (message, rest) = whole.ok_or_else(bad)?;
        frames.push(message);
        bytes = rest;
    }
    Ok(frames)
}

/// A frame's message, and what follows the frame.
pub type Frame<'a> = (&'a [u8], &'a [u8]);

/// The message of the first frame and what follows it; none while the frame is not there as a whole.
///
/// # Errors
/// A frame that is too large, or has another checksum.
pub fn first_frame(bytes: &[u8]) -> Result<Option<Frame<'_>>, Error> {
    let bad = |expected| Error::malformed("frame", 0, expected);
    let size_end = bytes.iter().take(SIZE_SIZE_MAX).position(|byte| *byte < 0x80);
    if size_end.is_none() && bytes.len() < SIZE_SIZE_MAX {
        return Ok(None);
    }
    let mut head = Message::new(bytes);
    let size = usize::try_from(head.varint()?).unwrap_or(usize::MAX);
    if FRAME_READ_MAX < size {
        return Err(bad("a size within the limit"));
    }
    let rest = bytes.get(head.offset()..).unwrap_or_default();
    let Some((sum, rest)) = rest.split_first_chunk::<CHECKSUM_SIZE>() else { return Ok(None) };
    let Some((message, rest)) = rest.split_at_checked(size) else { return Ok(None) };
    match crc32c(message) == u32::from_be_bytes(*sum) {
        true => Ok(Some((message, rest))),
        false => Err(bad("the checksum of its message")),
    }
}

/// The series of one frame's message.
///
/// # Errors
/// The bytes are no such message.
pub fn decode_frame(bytes: &[u8]) -> Result<Vec<ReadSeries>, Error> {
    let (mut found, mut query_idx) = (Vec::new(), 0);
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 => found.push(chunked_series(field.bytes())?),
            2 => query_idx = usize::try_from(field.signed()).unwrap_or(0),
            _ => {}
        }
    }
    found.iter_mut().for_each(|series| series.query_idx = query_idx);
    Ok(found)
}

fn chunked_series(bytes: &[u8]) -> Result<ReadSeries, Error> {
    let mut labels = LabelsBuilder::new();
    let (mut chunks, mut histograms) = (Vec::new(), Vec::new());
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 => push_label(&mut labels, field.bytes())?,
            2 => match chunk(field.bytes())? {
                (histogram_chunk::WHOLE_ENCODING, data) => {
                    histograms.extend(histogram_chunk::decode_whole_chunk(data)?);
                }
                (histogram_chunk::ENCODING, data) => {
                    histograms.extend(histogram_chunk::decode_chunk(data)?);
                }
                (_, []) => chunks.push(Vec::new()),
                (XOR_ENCODING, data) => chunks.push(decode_chunk(data)?),
                _ => return Err(Error::malformed("chunk", 0, "an encoding that is known")),
            },
            _ => {}
        }
    }
    Ok(ReadSeries { query_idx: 0, labels: labels.finish(), chunks, histograms })
}

/// A chunk's encoding and data.
fn chunk(bytes: &[u8]) -> Result<(u64, &[u8]), Error> {
    let mut found = (0, &[][..]);
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            3 => found.0 = field.signed() as u64,
            4 => found.1 = field.bytes(),
            _ => {}
        }
    }
    Ok(found)
}

/// A text as it is: with other letters in it two series could become one.
fn utf8(bytes: &[u8]) -> Result<String, Error> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_string).map_err(|_| Error::malformed("label", 0, "UTF-8"))
}

fn push_label(labels: &mut LabelsBuilder, bytes: &[u8]) -> Result<(), Error> {
    let (mut name, mut value) = (String::new(), String::new());
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 => name = utf8(field.bytes())?,
            2 => value = utf8(field.bytes())?,
            _ => {}
        }
    }
    labels.push(&name, &value);
    Ok(())
}
