//! Blocks of Prometheus' store, or of Thanos' and Mimir's, in a directory: read file by file from their
//! beginning to their end, so that memory holds the strings of one block and one series.

use super::series::{Filter, Series};
use super::source::{Sink, Source, Window};
use anyhow::{Context as _, bail, ensure};
use model::sample::NANOS_PER_MILLI;
use model::{Labels, TimeRange};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::prometheus_block::chunks::{self, AROUND_SIZE, Chunk};
use wire::prometheus_block::index::{
    ALIGNMENT, CONTENTS_SIZE, ChunkPlace, Contents, HEADER_SIZE, Symbols, check_header,
    parse_series,
};
use wire::prometheus_block::tombstones::{self, Tombstones};

/// Bytes of a series in the index: a larger one is none.
const SERIES_SIZE_MAX: u64 = 64 << 20;
/// Bytes of a chunk: Prometheus' are some kilobytes, and each bit may become a bucket in memory.
const CHUNK_SIZE_MAX: u64 = 1 << 20;
/// Bytes that a reader has ahead.
const AHEAD_SIZE: usize = 256 << 10;
/// Samples of a series that are handed on at once.
const SAMPLES_AT_ONCE: usize = 16 << 10;

/// What `meta.json` says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    min_time: i64,
    max_time: i64,
    #[serde(default)]
    stats: Stats,
    #[serde(default)]
    thanos: Thanos,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Stats {
    num_samples: u64,
    num_series: u64,
}

/// What Thanos adds: labels that tell the series of one Prometheus from those of others.
#[derive(Default, Deserialize)]
struct Thanos {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    downsample: Downsample,
}

#[derive(Default, Deserialize)]
struct Downsample {
    /// Milliseconds between two samples; 0 where it has them as they came.
    #[serde(default)]
    resolution: i64,
}

/// A directory of blocks, or one block.
pub struct Blocks {
    directory: PathBuf,
    filter: Arc<Filter>,
    range: TimeRange,
}

impl Blocks {
    /// Those of a directory that have samples of that time.
    pub fn new(directory: &Path, filter: Arc<Filter>, range: TimeRange) -> Blocks {
        Blocks { directory: directory.to_path_buf(), filter, range }
    }

    /// The directory of a window, which is called after it.
    fn block_directory(&self, name: &str) -> PathBuf {
        match self.directory.join("meta.json").exists() {
            true => self.directory.clone(),
            false => self.directory.join(name),
        }
    }

    /// Directories of blocks, with what they say of themselves, or nothing where that cannot be read.
    fn all(&self) -> anyhow::Result<Vec<(String, Option<Meta>)>> {
        let shown = || self.directory.display().to_string();
        let name_of =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if self.directory.join("meta.json").exists() {
            return Ok(vec![(name_of(&self.directory), Some(read_meta(&self.directory)?))]);
        }
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.directory).with_context(shown)? {
            let path = entry?.path();
            // The names of those that were not finished, or are being removed, go on.
            if path.extension().is_some() {
                continue;
            }
            if path.join("meta.json").exists() {
                found.push((name_of(&path), read_meta(&path).ok()));
            } else if path.join("index").exists() {
                eprintln!("{}: left out: it has an index and no meta.json", path.display());
            }
        }
        ensure!(
            !found.is_empty(),
            "{}: no blocks, which are directories with a meta.json",
            shown()
        );
        Ok(found)
    }
}

impl Source for Blocks {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        let mut all = self.all()?;
        all.retain(|(name, meta)| {
            let resolution = meta.as_ref().map_or(0, |meta| meta.thanos.downsample.resolution);
            if resolution != 0 {
                eprintln!("{name}: left out: it was downsampled to one sample in {resolution} ms");
            }
            resolution == 0
        });
        let times = |meta: &Meta| (meta.max_time, meta.min_time);
        all.sort_by_key(|(_, meta)| std::cmp::Reverse(meta.as_ref().map(times)));
        let window = |(name, meta): (String, Option<Meta>)| {
            // It is read with the others, and then says why it cannot be.
            let Some(meta) = meta else { return Window { name, range: self.range, samples: None } };
            // The end of a block is not in it.
            let last_ms = meta.max_time.saturating_sub(1);
            let nanos = |ms: i64| ms.saturating_mul(NANOS_PER_MILLI);
            let range = TimeRange::new(nanos(meta.min_time), nanos(last_ms));
            Window { name, range, samples: Some(meta.stats.num_samples) }
        };
        let all = all.into_iter().map(window);
        Ok(all.filter(|one| one.range.overlaps(&self.range)).collect())
    }

    fn is_apart(&self) -> bool {
        true
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let directory = self.block_directory(&window.name);
        let meta = read_meta(&directory)?;
        let mut block = Block::open(&directory).with_context(|| directory.display().to_string())?;
        let mut count = 0u64;
        while let Some((reference, mut series)) = block.next_series()? {
            count += 1;
            series.labels = with_labels(series.labels, &meta.thanos.labels);
            if !self.filter.takes(&series.labels) {
                continue;
            }
            let dead = block.tombstones.get(&reference).cloned().unwrap_or_default();
            let mut whole =
                Series { labels: series.labels, samples: Vec::new(), histograms: Vec::new() };
            for place in &series.chunks {
                let millis = |at: i64| at.saturating_mul(NANOS_PER_MILLI);
                let time = TimeRange::new(millis(place.first_ms), millis(place.last_ms));
                if !time.overlaps(&self.range) {
                    continue;
                }
                let chunk = block.chunk(place).with_context(|| whole.labels.to_string())?;
                take(&mut whole, chunk, &dead);
                if SAMPLES_AT_ONCE <= whole.len() {
                    let labels = whole.labels.clone();
                    let next = Series { labels, samples: Vec::new(), histograms: Vec::new() };
                    hand_on(std::mem::replace(&mut whole, next), &self.range, sink)?;
                }
            }
            hand_on(whole, &self.range, sink)?;
        }
        let said = meta.stats.num_series;
        ensure!(
            said == 0 || said == count,
            "{}/index: {count} series, meta.json says {said}",
            directory.display()
        );
        Ok(())
    }
}

/// The labels of a series and those of its block, which come first as in Thanos.
fn with_labels(labels: Labels, of_block: &BTreeMap<String, String>) -> Labels {
    if of_block.is_empty() {
        return labels;
    }
    let mut builder = labels.to_builder();
    of_block.iter().for_each(|(name, value)| builder.set(name, value));
    builder.finish()
}

fn hand_on(mut series: Series, range: &TimeRange, sink: &mut Sink<'_>) -> anyhow::Result<()> {
    series.tidy(range);
    match series.is_empty() {
        true => Ok(()),
        false => sink(series.into()),
    }
}

/// Adds what was not deleted.
fn take(series: &mut Series, chunk: Chunk, dead: &[(i64, i64)]) {
    let lives = |millis: i64| !dead.iter().any(|(first, last)| (*first..=*last).contains(&millis));
    match chunk {
        Chunk::Samples(all) => {
            series.samples.extend(all.into_iter().filter(|one| lives(one.millis)))
        }
        Chunk::Histograms(all) => {
            series.histograms.extend(all.into_iter().filter(|one| lives(one.millis)));
        }
    }
}

fn read_meta(directory: &Path) -> anyhow::Result<Meta> {
    let path = directory.join("meta.json");
    let shown = || path.display().to_string();
    serde_json::from_slice(&std::fs::read(&path).with_context(shown)?).with_context(shown)
}

/// A block that is read from its beginning to its end.
struct Block {
    directory: PathBuf,
    index: BufReader<File>,
    /// Where the reader of the index is.
    at: u64,
    series_end: u64,
    symbols: Symbols,
    tombstones: Tombstones,
    chunks: Option<ChunkFile>,
    /// Reused.
    piece: Vec<u8>,
}

/// A file of chunks.
struct ChunkFile {
    number: u32,
    reader: BufReader<File>,
    at: u64,
}

impl Block {
    fn open(directory: &Path) -> anyhow::Result<Block> {
        let mut file = open(&directory.join("index")).context("index")?;
        let size = file.metadata()?.len();
        ensure!((HEADER_SIZE + CONTENTS_SIZE) as u64 <= size, "index: {size} bytes are no index");
        let mut header = [0; HEADER_SIZE];
        file.read_exact(&mut header)?;
        check_header(&header).context("index")?;
        file.seek(SeekFrom::End(-(CONTENTS_SIZE as i64)))?;
        let mut contents = [0; CONTENTS_SIZE];
        file.read_exact(&mut contents)?;
        let contents = Contents::parse(&contents, size).context("index")?;
        file.seek(SeekFrom::Start(contents.symbols))?;
        let mut symbols = Vec::new();
        file.by_ref().take(contents.series - contents.symbols).read_to_end(&mut symbols)?;
        let symbols = Symbols::parse(symbols).context("index")?;
        file.seek(SeekFrom::Start(contents.series))?;
        let tombstones = match std::fs::read(directory.join("tombstones")) {
            Ok(bytes) => tombstones::parse(&bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Tombstones::new(),
            Err(error) => return Err(error).context("tombstones"),
        };
        Ok(Block {
            directory: directory.to_path_buf(),
            index: BufReader::with_capacity(AHEAD_SIZE, file),
            at: contents.series,
            series_end: contents.series_end,
            symbols,
            tombstones,
            chunks: None,
            piece: Vec::new(),
        })
    }

    /// The next series with the number that tombstones know it by.
    fn next_series(
        &mut self,
    ) -> anyhow::Result<Option<(u64, wire::prometheus_block::index::BlockSeries)>> {
        let start = self.at.next_multiple_of(ALIGNMENT);
        if self.series_end <= start {
            return Ok(None);
        }
        let place = || format!("{}/index: series at {start}", self.directory.display());
        self.index.seek_relative((start - self.at) as i64)?;
        let (size, size_size) = number(&mut self.index).with_context(place)?;
        // What stands between the last series and the next section is padding; elsewhere it is a page
        // that was lost.
        if size == 0 && self.series_end - start < ALIGNMENT {
            self.at = self.series_end;
            return Ok(None);
        }
        ensure!(size != 0, "{}: a series of no bytes", place());
        ensure!(size <= SERIES_SIZE_MAX, "{}: {size} bytes are no series", place());
        fill(&mut self.index, &mut self.piece, size + 4).with_context(place)?;
        self.at = start + size_size + size + 4;
        let (content, sum) = self.piece.split_last_chunk::<4>().context("a checksum")?;
        let series = parse_series(content, *sum, &self.symbols).with_context(place)?;
        Ok(Some((start / ALIGNMENT, series)))
    }

    fn chunk(&mut self, place: &ChunkPlace) -> anyhow::Result<Chunk> {
        // Files count from 1, references from 0.
        let name = format!("chunks/{:06}", u64::from(place.file) + 1);
        let shown = || format!("{}/{name}: chunk at {}", self.directory.display(), place.offset);
        if self.chunks.as_ref().is_none_or(|open| open.number != place.file) {
            self.chunks = None;
            let mut file = open(&self.directory.join(&name)).with_context(shown)?;
            let mut header = [0; chunks::HEADER_SIZE];
            file.read_exact(&mut header).with_context(shown)?;
            chunks::check_header(&header).with_context(shown)?;
            let reader = BufReader::with_capacity(AHEAD_SIZE, file);
            let at = chunks::HEADER_SIZE as u64;
            self.chunks = Some(ChunkFile { number: place.file, reader, at });
        }
        let open = self.chunks.as_mut().context("it was just opened")?;
        let offset = u64::from(place.offset);
        open.reader.seek_relative(offset as i64 - open.at as i64).with_context(shown)?;
        open.at = offset;
        let (size, size_size) = number(&mut open.reader).with_context(shown)?;
        ensure!(size <= CHUNK_SIZE_MAX, "{}: {size} bytes are no chunk", shown());
        let size = size + AROUND_SIZE as u64;
        fill(&mut open.reader, &mut self.piece, size).with_context(shown)?;
        open.at = offset + size_size + size;
        chunks::decode(&self.piece).with_context(shown)
    }
}

/// A file that is one: others may have no end.
fn open(path: &Path) -> anyhow::Result<File> {
    ensure!(std::fs::metadata(path)?.is_file(), "no file");
    Ok(File::open(path)?)
}

/// A number of varying length, and its bytes.
fn number(reader: &mut impl Read) -> anyhow::Result<(u64, u64)> {
    let mut value = 0u64;
    for at in 0..10 {
        let mut byte = [0];
        reader.read_exact(&mut byte)?;
        value |= u64::from(byte[0] & 0x7f) << (7 * at);
        if byte[0] < 0x80 {
            return Ok((value, at + 1));
        }
    }
    bail!("a number of more than ten bytes")
}

/// Reads so many bytes, and no more memory than there are.
fn fill(reader: &mut impl Read, piece: &mut Vec<u8>, size: u64) -> anyhow::Result<()> {
    piece.clear();
    let read = reader.by_ref().take(size).read_to_end(piece)? as u64;
    ensure!(read == size, "the file ends within it");
    Ok(())
}
