//! The index, from its first byte to its last.
//!
//! ```text
//! header | symbols | series .. | values of each label's name .. | postings of each pair ..
//!        | table of names | table of pairs | contents
//! ```
//! Prometheus 2 has read neither values nor the table of names for long; it writes them, and so do we.

use crate::Error;
use crate::crc32c::crc32c;
use crate::prometheus_block::index::{ALIGNMENT, ChunkPlace, MAGIC, VERSION};
use crate::protobuf::put_varint;

/// Sections begin at multiples of this.
const SECTION_ALIGNMENT: u64 = 4;

/// Appends the parts of an index in their order; what was appended may be written and cleared between two
/// calls.
pub struct IndexEncoder {
    /// Bytes that were cleared before those in the buffer.
    written: u64,
    /// Where symbols, series, values, the table of names, postings and the table of pairs begin.
    contents: [u64; 6],
    names: Table,
    pairs: Table,
}

/// Entries of a table of places.
#[derive(Default)]
struct Table {
    bytes: Vec<u8>,
    count: usize,
}

impl IndexEncoder {
    /// Begins an index with its strings, which rise.
    ///
    /// # Errors
    /// Strings of more than 4 GiB.
    pub fn begin<'s>(
        out: &mut Vec<u8>,
        symbols: impl Iterator<Item = &'s str>,
    ) -> Result<IndexEncoder, Error> {
        out.extend_from_slice(&MAGIC.to_be_bytes());
        out.push(VERSION);
        let (names, pairs) = (Table::default(), Table::default());
        let mut index = IndexEncoder { written: 0, contents: [0; 6], names, pairs };
        index.contents[0] = index.at(out);
        let (mut content, mut count) = (Vec::new(), 0usize);
        for text in symbols {
            put_varint(&mut content, text.len() as u64);
            content.extend_from_slice(text.as_bytes());
            count += 1;
        }
        section(out, &[count], &content)?;
        index.pad(out, ALIGNMENT);
        index.contents[1] = index.at(out);
        Ok(index)
    }

    /// Says that so many bytes of the buffer were written and are not in it any more.
    pub fn cleared(&mut self, size: usize) {
        self.written += size as u64;
    }

    fn at(&self, out: &[u8]) -> u64 {
        self.written + out.len() as u64
    }

    fn pad(&self, out: &mut Vec<u8>, alignment: u64) {
        while !self.at(out).is_multiple_of(alignment) {
            out.push(0);
        }
    }

    /// Appends a series, which is behind those before it: the numbers of its strings, by name, and where
    /// its chunks are. Returns what postings call it.
    ///
    /// # Errors
    /// An index of more than 64 GiB.
    pub fn series(
        &mut self,
        out: &mut Vec<u8>,
        labels: &[(u32, u32)],
        chunks: &[ChunkPlace],
    ) -> Result<u32, Error> {
        self.pad(out, ALIGNMENT);
        let reference = u32::try_from(self.at(out) / ALIGNMENT).map_err(|_| too_large())?;
        let mut content = Vec::with_capacity(8 + labels.len() * 6 + chunks.len() * 12);
        put_varint(&mut content, labels.len() as u64);
        for (name, value) in labels {
            put_varint(&mut content, u64::from(*name));
            put_varint(&mut content, u64::from(*value));
        }
        put_varint(&mut content, chunks.len() as u64);
        let mut before: Option<(&ChunkPlace, u64)> = None;
        for chunk in chunks {
            let place = u64::from(chunk.file) << 32 | u64::from(chunk.offset);
            let length = chunk.last_ms.wrapping_sub(chunk.first_ms) as u64;
            match before {
                None => put_signed(&mut content, chunk.first_ms),
                Some((last, _)) => {
                    put_varint(&mut content, chunk.first_ms.wrapping_sub(last.last_ms) as u64);
                }
            }
            put_varint(&mut content, length);
            match before {
                None => put_varint(&mut content, place),
                Some((_, last)) => put_signed(&mut content, place.wrapping_sub(last) as i64),
            }
            before = Some((chunk, place));
        }
        put_varint(out, content.len() as u64);
        out.extend_from_slice(&content);
        out.extend_from_slice(&crc32c(&content).to_be_bytes());
        Ok(reference)
    }

    /// Appends the values of a label's name, rising; names rise, and come behind all series.
    ///
    /// # Errors
    /// More than 4 GiB of them.
    pub fn values(&mut self, out: &mut Vec<u8>, name: &str, values: &[u32]) -> Result<(), Error> {
        self.pad(out, SECTION_ALIGNMENT);
        if self.contents[2] == 0 {
            self.contents[2] = self.at(out);
        }
        self.names.push(&[name], self.at(out));
        section(out, &[1, values.len()], &numbers(values))
    }

    /// Appends which series have a pair, rising; pairs rise, behind the pair of two empty texts, which all
    /// series have. They come behind all values.
    ///
    /// # Errors
    /// More than 4 GiB of them.
    pub fn postings(
        &mut self,
        out: &mut Vec<u8>,
        (name, value): (&str, &str),
        series: &[u32],
    ) -> Result<(), Error> {
        self.pad(out, SECTION_ALIGNMENT);
        if self.contents[4] == 0 {
            self.contents[4] = self.at(out);
        }
        self.pairs.push(&[name, value], self.at(out));
        section(out, &[series.len()], &numbers(series))
    }

    /// Appends the tables.
    ///
    /// # Errors
    /// A table of more than 4 GiB.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        self.pad(out, SECTION_ALIGNMENT);
        self.contents[3] = self.at(out);
        section(out, &[self.names.count], &self.names.bytes)?;
        self.pad(out, SECTION_ALIGNMENT);
        self.contents[5] = self.at(out);
        section(out, &[self.pairs.count], &self.pairs.bytes)?;
        let mut contents = Vec::with_capacity(52);
        self.contents.iter().for_each(|at| contents.extend_from_slice(&at.to_be_bytes()));
        out.extend_from_slice(&contents);
        out.extend_from_slice(&crc32c(&contents).to_be_bytes());
        Ok(())
    }
}

impl Table {
    fn push(&mut self, texts: &[&str], place: u64) {
        put_varint(&mut self.bytes, texts.len() as u64);
        for text in texts {
            put_varint(&mut self.bytes, text.len() as u64);
            self.bytes.extend_from_slice(text.as_bytes());
        }
        put_varint(&mut self.bytes, place);
        self.count += 1;
    }
}

fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_varint(out, (number << 1 ^ number >> 63) as u64);
}

fn numbers(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// Appends a section: its size, numbers before its content, the content and a checksum of all but the size.
fn section(out: &mut Vec<u8>, heads: &[usize], content: &[u8]) -> Result<(), Error> {
    let number = |number: usize| u32::try_from(number).map_err(|_| too_large());
    out.extend_from_slice(&number(4 * heads.len() + content.len())?.to_be_bytes());
    let start = out.len();
    for head in heads {
        out.extend_from_slice(&number(*head)?.to_be_bytes());
    }
    out.extend_from_slice(content);
    let sum = crc32c(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_be_bytes());
    Ok(())
}

fn too_large() -> Error {
    Error::malformed("index", 0, "sections of at most 4 GiB, 64 GiB of series: make shorter blocks")
}
