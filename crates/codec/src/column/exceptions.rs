//! The values of a column of decimals that are none: stale markers, NaN, infinities, -0.0, noise.
//!
//! ```text
//! exceptions   symbols (varint)   bits of each symbol (8 bytes)   size (varint)   directory   sections
//! section      of one page; each exception: values skipped since the last (varint)   [symbol (varint)]
//! ```
//!
//! The mantissa at an exception's place means nothing. With one symbol none is named.

use super::directory::{Pages, put_directory};
use super::layout::Layout;
use crate::bytes::{Reader, put_u64, put_varint};
use crate::error::Error;
use std::collections::BTreeMap;
use std::ops::Range;

/// Where the exceptions of a column are, and which.
pub struct ExceptionsWriter {
    /// Each bit pattern that occurs, and its place in the table.
    symbols: BTreeMap<u64, u32>,
    /// The table.
    table: Vec<u64>,
    /// The symbol of each exception.
    ids: Vec<u32>,
}

impl ExceptionsWriter {
    /// The exceptions of `values` at `places`; none when they take so much that decimals do not pay.
    pub fn collect(values: &[f64], places: &[u32]) -> Option<ExceptionsWriter> {
        let mut writer = ExceptionsWriter {
            symbols: BTreeMap::new(),
            table: Vec::new(),
            ids: Vec::with_capacity(places.len()),
        };
        // Two bytes a value are what good decimals take; a column that spends as much on
        // exceptions is better off without a common exponent.
        let size_max = 2 * values.len();
        for &place in places {
            let bits = values[place as usize].to_bits();
            let next = writer.table.len() as u32;
            let id = *writer.symbols.entry(bits).or_insert(next);
            if id == next {
                writer.table.push(bits);
            }
            writer.ids.push(id);
            if size_max < 2 * writer.ids.len() + 8 * writer.table.len() {
                return None;
            }
        }
        Some(writer)
    }

    /// Appends the exceptions; `places` as in [`ExceptionsWriter::collect`].
    pub fn put(&self, places: &[u32], layout: &Layout, out: &mut Vec<u8>) {
        put_varint(out, self.table.len() as u64);
        for &bits in &self.table {
            put_u64(out, bits);
        }
        let mut exceptions = places.iter().zip(&self.ids).peekable();
        let mut sections = Vec::new();
        let mut ends = Vec::with_capacity(layout.pages());
        for page in 0..layout.pages() {
            let samples = layout.samples_of(&layout.page_slots(page));
            let mut next = samples.start as u32;
            while let Some((&place, &id)) =
                exceptions.next_if(|&(&place, _)| (place as usize) < samples.end)
            {
                put_varint(&mut sections, u64::from(place - next));
                if 1 < self.table.len() {
                    put_varint(&mut sections, u64::from(id));
                }
                next = place + 1;
            }
            ends.push(sections.len());
        }
        debug_assert!(exceptions.next().is_none());
        let mut directory = Vec::new();
        put_directory(&ends, &mut directory);
        put_varint(out, (directory.len() + sections.len()) as u64);
        out.extend_from_slice(&directory);
        out.extend_from_slice(&sections);
    }
}

/// Puts exceptions back in place.
#[derive(Debug)]
pub struct ExceptionsReader {
    /// Where the symbols are in the column, eight bytes each.
    symbols: Range<usize>,
    sections: Pages,
}

impl ExceptionsReader {
    /// Parses the headers.
    pub fn open(reader: &mut Reader<'_>, layout: &Layout) -> Result<ExceptionsReader, Error> {
        let symbols = reader.varint_size(reader.remaining() / 8)?;
        let symbols_start = reader.offset();
        reader.slice(symbols * 8)?;
        let symbols = symbols_start..reader.offset();
        let size = reader.varint_size(reader.remaining())?;
        let origin = reader.offset();
        let mut sections = Reader::new(reader.slice(size)?);
        let sections = Pages::read(&mut sections, layout.pages(), origin)?;
        Ok(ExceptionsReader { symbols, sections })
    }

    /// Bytes of memory that the parsed headers take.
    pub fn memory_size(&self) -> usize {
        self.sections.memory_size()
    }

    /// Overwrites the exceptions among `values`, which are the samples `samples` of the column,
    /// all of `page`.
    pub fn apply(
        &self,
        column: &[u8],
        layout: &Layout,
        page: usize,
        samples: &Range<usize>,
        values: &mut [f64],
    ) -> Result<(), Error> {
        let (symbols, _) = column[self.symbols.clone()].as_chunks::<8>();
        let page_samples = layout.samples_of(&layout.page_slots(page));
        debug_assert!(values.len() == samples.len());
        let mut reader = Reader::new(self.sections.page(column, page));
        let mut next = page_samples.start;
        while !reader.is_empty() {
            let skipped = reader.varint_size(page_samples.len())?;
            let id = if symbols.len() == 1 { 0 } else { reader.varint_size(usize::MAX)? };
            let place = next + skipped;
            let symbol = symbols
                .get(id)
                .filter(|_| place < page_samples.end)
                .ok_or_else(|| reader.corrupt("exception beyond its page or table"))?;
            if samples.contains(&place) {
                values[place - samples.start] = f64::from_bits(u64::from_le_bytes(*symbol));
            }
            next = place + 1;
        }
        Ok(())
    }
}
