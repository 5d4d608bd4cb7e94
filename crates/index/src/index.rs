//! The index of one partition: segments on disk and memory indexes, answering as one.
//!
//! ```text
//! segments, oldest first │ sealed memory indexes │ the memory index that registers
//! └── entities 0.. ──────┴───────────────────────┴──────────────────────────────►
//! ```
//!
//! A flush goes: [`Index::seal`] (instant, under the caller's write lock), [`Index::freeze_job`]
//! and [`FreezeJob::run`] (seconds, without any lock), the caller names the file in its manifest,
//! [`Index::install`] (instant, write lock). Registration goes on all the while.
//! A merge goes the same way from [`Index::merge_job`].

#[cfg(test)]
mod tests;
#[cfg(test)]
mod rot_tests;

use crate::cardinality::{Cardinality, CardinalityQuestion, CountedPart};
use crate::entity::{BlockRef, EntityId, NewEntity};
use crate::error::{Error, Result};
use crate::frozen::FrozenParts;
use crate::jobs::{FreezeJob, MergeJob, NewSegment};
use crate::matcher::CompiledMatchers;
use crate::memory::MemoryIndex;
use crate::segment::Segment;
use crate::segment::entry::SegmentEntry;
use crate::segment::labels::LabelCache;
use crate::subset::BlockMatch;
use model::LabelsBuilder;
use roaring::RoaringBitmap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// All label sets of one partition.
pub struct Index {
    vfs: Arc<dyn vfs::Vfs>,
    dir: PathBuf,
    /// What never changes; replaced as a whole.
    frozen: Arc<FrozenParts>,
    /// Behind the frozen parts.
    memory: MemoryIndex,
    /// The last number that a segment was given: no other gets it, even of those that come to
    /// nothing.
    given: AtomicU32,
}

/// One of the indexes that an [`Index`] is made of.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    Segment(&'a Segment),
    Memory(&'a MemoryIndex),
}

/// Searches one part.
type PartSearch<'a, P> = &'a dyn Fn(&P) -> Result<Vec<BlockMatch>>;

/// What is done about a segment that is rotten: `Ok` goes on without it, an error is the answer.
pub type OnRot<'a> = dyn FnMut(&Segment, Error) -> Result<()> + 'a;

/// Answers with the error: for those who need all or nothing.
pub fn refuse_rot(_: &Segment, error: Error) -> Result<()> {
    Err(error)
}

/// What a segment gave; `None` when it is rotten and that is borne.
pub(crate) fn borne<T>(
    segment: &Segment,
    read: Result<T>,
    on_rot: &mut OnRot<'_>,
) -> Result<Option<T>> {
    match read.map_err(|error| error.in_file(segment.name())) {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_corrupt() => on_rot(segment, error).map(|()| None),
        Err(error) => Err(error),
    }
}

impl Index {
    /// Opens the segments that the store's manifest names (none for a new partition); what was
    /// registered after them comes through [`Index::replay`].
    ///
    /// # Errors
    /// When a segment is missing, corrupt or another than was named, or when two overlap.
    pub fn open(vfs: Arc<dyn vfs::Vfs>, dir: &Path, named: &[SegmentEntry]) -> Result<Index> {
        let mut segments = Vec::with_capacity(named.len());
        for entry in named {
            let segment = Segment::open(&entry.name, vfs.map(&dir.join(&entry.name))?)?;
            segment.check_entry(entry)?;
            segments.push(Arc::new(segment));
        }
        segments.sort_by_key(|segment| segment.entities().start);
        for pair in segments.windows(2) {
            if pair[1].entities().start < pair[0].entities().end
                || pair[1].series().start < pair[0].series().end
            {
                let what = "segments overlap";
                return Err(Error::Corrupt { file: pair[1].name().to_string(), offset: 0, what });
            }
        }
        let (next_entity, next_series) =
            segments.last().map_or((0, 0), |last| (last.entities().end, last.series().end));
        let memory = MemoryIndex::new(next_entity, next_series);
        let frozen = Arc::new(FrozenParts { segments, sealed: Vec::new() });
        let (dir, given) = (dir.to_path_buf(), AtomicU32::new(0));
        Ok(Index { vfs, dir, frozen, memory, given })
    }

    /// The entity with exactly these metric names (in this order) and tags.
    ///
    /// # Errors
    /// When a segment turns out to be corrupt, as in all methods that read.
    pub fn find_entity(&self, entity: &NewEntity<'_>) -> Result<Option<EntityId>> {
        for part in self.parts().rev() {
            if let Some(found) = part.find_entity(entity)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The series of an entity of one metric as one column of another entity, of several metrics:
    /// that entity and the column.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn find_column(&self, entity: &NewEntity<'_>) -> Result<Option<(EntityId, u16)>> {
        for part in self.parts().rev() {
            if let Some(found) = part.find_column(entity)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Registers an entity that [`Index::find_entity`] did not find, and appends to `log` a
    /// record that [`Index::replay`] understands.
    ///
    /// # Errors
    /// As [`MemoryIndex::register`]; nothing has changed then.
    pub fn register(&mut self, entity: &NewEntity<'_>, log: &mut Vec<u8>) -> Result<EntityId> {
        self.memory.register(entity, log)
    }

    /// Applies registrations from the log; what the index already holds is skipped. Between the
    /// calls for one log nothing may be sealed.
    ///
    /// # Errors
    /// As [`MemoryIndex::replay`].
    pub fn replay(&mut self, registrations: &[u8]) -> Result<()> {
        self.memory.replay(registrations)
    }

    /// As [`Index::replay`], for an index that has lost label sets: leaves out registrations that do not
    /// apply without them.
    ///
    /// # Errors
    /// [`Error::Full`] and [`Error::MemoryFull`], as in [`Index::replay`].
    pub fn replay_what_applies(&mut self, registrations: &[u8]) -> Result<()> {
        match self.memory.replay_what_applies(registrations, &mut Vec::new()) {
            Some(error @ (Error::Full { .. } | Error::MemoryFull { .. })) => Err(error),
            _ => Ok(()),
        }
    }

    /// The block that an entity lives in; `None` when it is unknown or was dropped.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn block_of(&self, entity: EntityId) -> Result<Option<BlockRef>> {
        match self.part_of(entity) {
            Some(Part::Segment(segment)) => segment.block_of(entity),
            Some(Part::Memory(memory)) => Ok(memory.block_of(entity)),
            None => Ok(None),
        }
    }

    /// The block that an ordinal lives in.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn block_of_ordinal(&self, ordinal: u32) -> Result<Option<BlockRef>> {
        match self.parts().find(|part| part.series().contains(&ordinal)) {
            Some(Part::Segment(segment)) => segment.block_of_ordinal(ordinal),
            Some(Part::Memory(memory)) => Ok(memory.block_of_ordinal(ordinal)),
            None => Ok(None),
        }
    }

    /// The series that satisfy all matchers, by increasing block; each series once.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn search(&self, matchers: &CompiledMatchers) -> Result<Vec<BlockMatch>> {
        self.search_noting(matchers, &mut refuse_rot)
    }

    /// The same; of a rotten segment `on_rot` decides.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn search_noting(
        &self,
        matchers: &CompiledMatchers,
        on_rot: &mut OnRot<'_>,
    ) -> Result<Vec<BlockMatch>> {
        let in_segment = |segment: &Segment| segment.search(matchers);
        let in_memory = |memory: &MemoryIndex| memory.search(matchers);
        search_parts(self.parts(), matchers, (&in_segment, &in_memory), on_rot)
    }

    /// The same for those who need no order: the matches of each part are together, older parts
    /// first, but in no order inside. Blocks without a series of `among` may be left out, which
    /// pays when these are few beside all that the index knows.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn search_among(
        &self,
        matchers: &CompiledMatchers,
        among: Option<&RoaringBitmap>,
    ) -> Result<Vec<BlockMatch>> {
        self.search_among_noting(matchers, among, &mut refuse_rot)
    }

    /// The same; of a rotten segment `on_rot` decides.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn search_among_noting(
        &self,
        matchers: &CompiledMatchers,
        among: Option<&RoaringBitmap>,
        on_rot: &mut OnRot<'_>,
    ) -> Result<Vec<BlockMatch>> {
        let in_segment = |segment: &Segment| segment.search_among(matchers, among);
        let in_memory = |memory: &MemoryIndex| memory.search_unsorted(matchers);
        search_parts(self.parts(), matchers, (&in_segment, &in_memory), on_rot)
    }

    /// Appends the labels of a series to `out`, the metric's name included, in no order.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn labels(
        &self,
        block: &BlockRef,
        column: u16,
        slot: u16,
        out: &mut LabelsBuilder,
    ) -> Result<()> {
        match self.part_of(block.entity_start) {
            Some(Part::Segment(segment)) => segment
                .labels(block, column, slot, out)
                .map_err(|error| error.in_file(segment.name())),
            Some(Part::Memory(memory)) => memory.labels(block, column, slot, out),
            None => Err(Error::InvalidEntity("block of another index")),
        }
    }

    /// A reader for the labels of many series.
    pub fn label_reader(&self) -> LabelReader<'_> {
        LabelReader { index: self, segment: None, wanted: None, cache: LabelCache::default() }
    }

    /// The same when only the labels of some names are needed; others may come too.
    pub fn label_reader_of(&self, wanted: &[&str]) -> LabelReader<'_> {
        let wanted: Arc<[String]> = wanted.iter().map(|name| name.to_string()).collect();
        LabelReader { wanted: Some(wanted), ..self.label_reader() }
    }

    /// The names of the labels of these series, sorted.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn label_names(&self, matches: &[BlockMatch]) -> Result<Vec<String>> {
        let mut out = Vec::new();
        for (part, matches) in self.split(matches) {
            let found = match part {
                Part::Segment(segment) => segment.label_names(matches)?,
                Part::Memory(memory) => memory.label_names(matches),
            };
            merge_sorted(&mut out, found);
        }
        Ok(out)
    }

    /// The distinct values that these series have for a label, sorted.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn label_values(&self, name: &str, matches: &[BlockMatch]) -> Result<Vec<String>> {
        let mut out = Vec::new();
        for (part, matches) in self.split(matches) {
            let found = match part {
                Part::Segment(segment) => segment.label_values(name, matches)?,
                Part::Memory(memory) => memory.label_values(name, matches),
            };
            merge_sorted(&mut out, found);
        }
        Ok(out)
    }

    /// Counts these series by metric, label and value.
    ///
    /// Reads every column of the matches: a tenth of a second for a million series.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn cardinality(
        &self,
        matches: &[BlockMatch],
        question: &CardinalityQuestion<'_>,
    ) -> Result<Cardinality> {
        let split = self.split(matches).map(|(part, matches)| match part {
            Part::Segment(segment) => CountedPart { piece: segment, matches },
            Part::Memory(memory) => CountedPart { piece: memory, matches },
        });
        crate::cardinality::count(&split.collect::<Vec<_>>(), question)
    }

    /// Bytes that each label takes in the segments: strings, postings, columns. In no order.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn label_sizes(&self) -> Result<Vec<(String, u64)>> {
        self.label_sizes_noting(&mut refuse_rot)
    }

    /// The same; of a rotten segment `on_rot` decides.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn label_sizes_noting(&self, on_rot: &mut OnRot<'_>) -> Result<Vec<(String, u64)>> {
        let mut sizes = std::collections::BTreeMap::new();
        for segment in &self.frozen.segments {
            let of_segment = borne(segment, segment.label_sizes(), on_rot)?.unwrap_or_default();
            for (name, size) in of_segment {
                *sizes.entry(name).or_default() += size;
            }
        }
        Ok(sizes.into_iter().collect())
    }

    /// All blocks, by increasing ids.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn blocks(&self) -> Result<Vec<BlockRef>> {
        self.blocks_noting(&mut refuse_rot)
    }

    /// The same; of a rotten segment `on_rot` decides.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn blocks_noting(&self, on_rot: &mut OnRot<'_>) -> Result<Vec<BlockRef>> {
        let mut out = Vec::new();
        for part in self.parts() {
            match part {
                Part::Segment(segment) => {
                    let blocks = segment.blocks().and_then(|blocks| blocks.collect());
                    let blocks: Option<Vec<BlockRef>> = borne(segment, blocks, on_rot)?;
                    out.extend(blocks.unwrap_or_default());
                }
                Part::Memory(memory) => out.extend(memory.blocks()),
            }
        }
        Ok(out)
    }

    /// Closes the memory index and opens an empty one behind it, so that what is registered so
    /// far can be frozen. Does nothing when nothing is registered.
    pub fn seal(&mut self) {
        if self.memory.is_empty() {
            return;
        }
        let next = MemoryIndex::new(self.memory.next_entity(), self.memory.next_series());
        let sealed = Arc::new(std::mem::replace(&mut self.memory, next));
        Arc::make_mut(&mut self.frozen).sealed.push(sealed);
    }

    /// The work of writing everything sealed to one segment; `None` when nothing is sealed.
    pub fn freeze_job(&self) -> Option<FreezeJob> {
        if self.frozen.sealed.is_empty() {
            return None;
        }
        Some(FreezeJob {
            vfs: Arc::clone(&self.vfs),
            dir: self.dir.clone(),
            memories: self.frozen.sealed.clone(),
            sequence: self.next_sequence(),
        })
    }

    /// The work of joining neighbouring segments, by their place in [`Index::segments`], into one
    /// (or of rewriting a single one, to drop entities).
    pub fn merge_job(&self, segments: Range<usize>) -> MergeJob {
        assert!(
            !segments.is_empty() && segments.end <= self.frozen.segments.len(),
            "segments to merge"
        );
        MergeJob {
            vfs: Arc::clone(&self.vfs),
            dir: self.dir.clone(),
            segments: self.frozen.segments[segments].to_vec(),
            sequence: self.next_sequence(),
        }
    }

    /// Puts a new segment in the place of what it was written from.
    ///
    /// # Errors
    /// [`Error::Changed`] when that is not here any more; then nothing has changed.
    pub fn install(&mut self, new: &NewSegment) -> Result<()> {
        let entities = new.segment.entities();
        let is_replaced = |segment: &Arc<Segment>| new.replaces.iter().any(|n| n == segment.name());
        let replaced = self.frozen.segments.iter().filter(|segment| is_replaced(segment)).count();
        let is_frozen = |memory: &Arc<MemoryIndex>| {
            entities.start <= memory.entities_start() && memory.next_entity() <= entities.end
        };
        let frozen = self.frozen.sealed.iter().filter(|memory| is_frozen(memory)).count();
        let is_expected = match new.replaces.len() {
            0 => frozen == new.frozen_count,
            count => replaced == count && frozen == 0,
        };
        if !is_expected {
            return Err(Error::Changed);
        }
        let parts = Arc::make_mut(&mut self.frozen);
        parts.segments.retain(|segment| !is_replaced(segment));
        parts.sealed.retain(|memory| !is_frozen(memory));
        let at = parts.segments.partition_point(|one| one.entities().start < entities.start);
        parts.segments.insert(at, Arc::clone(&new.segment));
        debug_assert!(
            parts.segments.is_sorted_by(|a, b| a.entities().end <= b.entities().start),
            "disjoint segments"
        );
        Ok(())
    }

    /// The same work, to a file of a new number. Whoever lists what is being written asks for it at
    /// that moment: a crash leaves no file then that is older than one that is named, and not
    /// listed.
    pub fn numbered(&self, job: &MergeJob) -> MergeJob {
        let MergeJob { vfs, dir, segments, .. } = job;
        let (vfs, dir, segments) = (Arc::clone(vfs), dir.clone(), segments.clone());
        MergeJob { vfs, dir, segments, sequence: self.next_sequence() }
    }

    fn next_sequence(&self) -> u32 {
        let sequences =
            self.frozen.segments.iter().filter_map(|s| crate::format::sequence_of(s.name()));
        let named = sequences.max().unwrap_or(0);
        let next = |given: u32| given.max(named) + 1;
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let given = self.given.fetch_update(set, fetch, |given| Some(next(given)));
        next(given.unwrap_or_else(|given| given))
    }

    /// All parts, by increasing ids.
    pub(crate) fn parts(&self) -> impl DoubleEndedIterator<Item = Part<'_>> {
        self.frozen.parts().chain([Part::Memory(&self.memory)])
    }

    fn part_of(&self, entity: EntityId) -> Option<Part<'_>> {
        if self.memory.entities_start() <= entity {
            return Some(Part::Memory(&self.memory));
        }
        self.parts().find(|part| part.entities().contains(&entity))
    }

    /// The matches of each part that has any, which must be together and in the order of the parts.
    fn split<'a>(
        &'a self,
        matches: &'a [BlockMatch],
    ) -> impl Iterator<Item = (Part<'a>, &'a [BlockMatch])> {
        let mut rest = matches;
        let all = self.parts().map(move |part| {
            let end = part.entities().end;
            let (own, tail) = rest.split_at(rest.partition_point(|m| m.block.entity_start < end));
            rest = tail;
            debug_assert!(own.iter().all(|m| part.entities().contains(&m.block.entity_start)));
            (part, own)
        });
        // A segment without matches may be one that was left out as rotten.
        all.filter(|(_, own)| !own.is_empty())
    }

    /// The segments, oldest first: what the manifest should name.
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.frozen.segments
    }

    /// The parts that never change.
    pub(crate) fn frozen(&self) -> &Arc<FrozenParts> {
        &self.frozen
    }

    /// What is registered but not sealed.
    pub fn memory(&self) -> &MemoryIndex {
        &self.memory
    }

    /// How many entities there are.
    pub fn entity_count(&self) -> u64 {
        self.parts().map(|part| part.entity_count()).sum()
    }

    /// How many series they have.
    pub fn series_count(&self) -> u64 {
        self.parts().map(|part| part.series_count()).sum()
    }

    /// Whether some series have a tag of this name; costs next to nothing.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn knows_tag(&self, name: &str) -> Result<bool> {
        self.knows_tag_noting(name, &mut refuse_rot)
    }

    /// The same; of a rotten segment `on_rot` decides.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn knows_tag_noting(&self, name: &str, on_rot: &mut OnRot<'_>) -> Result<bool> {
        for part in self.parts() {
            let knows = match part {
                Part::Segment(segment) => {
                    borne(segment, segment.knows_tag(name), on_rot)?.unwrap_or(false)
                }
                Part::Memory(memory) => memory.knows_tag(name),
            };
            if knows {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many series have a tag of this name; looks at groups, not at series.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn series_with_tag(&self, name: &str) -> Result<u64> {
        self.parts().try_fold(0, |sum, part| {
            Ok(sum
                + match part {
                    Part::Segment(segment) => segment
                        .series_with_tag(name)
                        .map_err(|error| error.in_file(segment.name()))?,
                    Part::Memory(memory) => memory.series_with_tag(name),
                })
        })
    }

    /// Entities that are in no segment yet: what a log must still hold.
    pub fn unfrozen_entity_count(&self) -> u64 {
        self.frozen.sealed.iter().map(|memory| memory.entity_count()).sum::<u64>()
            + self.memory.entity_count()
    }

    /// Bytes of memory held, segments' mapped pages apart.
    pub fn memory_size(&self) -> usize {
        self.frozen.sealed.iter().map(|memory| memory.memory_size()).sum::<usize>()
            + self.memory.memory_size()
    }
}

/// Searches parts one after the other.
pub(crate) fn search_parts<'a>(
    parts: impl Iterator<Item = Part<'a>>,
    matchers: &CompiledMatchers,
    (in_segment, in_memory): (PartSearch<'_, Segment>, PartSearch<'_, MemoryIndex>),
    on_rot: &mut OnRot<'_>,
) -> Result<Vec<BlockMatch>> {
    let mut out = Vec::new();
    for part in parts {
        let found = match part {
            Part::Segment(segment) => {
                borne(segment, in_segment(segment), on_rot)?.unwrap_or_default()
            }
            Part::Memory(memory) => {
                matchers.check_cost(memory.search_cost(matchers))?;
                in_memory(memory)?
            }
        };
        append(&mut out, found);
    }
    Ok(out)
}

/// Appends without a copy where that is possible.
pub(crate) fn append(out: &mut Vec<BlockMatch>, mut found: Vec<BlockMatch>) {
    match out.is_empty() {
        true => *out = found,
        false => out.append(&mut found),
    }
}

/// Adds sorted, distinct strings to others.
pub fn merge_sorted(out: &mut Vec<String>, mut found: Vec<String>) {
    if out.is_empty() {
        *out = found;
    } else if !found.is_empty() {
        // The sort finds the two runs and merges them.
        out.append(&mut found);
        out.sort();
        out.dedup();
    }
}

/// Reads the labels of many series: quick when neighbours come one after the other, best all
/// columns of a slot before the next slot.
pub struct LabelReader<'a> {
    index: &'a Index,
    /// Whose strings are in the cache.
    segment: Option<&'a Segment>,
    /// Names of the labels that are needed; all when there is no list.
    wanted: Option<Arc<[String]>>,
    cache: LabelCache,
}

impl<'a> LabelReader<'a> {
    /// As [`Index::labels`].
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn labels(
        &mut self,
        block: &BlockRef,
        column: u16,
        slot: u16,
        out: &mut LabelsBuilder,
    ) -> Result<()> {
        match self.enter(block)? {
            Part::Segment(segment) => segment
                .labels_cached(&mut self.cache, block, column, slot, out)
                .map_err(|error| error.in_file(segment.name())),
            Part::Memory(memory) => memory.labels(block, column, slot, out),
        }
    }

    /// The same of a series of a match; of many blocks it is the quicker one.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn match_labels(
        &mut self,
        found: &BlockMatch,
        column: u16,
        slot: u16,
        out: &mut LabelsBuilder,
    ) -> Result<()> {
        match self.enter(&found.block)? {
            Part::Segment(segment) => segment
                .enter_match(&mut self.cache, found)
                .and_then(|()| {
                    segment.labels_cached(&mut self.cache, &found.block, column, slot, out)
                })
                .map_err(|error| error.in_file(segment.name())),
            Part::Memory(memory) => {
                memory.match_labels(found, column, slot, out);
                Ok(())
            }
        }
    }

    /// The part that has a block; the cache is of that part then.
    fn enter(&mut self, block: &BlockRef) -> Result<Part<'a>> {
        if let Some(segment) = self.segment
            && segment.entities().contains(&block.entity_start)
        {
            return Ok(Part::Segment(segment));
        }
        let part = self.index.part_of(block.entity_start);
        let part = part.ok_or(Error::InvalidEntity("block of another index"))?;
        if let Part::Segment(segment) = part {
            self.cache = LabelCache::of(self.wanted.clone());
            self.segment = Some(segment);
        }
        Ok(part)
    }
}

impl Part<'_> {
    fn find_entity(&self, entity: &NewEntity<'_>) -> Result<Option<EntityId>> {
        match self {
            Part::Segment(segment) => {
                segment.find_entity(entity).map_err(|error| error.in_file(segment.name()))
            }
            Part::Memory(memory) => Ok(memory.find_entity(entity)),
        }
    }

    fn find_column(&self, entity: &NewEntity<'_>) -> Result<Option<(EntityId, u16)>> {
        match self {
            Part::Segment(segment) => {
                segment.find_column(entity).map_err(|error| error.in_file(segment.name()))
            }
            Part::Memory(memory) => Ok(memory.find_column(entity)),
        }
    }

    pub(crate) fn entities(&self) -> Range<EntityId> {
        match self {
            Part::Segment(segment) => segment.entities(),
            Part::Memory(memory) => memory.entities_start()..memory.next_entity(),
        }
    }

    fn series(&self) -> Range<u32> {
        match self {
            Part::Segment(segment) => segment.series(),
            Part::Memory(memory) => memory.series_start()..memory.next_series(),
        }
    }

    fn entity_count(&self) -> u64 {
        match self {
            Part::Segment(segment) => segment.entity_count(),
            Part::Memory(memory) => memory.entity_count(),
        }
    }

    fn series_count(&self) -> u64 {
        match self {
            Part::Segment(segment) => segment.series_count(),
            Part::Memory(memory) => memory.series_count(),
        }
    }
}
