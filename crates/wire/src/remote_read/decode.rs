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

/// Labels of a series that is read.
const LABELS_MAX: usize = 4096;
/// What a piece of a series weighs at least, but for the last: 256 KiB.
const PIECE_WEIGHT: usize = 16 << 10;

const _: () = assert!(LABELS_MAX == 4096);

/// A series of an answer, or a piece of one.
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

impl ReadSeries {
    /// What its samples take of memory, counted in samples of 16 bytes: a histogram is worth many.
    pub fn weight(&self) -> usize {
        let of_floats = self.chunks.iter().map(Vec::len).sum::<usize>();
        of_floats + self.histograms.iter().map(|(_, one)| weight_of(one)).sum::<usize>()
    }
}

fn weight_of(histogram: &Histogram) -> usize {
    let Histogram { positive, negative, custom_bounds, .. } = histogram;
    let numbers = 2 * (positive.len() + negative.len()) + custom_bounds.len();
    (size_of::<Histogram>() + 8 * numbers) / size_of::<MillisSample>()
}

/// Hands on the series of an uncompressed `ReadResponse`; one with many samples comes in pieces, so
/// that whoever takes them can count and stop before all are in memory.
///
/// # Errors
/// The bytes are no such message, or `sink` fails.
pub fn each_series<E: From<Error>>(
    bytes: &[u8],
    sink: &mut dyn FnMut(ReadSeries) -> Result<(), E>,
) -> Result<(), E> {
    let mut query_idx = 0;
    let mut message = Message::new(bytes);
    while let Some((number, result)) = message.next_field()? {
        let mut result = Message::new(if number == 1 { result.bytes()? } else { &[] });
        while let Some((1, series)) = result.next_field()? {
            series_of_samples(series.bytes()?, query_idx, sink)?;
        }
        query_idx += 1;
    }
    Ok(())
}

/// The pieces of [`each_series`] as a list.
///
/// # Errors
/// The bytes are no such message.
pub fn decode_samples(bytes: &[u8]) -> Result<Vec<ReadSeries>, Error> {
    let mut found = Vec::new();
    each_series(bytes, &mut |series| {
        found.push(series);
        Ok::<(), Error>(())
    })?;
    Ok(found)
}

fn series_of_samples<E: From<Error>>(
    bytes: &[u8],
    query_idx: usize,
    sink: &mut dyn FnMut(ReadSeries) -> Result<(), E>,
) -> Result<(), E> {
    let mut piece = Piece::new(labels_of(bytes)?, query_idx, sink);
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            2 => piece.sample(sample(field.bytes()?)?)?,
            4 => piece.histogram(decode_histogram(field.bytes()?)?)?,
            _ => {}
        }
    }
    piece.end()
}

/// What has come of a series and was not handed on yet.
struct Piece<'s, E> {
    series: ReadSeries,
    weight: usize,
    is_given: bool,
    sink: &'s mut dyn FnMut(ReadSeries) -> Result<(), E>,
}

impl<'s, E> Piece<'s, E> {
    fn new(
        labels: Labels,
        query_idx: usize,
        sink: &'s mut dyn FnMut(ReadSeries) -> Result<(), E>,
    ) -> Piece<'s, E> {
        let series = ReadSeries { query_idx, labels, chunks: Vec::new(), histograms: Vec::new() };
        Piece { series, weight: 0, is_given: false, sink }
    }

    fn sample(&mut self, sample: MillisSample) -> Result<(), E> {
        match self.series.chunks.last_mut() {
            Some(chunk) => chunk.push(sample),
            None => self.series.chunks.push(vec![sample]),
        }
        self.weigh(1)
    }

    fn chunk(&mut self, chunk: Vec<MillisSample>) -> Result<(), E> {
        let weight = chunk.len();
        self.series.chunks.push(chunk);
        self.weigh(weight)
    }

    fn histogram(&mut self, one: (i64, Histogram)) -> Result<(), E> {
        let weight = weight_of(&one.1);
        self.series.histograms.push(one);
        self.weigh(weight)
    }

    fn weigh(&mut self, weight: usize) -> Result<(), E> {
        // Chunks without samples take room, too.
        self.weight += weight.max(1);
        if self.weight < PIECE_WEIGHT { Ok(()) } else { self.give() }
    }

    fn give(&mut self) -> Result<(), E> {
        let next = ReadSeries {
            query_idx: self.series.query_idx,
            labels: self.series.labels.clone(),
            chunks: Vec::new(),
            histograms: Vec::new(),
        };
        (self.weight, self.is_given) = (0, true);
        (self.sink)(std::mem::replace(&mut self.series, next))
    }

    fn end(mut self) -> Result<(), E> {
        if 0 < self.weight || !self.is_given { self.give() } else { Ok(()) }
    }
}

/// The labels of a series of either message, which may stand behind its samples.
fn labels_of(bytes: &[u8]) -> Result<Labels, Error> {
    let (mut labels, mut count) = (LabelsBuilder::new(), 0);
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        if number == 1 {
            count += 1;
            if LABELS_MAX < count {
                return Err(Error::malformed("series", 0, "at most 4096 labels"));
            }
            push_label(&mut labels, field.bytes()?)?;
        }
    }
    Ok(labels.finish())
}

fn sample(bytes: &[u8]) -> Result<MillisSample, Error> {
    let mut sample = MillisSample { millis: 0, value: 0.0 };
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 => sample.value = field.double()?,
            2 => sample.millis = field.signed()?,
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

/// Hands on the series of one frame's message, in pieces as [`each_series`].
///
/// # Errors
/// The bytes are no such message, or `sink` fails.
pub fn each_series_of_frame<E: From<Error>>(
    bytes: &[u8],
    sink: &mut dyn FnMut(ReadSeries) -> Result<(), E>,
) -> Result<(), E> {
    // It stands behind the series.
    let mut query_idx = 0;
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        if number == 2 {
            query_idx = usize::try_from(field.signed()?).unwrap_or(0);
        }
    }
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        if number == 1 {
            chunked_series(field.bytes()?, query_idx, sink)?;
        }
    }
    Ok(())
}

/// The pieces of [`each_series_of_frame`] as a list.
///
/// # Errors
/// The bytes are no such message.
pub fn decode_frame(bytes: &[u8]) -> Result<Vec<ReadSeries>, Error> {
    let mut found = Vec::new();
    each_series_of_frame(bytes, &mut |series| {
        found.push(series);
        Ok::<(), Error>(())
    })?;
    Ok(found)
}

fn chunked_series<E: From<Error>>(
    bytes: &[u8],
    query_idx: usize,
    sink: &mut dyn FnMut(ReadSeries) -> Result<(), E>,
) -> Result<(), E> {
    let mut piece = Piece::new(labels_of(bytes)?, query_idx, sink);
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        if number != 2 {
            continue;
        }
        let mut histograms =
            |all: Vec<(i64, Histogram)>| all.into_iter().try_for_each(|one| piece.histogram(one));
        match chunk(field.bytes()?)? {
            (histogram_chunk::WHOLE_ENCODING, data) => {
                histograms(histogram_chunk::decode_whole_chunk(data)?)?;
            }
            (histogram_chunk::ENCODING, data) => histograms(histogram_chunk::decode_chunk(data)?)?,
            (_, []) => piece.chunk(Vec::new())?,
            (XOR_ENCODING, data) => piece.chunk(decode_chunk(data)?)?,
            _ => return Err(Error::malformed("chunk", 0, "an encoding that is known").into()),
        }
    }
    piece.end()
}

/// A chunk's encoding and data.
fn chunk(bytes: &[u8]) -> Result<(u64, &[u8]), Error> {
    let mut found = (0, &[][..]);
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            3 => found.0 = field.signed()? as u64,
            4 => found.1 = field.bytes()?,
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
            1 => name = utf8(field.bytes()?)?,
            2 => value = utf8(field.bytes()?)?,
            _ => {}
        }
    }
    labels.push(&name, &value);
    Ok(())
}
