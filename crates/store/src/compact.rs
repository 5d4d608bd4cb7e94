//! Parts on disk to fewer parts: runs what [`crate::merge::choose()`] decides.
//!
//! The merge itself holds no lock; the partition's parts are swapped at the end, under `change`. Index
//! segments are merged the same way.

use crate::manifest::{PartEntry, Tombstone};
use crate::merge::{self, ChooseLimits, MergeInput, MergeOutcome, PartFacts};
use crate::part::{Part, PartInfo, PartSink, PartWriter};
use crate::partition::{INDEX_DIR, LivePart, PARTS_DIR, Partition, State, open_part};
use crate::store::{Store, lock};
use crate::{Error, Result};
use codec::Effort;
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
    /// The store is closing; the file is gone again.
    Aborted,
    /// Finished; whether it holds any sample.
    Samples(bool),
}

impl Store {
    /// Merges each partition whose name (`YYYY-MM`) starts with `partition_prefix` down to as few
    /// parts as can be.
    ///
    /// # Errors
    /// On I/O errors; the parts are then as they were.
    pub fn force_merge(&self, partition_prefix: &str) -> Result<()> {
        for partition in self.all_partitions() {
            if partition.month.name().starts_with(partition_prefix) {
                while self.merge_partition(&partition, MergeEffort::Everything)? {}
            }
        }
        Ok(())
    }

    /// Does one merge if there is one to do.
    pub(crate) fn merge_partition(
        &self,
        partition: &Arc<Partition>,
        effort: MergeEffort,
    ) -> Result<bool> {
        let _one = lock(&partition.merging);
        self.check_disk_is_trusted()?;
        self.merge_once(partition, effort).map_err(|error| self.latch_if_failed(error))
    }

    /// As [`Store::merge_partition`], for the one that holds `merging`.
    fn merge_once(&self, partition: &Arc<Partition>, effort: MergeEffort) -> Result<bool> {
        self.merge_segments(partition)?;
        let Some(plan) = self.plan_merge(partition, effort)? else {
            return self.forget_dead(partition, effort);
        };
        match self.write_merged(partition, &plan) {
            Ok(Written::Aborted) => Ok(false),
            Ok(Written::Samples(has_samples)) => {
                self.swap_parts(partition, &plan, has_samples)?;
                self.counters.merges.fetch_add(1, Ordering::Relaxed);
                Ok(true)
            }
            Err(Error::Corrupt { file, offset, what }) => {
                let path = partition.part_path(plan.output.file);
                if self.vfs.exists(&path)? {
                    self.vfs.remove(&path)?;
                }
                let part = plan.inputs.iter().find(|input| input.part.name() == file);
                let error = Error::Corrupt { file: file.clone(), offset, what };
                if let Some(part) = part {
                    self.note_damaged_part(partition, part, &error);
                }
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn plan_merge(
        &self,
        partition: &Partition,
        effort: MergeEffort,
    ) -> Result<Option<Plan>> {
        let _change = partition.lock_change();
        if partition.is_dropped() {
            return Ok(None);
        }
        let state = partition.read();
        let facts: Vec<PartFacts> = state.parts.iter().map(|part| facts_of(part)).collect();
        let limits = ChooseLimits::DEFAULT;
        let chosen = match effort {
            MergeEffort::AsNeeded => merge::choose(&facts, &limits),
            MergeEffort::Everything => {
                merge::choose_all(&facts, &limits).into_iter().find(|run| 1 < run.len())
            }
        };
        let chosen = match chosen {
            Some(chosen) => chosen,
            // A part alone is rewritten when deletions wait for it.
            None => match state.parts.iter().position(|part| state.must_rewrite(part, effort)) {
                Some(idx) => vec![idx],
                None => return Ok(None),
            },
        };
        let inputs: Vec<Arc<LivePart>> =
            chosen.iter().map(|idx| Arc::clone(&state.parts[*idx])).collect();
        let tombstones: Vec<Vec<Tombstone>> =
            inputs.iter().map(|input| state.tombstones_for(&input.entry)).collect();
        let drops_samples =
            self.config.retention_ns.is_some() || !tombstones.iter().all(Vec::is_empty);
        let mut manifest = state.manifest.clone();
        let order = inputs.iter().map(|input| input.entry.order).max().expect("some input");
        let number = manifest.sequence_next;
        manifest.sequence_next += 1;
        drop(state);
        // The number must never be given out again, but need not be durable before it is used:
        // files that no manifest names are removed at start.
        partition.write().manifest = manifest;
        let output = PartEntry { file: number, order, applied: number };
        Ok(Some(Plan { inputs, tombstones, drops_samples, output }))
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
            match self.is_stopping() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let outcome = merge::run(&inputs, keep_from, &mut writer, &pace)?;
        if outcome == MergeOutcome::Aborted {
            drop(writer);
            self.vfs.remove(&path)?;
            return Ok(Written::Aborted);
        }
        writer.finish(PartInfo { sequence: plan.output.order })?;
        self.vfs.sync_dir(&partition.dir.join(PARTS_DIR))?;
        Ok(Written::Samples(outcome != MergeOutcome::Empty))
    }

    /// Makes the output, instead of the inputs, the partition's content.
    pub(crate) fn swap_parts(
        &self,
        partition: &Partition,
        plan: &Plan,
        has_samples: bool,
    ) -> Result<()> {
        let _change = partition.lock_change();
        let is_input = |file: u64| plan.inputs.iter().any(|input| input.entry.file == file);
        let mut manifest = partition.read().manifest.clone();
        let output_path = partition.part_path(plan.output.file);
        let still_there = manifest.parts.iter().filter(|part| is_input(part.file)).count();
        if partition.is_dropped() || still_there < plan.inputs.len() {
            // A part was set aside or expired meanwhile: what was merged from it must not stay.
            return Ok(self.vfs.remove(&output_path)?);
        }
        manifest.parts.retain(|part| !is_input(part.file));
        if has_samples {
            manifest.parts.push(plan.output);
            manifest.parts.sort_by_key(|part| part.order);
        }
        manifest.forget_applied_tombstones();
        manifest.write(self.vfs.as_ref(), &partition.dir)?;
        let part = match has_samples {
            true => Some(open_part(self.vfs.as_ref(), &output_path)?),
            false => None,
        };
        {
            let mut state = partition.write();
            state.parts.retain(|part| !is_input(part.entry.file));
            let entry = plan.output;
            state.parts.extend(part.map(|part| Arc::new(LivePart::new(part, entry))));
            state.parts.sort_by_key(|part| part.entry.order);
            state.manifest = manifest;
        }
        if plan.drops_samples {
            partition.note_loss();
        }
        for input in &plan.inputs {
            self.vfs.remove(&partition.part_path(input.entry.file))?;
        }
        if !has_samples {
            self.vfs.remove(&output_path)?;
        }
        Ok(())
    }

    /// Joins index segments when it pays.
    fn merge_segments(&self, partition: &Partition) -> Result<()> {
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
        let merged = job.run(None)?;
        let _change = partition.lock_change();
        if partition.is_dropped() {
            return Ok(());
        }
        let mut manifest = partition.read().manifest.clone();
        let first = manifest.segments.iter().position(|name| merged.replaces().contains(name));
        let first = first.expect("only merges remove segments, and there is one merge at a time");
        manifest.segments.retain(|name| !merged.replaces().contains(name));
        manifest.segments.insert(first, merged.name().to_string());
        manifest.write(self.vfs.as_ref(), &partition.dir)?;
        {
            let mut state = partition.write();
            state.index.install(&merged)?;
            state.manifest = manifest;
        }
        for name in merged.replaces() {
            self.vfs.remove(&partition.dir.join(INDEX_DIR).join(name))?;
        }
        Ok(())
    }
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
