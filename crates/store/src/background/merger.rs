//! Parts on disk to fewer parts: runs what [`crate::merge::choose()`] decides.
//!
//! The merge itself holds no lock; the partition's parts are swapped at the end, under `change`. Index
//! segments are merged the same way.
//!
//! Parts in which damage was met, and those that cannot be opened, are never merged, nor is a part
//! merged across them: of one run in the order of writing each side is chosen from by itself.
//! A merge first looks whether the disk has room, removes what it began when it fails, and is
//! tried again later each time.

use crate::background::damage_review::note_damaged_part;
use crate::background::index_gc::remove_dead;
use crate::background::partition_files::{remove_done, remove_failed};
use crate::background::segment_jobs::{MergeEffort, has_room_for, merge_segments};
use crate::base::file_names::PARTS_DIR;
use crate::base::ground::Ground;
use crate::base::locks::lock;
use crate::merge::{self, ChooseLimits, MergeInput, MergeOutcome, PartFacts};
use crate::part::{Part, PartInfo, PartSink, PartWriter};
use crate::partition::Partition;
use crate::partition::disk::disk_parts::DiskParts;
use crate::partition::disk::live_part::{LivePart, open_part};
use crate::partition::disk::manifest::{Manifest, PartEntry, Tombstone};
use crate::partition::partitions::Partitions;
use crate::partition::retention::Retention;
use crate::partition::shared::Shared;
use crate::{Error, Result};
use codec::Effort;
use model::TimeRange;
use roaring::RoaringBitmap;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What merges parts.
pub(crate) struct Merger {
    ground: Arc<Ground>,
    partitions: Arc<Partitions>,
    retention: Arc<Retention>,
}

/// Samples of a merge after which what was read of its inputs is let go, some 16 MiB.
const RELEASE_SAMPLES: u64 = 32 << 20;
/// A part is written again when at least one in so many of its series is deleted.
const DELETED_SHARE: u64 = 4;

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

impl Merger {
    pub fn new(shared: &Shared) -> Merger {
        Merger {
            ground: shared.ground.clone(),
            partitions: shared.partitions.clone(),
            retention: shared.retention.clone(),
        }
    }

    /// Merges each partition whose name starts with `prefix` until nothing is left to merge. One
    /// that fails does not keep the others from being merged; the first error is returned.
    pub fn merge_all(&self, prefix: &str, effort: MergeEffort) -> Result<()> {
        let mut first_error = None;
        let partitions = self.partitions.all().into_iter();
        for partition in partitions.filter(|one| one.period.name().starts_with(prefix)) {
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
        if !self.ground.health.is_latched()
            && let Err(error) = self.partitions.name_manifests()
        {
            first_error.get_or_insert(error);
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Does one merge if there is one to do.
    pub fn merge_partition(&self, partition: &Arc<Partition>, effort: MergeEffort) -> Result<bool> {
        let _one = lock(&partition.merging);
        self.ground.health.check_disk_is_trusted()?;
        // Held, `merging` keeps retention from dropping it.
        if partition.is_dropped() || partition.is_expiring() {
            return Ok(false);
        }
        let is_early = partition.backoff.is_waiting(self.ground.vfs.elapsed());
        if effort == MergeEffort::AsNeeded && is_early {
            return Ok(false);
        }
        let merged = self.merge_once(partition, effort);
        match &merged {
            Ok(_) => partition.backoff.note_success(),
            Err(_) => partition.backoff.note_failure(self.ground.vfs.elapsed()),
        }
        merged.map_err(|error| self.ground.health.latch_if_failed(error))
    }

    /// As [`Merger::merge_partition`], for the one that holds `merging`.
    fn merge_once(&self, partition: &Arc<Partition>, effort: MergeEffort) -> Result<bool> {
        merge_segments(&self.ground, partition, effort)?;
        let Some(plan) = self.plan_merge(partition, effort)? else {
            return remove_dead(&self.ground, partition, effort);
        };
        let files = [Manifest::part_file(plan.output.file)];
        let written = match self.write_merged(partition, &plan) {
            Ok(Written::Aborted) => {
                remove_done(&self.ground, partition, &files)?;
                return Ok(false);
            }
            Ok(Written::Samples(part)) => self.swap_parts(partition, &plan, part),
            Err(error) => {
                self.note_damaged_input(partition, &plan, &error);
                Err(error)
            }
        };
        if let Err(error) = written {
            remove_failed(&self.ground, partition, &files, &error)?;
            return Err(error);
        }
        self.ground.counters.merges.fetch_add(1, Ordering::Relaxed);
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
            note_damaged_part(&self.ground, partition, input, error);
        }
    }

    pub fn plan_merge(&self, partition: &Partition, effort: MergeEffort) -> Result<Option<Plan>> {
        let _change = partition.lock_change();
        let mut state = partition.write();
        if partition.is_dropped() {
            return Ok(None);
        }
        let Some(inputs) = choose_inputs(&state.disk, effort) else { return Ok(None) };
        let is_rising = inputs.is_sorted_by(|a, b| a.entry.order < b.entry.order);
        assert!(is_rising, "of equal timestamps the later input's wins");
        let size = inputs.iter().map(|input| input.part.summary().size).sum();
        if !has_room_for(&self.ground, partition, size, effort)? {
            return Ok(None);
        }
        let tombstones: Vec<Vec<Tombstone>> =
            inputs.iter().map(|input| state.disk.tombstones_for(&input.entry)).collect();
        let drops_samples = self.retention.is_on() || !tombstones.iter().all(Vec::is_empty);
        let order = inputs.iter().map(|input| input.entry.order).max().unwrap_or(0);
        let number = state.disk.reserve_part();
        let output = PartEntry { file: number, order, applied: number };
        Ok(Some(Plan { inputs, tombstones, drops_samples, output }))
    }

    pub fn write_merged(&self, partition: &Partition, plan: &Plan) -> Result<Written> {
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
        let file = self.ground.vfs.create(&path)?;
        let mut writer = PartWriter::new(PartSink::File(file), Effort::Dense);
        let keep_from = self.retention.keep_from();
        let released = Cell::new(0);
        let pace = |samples: u64| {
            if released.get() + RELEASE_SAMPLES <= samples {
                released.set(samples);
                plan.inputs.iter().for_each(|input| input.part.release());
            }
            match self.ground.signals.is_stopping() || partition.is_expiring() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let outcome = merge::run(&inputs, keep_from, &mut writer, &pace)?;
        if outcome == MergeOutcome::Aborted {
            return Ok(Written::Aborted);
        }
        let finished = writer.finish(PartInfo { sequence: plan.output.order })?;
        if outcome == MergeOutcome::Empty {
            return Ok(Written::Samples(None));
        }
        self.ground.vfs.sync_dir(&partition.dir.join(PARTS_DIR))?;
        // Before the manifest names it: nothing may fail after that.
        let part = open_part(self.ground.vfs.as_ref(), &path)?;
        assert_eq!(*part.summary(), finished.summary, "it reads back as it was written");
        Ok(Written::Samples(Some(Arc::new(LivePart::new(part, plan.output)))))
    }

    /// Makes the output, instead of the inputs, the partition's content.
    pub fn swap_parts(
        &self,
        partition: &Partition,
        plan: &Plan,
        part: Option<Arc<LivePart>>,
    ) -> Result<()> {
        let _change = partition.lock_change();
        let is_input = |file: u64| plan.inputs.iter().any(|input| input.entry.file == file);
        let mut manifest = partition.read().disk.next_manifest();
        let output = Manifest::part_file(plan.output.file);
        let still_there = manifest.parts.iter().filter(|part| is_input(part.file)).count();
        if still_there < plan.inputs.len() {
            // A part expired meanwhile: what was merged from it must not stay.
            return remove_done(&self.ground, partition, &[output]);
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
        manifest.remove_applied_tombstones();
        done.iter().for_each(|file| manifest.disown(file.clone()));
        manifest.write(self.ground.vfs.as_ref(), &partition.dir)?;
        partition.write().disk.install(manifest, part);
        if plan.drops_samples {
            partition.note_loss();
        }
        remove_done(&self.ground, partition, &done)
    }
}

/// What to merge now, if anything.
fn choose_inputs(disk: &DiskParts, effort: MergeEffort) -> Option<Vec<Arc<LivePart>>> {
    let runs = mergeable_runs(disk);
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
    let alone = runs.into_iter().flatten().find(|part| must_rewrite(disk, part, effort));
    alone.map(|part| vec![Arc::clone(part)])
}

/// The parts that may be merged, in the order of writing, cut where one may not: a sample of
/// the one side must not come to stand on the other.
fn mergeable_runs(disk: &DiskParts) -> Vec<Vec<&Arc<LivePart>>> {
    let is_whole = |part: &&Arc<LivePart>| !part.is_damaged();
    let mut runs = vec![Vec::new()];
    let mut last: Option<u64> = None;
    for part in disk.parts() {
        let (order, since) = (part.entry.order, last.unwrap_or(0));
        let has_lost_between =
            disk.lost().iter().any(|lost| (since..order).contains(&lost.entry.order));
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
fn must_rewrite(disk: &DiskParts, part: &LivePart, effort: MergeEffort) -> bool {
    let waiting = disk.tombstones_for(&part.entry);
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
