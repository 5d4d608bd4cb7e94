//! The index of a block: strings, and series with where their chunks are.

use crate::Error;
use crate::crc32c::crc32c;
use crate::protobuf::Message;
use model::{Labels, LabelsBuilder};

/// Bytes before the symbols.
pub const HEADER_SIZE: usize = 5;
/// Bytes of the table of contents, which ends the file.
pub const CONTENTS_SIZE: usize = 52;
/// Series begin at multiples of this.
pub const ALIGNMENT: u64 = 16;

pub(super) const MAGIC: u32 = 0xbaaa_d700;
pub(super) const VERSION: u8 = 2;
/// Bytes of a checksum.
const SUM_SIZE: usize = 4;

/// Where the sections are that series are read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Where the strings begin.
    pub symbols: u64,
    /// Where the series begin: the strings end there.
    pub series: u64,
    /// Where the series end.
    pub series_end: u64,
}

/// Whether a file begins as an index does.
///
/// # Errors
/// It does not, or is of a version that is not known.
pub fn check_header(header: &[u8; HEADER_SIZE]) -> Result<(), Error> {
    let [a, b, c, d, version] = *header;
    if u32::from_be_bytes([a, b, c, d]) != MAGIC {
        return Err(Error::malformed("index", 0, "the magic number of a block's index"));
    }
    match version {
        VERSION => Ok(()),
        _ => Err(Error::malformed("index", 4, "version 2, which Prometheus writes since 2.1")),
    }
}

impl Contents {
    /// Of the last bytes of a file of that size.
    ///
    /// # Errors
    /// The checksum is another, or sections are not in their order.
    pub fn parse(bytes: &[u8; CONTENTS_SIZE], size: u64) -> Result<Contents, Error> {
        let bad = |reason| Error::malformed("table of contents", 0, reason);
        let (body, sum) = bytes.split_at(CONTENTS_SIZE - SUM_SIZE);
        if sum != crc32c(body).to_be_bytes() {
            return Err(bad("its checksum"));
        }
        let mut at = body
            .chunks_exact(8)
            .map(|one| one.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte)));
        let mut next = || at.next().unwrap_or(0);
        let (symbols, series, label_indices) = (next(), next(), next());
        let (label_table, postings) = (next(), next());
        let end = size.saturating_sub(CONTENTS_SIZE as u64);
        // Sections that are not there say 0.
        let followers =
            [label_indices, label_table, postings].into_iter().filter(|at| series < *at);
        let series_end = followers.min().unwrap_or(end);
        match HEADER_SIZE as u64 <= symbols && symbols <= series && series_end <= end {
            true => Ok(Contents { symbols, series, series_end }),
            false => Err(bad("sections in their order, within the file")),
        }
    }
}

/// The strings of a block, by their numbers.
pub struct Symbols {
    bytes: Vec<u8>,
    /// Where each begins and ends.
    places: Vec<(u32, u32)>,
}

impl Symbols {
    /// Of the section from [`Contents::symbols`] to [`Contents::series`]; padding may follow.
    ///
    /// # Errors
    /// The section is cut short, rotten, or larger than 4 GiB.
    pub fn parse(bytes: Vec<u8>) -> Result<Symbols, Error> {
        let bad = |reason| Error::malformed("symbols", 0, reason);
        let number = |at: usize| {
            let found = bytes.get(at..at + 4).and_then(|found| found.try_into().ok());
            found.map(u32::from_be_bytes).ok_or_else(|| bad("their size and number"))
        };
        let (size, count) = (number(0)? as usize, number(4)? as usize);
        let body = bytes.get(4..4 + size).ok_or_else(|| bad("as many bytes as they say"))?;
        if crc32c(body) != number(4 + size)? {
            return Err(bad("their checksum"));
        }
        // Each takes a byte or more.
        if size < count {
            return Err(bad("a number that fits their size"));
        }
        let mut places = Vec::with_capacity(count);
        let mut message = Message::new(body.get(4..).unwrap_or_default());
        for _ in 0..count {
            let text = message.sized()?;
            if std::str::from_utf8(text).is_err() {
                return Err(bad("UTF-8"));
            }
            // Behind the size and the number.
            let end = 8 + message.offset();
            let place = |at: usize| u32::try_from(at).map_err(|_| bad("at most 4 GiB"));
            places.push((place(end - text.len())?, place(end)?));
        }
        Ok(Symbols { bytes, places })
    }

    fn get(&self, number: u64) -> Option<&str> {
        let (start, end) = *self.places.get(usize::try_from(number).ok()?)?;
        std::str::from_utf8(self.bytes.get(start as usize..end as usize)?).ok()
    }
}

/// Where a chunk is, and of which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkPlace {
    /// Milliseconds of its first sample.
    pub first_ms: i64,
    /// Milliseconds of its last sample.
    pub last_ms: i64,
    /// Which file, from 0: `000001` is the first.
    pub file: u32,
    /// Where in that file.
    pub offset: u32,
}

/// A series, and its chunks in the order of their times.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockSeries {
    /// Whose.
    pub labels: Labels,
    /// Where its samples are.
    pub chunks: Vec<ChunkPlace>,
}

/// A series of its content, behind which the checksum stands.
///
/// # Errors
/// The checksum is another, or the content lies: strings that are not there, numbers that overflow.
pub fn parse_series(content: &[u8], sum: [u8; 4], symbols: &Symbols) -> Result<BlockSeries, Error> {
    let bad = |reason| Error::malformed("series", 0, reason);
    if crc32c(content) != u32::from_be_bytes(sum) {
        return Err(bad("its checksum"));
    }
    let mut message = Message::new(content);
    let mut labels = LabelsBuilder::new();
    for _ in 0..message.varint()? {
        let (name, value) = (message.varint()?, message.varint()?);
        let text = |number| symbols.get(number).ok_or_else(|| bad("strings that are there"));
        labels.push(text(name)?, text(value)?);
    }
    let count = message.varint()?;
    if (content.len() as u64) < count {
        return Err(bad("a number of chunks that fits its size"));
    }
    let mut chunks: Vec<ChunkPlace> = Vec::new();
    let (mut last_ms, mut reference) = (0i64, 0i64);
    for at in 0..count {
        let first = match at {
            0 => signed(message.varint()?),
            _ => i64::try_from(message.varint()?).map_err(|_| bad("times"))?,
        };
        let first_ms = last_ms.checked_add(first).ok_or_else(|| bad("times that there are"))?;
        let length = i64::try_from(message.varint()?).map_err(|_| bad("times"))?;
        last_ms = first_ms.checked_add(length).ok_or_else(|| bad("times that there are"))?;
        let step = message.varint()?;
        reference = match at {
            0 => i64::try_from(step).map_err(|_| bad("references"))?,
            _ => reference.checked_add(signed(step)).ok_or_else(|| bad("references"))?,
        };
        let (file, offset) = (reference >> 32, reference & 0xffff_ffff);
        let number = |number| u32::try_from(number).map_err(|_| bad("references"));
        chunks.push(ChunkPlace { first_ms, last_ms, file: number(file)?, offset: number(offset)? });
    }
    Ok(BlockSeries { labels: labels.finish(), chunks })
}

/// A number with its sign in its lowest bit.
pub(super) fn signed(zigzag: u64) -> i64 {
    (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)
}
