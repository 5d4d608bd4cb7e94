//! Samples of some slots of one column of one block, gathered from parts and unsealed rows.
//!
//! Each source adds *runs*: the sorted samples it has of one slot. Runs of a slot come oldest source
//! first. Most often they follow each other in time and are copied one after the other; where they
//! overlap they are merged and of equal timestamps the newest source wins. Slots that have one list
//! of timestamps get it once: their spans of values differ, those of timestamps do not.
//!
//! A page that is rotten costs what it holds. What older sources have for its time goes, too: it may
//! have been written again, and then the older sample is a wrong one.

use crate::base::damage::{Damage, DamageList, DamagePlace};
use crate::base::narrow::to_u32;
use crate::part::page_headers::PageHeaders;
use crate::part::{KnownColumn, Part};
use crate::partition::Partition;
use crate::partition::disk::live_part::LivePart;
use crate::partition::head::arena::NO_ROW;
use crate::partition::head::seal::merge_two;
use crate::read::missing::Watch;
use crate::read::view::{PartitionView, ViewedPart};
use crate::{Error, Result};
use codec::{ColumnScratch, TimestampsOutline, ValuesOutline};
use index::BlockMatch;
use model::{TimeRange, Timestamp};
use std::ops::Range;

/// From this share of a span of slots on, the span is decoded whole.
const DENSE_SHARE: usize = 4;

/// Which series to read: one column, some slots, of one matched block.
#[derive(Clone, Copy)]
pub struct ColumnRequest<'a> {
    /// The frozen partition.
    pub view: &'a PartitionView,
    /// Index into [`PartitionView::groups`].
    pub group: usize,
    /// The column.
    pub column: u16,
    /// The slots, increasing.
    pub slots: &'a [u16],
    /// Only samples inside are wanted.
    pub range: TimeRange,
    /// What is known of parts already.
    pub page_headers: &'a PageHeaders,
    /// What is done about rot.
    pub watch: &'a Watch,
    /// Samples of these times are not wanted: other columns of their rows are lost.
    pub without: &'a [TimeRange],
}

/// Samples of several series.
#[derive(Default)]
pub struct Samples {
    /// Timestamps, increasing within a series; series may share them.
    pub times: Vec<Timestamp>,
    /// Values, one series after the other.
    pub values: Vec<f64>,
    /// Where each series' samples are.
    pub spans: Vec<Span>,
}

impl Samples {
    /// Empties it, and keeps the memory.
    pub fn clear(&mut self) {
        self.times.clear();
        self.values.clear();
        self.spans.clear();
    }

    /// Whether each series has as many samples here as there.
    pub fn is_shaped_as(&self, other: &Samples) -> bool {
        let lens = self.spans.iter().map(|span| span.values.len());
        lens.eq(other.spans.iter().map(|span| span.values.len()))
    }

    /// Timestamps and values of a span.
    pub fn of(&self, span: &Span) -> (&[Timestamp], &[f64]) {
        (&self.times[span.times()], &self.values[span.values()])
    }
}

/// Where the samples of a series are in their buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Where the timestamps start, of which there are as many as values.
    times_start: usize,
    /// The values.
    values: Range<usize>,
}

impl Span {
    /// The indexes of the timestamps.
    pub fn times(&self) -> Range<usize> {
        self.times_start..self.times_start + self.values.len()
    }

    /// The indexes of the values.
    pub fn values(&self) -> Range<usize> {
        self.values.clone()
    }

    /// The span of some of its samples, counted from its first.
    fn part(&self, inside: &Range<usize>) -> Span {
        debug_assert!(inside.start <= inside.end && inside.end <= self.values.len());
        let start = self.values.start;
        Span {
            times_start: self.times_start + inside.start,
            values: start + inside.start..start + inside.end,
        }
    }
}

/// Buffers of one reading thread.
#[derive(Default)]
pub struct ReadScratch {
    times: Vec<Timestamp>,
    values: Vec<f64>,
    /// Samples of one slot in one source, as (index of the slot in the request, place in buffers).
    runs: Vec<(u32, Span)>,
    merged: Vec<(Timestamp, u32, f64)>,
    rows: Vec<(Timestamp, u64, u64)>,
    singles: Vec<(Timestamp, u64, u64)>,
    column: ColumnScratch,
    /// The times of slices that were left out as rotten, since it was last emptied.
    pub lost: Vec<TimeRange>,
}

impl ReadScratch {
    /// Lets go what was read since there were so many runs, timestamps and values.
    fn truncate(&mut self, (runs, times, values): (usize, usize, usize)) {
        self.runs.truncate(runs);
        self.times.truncate(times);
        self.values.truncate(values);
    }

    /// Adds a run of all samples from these places on, if there are any.
    fn push_run(&mut self, slot_idx: u32, times_start: usize, values_start: usize) {
        let values = values_start..self.values.len();
        assert!(self.times.len() - times_start == values.len(), "a value for each timestamp");
        if !values.is_empty() {
            self.runs.push((slot_idx, Span { times_start, values }));
        }
    }
}

/// Appends the samples of each requested slot to `out`, one span per slot.
pub fn read_column(
    request: &ColumnRequest<'_>,
    scratch: &mut ReadScratch,
    out: &mut Samples,
) -> Result<()> {
    scratch.times.clear();
    scratch.values.clear();
    scratch.runs.clear();
    for source in &request.view.sources {
        read_source(request, source, scratch)?;
    }
    debug_assert!(request.slots.is_sorted_by(|a, b| a < b), "slots are increasing");
    read_rows(request, scratch);
    for range in request.without {
        cut_runs(scratch, 0, range, &|_| true);
    }
    // Stable: runs of a slot stay oldest source first.
    scratch.runs.sort_by_key(|(slot, _)| *slot);
    if out.spans.is_empty() && scratch.runs.is_sorted_by(|a, b| a.0 < b.0) {
        hand_over(request.slots.len(), scratch, out);
        return Ok(());
    }
    let mut next = 0;
    for slot_idx in 0..to_u32(request.slots.len()) {
        let count = scratch.runs[next..].partition_point(|(slot, _)| *slot == slot_idx);
        let runs = next..next + count;
        next = runs.end;
        let (times_start, start) = (out.times.len(), out.values.len());
        join_runs(scratch, runs, out);
        out.spans.push(Span { times_start, values: start..out.values.len() });
    }
    Ok(())
}

/// Gives the samples themselves to `out`, which is empty, when no slot has two runs to be joined.
fn hand_over(slots: usize, scratch: &mut ReadScratch, out: &mut Samples) {
    debug_assert!(out.times.is_empty() && out.values.is_empty());
    std::mem::swap(&mut out.times, &mut scratch.times);
    std::mem::swap(&mut out.values, &mut scratch.values);
    let mut runs = scratch.runs.iter().peekable();
    for slot_idx in 0..to_u32(slots) {
        let run = runs.next_if(|(slot, _)| *slot == slot_idx);
        out.spans.push(run.map_or_else(Span::default, |(_, run)| run.clone()));
    }
    assert!(runs.next().is_none(), "runs of slots that were asked for");
}

/// Goes on without a column of a slice that cannot be read, if whoever asked bears that.
#[cold]
fn leave_out(
    request: &ColumnRequest<'_>,
    source: &ViewedPart,
    idx: usize,
    error: Error,
    scratch: &mut ReadScratch,
) -> Result<()> {
    // What is wrong in memory is not the disk's fault.
    if !error.is_corrupt() || !source.is_on_disk {
        return Err(error);
    }
    source.part.set_damaged();
    let damage = page_damage(
        request.watch.damage_list(),
        &request.view.partition,
        &source.part,
        idx,
        &error,
    );
    let span = damage.span;
    request.watch.leave_out(damage, error)?;
    cut_runs(scratch, 0, &span, &|_| true);
    scratch.lost.push(span);
    Ok(())
}

/// The damage of a page of a slice.
pub(crate) fn page_damage(
    damage_list: &DamageList,
    partition: &Partition,
    part: &LivePart,
    idx: usize,
    error: &Error,
) -> Damage {
    let slice = &part.part.slice(idx);
    let file = damage_list.relative(part.part.name());
    let what = match error {
        Error::Corrupt { offset, what, .. } => format!("{what} at byte {offset}"),
        other => other.to_string(),
    };
    let damage = Damage::of_partition(partition.period, DamagePlace::Page, file, what);
    let span = TimeRange::new(slice.min_ts, slice.max_ts);
    Damage { span, series: Some(u64::from(slice.slots)), ..damage }
}

fn block_of<'a>(request: &ColumnRequest<'a>) -> &'a BlockMatch {
    &request.view.groups[request.group]
}

fn read_source(
    request: &ColumnRequest<'_>,
    source: &ViewedPart,
    scratch: &mut ReadScratch,
) -> Result<()> {
    let part = &source.part.part;
    let (faults, block) = (part.faults(), &block_of(request).block);
    for idx in part.find(block.series_start) {
        let slice = &part.slice(idx);
        if !request.range.overlaps(&TimeRange::new(slice.min_ts, slice.max_ts)) {
            continue;
        }
        let known = request.slots.partition_point(|slot| u32::from(*slot) < slice.slots);
        let runs_start = scratch.runs.len();
        let before = (runs_start, scratch.times.len(), scratch.values.len());
        let read = part.check_block(idx, block);
        let read = read.and_then(|()| read_slice(request, part, idx, known, scratch));
        let read = read.and_then(|()| part.check_faults(faults, slice.offset()));
        if let Err(error) = read {
            scratch.truncate(before);
            leave_out(request, source, idx, error, scratch)?;
            continue;
        }
        // Neighbours most often share their timestamps.
        let mut last = (0..0, 0..0);
        for (slot_idx, run) in &mut scratch.runs[runs_start..] {
            if last.0 != run.times() {
                let inside = part_of_range(&scratch.times[run.times()], &request.range);
                last = (run.times(), inside);
            }
            *run = run.part(&last.1);
            debug_assert!((*slot_idx as usize) < request.slots.len());
        }
        apply_tombstones(request, source, runs_start, scratch);
    }
    Ok(())
}

/// The indexes of the increasing `times` that lie in the range.
fn part_of_range(times: &[Timestamp], range: &TimeRange) -> Range<usize> {
    let start = times.partition_point(|time| *time < range.start);
    let end = times.partition_point(|time| *time <= range.end);
    start..end.max(start)
}

/// Decodes the first `known` slots of the request in one slice and adds a run for each that has
/// samples.
fn read_slice(
    request: &ColumnRequest<'_>,
    part: &Part,
    idx: usize,
    known: usize,
    scratch: &mut ReadScratch,
) -> Result<()> {
    let (column, slots) = (usize::from(request.column), &request.slots[..known]);
    let Some(times) = part.known_times(idx, column, request.page_headers)? else { return Ok(()) };
    let (Some(first), Some(last)) = (slots.first(), slots.last()) else { return Ok(()) };
    let values = part.known_values(idx, column, &times.header, request.page_headers)?;
    let span = usize::from(*first)..usize::from(*last) + 1;
    // Where each slot is a page, what lies after the range need not be decoded.
    let has_own_pages = times.header.layout().pages() == times.header.lens().len();
    let read = if !has_own_pages && span.len() <= slots.len() * DENSE_SHARE {
        read_span(&times, &values, slots, 0, scratch)
    } else {
        read_pages(&times, &values, slots, &request.range, scratch)
    };
    read.map_err(|error| corrupt_page(part, idx, &error))
}

/// Decodes slots that lie far apart. Those of one page are decoded together: one by one, each would
/// decode again what lies before it in the page.
fn read_pages(
    times: &KnownColumn<'_, TimestampsOutline>,
    values: &KnownColumn<'_, ValuesOutline>,
    slots: &[u16],
    range: &TimeRange,
    scratch: &mut ReadScratch,
) -> std::result::Result<(), codec::Error> {
    let layout = times.header.layout();
    let mut idx = 0;
    while let Some(slot) = slots.get(idx).map(|slot| usize::from(*slot)) {
        let page_end = layout.page_slots(layout.pages_of(&(slot..slot + 1)).start).end;
        let count = slots[idx..].partition_point(|slot| usize::from(*slot) < page_end);
        match count {
            1 => read_slot(times, values, (slot, to_u32(idx)), range, scratch)?,
            _ => read_span(times, values, &slots[idx..idx + count], to_u32(idx), scratch)?,
        }
        idx += count;
    }
    Ok(())
}

/// Decodes all from the first of some slots to the last and adds a run for each of them; the first
/// is the request's slot `slot_idx`.
fn read_span(
    times: &KnownColumn<'_, TimestampsOutline>,
    values: &KnownColumn<'_, ValuesOutline>,
    slots: &[u16],
    slot_idx: u32,
    scratch: &mut ReadScratch,
) -> std::result::Result<(), codec::Error> {
    let (Some(first), Some(last)) = (slots.first(), slots.last()) else { return Ok(()) };
    let span = usize::from(*first)..usize::from(*last) + 1;
    let lens = times.header.lens();
    let (mut times_start, mut start) = (scratch.times.len(), scratch.values.len());
    let grid = times.header.grid();
    match grid {
        Some(grid) => scratch.times.extend_from_slice(grid),
        None => times.header.read(times.bytes, span.clone(), &mut scratch.times)?,
    }
    let (column, out) = (&mut scratch.column, &mut scratch.values);
    values.header.read(values.bytes, span.clone(), column, out)?;
    let mut wanted = slots.iter().zip(slot_idx..).peekable();
    for slot in span {
        let len = lens[slot] as usize;
        let next = wanted.next_if(|(wanted, _)| usize::from(**wanted) == slot);
        if let Some((_, slot_idx)) = next.filter(|_| 0 < len) {
            scratch.runs.push((slot_idx, Span { times_start, values: start..start + len }));
        }
        start += len;
        times_start += if grid.is_some() { 0 } else { len };
    }
    assert!(start == scratch.values.len());
    Ok(())
}

/// Decodes what one slot has in the range and adds a run.
fn read_slot(
    times: &KnownColumn<'_, TimestampsOutline>,
    values: &KnownColumn<'_, ValuesOutline>,
    (slot, slot_idx): (usize, u32),
    range: &TimeRange,
    scratch: &mut ReadScratch,
) -> std::result::Result<(), codec::Error> {
    if times.header.lens()[slot] == 0 {
        return Ok(());
    }
    let (start, values_start) = (scratch.times.len(), scratch.values.len());
    let inside = match times.header.grid() {
        Some(grid) => {
            let inside = part_of_range(grid, range);
            scratch.times.extend_from_slice(&grid[inside.clone()]);
            inside
        }
        None => {
            times.header.read(times.bytes, slot..slot + 1, &mut scratch.times)?;
            let inside = part_of_range(&scratch.times[start..], range);
            scratch.times.truncate(start + inside.end);
            scratch.times.drain(start..start + inside.start);
            inside
        }
    };
    let (column, out) = (&mut scratch.column, &mut scratch.values);
    values.header.read_slot(values.bytes, slot, inside, column, out)?;
    scratch.push_run(slot_idx, start, values_start);
    Ok(())
}

fn corrupt_page(part: &Part, idx: usize, error: &codec::Error) -> Error {
    Error::Corrupt {
        file: part.name().to_path_buf(),
        offset: error.offset as u64,
        what: format!("in a page of slice {idx}: {}", error.what),
    }
}

/// Cuts deleted samples out of the runs from `runs_start` on.
fn apply_tombstones(
    request: &ColumnRequest<'_>,
    source: &ViewedPart,
    runs_start: usize,
    scratch: &mut ReadScratch,
) {
    let block = &block_of(request).block;
    for tombstone in &source.tombstones {
        cut_runs(scratch, runs_start, &tombstone.range, &|slot_idx| {
            let slot = request.slots[slot_idx as usize];
            tombstone.series.contains(block.ordinal(request.column, slot))
        });
    }
}

/// Cuts the samples of a range out of the runs from `runs_start` on, of some slots of the request.
fn cut_runs(
    scratch: &mut ReadScratch,
    runs_start: usize,
    range: &TimeRange,
    is_cut: &dyn Fn(u32) -> bool,
) {
    for (slot_idx, run) in scratch.runs.split_off(runs_start) {
        let times = &scratch.times[run.times()];
        let cut = part_of_range(times, range);
        if cut.is_empty() || !is_cut(slot_idx) {
            scratch.runs.push((slot_idx, run));
            continue;
        }
        let rest = cut.end..times.len();
        // Both pieces stay before the runs of newer sources.
        scratch.runs.push((slot_idx, run.part(&(0..cut.start))));
        if !rest.is_empty() {
            scratch.runs.push((slot_idx, run.part(&rest)));
        }
    }
}

/// Adds a run for each slot with unsealed rows.
fn read_rows(request: &ColumnRequest<'_>, scratch: &mut ReadScratch) {
    let Some(heads) = &request.view.heads[request.group] else { return };
    let start = request.range.start;
    for (slot, slot_idx) in request.slots.iter().zip(0u32..) {
        scratch.rows.clear();
        let mut id = heads.last_rows.get(usize::from(*slot)).copied().unwrap_or(NO_ROW);
        let views = request.view.rows.iter().zip(&request.view.latest_behind);
        'chain: for (view, latest_behind) in views {
            while let Some(row) = view.row(id) {
                id = row.before;
                if request.range.contains(row.timestamp) {
                    let bits = row.bits[usize::from(request.column)];
                    scratch.rows.push((row.timestamp, row.arrival(), bits));
                } else if row.timestamp < start
                    && view.latest_until(row.id).max(*latest_behind) < start
                {
                    break 'chain;
                }
            }
        }
        scratch.singles.clear();
        if let Some(last) = heads.last_singles.get(&(*slot, request.column)) {
            let newest = &request.view.rows[0];
            let wanted = newest.singles_from(*last).filter(|s| request.range.contains(s.timestamp));
            scratch.singles.extend(wanted.map(|s| (s.timestamp, s.arrival(), s.bits)));
        }
        if scratch.rows.is_empty() && scratch.singles.is_empty() {
            continue;
        }
        scratch.rows.sort_unstable_by_key(|row| (row.0, row.1));
        scratch.singles.reverse();
        scratch.singles.sort_by_key(|single| (single.0, single.1));
        let (start, values_start) = (scratch.times.len(), scratch.values.len());
        let (rows, singles) = (scratch.rows.iter().copied(), scratch.singles.iter().copied());
        merge_two(rows, singles, &mut scratch.times, &mut scratch.values);
        scratch.push_run(slot_idx, start, values_start);
    }
}

/// Joins the runs of one slot into one sorted list.
fn join_runs(scratch: &mut ReadScratch, runs: Range<usize>, out: &mut Samples) {
    let runs = &scratch.runs[runs];
    let mut ordered = true;
    let mut last = None;
    for (_, run) in runs.iter().filter(|(_, run)| !run.values.is_empty()) {
        let times = &scratch.times[run.times()];
        ordered &= last < times.first();
        last = times.last();
    }
    if ordered {
        for (_, run) in runs {
            out.times.extend_from_slice(&scratch.times[run.times()]);
            out.values.extend_from_slice(&scratch.values[run.values()]);
        }
        return;
    }
    scratch.merged.clear();
    for ((_, run), age) in runs.iter().zip(0u32..) {
        let samples = scratch.times[run.times()].iter().zip(&scratch.values[run.values()]);
        scratch.merged.extend(samples.map(|(time, value)| (*time, age, *value)));
    }
    scratch.merged.sort_by_key(|(time, age, _)| (*time, *age));
    let start = out.times.len();
    for (time, _, value) in &scratch.merged {
        if start < out.times.len() && out.times.last() == Some(time) {
            out.values.pop();
        } else {
            out.times.push(*time);
        }
        out.values.push(*value);
    }
}
