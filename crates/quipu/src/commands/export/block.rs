//! One block of Prometheus' store, written from pieces of series in any order of series.
//!
//! ```text
//! pieces ─► chunks ─► spool, as they come      labels and places of chunks in memory
//! finish: series sorted ─► chunks/000001 .. and index, series by series; meta.json, tombstones
//!         ─► all synced; name: ULID.tmp-for-creation becomes ULID
//! ```
//!
//! Memory holds each string of the block once, eight bytes for each label and 32 for each chunk of a series,
//! and four for each label while postings are made. Prometheus removes directories of the temporary
//! name when it starts.

use super::file::sync_directory_of;
use super::pieces::Piece;
use super::told::Told;
use anyhow::{Context as _, bail, ensure};
use histogram::Histogram;
use model::Labels;
use model::sample::NANOS_PER_MILLI;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use vfs::{RealVfs, Vfs as _};
use wire::prometheus_block::chunks::{Chunk, decode};
use wire::prometheus_block::index::ChunkPlace;
use wire::prometheus_block::write::chunks::{
    FILE_SIZE_MAX, Written, header, push_histograms, push_samples,
};
use wire::prometheus_block::write::index::IndexEncoder;
use wire::prometheus_block::write::meta::{Meta, ulid};
use wire::prometheus_block::write::no_tombstones;
use wire::prometheus_block::write::pairs::{Sorted, Strings};
use wire::remote_read::CHUNK_SAMPLES_MAX;
use wire::remote_write::encode::MillisSample;

/// What a block is called until it is whole.
pub const UNFINISHED: &str = ".tmp-for-creation";
/// Bytes of an index that are gathered before they are written.
const BUFFER_SIZE: usize = 256 << 10;
/// Prometheus counts offsets within a file of chunks in 32 bits.
const _: () = assert!(FILE_SIZE_MAX < u32::MAX as u64);

/// A chunk in the spool.
#[derive(Clone, Copy)]
struct Spooled {
    first_ms: i64,
    last_ms: i64,
    offset: u64,
    size: u32,
}

/// A series that is complete.
struct Series {
    labels: Box<[(u32, u32)]>,
    chunks: Box<[Spooled]>,
}

/// The series whose pieces are coming.
#[derive(Default)]
struct Current {
    labels: Labels,
    /// Chunks that are in the spool.
    chunks: Vec<Spooled>,
    /// Samples behind them.
    samples: Vec<MillisSample>,
    histograms: Vec<(i64, Histogram)>,
}

/// Gives a block that is whole its name, durably; it may have it already, or be elsewhere by now.
///
/// # Errors
/// When that fails.
pub fn name(directory: &Path, ulid: &str) -> anyhow::Result<()> {
    let (unfinished, block) = (directory.join(format!("{ulid}{UNFINISHED}")), directory.join(ulid));
    if unfinished.exists() {
        std::fs::rename(&unfinished, &block).with_context(|| unfinished.display().to_string())?;
    }
    sync_directory_of(&block)
}

/// A block that is being written.
pub struct BlockWriter {
    ulid: String,
    unfinished: PathBuf,
    spool: File,
    spool_size: u64,
    strings: Strings,
    series: Vec<Series>,
    current: Option<Current>,
    samples: u64,
    /// Reused.
    chunk: Vec<u8>,
}

impl BlockWriter {
    /// Begins a block in a directory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(directory: &Path) -> anyhow::Result<BlockWriter> {
        let vfs = RealVfs::new();
        let random = u128::from(vfs.random()) << 64 | u128::from(vfs.random());
        let ulid = ulid(vfs.now().div_euclid(NANOS_PER_MILLI), random);
        let unfinished = directory.join(format!("{ulid}{UNFINISHED}"));
        let shown = || unfinished.display().to_string();
        std::fs::create_dir_all(unfinished.join("chunks")).with_context(shown)?;
        let spool = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(unfinished.join("spool"))
            .with_context(shown)?;
        Ok(BlockWriter {
            ulid,
            unfinished,
            spool,
            spool_size: 0,
            strings: Strings::default(),
            series: Vec::new(),
            current: None,
            samples: 0,
            chunk: Vec::new(),
        })
    }

    /// Takes a piece; those of a series follow each other.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn push(&mut self, piece: &Piece, told: &mut Told) -> anyhow::Result<()> {
        if self.current.as_ref().is_none_or(|current| current.labels != piece.labels) {
            self.end_series(told)?;
            let labels = piece.labels.clone();
            self.current = Some(Current { labels, ..Current::default() });
        }
        told.leave_out("start timestamps, of samples that are there", piece.starts);
        let Some(mut current) = self.current.take() else { return Ok(()) };
        for (time, value) in &piece.samples {
            let sample = MillisSample { millis: time.div_euclid(NANOS_PER_MILLI), value: *value };
            match current.samples.last_mut().filter(|last| last.millis == sample.millis) {
                Some(last) => {
                    *last = sample;
                    told.leave_out(OF_ONE_MILLISECOND, 1);
                }
                None => current.samples.push(sample),
            }
        }
        for (time, histogram) in &piece.histograms {
            let millis = time.div_euclid(NANOS_PER_MILLI);
            if current.histograms.pop_if(|last| last.0 == millis).is_some() {
                told.leave_out(OF_ONE_MILLISECOND, 1);
            }
            current.histograms.push((millis, histogram.clone()));
        }
        // One stays, as the next may be of its millisecond.
        let mut rest = current.samples.as_slice();
        while CHUNK_SAMPLES_MAX < rest.len() {
            let taken = self.spool_samples(&mut current.chunks, rest)?;
            rest = rest.get(taken..).unwrap_or_default();
        }
        let done = current.samples.len() - rest.len();
        current.samples.drain(..done);
        self.current = Some(current);
        Ok(())
    }

    fn spool_samples(
        &mut self,
        chunks: &mut Vec<Spooled>,
        samples: &[MillisSample],
    ) -> anyhow::Result<usize> {
        self.chunk.clear();
        let Some(written) = push_samples(&mut self.chunk, samples) else { return Ok(0) };
        chunks.push(self.spool(&written)?);
        Ok(written.samples)
    }

    /// Writes the chunk behind the others.
    fn spool(&mut self, written: &Written) -> anyhow::Result<Spooled> {
        let (offset, size) = (self.spool_size, u32::try_from(self.chunk.len())?);
        self.spool.write_all_at(&self.chunk, offset).context(self.unfinished_shown())?;
        self.spool_size += u64::from(size);
        self.samples += written.samples as u64;
        Ok(Spooled { first_ms: written.first_ms, last_ms: written.last_ms, offset, size })
    }

    fn unfinished_shown(&self) -> String {
        self.unfinished.display().to_string()
    }

    fn end_series(&mut self, told: &mut Told) -> anyhow::Result<()> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        if !current.histograms.is_empty() {
            self.take_back(&mut current)?;
        }
        let Current { labels, mut chunks, samples, histograms } = current;
        // Of a millisecond with both the histogram counts.
        let times: Vec<i64> = histograms.iter().map(|one| one.0).collect();
        let mut kept = samples;
        let before = kept.len();
        if !times.is_empty() {
            kept.retain(|sample| times.binary_search(&sample.millis).is_err());
        }
        told.leave_out(OF_ONE_MILLISECOND, (before - kept.len()) as u64);
        let given: Vec<(i64, &Histogram)> =
            histograms.iter().map(|(millis, one)| (*millis, one)).collect();
        let (mut samples, mut given) = (kept.as_slice(), given.as_slice());
        while !samples.is_empty() || !given.is_empty() {
            let next_sample = samples.first().map_or(i64::MAX, |sample| sample.millis);
            let next_histogram = given.first().map_or(i64::MAX, |one| one.0);
            if next_sample < next_histogram || given.is_empty() {
                let run = samples.partition_point(|sample| sample.millis < next_histogram);
                let run = if given.is_empty() { samples.len() } else { run };
                let taken =
                    self.spool_samples(&mut chunks, samples.get(..run).unwrap_or_default())?;
                samples = samples.get(taken..).unwrap_or_default();
            } else {
                let run = given.partition_point(|one| one.0 < next_sample);
                let run = if samples.is_empty() { given.len() } else { run };
                self.chunk.clear();
                let run = given.get(..run).unwrap_or_default();
                let written = push_histograms(&mut self.chunk, run).context("no histograms")?;
                chunks.push(self.spool(&written)?);
                given = given.get(written.samples..).unwrap_or_default();
            }
        }
        if !chunks.is_empty() {
            let labels =
                self.strings.number(&labels).context("more strings than a block can have")?;
            self.series.push(Series { labels, chunks: chunks.into_boxed_slice() });
        }
        Ok(())
    }

    /// Takes samples of a series back from the spool: chunks of numbers and of histograms take turns.
    fn take_back(&mut self, current: &mut Current) -> anyhow::Result<()> {
        let mut samples = Vec::new();
        for chunk in current.chunks.drain(..) {
            let bytes = read_chunk(&self.spool, &chunk)?;
            let start = bytes.iter().position(|byte| *byte < 0x80).context("no chunk")? + 1;
            match decode(bytes.get(start..).unwrap_or_default())? {
                Chunk::Samples(all) => samples.extend(all),
                _ => bail!("something else where numbers were written"),
            }
        }
        self.samples -= samples.len() as u64;
        samples.append(&mut current.samples);
        current.samples = samples;
        Ok(())
    }

    /// Writes the block under its temporary name, all of it on disk, for [`name`]; nothing of one without
    /// samples.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, told: &mut Told) -> anyhow::Result<Option<Meta>> {
        self.end_series(told)?;
        let shown = self.unfinished_shown();
        if self.series.is_empty() {
            std::fs::remove_dir_all(&self.unfinished).context(shown)?;
            return Ok(None);
        }
        let unfinished = self.unfinished.clone();
        let meta = self.write().context(shown.clone())?;
        std::fs::remove_file(unfinished.join("spool")).context(shown)?;
        let vfs = RealVfs::new();
        vfs.sync_dir(&unfinished.join("chunks"))?;
        vfs.sync_dir(&unfinished)?;
        told.samples += meta.samples;
        Ok(Some(meta))
    }

    fn write(self) -> anyhow::Result<Meta> {
        let BlockWriter { ulid, unfinished, spool, strings, mut series, samples, .. } = self;
        let sorted = strings.sorted();
        series.iter_mut().for_each(|one| sorted.rank(&mut one.labels));
        series.sort_unstable_by(|one, other| one.labels.cmp(&other.labels));
        ensure!(series.is_sorted_by(|one, other| one.labels < other.labels), "a series came twice");
        let mut index = IndexFile::create(&unfinished.join("index"), &sorted)?;
        let mut chunks = ChunkFiles::begin(&unfinished.join("chunks"))?;
        let mut references = Vec::with_capacity(series.len());
        let mut meta = Meta {
            ulid,
            min_time: i64::MAX,
            max_time: i64::MIN,
            samples,
            series: series.len() as u64,
            chunks: 0,
        };
        for one in &series {
            let mut places = Vec::with_capacity(one.chunks.len());
            for chunk in &one.chunks {
                places.push(chunks.copy(&spool, chunk)?);
                meta.min_time = meta.min_time.min(chunk.first_ms);
                meta.max_time = meta.max_time.max(chunk.last_ms.saturating_add(1));
                meta.chunks += 1;
            }
            references.push(index.series(&one.labels, &places)?);
        }
        chunks.finish()?;
        index.finish(&sorted, &series, &references)?;
        write_synced(&unfinished.join("meta.json"), meta.to_json().as_bytes())?;
        write_synced(&unfinished.join("tombstones"), &no_tombstones())?;
        Ok(meta)
    }
}

const OF_ONE_MILLISECOND: &str = "samples of a millisecond that has a later one";

fn read_chunk(spool: &File, chunk: &Spooled) -> anyhow::Result<Vec<u8>> {
    let mut bytes = vec![0; chunk.size as usize];
    spool.read_exact_at(&mut bytes, chunk.offset).context("spool")?;
    Ok(bytes)
}

fn write_synced(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    Ok(file.sync_all()?)
}

/// The files of chunks, in the order of their series.
struct ChunkFiles {
    directory: PathBuf,
    /// Which, from 0.
    number: u32,
    file: BufWriter<File>,
    at: u64,
}

impl ChunkFiles {
    fn begin(directory: &Path) -> anyhow::Result<ChunkFiles> {
        let (file, at) = Self::open(directory, 0)?;
        Ok(ChunkFiles { directory: directory.to_path_buf(), number: 0, file, at })
    }

    /// Files count from 1, references from 0.
    fn open(directory: &Path, number: u32) -> anyhow::Result<(BufWriter<File>, u64)> {
        let mut file = BufWriter::new(File::create(directory.join(format!("{:06}", number + 1)))?);
        let header = header();
        file.write_all(&header)?;
        Ok((file, header.len() as u64))
    }

    fn copy(&mut self, spool: &File, chunk: &Spooled) -> anyhow::Result<ChunkPlace> {
        if FILE_SIZE_MAX < self.at + u64::from(chunk.size) {
            self.sync()?;
            self.number += 1;
            (self.file, self.at) = Self::open(&self.directory, self.number)?;
        }
        self.file.write_all(&read_chunk(spool, chunk)?)?;
        let offset = u32::try_from(self.at)?;
        self.at += u64::from(chunk.size);
        let Spooled { first_ms, last_ms, .. } = *chunk;
        Ok(ChunkPlace { first_ms, last_ms, file: self.number, offset })
    }

    fn sync(&mut self) -> anyhow::Result<()> {
        self.file.flush()?;
        Ok(self.file.get_ref().sync_all()?)
    }

    fn finish(mut self) -> anyhow::Result<()> {
        self.sync()
    }
}

/// The index.
struct IndexFile {
    file: File,
    encoder: IndexEncoder,
    buffer: Vec<u8>,
}

impl IndexFile {
    fn create(path: &Path, sorted: &Sorted) -> anyhow::Result<IndexFile> {
        let mut buffer = Vec::new();
        let encoder = IndexEncoder::begin(&mut buffer, sorted.texts())?;
        let mut index = IndexFile { file: File::create(path)?, encoder, buffer };
        index.write_full(BUFFER_SIZE)?;
        Ok(index)
    }

    /// Writes what is gathered, once it is so many bytes.
    fn write_full(&mut self, size: usize) -> anyhow::Result<()> {
        if size <= self.buffer.len() {
            self.file.write_all(&self.buffer)?;
            self.encoder.cleared(self.buffer.len());
            self.buffer.clear();
        }
        Ok(())
    }

    fn series(&mut self, labels: &[(u32, u32)], places: &[ChunkPlace]) -> anyhow::Result<u32> {
        let reference = self.encoder.series(&mut self.buffer, labels, places)?;
        self.write_full(BUFFER_SIZE)?;
        Ok(reference)
    }

    /// Writes what finds series by their labels, name by name.
    fn finish(
        mut self,
        sorted: &Sorted,
        series: &[Series],
        references: &[u32],
    ) -> anyhow::Result<()> {
        let mut names: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (name, value) in series.iter().flat_map(|one| &one.labels) {
            let values = names.entry(*name).or_default();
            if values.last() != Some(value) {
                values.push(*value);
            }
        }
        for (name, values) in &mut names {
            values.sort_unstable();
            values.dedup();
            self.encoder.values(&mut self.buffer, sorted.text(*name), values)?;
            self.write_full(BUFFER_SIZE)?;
        }
        self.encoder.postings(&mut self.buffer, ("", ""), references)?;
        for name in names.keys() {
            self.postings_of(sorted, *name, series, references)?;
        }
        let IndexFile { mut file, encoder, mut buffer } = self;
        encoder.finish(&mut buffer)?;
        file.write_all(&buffer)?;
        Ok(file.sync_all()?)
    }

    fn postings_of(
        &mut self,
        sorted: &Sorted,
        name: u32,
        series: &[Series],
        references: &[u32],
    ) -> anyhow::Result<()> {
        let value_of = |one: &Series| {
            let at = one.labels.binary_search_by_key(&name, |pair| pair.0).ok()?;
            one.labels.get(at).map(|pair| pair.1)
        };
        let pairs = series.iter().zip(references);
        let mut pairs: Vec<(u32, u32)> =
            pairs.filter_map(|(one, reference)| Some((value_of(one)?, *reference))).collect();
        pairs.sort_unstable();
        for run in pairs.chunk_by(|one, other| one.0 == other.0) {
            let Some((value, _)) = run.first() else { continue };
            let references: Vec<u32> = run.iter().map(|pair| pair.1).collect();
            let pair = (sorted.text(name), sorted.text(*value));
            self.encoder.postings(&mut self.buffer, pair, &references)?;
            self.write_full(BUFFER_SIZE)?;
        }
        Ok(())
    }
}
