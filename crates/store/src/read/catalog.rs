//! Which series, label names and values there are in a span of time, exact to the UTC day.

use crate::base::narrow::to_usize;
use crate::partition::{Partition, PartitionState};
use crate::read::live::Live;
use crate::read::missing::Watch;
use crate::read::reader::Reader;
use crate::read::select::matchers::compile;
use crate::{Error, Limit, Result, SelectLimits};
use index::{BlockMatch, CompiledMatchers, Completeness, Search, Step};
use model::{Labels, LabelsBuilder, Matcher, TimeRange};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Labels that are read under one lock of a partition: some milliseconds.
const LABELS_PER_LOCK: usize = 4096;

/// Bounds on a list.
pub(crate) struct ListBounds<'a> {
    pub limits: &'a SelectLimits,
    /// Bytes of memory that it may take.
    pub size_max: u64,
}

impl ListBounds<'_> {
    /// Fails when a list takes more memory than it may.
    fn check_size(&self, size: usize) -> Result<()> {
        if size as u64 <= self.size_max {
            return Ok(());
        }
        Err(Error::LimitExceeded {
            limit: Limit::ListSize,
            what: "bytes of labels in the answer",
            value: size as u64,
            max: self.size_max,
        })
    }

    fn check_texts(&self, texts: &[String]) -> Result<()> {
        self.check_size(texts.iter().map(|text| size_of::<String>() + text.len()).sum())
    }
}

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
    bounds: &ListBounds<'_>,
    watch: &Watch,
) -> Result<Vec<Labels>> {
    let mut all: Vec<Labels> = Vec::new();
    let limits = bounds.limits;
    let sets = compile(sets, limits)?;
    let (range, partitions) = reader.visible(&range, watch)?;
    for partition in partitions {
        limits.check_interrupt()?;
        let mut live = Vec::new();
        let mut visit = |_: &Partition, _: &PartitionState, found: &mut Vec<BlockMatch>| {
            live.append(found);
            Ok(())
        };
        visit_live(&partition, &sets, &range, watch, &mut visit)?;
        index::sort_by_entity(&mut live);
        let count = to_usize(live.iter().map(BlockMatch::series_count).sum());
        limits.check_series(count)?;
        let size = AtomicUsize::new(all.iter().map(size_of_labels).sum());
        read_labels(&partition, &live, (count, bounds, &size), watch, &mut all)?;
        all.sort();
        all.dedup();
        limits.check_series(all.len())?;
    }
    Ok(all)
}

/// Sorted label names, as [`crate::Questions::series`].
pub(crate) fn label_names(
    reader: &Reader,
    sets: &[Vec<Matcher>],
    range: TimeRange,
    bounds: &ListBounds<'_>,
    watch: &Watch,
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let sets = compile(sets, bounds.limits)?;
    for_each_live(reader, &sets, range, bounds.limits, watch, &mut |partition, state, live| {
        let found = state.series.index.label_names(live);
        let found = found.map_err(|error| watch.found_rot(partition, error))?;
        index::merge_sorted(&mut names, found);
        bounds.check_texts(&names)
    })?;
    Ok(names)
}

/// Sorted values of one label, as [`crate::Questions::series`].
pub(crate) fn label_values(
    reader: &Reader,
    name: &str,
    sets: &[Vec<Matcher>],
    range: TimeRange,
    bounds: &ListBounds<'_>,
    watch: &Watch,
) -> Result<Vec<String>> {
    let mut values = Vec::new();
    // Series without the label have no value to add, and the index finds those with it.
    let sets = compile(sets, bounds.limits)?;
    let sets: Vec<_> = sets.into_iter().map(|set| set.and_has(name)).collect();
    for_each_live(reader, &sets, range, bounds.limits, watch, &mut |partition, state, live| {
        let found = state.series.index.label_values(name, live);
        let found = found.map_err(|error| watch.found_rot(partition, error))?;
        index::merge_sorted(&mut values, found);
        bounds.check_texts(&values)
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
        limits.check_interrupt()?;
        visit_live(&partition, sets, &range, watch, visit)?;
    }
    Ok(())
}

/// Hands the live matched series of a partition to `visit`, in no order and under the partition's
/// lock, which is not held while they are searched.
fn visit_live(
    partition: &Partition,
    sets: &[CompiledMatchers],
    range: &TimeRange,
    watch: &Watch,
    visit: &mut VisitLive<'_>,
) -> Result<()> {
    let mut on_rot =
        |segment: &index::Segment, error| watch.leave_out_segment(partition, segment, error);
    let mut search = {
        let state = partition.read();
        let live = Live::new(partition, &state, range, watch)?;
        if live.is_empty() {
            return Ok(());
        }
        let mut search = Search::among(sets, Completeness::AtStart, live.listed()?);
        if search.step(&state.series.index, &mut on_rot)? == Step::Done {
            let mut groups = live_groups(&live, search.take());
            return visit(partition, &state, &mut groups);
        }
        search
    };
    loop {
        search.run(&mut on_rot)?;
        let state = partition.read();
        if search.step(&state.series.index, &mut on_rot)? == Step::Done {
            let live = Live::new(partition, &state, range, watch)?;
            let mut groups = live_groups(&live, search.take());
            return visit(partition, &state, &mut groups);
        }
    }
}

/// Appends the labels of all matches, whose series are `count`, in their order. Many are read by
/// several threads.
fn read_labels(
    partition: &Partition,
    matches: &[BlockMatch],
    (count, bounds, size): (usize, &ListBounds<'_>, &AtomicUsize),
    watch: &Watch,
    out: &mut Vec<Labels>,
) -> Result<()> {
    let read = |matches: &[BlockMatch], out: &mut Vec<Labels>| {
        push_labels(partition, matches, (bounds, size), out).map_err(|error| match error {
            Error::Index(error) => watch.found_rot(partition, error),
            other => other,
        })
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

/// Appends labels, a bounded number under each lock of the partition, and adds their bytes to `size`.
fn push_labels(
    partition: &Partition,
    matches: &[BlockMatch],
    (bounds, size): (&ListBounds<'_>, &AtomicUsize),
    out: &mut Vec<Labels>,
) -> Result<()> {
    let of_column = |group, column| move |slot| (group, column, slot);
    let mut series = matches.iter().flat_map(|group| {
        let columns = group.columns.iter();
        columns.flat_map(move |column| group.slots.iter().map(of_column(group, column)))
    });
    let mut builder = LabelsBuilder::new();
    loop {
        bounds.limits.check_interrupt()?;
        bounds.check_size(size.load(Ordering::Relaxed))?;
        let mut read = 0;
        let state = partition.read();
        let mut reader = state.series.index.label_reader();
        for _ in 0..LABELS_PER_LOCK {
            let Some((group, column, slot)) = series.next() else { return Ok(()) };
            builder.clear();
            match reader.match_labels(group, column, slot, &mut builder) {
                Ok(()) => {
                    let labels = builder.finish();
                    read += size_of_labels(&labels);
                    out.push(labels);
                }
                // It lost its last sample since, so it is not live.
                Err(index::Error::Dropped) => {}
                Err(error) => return Err(Error::Index(error)),
            }
        }
        size.fetch_add(read, Ordering::Relaxed);
    }
}

/// The live part of what matches.
fn live_groups(live: &Live<'_>, found: Vec<BlockMatch>) -> Vec<BlockMatch> {
    let mut groups = Vec::with_capacity(found.len());
    found.into_iter().for_each(|group| live.push(group, &mut groups));
    groups
}

fn size_of_labels(labels: &Labels) -> usize {
    size_of::<Labels>() + labels.as_bytes().len()
}
