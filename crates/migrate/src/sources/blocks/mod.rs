//! Blocks of Prometheus' store, of Thanos and of Mimir, in a directory or a bucket: read file by file from
//! their beginning to their end, so that memory holds the strings of one block and one series.
//!
//! ```text
//! shelf ─ files, meta.json ─► choose ─► windows ─► block ─ series, chunks ─► downsampled ─► copy
//! ```

mod block;
#[cfg(feature = "s3")]
mod bucket;
mod choose;
mod downsampled;
mod meta;
mod reader;
mod shelf;

use super::source_arguments::SourceArguments;
use crate::series::{Filter, Series};
use crate::source::{Given, Mark, Sink, Source, Window};
use anyhow::{Context as _, anyhow, bail, ensure};
use block::Block;
use choose::{Candidate, Fate, choose};
use downsampled::Downsampled;
use meta::Meta;
use model::sample::NANOS_PER_MILLI;
use model::{Labels, TimeRange};
use shelf::{CHUNKS, DELETION_MARK, Directory, INDEX, META, META_SIZE_MAX, Shelf};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use wire::prometheus_block::chunks::Chunk;
use wire::prometheus_block::index::BlockSeries;

/// Samples of a series that are handed on at once.
const SAMPLES_AT_ONCE: usize = 16 << 10;
/// Files that say what a block is which are in memory at once, and bytes of them.
const METAS_AT_ONCE: usize = 256;
const METAS_AT_ONCE_SIZE: u64 = 32 << 20;
/// Bytes of those of all blocks: what they say is in memory.
const METAS_SIZE_MAX: u64 = 256 << 20;
/// Blocks that are left out for one reason and named.
const NAMES_SHOWN: usize = 10;

/// Blocks of a place.
pub struct Blocks {
    shelf: Box<dyn Shelf>,
    filter: Arc<Filter>,
    range: TimeRange,
    /// Those that are copied, by name.
    blocks: BTreeMap<String, Found>,
    /// Those whose samples are all in another, by the name of that one, which may turn out to be rotten.
    sources: BTreeMap<String, BTreeMap<String, Found>>,
    /// Those that turned out so, in words; and whether the last one that was read did.
    replaced: BTreeMap<String, String>,
    has_repeated: bool,
    left_out: LeftOut,
    /// Where a window is gone on.
    mark: Option<(String, Mark)>,
    read: Arc<AtomicU64>,
    /// Chunks of native histograms that were downsampled.
    lost_chunks: u64,
}

/// A block that is copied.
struct Found {
    files: BTreeMap<String, u64>,
    /// What it says of itself, or why it cannot be read.
    meta: Result<Meta, String>,
    /// The milliseconds of it that are copied, where that is not all.
    times: Option<Vec<(i64, i64)>>,
}

/// Blocks that are not copied, by the words for it.
type LeftOut = BTreeMap<&'static str, Vec<String>>;

/// The blocks of a place that arguments name.
///
/// # Errors
/// When the place is a bucket that cannot be asked.
pub fn open(asked: &SourceArguments<'_>) -> anyhow::Result<Box<dyn Source>> {
    let place = asked.place()?;
    let shelf: Box<dyn Shelf> = match place.split_once("://") {
        Some(("s3", rest)) => in_bucket(asked, rest)?,
        Some((scheme, _)) => {
            bail!("{place}: {scheme}:// is not known; give a directory or s3://BUCKET/PREFIX")
        }
        None if place.starts_with("s3:") => bail!("{place}: a bucket is s3://BUCKET/PREFIX"),
        None => Box::new(Directory::new(Path::new(place))),
    };
    Ok(Box::new(Blocks {
        shelf,
        filter: asked.filter.clone(),
        range: asked.range,
        blocks: BTreeMap::new(),
        sources: BTreeMap::new(),
        replaced: BTreeMap::new(),
        has_repeated: false,
        left_out: LeftOut::new(),
        mark: None,
        read: Arc::default(),
        lost_chunks: 0,
    }))
}

#[cfg(feature = "s3")]
fn in_bucket(asked: &SourceArguments<'_>, rest: &str) -> anyhow::Result<Box<dyn Shelf>> {
    use http_client::object_store::{Bucket, Rights};
    let bucket = Bucket::open(asked.matches, "", rest, Rights::Read)?;
    Ok(Box::new(bucket::InBucket::new(bucket)))
}

#[cfg(not(feature = "s3"))]
fn in_bucket(_: &SourceArguments<'_>, _: &str) -> anyhow::Result<Box<dyn Shelf>> {
    bail!("this build is without the feature s3, and knows no buckets; give a directory")
}

impl Blocks {
    /// Finds all blocks, and what becomes of each.
    fn look(&mut self) -> anyhow::Result<()> {
        (self.blocks, self.left_out) = (BTreeMap::new(), LeftOut::new());
        self.sources.clear();
        let listed = self.shelf.list()?;
        ensure!(
            listed.values().any(|files| files.contains_key(META)),
            "{}: no blocks, which are directories with a meta.json",
            self.shelf.name()
        );
        if !self.shelf.odd().is_empty() {
            self.left_out.insert(ODD, self.shelf.odd().to_vec());
        }
        let mut found = BTreeMap::new();
        for (name, files) in listed {
            if files.contains_key(DELETION_MARK) {
                self.left_out.entry(MARKED).or_default().push(name);
            } else if !files.contains_key(META) {
                self.left_out.entry(UNFINISHED).or_default().push(name);
            } else {
                found.insert(name, files);
            }
        }
        let mut metas = self.metas(&found)?;
        let sound: Vec<Candidate<'_>> = metas
            .iter()
            .filter_map(|(name, meta)| Some(Candidate { name, meta: meta.as_ref().ok()? }))
            .collect();
        let fates: BTreeMap<String, Fate> =
            sound.iter().map(|one| one.name.to_string()).zip(choose(&sound)).collect();
        for (name, files) in found {
            let meta = metas.remove(&name).unwrap_or_else(|| Err("it is gone".to_string()));
            let times = match (fates.get(&name), &meta) {
                (Some(Fate::Joined { into }), _) => {
                    self.left_out.entry(JOINED).or_default().push(format!("{name} (in {into})"));
                    let into = last_of(&fates, into).to_string();
                    let found = Found { files, meta, times: None };
                    self.sources.entry(into).or_default().insert(name, found);
                    continue;
                }
                (Some(Fate::Coarse), Ok(meta)) => {
                    let words = format!("{name} (a sample in {} ms)", meta.resolution());
                    self.left_out.entry(COARSE).or_default().push(words);
                    continue;
                }
                (Some(Fate::Copied(times)), Ok(meta)) if meta.resolution() != 0 => {
                    Some(times.clone())
                }
                _ => None,
            };
            self.blocks.insert(name, Found { files, meta, times });
        }
        Ok(())
    }

    /// What blocks say of themselves, or why that cannot be read.
    fn metas(
        &self,
        found: &BTreeMap<String, BTreeMap<String, u64>>,
    ) -> anyhow::Result<BTreeMap<String, Result<Meta, String>>> {
        let size = |name: &str| found[name].get(META).copied().unwrap_or_default();
        let all: u64 = found.keys().map(|name| size(name).min(META_SIZE_MAX)).sum();
        ensure!(
            all <= METAS_SIZE_MAX,
            "{}: {all} bytes of meta.json, the limit is {METAS_SIZE_MAX}: name a place that has fewer blocks",
            self.shelf.name()
        );
        let (large, names): (Vec<&String>, Vec<&String>) =
            found.keys().partition(|name| META_SIZE_MAX < size(name));
        let words = |name: &String| format!("{} bytes, the limit is {META_SIZE_MAX}", size(name));
        let mut metas: BTreeMap<String, Result<Meta, String>> =
            large.into_iter().map(|name| (name.clone(), Err(words(name)))).collect();
        for some in at_once(&names, size) {
            let files: Vec<(&str, &str)> = some.iter().map(|name| (name.as_str(), META)).collect();
            for (name, text) in some.iter().zip(self.shelf.small(&files, META_SIZE_MAX)?) {
                let meta = text.context("it is gone").and_then(|text| Meta::parse(&text));
                let meta = meta.and_then(|meta| whole(meta, &found[*name]));
                metas.insert((*name).clone(), meta.map_err(|error| format!("{error:#}")));
            }
        }
        Ok(metas)
    }
}

/// Blocks whose files that say what they are may be in memory at once.
fn at_once<'n>(names: &'n [&'n String], size: impl Fn(&str) -> u64) -> Vec<&'n [&'n String]> {
    let (mut all, mut rest) = (Vec::new(), names);
    while !rest.is_empty() {
        let mut sum = 0;
        let fits = |name: &&&String| {
            sum += size(name);
            sum <= METAS_AT_ONCE_SIZE
        };
        let count = rest.iter().take(METAS_AT_ONCE).take_while(fits).count().max(1);
        let (some, others) = rest.split_at(count);
        all.push(some);
        rest = others;
    }
    all
}

/// The block that is copied of those that one went into, be it by others.
fn last_of<'f>(fates: &'f BTreeMap<String, Fate>, name: &'f str) -> &'f str {
    let mut at = name;
    // No longer than there are blocks, whatever they say.
    for _ in 0..fates.len() {
        match fates.get(at) {
            Some(Fate::Joined { into }) => at = into,
            _ => break,
        }
    }
    at
}

/// Why blocks are left out.
const MARKED: &str = "blocks that are marked to be deleted";
const UNFINISHED: &str =
    "blocks without a meta.json, which comes last: they are being put there, or that broke off";
const ODD: &str = "objects or folders whose names are no path, with all that is below them";
const JOINED: &str = "blocks whose samples are all in another, which was made of them";
const REPLACED: &str =
    "blocks that cannot be read, whose samples came from those that they were made of";
const COARSE: &str = "blocks that were downsampled, of whose times finer ones are there";

/// What a block says of itself, if its files are those that it names.
fn whole(meta: Meta, files: &BTreeMap<String, u64>) -> anyhow::Result<Meta> {
    ensure!(files.contains_key(INDEX), "it has a meta.json and no index");
    for file in &meta.thanos.files {
        let is_read = file.rel_path == INDEX || file.rel_path.starts_with(CHUNKS);
        if !is_read || file.size_bytes == 0 {
            continue;
        }
        let (said, name) = (file.size_bytes, &file.rel_path);
        match files.get(name) {
            None => bail!("{name} is not there, which its meta.json names"),
            Some(size) => {
                ensure!(*size == said, "{name} has {size} bytes, its meta.json says {said}");
            }
        }
    }
    Ok(meta)
}

impl Found {
    /// Its time, and whether that is known.
    fn range(&self) -> Option<TimeRange> {
        let meta = self.meta.as_ref().ok()?;
        let times = self.times.as_deref();
        let first = times.and_then(|all| all.first()).map_or(meta.min_time, |one| one.0);
        let end = times.and_then(|all| all.last()).map_or(meta.max_time, |one| one.1);
        // The end of a block is not in it.
        Some(TimeRange::new(nanos(first), nanos(end.saturating_sub(1))))
    }

    /// Bytes of it that are read.
    fn size(&self) -> u64 {
        let is_read = |name: &&String| *name == INDEX || name.starts_with(CHUNKS);
        self.files.iter().filter(|(name, _)| is_read(name)).map(|(_, size)| size).sum()
    }

    /// Whether a sample of it is copied.
    fn takes(&self, millis: i64) -> bool {
        let is_in = |(start, end): &(i64, i64)| *start <= millis && millis < *end;
        self.times.as_ref().is_none_or(|times| times.iter().any(is_in))
    }
}

fn nanos(millis: i64) -> i64 {
    millis.saturating_mul(NANOS_PER_MILLI)
}

impl Source for Blocks {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        self.look()?;
        let mut windows: Vec<Window> = Vec::new();
        for (name, found) in &self.blocks {
            // One that cannot be read is read with the others, and then says why.
            let range = found.range().unwrap_or(self.range);
            let samples = found.meta.as_ref().ok().map(|meta| meta.stats.num_samples);
            windows.push(Window { name: name.clone(), range, samples });
        }
        windows.retain(|one| one.range.overlaps(&self.range));
        windows.sort_by_key(|one| std::cmp::Reverse((one.range.end, one.range.start)));
        Ok(windows)
    }

    fn is_apart(&self) -> bool {
        !self.shelf.is_away()
    }

    fn size(&self, window: &Window) -> Option<u64> {
        self.blocks.get(&window.name).map(Found::size)
    }

    fn bytes_read(&self) -> Option<Arc<AtomicU64>> {
        Some(self.read.clone())
    }

    fn has_repeated(&self) -> bool {
        self.has_repeated
    }

    fn go_on(&mut self, window: &Window, mark: Mark) {
        self.mark = Some((window.name.clone(), mark));
    }

    fn left_out(&self) -> Vec<String> {
        let words = |(why, names): (&&str, &Vec<String>)| {
            let shown = names.get(..NAMES_SHOWN).unwrap_or(names).join(", ");
            let more = if NAMES_SHOWN < names.len() { ", .." } else { "" };
            format!("{} {why}: {shown}{more}", names.len())
        };
        let mut all: Vec<String> = self.left_out.iter().map(words).collect();
        if !self.replaced.is_empty() {
            let words = self.replaced.iter().map(|(name, words)| format!("{name} ({words})"));
            let shown: Vec<String> = words.take(NAMES_SHOWN).collect();
            let more = if shown.len() < self.replaced.len() { ", .." } else { "" };
            let count = self.replaced.len();
            all.push(format!("{count} {REPLACED}: {}{more}", shown.join(", ")));
        }
        if 0 < self.lost_chunks {
            let count = self.lost_chunks;
            all.push(format!("{count} chunks of native histograms that were downsampled"));
        }
        all
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let mark = self.mark.take().filter(|(name, _)| *name == window.name);
        let mark = mark.map(|(_, mark)| mark).unwrap_or_default();
        let found = self.blocks.get(&window.name).context("a window of no block")?;
        let mut is_taken = true;
        let mut watched = |given: Given| {
            let taken = sink(given);
            is_taken &= taken.is_ok();
            taken
        };
        self.has_repeated = false;
        let outcome = match self.replaced.get(&window.name) {
            None => self.block((&window.name, found), mark, &mut watched),
            // It is known already.
            Some(_) => Err(anyhow!("it could not be read before")),
        };
        let lost = match outcome {
            Ok(lost) => lost,
            // Where what went wrong is not the block, its sources are of no use.
            Err(error) if !is_taken || self.shelf.is_away() => return Err(error),
            Err(error) => {
                let (lost, words) = self.instead_of((&window.name, found), error, sink)?;
                self.has_repeated = !self.replaced.contains_key(&window.name);
                self.replaced.entry(window.name.clone()).or_insert(words);
                lost
            }
        };
        self.lost_chunks += lost;
        Ok(())
    }
}

impl Blocks {
    /// Hands on a block from a mark on; returns how many chunks were lost.
    fn block(
        &self,
        (name, found): (&str, &Found),
        mark: Mark,
        sink: &mut Sink<'_>,
    ) -> anyhow::Result<u64> {
        let meta = match &found.meta {
            Ok(meta) => meta,
            Err(why) => bail!("{}: {why}", self.shelf.shown(name, META)),
        };
        let mut block = Block::open(self.shelf.as_ref(), name, &found.files, self.read.clone())?;
        let mut reading = Reading { found, range: self.range, lost_chunks: 0, sink };
        let mut count = mark.count;
        if mark != Mark::default() {
            block.seek(mark.at);
        }
        while let Some((reference, mut series)) = block.next_series()? {
            count += 1;
            series.labels = with_labels(series.labels, meta);
            if self.filter.takes(&series.labels) {
                let dead = block.tombstones.get(&reference).cloned().unwrap_or_default();
                reading.series(&mut block, series, &dead)?;
            }
            (reading.sink)(Given::Mark(Mark { at: block.at(), count }))?;
        }
        let said = meta.stats.num_series;
        let index = self.shelf.shown(name, INDEX);
        ensure!(said == 0 || said == count, "{index}: {count} series, meta.json says {said}");
        Ok(reading.lost_chunks)
    }

    /// Hands on the blocks that one was made of which cannot be read; returns how many chunks were lost,
    /// and what became of it in words.
    ///
    /// # Errors
    /// What is wrong with that one, where they do not have all of it.
    fn instead_of(
        &self,
        (name, whole): (&str, &Found),
        error: anyhow::Error,
        sink: &mut Sink<'_>,
    ) -> anyhow::Result<(u64, String)> {
        let Some(sources) = self.sources.get(name) else { return Err(error) };
        // A mark would be one of another file.
        let mut without_marks = |given: Given| match given {
            Given::Mark(_) => Ok(()),
            given => sink(given),
        };
        let (mut lost, mut read, mut wrong) = (0, BTreeMap::new(), Vec::new());
        for (source, found) in sources {
            let found = Found {
                files: found.files.clone(),
                meta: found.meta.clone(),
                times: whole.times.clone(),
            };
            match self.block((source, &found), Mark::default(), &mut without_marks) {
                Ok(count) => {
                    lost += count;
                    read.insert(source.as_str(), found);
                }
                Err(error) => wrong.push(format!("{error:#}")),
            }
        }
        let names: Vec<&str> = read.keys().copied().collect();
        let names = names.join(", ");
        if wrong.is_empty() && is_all_of(whole, &read) {
            return Ok((lost, format!("{error:#}; of {names}")));
        }
        let wrong = if wrong.is_empty() { "others are gone".to_string() } else { wrong.join("; ") };
        bail!("{error:#}; of what it was made of came {names}; {wrong}")
    }
}

/// Whether some blocks have all that one was made of.
fn is_all_of(whole: &Found, read: &BTreeMap<&str, Found>) -> bool {
    let Ok(meta) = &whole.meta else { return false };
    let sources = |found: &Found| -> Vec<String> {
        found.meta.as_ref().map(|meta| meta.compaction.sources.clone()).unwrap_or_default()
    };
    let had: BTreeSet<String> = read.values().flat_map(sources).collect();
    let (sources, parents) = (&meta.compaction.sources, &meta.compaction.parents);
    let has_sources = !sources.is_empty() && sources.iter().all(|one| had.contains(one));
    let is_read = |ulid: &str| read.contains_key(ulid);
    has_sources || (!parents.is_empty() && parents.iter().all(|one| is_read(&one.ulid)))
}

/// How a block is read.
struct Reading<'a, 's> {
    found: &'a Found,
    range: TimeRange,
    lost_chunks: u64,
    sink: &'a mut Sink<'s>,
}

impl Reading<'_, '_> {
    /// Hands on the samples of a series that are alive.
    fn series(
        &mut self,
        block: &mut Block<'_>,
        series: BlockSeries,
        dead: &[(i64, i64)],
    ) -> anyhow::Result<()> {
        let of = |labels| Series {
            labels,
            samples: Vec::new(),
            histograms: Vec::new(),
            repeated: Vec::new(),
        };
        let mut downsampled = Downsampled::of(series.labels.metric_name());
        let mut whole = of(series.labels);
        for place in &series.chunks {
            let time = TimeRange::new(nanos(place.first_ms), nanos(place.last_ms));
            if !time.overlaps(&self.range) {
                continue;
            }
            let chunk = block.chunk(place).with_context(|| whole.labels.to_string())?;
            self.take(&mut whole, chunk, &mut downsampled, dead);
            if SAMPLES_AT_ONCE <= whole.len() {
                let labels = whole.labels.clone();
                self.hand_on(std::mem::replace(&mut whole, of(labels)))?;
            }
        }
        self.hand_on(whole)
    }

    /// Adds what was not deleted.
    fn take(
        &mut self,
        series: &mut Series,
        chunk: Chunk,
        downsampled: &mut Downsampled,
        dead: &[(i64, i64)],
    ) {
        let lives =
            |millis: i64| !dead.iter().any(|(first, last)| (*first..=*last).contains(&millis));
        match chunk {
            Chunk::Samples(all) => {
                series.samples.extend(all.into_iter().filter(|one| lives(one.millis)));
            }
            Chunk::Histograms(all) => {
                series.histograms.extend(all.into_iter().filter(|one| lives(one.millis)));
            }
            Chunk::Aggregates(all) if all.is_of_histograms => self.lost_chunks += 1,
            Chunk::Aggregates(all) => {
                let is_taken = |millis: i64| lives(millis) && self.found.takes(millis);
                let all = downsampled.next(all).into_iter();
                series.samples.extend(all.filter(|one| is_taken(one.millis)));
            }
        }
    }

    fn hand_on(&mut self, mut series: Series) -> anyhow::Result<()> {
        series.tidy(&self.range);
        match series.is_empty() {
            true => Ok(()),
            false => (self.sink)(series.into()),
        }
    }
}

/// The labels of a series and those of its block, which come first as in Thanos.
fn with_labels(labels: Labels, meta: &Meta) -> Labels {
    if meta.shown_labels().next().is_none() {
        return labels;
    }
    let mut builder = labels.to_builder();
    meta.shown_labels().for_each(|(name, value)| builder.set(name, value));
    builder.finish()
}
