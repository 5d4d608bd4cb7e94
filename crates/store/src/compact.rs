//! Parts on disk to fewer parts: runs what [`crate::merge::choose()`] decides.
//!
//! The merge itself holds no lock; the partition's parts are swapped at the end, under `change`. Index
//! segments are merged the same way.
//!
//! Parts in which damage was met, and those that cannot be opened, are never merged, nor is a part
//! merged across them: of one run in the order of writing each side is chosen from by itself.
//! A merge first looks whether the disk has room, removes what it began when it fails, and is
//! tried again later each time.

use crate::manifest::{Manifest, PartEntry, Tombstone};
use crate::merge::{self, ChooseLimits, MergeInput, MergeOutcome, PartFacts};
use crate::part::{Part, PartInfo, PartSink, PartWriter};
use crate::partition::{LivePart, PARTS_DIR, Partition, State, open_part};
use crate::store::{Store, lock};
use crate::{Error, Result};
use codec::Effort;
use index::{EntityId, MergeJob, NewSegment, SegmentEntry};
use model::TimeRange;
use roaring::RoaringBitmap;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Samples of a merge after which what was read of its inputs is let go, some 16 MiB.
const RELEASE_SAMPLES: u64 = 32 << 20;
/// A part is written again when at least one in so many of its series is deleted.
const DELETED_SHARE: u64 = 4;
/// Fewest index segments worth a merge.
const SEGMENTS_TO_JOIN: usize = 4;

/// How much to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeEffort {
    /// Only what pays.
    AsNeeded,
    /// Down to as few parts as can be; applies tombstones.
    Everything,
}

/// What a merge was decided to do.
pub(crate) struct Plan {
    inputs: Vec<Arc<LivePart>>,
    /// By input.
    tombstones: Vec<Vec<Tombstone>>,
    /// Whether samples may go, by deletion or retention.
    drops_samples: bool,
    output: PartEntry,
}

/// How the output came out.
pub(crate) enum Written {
    /// The store is closing, or the partition about to be dropped; there is a fragment.
    Aborted,
    /// Finished; the part, if it holds any sample.
    Samples(Option<Arc<LivePart>>),
}

impl Store {
    /// Merges each partition whose name (`YYYY-MM`) starts with `partition_prefix` down to as few
    /// parts as can be.
    ///
    /// # Errors
    /// [`Error::NoRoom`], and I/O errors; the parts are then as they were.
    pub fn force_merge(&self, partition_prefix: &str) -> Result<()> {
        let is_meant = |p: &Arc<Partition>| p.period.name().starts_with(partition_prefix);
        self.merge_all(self.all_partitions().into_iter().filter(is_meant), MergeEffort::Everything)
    }

    /// Does all merges that pay, as the background does.
    ///
    /// # Errors
    /// On I/O errors; the parts are then as they were.
    pub fn merge_as_needed(&self) -> Result<()> {
        self.merge_all(self.all_partitions().into_iter(), MergeEffort::AsNeeded)
    }

    /// One that fails does not keep the others from being merged; the first error is returned.
    fn merge_all(
        &self,
        partitions: impl Iterator<Item = Arc<Partition>>,
        effort: MergeEffort,
    ) -> Result<()> {
        let mut first_error = None;
        for partition in partitions {
            loop {
                match self.merge_partition(&partition, effort) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        first_error.get_or_insert(error);
                        break;
                    }
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Does one merge if there is one to do.
    pub(crate) fn merge_partition(
        &self,
        partition: &Arc<Partition>,
        effort: MergeEffort,
    ) -> Result<bool> {
        let _one = lock(&partition.merging);
        self.check_disk_is_trusted()?;
        // Held, `merging` keeps retention from dropping it.
        if partition.is_dropped() || partition.is_expiring() {
            return Ok(false);
        }
        let is_early = partition.backoff.is_waiting(self.vfs.elapsed());
        if effort == MergeEffort::AsNeeded && is_early {
            return Ok(false);
        }
        let merged = self.merge_once(partition, effort);
        match &merged {
            Ok(_) => partition.backoff.note_success(),
            Err(_) => partition.backoff.note_failure(self.vfs.elapsed()),
        }
        merged.map_err(|error| self.latch_if_failed(error))
    }

    /// As [`Store::merge_partition`], for the one that holds `merging`.
    fn merge_once(&self, partition: &Arc<Partition>, effort: MergeEffort) -> Result<bool> {
        self.merge_segments(partition, effort)?;
        let Some(plan) = self.plan_merge(partition, effort)? else {
            return self.forget_dead(partition, effort);
        };
        let files = [Manifest::part_file(plan.output.file)];
        let written = match self.write_merged(partition, &plan) {
            Ok(Written::Aborted) => {
                self.remove_done(partition, &files)?;
                return Ok(false);
            }
            Ok(Written::Samples(part)) => self.swap_parts(partition, &plan, part),
            Err(error) => {
                self.note_damaged_input(partition, &plan, &error);
                Err(error)
            }
        };
        if let Err(error) = written {
            self.remove_failed(partition, &files, &error)?;
            return Err(error);
        }
        self.counters.merges.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    /// Marks the input that could not be read, so that the next merge goes without it.
    fn note_damaged_input(&self, partition: &Partition, plan: &Plan, error: &Error) {
        if error.is_passing() {
            return;
        }
        let file = match error {
            Error::Corrupt { file, .. } => file,
            Error::Io(error) => &error.path,
            _ => return,
        };
        let input = plan.inputs.iter().find(|input| input.part.name() == file);
        if let Some(input) = input {
            self.note_damaged_part(partition, input, error);
        }
    }

    pub(crate) fn plan_merge(
        &self,
        partition: &Partition,
        effort: MergeEffort,
    ) -> Result<Option<Plan>> {
        let _change = partition.lock_change();
        let mut state = partition.write();
        if partition.is_dropped() {
            return Ok(None);
        }
        let Some(inputs) = state.choose_inputs(effort) else { return Ok(None) };
        let size = inputs.iter().map(|input| input.part.summary().size).sum();
        if !self.has_room_for(partition, size, effort)? {
            return Ok(None);
        }
        let tombstones: Vec<Vec<Tombstone>> =
            inputs.iter().map(|input| state.tombstones_for(&input.entry)).collect();
        let drops_samples =
            self.config.retention_ns.is_some() || !tombstones.iter().all(Vec::is_empty);
        let order = inputs.iter().map(|input| input.entry.order).max().unwrap_or(0);
        let number = state.reserve_part();
        let output = PartEntry { file: number, order, applied: number };
        Ok(Some(Plan { inputs, tombstones, drops_samples, output }))
    }

    /// Whether the disk has room for a merge of so many bytes. Who asked for it is told if not.
    pub(crate) fn has_room_for(
        &self,
        partition: &Partition,
        size: u64,
        effort: MergeEffort,
    ) -> Result<bool> {
        let free = self.vfs.free_space(&self.dir).unwrap_or(u64::MAX);
        let min = self.config.free_disk_min;
        if size.saturating_add(min) <= free {
            partition.lacks_room.store(false, Ordering::Relaxed);
            return Ok(true);
        }
        let error = Error::NoRoom { size, free, min };
        if effort == MergeEffort::Everything {
            return Err(error);
        }
        if !partition.lacks_room.swap(true, Ordering::Relaxed) {
            self.counters.merges_without_room.fetch_add(1, Ordering::Relaxed);
            self.note_failure("Merge", &error);
        }
        Ok(false)
    }

    pub(crate) fn write_merged(&self, partition: &Partition, plan: &Plan) -> Result<Written> {
        let tombstones: Vec<Vec<(RoaringBitmap, TimeRange)>> = plan
            .tombstones
            .iter()
            .map(|list| list.iter().map(|t| (t.series.clone(), t.range)).collect())
            .collect();
        let inputs: Vec<MergeInput<'_>> = plan
            .inputs
            .iter()
            .zip(&tombstones)
            .map(|(input, tombstones)| MergeInput { part: &input.part, tombstones })
            .collect();
        let path = partition.part_path(plan.output.file);
        let file = self.vfs.create(&path)?;
        let mut writer = PartWriter::new(PartSink::File(file), Effort::Dense);
        let keep_from = self.config.retention_ns.map(|_| self.kept_span().start);
        let released = Cell::new(0);
        let pace = |samples: u64| {
            if released.get() + RELEASE_SAMPLES <= samples {
                released.set(samples);
                plan.inputs.iter().for_each(|input| input.part.release());
            }
            match self.is_stopping() || partition.is_expiring() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let outcome = merge::run(&inputs, keep_from, &mut writer, &pace)?;
        if outcome == MergeOutcome::Aborted {
            return Ok(Written::Aborted);
        }
        writer.finish(PartInfo { sequence: plan.output.order })?;
        if outcome == MergeOutcome::Empty {
            return Ok(Written::Samples(None));
        }
        self.vfs.sync_dir(&partition.dir.join(PARTS_DIR))?;
        // Before the manifest names it: nothing may fail after that.
        let part = open_part(self.vfs.as_ref(), &path)?;
        Ok(Written::Samples(Some(Arc::new(LivePart::new(part, plan.output)))))
    }

    /// Makes the output, instead of the inputs, the partition's content.
    pub(crate) fn swap_parts(
        &self,
        partition: &Partition,
        plan: &Plan,
        part: Option<Arc<LivePart>>,
    ) -> Result<()> {
        let _change = partition.lock_change();
        let is_input = |file: u64| plan.inputs.iter().any(|input| input.entry.file == file);
        let mut manifest = partition.read().manifest.clone();
        let output = Manifest::part_file(plan.output.file);
        let still_there = manifest.parts.iter().filter(|part| is_input(part.file)).count();
        if still_there < plan.inputs.len() {
            // A part expired meanwhile: what was merged from it must not stay.
            return self.remove_done(partition, &[output]);
        }
        manifest.parts.retain(|part| !is_input(part.file));
        let mut done: Vec<String> =
            plan.inputs.iter().map(|input| Manifest::part_file(input.entry.file)).collect();
        match part.is_some() {
            true => {
                manifest.parts.push(plan.output);
                manifest.parts.sort_by_key(|part| part.order);
                manifest.unlist(&[output]);
            }
            false => done.push(output),
        }
        manifest.forget_applied_tombstones();
        done.iter().for_each(|file| manifest.disown(file.clone()));
        manifest.write(self.vfs.as_ref(), &partition.dir)?;
        {
            let mut state = partition.write();
            state.parts.retain(|part| !is_input(part.entry.file));
            state.parts.extend(part);
            state.parts.sort_by_key(|part| part.entry.order);
            state.manifest = manifest;
        }
        if plan.drops_samples {
            partition.note_loss();
        }
        self.remove_done(partition, &done)
    }

    /// Joins index segments when it pays.
    fn merge_segments(&self, partition: &Partition, effort: MergeEffort) -> Result<()> {
        let job = {
            let state = partition.read();
            // A rotten segment stays as it is, between those that are joined.
            let size_of = |segment: &Arc<index::Segment>| match segment.is_damaged() {
                true => u64::MAX / 2,
                false => segment.size(),
            };
            let sizes: Vec<u64> = state.index.segments().iter().map(size_of).collect();
            let size_max = self.config.segment_merge_size_max;
            let Some(range) = choose_segments(&sizes, size_max) else { return Ok(()) };
            state.index.merge_job(range)
        };
        if !self.has_room_for(partition, job.size(), effort)? {
            return Ok(());
        }
        let merged = self.run_segment_job(partition, &job, None)?;
        let _change = partition.lock_change();
        let manifest = manifest_with(&partition.read().manifest, &merged);
        manifest.write(self.vfs.as_ref(), &partition.dir)?;
        self.install_segment(&mut partition.write(), &merged, manifest)?;
        let done: Vec<String> =
            merged.replaces().iter().map(|name| Manifest::segment_file(name)).collect();
        self.remove_done(partition, &done)
    }

    /// Writes a segment that is to take the place of others. Its name is listed as one that may go
    /// before the file is begun, and numbered then: what comes between has a lower number, or is
    /// written with the list.
    pub(crate) fn run_segment_job(
        &self,
        partition: &Partition,
        job: &MergeJob,
        is_dead: Option<&dyn Fn(EntityId) -> bool>,
    ) -> Result<NewSegment> {
        let (job, file) = {
            let _change = partition.lock_change();
            let mut state = partition.write();
            let job = state.index.numbered(job);
            let file = Manifest::segment_file(&job.name());
            state.manifest.disown(file.clone());
            (job, file)
        };
        match job.run(is_dead) {
            Ok(new) => Ok(new),
            Err(error) => {
                let error = error.into();
                self.remove_failed(partition, &[file], &error)?;
                Err(error)
            }
        }
    }

    /// Makes a new segment, which the manifest names now, a part of the index.
    pub(crate) fn install_segment(
        &self,
        state: &mut State,
        new: &NewSegment,
        manifest: Manifest,
    ) -> Result<()> {
        if let Err(error) = state.index.install(new) {
            // The manifest names what the index does not have.
            self.latch(&error.to_string());
            return Err(error.into());
        }
        state.manifest = manifest;
        Ok(())
    }
}

/// The manifest with a new segment in the place of those that it replaces.
pub(crate) fn manifest_with(manifest: &Manifest, new: &NewSegment) -> Manifest {
    let mut manifest = manifest.clone();
    let is_old = |segment: &SegmentEntry| new.replaces().contains(&segment.name);
    let first = manifest.segments.iter().position(is_old).unwrap_or(0);
    manifest.segments.retain(|segment| !is_old(segment));
    manifest.segments.insert(first.min(manifest.segments.len()), new.entry());
    manifest.unlist(&[Manifest::segment_file(new.name())]);
    new.replaces().iter().for_each(|name| manifest.disown(Manifest::segment_file(name)));
    manifest
}

/// Which neighbouring index segments to join: the longest tail in which no segment is more than
/// twice as large as all behind it, once it has four. So each is rewritten a logarithmic number of
/// times and about four per factor of three in size remain. All of them together have at most
/// `size_max` bytes. Pure.
fn choose_segments(sizes: &[u64], size_max: u64) -> Option<std::ops::Range<usize>> {
    let mut start = sizes.len();
    let mut behind = 0;
    for (idx, size) in sizes.iter().enumerate().rev() {
        if size_max < size.saturating_add(behind) {
            break;
        }
        if behind == 0 || *size <= 2 * behind {
            start = idx;
        }
        behind += size;
    }
    let is_worth_it = SEGMENTS_TO_JOIN <= sizes.len() - start;
    is_worth_it.then_some(start..sizes.len())
}

impl State {
    /// What to merge now, if anything.
    fn choose_inputs(&self, effort: MergeEffort) -> Option<Vec<Arc<LivePart>>> {
        let runs = self.mergeable_runs();
        let limits = ChooseLimits::DEFAULT;
        for run in &runs {
            let facts: Vec<PartFacts> = run.iter().map(|part| facts_of(part)).collect();
            let chosen = match effort {
                MergeEffort::AsNeeded => merge::choose(&facts, &limits),
                MergeEffort::Everything => {
                    merge::choose_all(&facts, &limits).into_iter().find(|run| 1 < run.len())
                }
            };
            if let Some(chosen) = chosen {
                return Some(chosen.iter().map(|idx| Arc::clone(run[*idx])).collect());
            }
        }
        // A part alone is rewritten when deletions wait for it.
        let alone = runs.into_iter().flatten().find(|part| self.must_rewrite(part, effort));
        alone.map(|part| vec![Arc::clone(part)])
    }

    /// The parts that may be merged, in the order of writing, cut where one may not: a sample of
    /// the one side must not come to stand on the other.
    fn mergeable_runs(&self) -> Vec<Vec<&Arc<LivePart>>> {
        let is_whole = |part: &&Arc<LivePart>| !part.is_damaged();
        let mut runs = vec![Vec::new()];
        let mut last: Option<u64> = None;
        for part in &self.parts {
            let (order, since) = (part.entry.order, last.unwrap_or(0));
            let has_lost_between =
                self.lost_parts.iter().any(|lost| (since..order).contains(&lost.entry.order));
            if !is_whole(&part) || has_lost_between {
                runs.push(Vec::new());
            }
            if is_whole(&part) {
                runs.last_mut().expect("there is one").push(part);
            }
            last = Some(order);
        }
        runs
    }

    /// Whether a part is rewritten though it is merged with no other.
    fn must_rewrite(&self, part: &LivePart, effort: MergeEffort) -> bool {
        let waiting = self.tombstones_for(&part.entry);
        let Some(newest) = waiting.iter().map(|t| t.sequence).max() else { return false };
        match effort {
            MergeEffort::Everything => true,
            // Weighed once for each deletion.
            MergeEffort::AsNeeded if newest <= part.weighed.load(Ordering::Relaxed) => false,
            MergeEffort::AsNeeded => {
                part.weighed.store(newest, Ordering::Relaxed);
                is_worth_rewriting(&part.part, &waiting)
            }
        }
    }
}

/// Whether so many of a part's series are deleted for all of its time that it pays to write it again
/// without them, though it is merged with no other.
fn is_worth_rewriting(part: &Part, tombstones: &[Tombstone]) -> bool {
    let summary = part.summary();
    let span = TimeRange::new(summary.min_ts, summary.max_ts);
    let mut deleted = RoaringBitmap::new();
    for tombstone in tombstones.iter().filter(|tombstone| tombstone.range.covers(&span)) {
        deleted |= &tombstone.series;
    }
    let (first_day, last_day) = span.days();
    // What is rotten is found by who merges or reads it.
    let Ok(live) = part.live_on(first_day, last_day) else { return false };
    live.len() <= DELETED_SHARE * deleted.intersection_len(&live)
}

fn facts_of(part: &LivePart) -> PartFacts {
    let summary = part.part.summary();
    PartFacts {
        id: part.entry.file,
        size: summary.size,
        samples: summary.samples,
        min_ts: summary.min_ts,
        max_ts: summary.max_ts,
        sequence: part.entry.order,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_segments_of_like_size_are_joined() {
        let check = |sizes: &[u64], expected| assert_eq!(choose_segments(sizes, 60), expected);
        check(&[], None);
        check(&[5, 5, 5], None);
        check(&[5, 5, 5, 5], Some(0..4));
        check(&[100, 5, 5, 5], None);
        check(&[100, 5, 5, 5, 5], Some(1..5));
        check(&[30, 5, 5, 5, 5], Some(0..5));
        check(&[45, 30, 5, 5, 5, 5], Some(1..6));
        check(&[50, 50, 50, 50], None);
    }
}
