//! A block that is read from its beginning to its end: series by series, and of each its chunks, which stand
//! in the same order. In memory are the strings of the block and what its readers have ahead.

use super::reader::Reader;
use super::shelf::{CHUNKS, INDEX, Shelf, TOMBSTONES, TOMBSTONES_SIZE_MAX};
use anyhow::{Context as _, ensure};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use wire::prometheus_block::chunks::{self, AROUND_SIZE, Chunk};
use wire::prometheus_block::index::{
    ALIGNMENT, BlockSeries, CONTENTS_SIZE, ChunkPlace, Contents, HEADER_SIZE, Symbols,
    check_header, parse_series,
};
use wire::prometheus_block::tombstones::{self, Tombstones};

/// Bytes of a series in the index: a larger one is none.
const SERIES_SIZE_MAX: u64 = 64 << 20;
/// Bytes of a chunk: Prometheus' are some kilobytes, and each bit may become a bucket in memory.
const CHUNK_SIZE_MAX: u64 = 1 << 20;

/// A block that is read.
pub struct Block<'s> {
    shelf: &'s dyn Shelf,
    name: &'s str,
    files: &'s BTreeMap<String, u64>,
    index: Reader,
    series_end: u64,
    symbols: Symbols,
    /// What was deleted, by the numbers of series.
    pub tombstones: Tombstones,
    chunks: Option<(u32, Reader)>,
    read: Arc<AtomicU64>,
    /// Reused.
    piece: Vec<u8>,
}

impl<'s> Block<'s> {
    /// A block with these files, before its first series.
    ///
    /// # Errors
    /// When its index cannot be read.
    pub fn open(
        shelf: &'s dyn Shelf,
        name: &'s str,
        files: &'s BTreeMap<String, u64>,
        read: Arc<AtomicU64>,
    ) -> anyhow::Result<Block<'s>> {
        let place = || shelf.shown(name, INDEX);
        let mut index = reader(shelf, name, files, INDEX, &read).with_context(place)?;
        let contents = contents(&mut index).with_context(place)?;
        let mut symbols = Vec::new();
        index.seek(contents.symbols);
        let size = contents.series - contents.symbols;
        index.exact(&mut symbols, size).with_context(place)?;
        let symbols = Symbols::parse(symbols).with_context(place)?;
        index.seek(contents.series);
        let tombstones = shelf.small(&[(name, TOMBSTONES)], TOMBSTONES_SIZE_MAX)?.pop().flatten();
        let tombstones = match tombstones {
            Some(bytes) => {
                tombstones::parse(&bytes).with_context(|| shelf.shown(name, TOMBSTONES))?
            }
            None => Tombstones::new(),
        };
        let series_end = contents.series_end;
        let (chunks, piece) = (None, Vec::new());
        Ok(Block {
            shelf,
            name,
            files,
            index,
            series_end,
            symbols,
            tombstones,
            chunks,
            read,
            piece,
        })
    }

    /// Goes to where a series stands, as [`Block::at`] said it.
    pub fn seek(&mut self, at: u64) {
        self.index.seek(at);
    }

    /// Where the next series stands.
    pub fn at(&self) -> u64 {
        self.index.at()
    }

    /// The next series with the number that tombstones know it by.
    ///
    /// # Errors
    /// When the index lies.
    pub fn next_series(&mut self) -> anyhow::Result<Option<(u64, BlockSeries)>> {
        let start = self.index.at().next_multiple_of(ALIGNMENT);
        if self.series_end <= start {
            return Ok(None);
        }
        let (shelf, name) = (self.shelf, self.name);
        let place = || format!("{}: series at {start}", shelf.shown(name, INDEX));
        self.index.seek(start);
        let (size, _) = self.index.number().with_context(place)?;
        // What stands between the last series and the next section is padding; elsewhere it is a page
        // that was lost.
        if size == 0 && self.series_end - start < ALIGNMENT {
            self.index.seek(self.series_end);
            return Ok(None);
        }
        ensure!(size != 0, "{}: a series of no bytes", place());
        ensure!(size <= SERIES_SIZE_MAX, "{}: {size} bytes are no series", place());
        self.index.exact(&mut self.piece, size + 4).with_context(place)?;
        let (content, sum) = self.piece.split_last_chunk::<4>().context("a checksum")?;
        let series = parse_series(content, *sum, &self.symbols).with_context(place)?;
        Ok(Some((start / ALIGNMENT, series)))
    }

    /// A chunk of a series.
    ///
    /// # Errors
    /// When it is not there, or is another.
    pub fn chunk(&mut self, place: &ChunkPlace) -> anyhow::Result<Chunk> {
        // Files count from 1, references from 0.
        let file = format!("{CHUNKS}/{:06}", u64::from(place.file) + 1);
        let (shelf, name) = (self.shelf, self.name);
        let at = || format!("{}: chunk at {}", shelf.shown(name, &file), place.offset);
        let mut open = match self.chunks.take() {
            Some((number, open)) if number == place.file => open,
            _ => {
                let mut open = reader(shelf, name, self.files, &file, &self.read);
                if let Ok(open) = &mut open {
                    check_chunks(open).with_context(at)?;
                }
                open.with_context(at)?
            }
        };
        open.seek(u64::from(place.offset));
        let (size, _) = open.number().with_context(at)?;
        ensure!(size <= CHUNK_SIZE_MAX, "{}: {size} bytes are no chunk", at());
        open.exact(&mut self.piece, size + AROUND_SIZE as u64).with_context(at)?;
        self.chunks = Some((place.file, open));
        chunks::decode(&self.piece).with_context(at)
    }
}

/// A reader of a file of a block.
fn reader(
    shelf: &dyn Shelf,
    name: &str,
    files: &BTreeMap<String, u64>,
    file: &str,
    read: &Arc<AtomicU64>,
) -> anyhow::Result<Reader> {
    let size = *files.get(file).context("there is no such file")?;
    Ok(Reader::new(shelf.open(name, file, size)?, read.clone()))
}

/// Where what stands in an index.
fn contents(index: &mut Reader) -> anyhow::Result<Contents> {
    let size = index.size();
    ensure!((HEADER_SIZE + CONTENTS_SIZE) as u64 <= size, "{size} bytes are no index");
    let mut bytes = Vec::new();
    index.exact(&mut bytes, HEADER_SIZE as u64)?;
    check_header(bytes.first_chunk().context("a header")?)?;
    index.seek(size - CONTENTS_SIZE as u64);
    index.exact(&mut bytes, CONTENTS_SIZE as u64)?;
    Ok(Contents::parse(bytes.first_chunk().context("a table of contents")?, size)?)
}

fn check_chunks(file: &mut Reader) -> anyhow::Result<()> {
    let mut header = Vec::new();
    file.exact(&mut header, chunks::HEADER_SIZE as u64)?;
    Ok(chunks::check_header(header.first_chunk().context("a header")?)?)
}
