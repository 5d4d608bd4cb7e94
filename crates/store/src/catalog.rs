//! Which series, label names and values there are in a span of time, exact to the UTC day.

use crate::live::Live;
use crate::missing::Watch;
use crate::narrow::to_usize;
use crate::partition::{Partition, PartitionState};
use crate::reader::Reader;
use crate::select::matchers::compile;
use crate::{Error, Result, SelectLimits};
use index::{BlockMatch, CompiledMatchers, Index, OnRot};
use model::{Labels, LabelsBuilder, Matcher, TimeRange};

/// Matched blocks between two looks at the clock.
const GROUPS_PER_CHECK: usize = 4096;

/// What is done with the live matched series of a partition.
pub(crate) type VisitLive<'a> =
    dyn FnMut(&Partition, &PartitionState, &mut Vec<BlockMatch>) -> Result<()> + 'a;

/// Series that are worth a thread, and threads at most.
const SERIES_PER_THREAD: usize = 16 * 1024;
const THREADS_MAX: usize = 8;

/// Label sets live in `range`, exact to the UTC day, sorted. No sets: all.
pub(crate) fn series(
    reader: &Reader,
    sets: &[Vec<Matcher>],
    range: TimeRange,
    limits: &SelectLimits,
    watch: &Watch,
) -> Result<Vec<Labels>> {
    let mut all = Vec::new();
    let sets = compile(sets)?;
    for_each_live(reader, &sets, range, limits, watch, &mut |partition, state, live| {
        index::sort_by_entity(live);
        let count = to_usize(live.iter().map(BlockMatch::series_count).sum());
        // Sets may name a series twice, so this bound is generous.
        limits.check_series(count / sets.len())?;
        let read = read_labels(&state.series.index, live, count, limits, &mut all);
        read.map_err(|error| rot_found(watch, partition, error))?;
        all.sort();
        all.dedup();
        limits.check_series(all.len())
    })?;
    Ok(all)
}

/// Sorted label names, as [`crate::Questions::series`].
pub(crate) fn label_names(
    reader: &Reader,
    sets: &[Vec<Matcher>],
    range: TimeRange,
    limits: &SelectLimits,
    watch: &Watch,
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for_each_live(reader, &compile(sets)?, range, limits, watch, &mut |partition, state, live| {
        let found = state.series.index.label_names(live);
        let found = found.map_err(|error| watch.found_rot(partition, error))?;
        index::merge_sorted(&mut names, found);
        Ok(())
    })?;
    Ok(names)
}

/// Sorted values of one label, as [`crate::Questions::series`].
pub(crate) fn label_values(
    reader: &Reader,
    name: &str,
    sets: &[Vec<Matcher>],
    range: TimeRange,
    limits: &SelectLimits,
    watch: &Watch,
) -> Result<Vec<String>> {
    let mut values = Vec::new();
    // Series without the label have no value to add, and the index finds those with it.
    let sets: Vec<_> = compile(sets)?.into_iter().map(|set| set.and_has(name)).collect();
    for_each_live(reader, &sets, range, limits, watch, &mut |partition, state, live| {
        let found = state.series.index.label_values(name, live);
        let found = found.map_err(|error| watch.found_rot(partition, error))?;
        index::merge_sorted(&mut values, found);
        Ok(())
    })?;
    Ok(values)
}

/// Hands the live matched series of each partition to `visit`, in no order.
pub(crate) fn for_each_live(
    reader: &Reader,
    sets: &[CompiledMatchers],
    range: TimeRange,
    limits: &SelectLimits,
    watch: &Watch,
    visit: &mut VisitLive<'_>,
) -> Result<()> {
    let (range, partitions) = reader.visible(&range, watch)?;
    for partition in partitions {
        limits.check_deadline()?;
        let state = partition.read();
        let live = Live::new(&partition, &state, &range, watch)?;
        if !live.is_empty() {
            let mut on_rot = |segment: &index::Segment, error| {
                watch.leave_out_segment(&partition, segment, error)
            };
            let mut groups = live_groups(&live, &state.series.index, sets, &mut on_rot)?;
            visit(&partition, &state, &mut groups)?;
        }
    }
    Ok(())
}

/// Appends the labels of all matches, whose series are `count`, in their order. Many are read by
/// several threads.
fn read_labels(
    index: &Index,
    matches: &[BlockMatch],
    count: usize,
    limits: &SelectLimits,
    out: &mut Vec<Labels>,
) -> Result<()> {
    let read = |matches: &[BlockMatch], out: &mut Vec<Labels>| {
        for some in matches.chunks(GROUPS_PER_CHECK) {
            limits.check_deadline()?;
            push_labels(index, some, out)?;
        }
        Ok(())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (count / SERIES_PER_THREAD).clamp(1, cores.min(THREADS_MAX));
    if threads == 1 {
        return read(matches, out);
    }
    let pieces: Vec<&[BlockMatch]> = matches.chunks(matches.len().div_ceil(threads)).collect();
    let results: Vec<Result<Vec<Labels>>> = std::thread::scope(|scope| {
        let one = |piece| {
            scope.spawn(move || {
                let mut labels = Vec::new();
                read(piece, &mut labels).map(|()| labels)
            })
        };
        let others: Vec<_> = pieces[1..].iter().map(|piece| one(*piece)).collect();
        let mut first = Vec::with_capacity(count);
        let first = read(pieces[0], &mut first).map(|()| first);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        [first].into_iter().chain(others.into_iter().map(join)).collect()
    });
    for labels in results {
        let mut labels = labels?;
        match out.is_empty() {
            true => *out = labels,
            false => out.append(&mut labels),
        }
    }
    Ok(())
}

fn push_labels(index: &Index, matches: &[BlockMatch], out: &mut Vec<Labels>) -> Result<()> {
    let (mut reader, mut builder) = (index.label_reader(), LabelsBuilder::new());
    for group in matches {
        for column in group.columns.iter() {
            for slot in group.slots.iter() {
                builder.clear();
                reader.match_labels(group, column, slot, &mut builder)?;
                out.push(builder.finish());
            }
        }
    }
    Ok(())
}

/// As [`Watch::found_rot`], for what is an error of the store already.
fn rot_found(watch: &Watch, partition: &Partition, error: Error) -> Error {
    match error {
        Error::Index(error) => watch.found_rot(partition, error),
        other => other,
    }
}

/// The live part of what matches; of several sets in the order of the blocks.
fn live_groups(
    live: &Live<'_>,
    index: &Index,
    sets: &[CompiledMatchers],
    on_rot: &mut OnRot<'_>,
) -> Result<Vec<BlockMatch>> {
    let listed = live.listed()?;
    let mut groups = Vec::new();
    for set in sets {
        let found = index.search_among_noting(set, listed.as_ref(), on_rot)?;
        groups.reserve(found.len());
        found.into_iter().for_each(|group| live.push(group, &mut groups));
    }
    if 1 < sets.len() {
        index::sort_by_entity(&mut groups);
    }
    Ok(groups)
}
