//! Which series have a sample on the days that a question touches.
//!
//! ```text
//! parts (on disk, in memory)  ── a set of ordinals a day ──► ordinals
//! rows not sealed yet         ── newest row of an entity ──► entities, without looking at rows,
//!                                                            when all rows are of these days
//! ```

use crate::base::damage::{Damage, DamageList, DamagePlace};
use crate::base::narrow::{to_ordinal, to_u16, to_u32};
use crate::partition::disk::live_part::LivePart;
use crate::partition::{Partition, PartitionState};
use crate::read::missing::Watch;
use crate::read::view::{ViewedPart, sources_in};
use crate::{Error, Result};
use hashbrown::HashSet;
use index::{BlockMatch, BlockRef, Subset};
use model::TimeRange;
use model::time_range::day_of;
use roaring::RoaringBitmap;
use std::ops::RangeInclusive;

/// Listed are series that are at most one in so many of all the partition knows.
const LISTED_SHARE: u64 = 4;

/// The live series of a partition; true as long as the lock is held under which it was made.
pub struct Live<'a> {
    partition: &'a Partition,
    state: &'a PartitionState,
    watch: &'a Watch,
    /// Series of parts, and of singles.
    ordinals: RoaringBitmap,
    /// Entities with a live row, every column of them.
    rows: LiveRows,
}

/// Entities with a row of these days that is not sealed yet.
enum LiveRows {
    /// Those whose newest row has this id or a later one.
    Newest(u32),
    /// These.
    Entities(RoaringBitmap),
}

impl<'a> Live<'a> {
    /// The series with a sample on a UTC day that `range` touches. Where a part's sets are rotten, all
    /// its series may be live.
    pub fn new(
        partition: &'a Partition,
        state: &'a PartitionState,
        range: &TimeRange,
        watch: &'a Watch,
    ) -> Result<Live<'a>> {
        let (first_day, last_day) = range.days();
        // Whole days, so that a part is not left out for lying in another hour of the same day.
        let span = whole_days(first_day, last_day);
        let mut ordinals = RoaringBitmap::new();
        for source in sources_in(state, &span) {
            let of_part = source.part.part.live_on(first_day, last_day);
            let mut of_part = of_part.or_else(|error| all_of(partition, &source, watch, error))?;
            let summary = source.part.part.summary();
            let span = span.intersect(&TimeRange::new(summary.min_ts, summary.max_ts));
            for tombstone in source.tombstones.iter().filter(|t| t.range.covers(&span)) {
                of_part -= &tombstone.series;
            }
            ordinals |= of_part;
        }
        let days = first_day..=last_day;
        let rows = live_rows(state, &span, &days);
        let mut live = Live { partition, state, watch, ordinals, rows };
        live.add_singles(&days)?;
        Ok(live)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        let has_no_row = match &self.rows {
            LiveRows::Newest(_) => self.state.head.unsealed_samples() == 0,
            LiveRows::Entities(entities) => entities.is_empty(),
        };
        has_no_row && self.ordinals.is_empty()
    }

    /// All of them as ordinals, when they are few beside the series that the index knows.
    pub fn listed(&self) -> Result<Option<RoaringBitmap>> {
        let max = self.state.series.index.series_count() / LISTED_SHARE;
        if max < self.ordinals.len() + self.state.head.unsealed_samples() {
            return Ok(None);
        }
        let mut all = self.ordinals.clone();
        let entities = match &self.rows {
            LiveRows::Entities(entities) => entities.clone(),
            LiveRows::Newest(_) => entities_of(self.state, None),
        };
        for entity in entities {
            if let Some(block) = self.block_of(entity)? {
                let slot = block.slot(entity);
                all.extend((0..to_u16(block.columns)).map(|column| block.ordinal(column, slot)));
            }
        }
        Ok(Some(all))
    }

    /// The block of an entity, unless its segment is rotten: then no search finds it either.
    fn block_of(&self, entity: u32) -> Result<Option<BlockRef>> {
        let found = self.state.series.index.block_of(entity);
        found.or_else(|error| match &error {
            index::Error::Corrupt { file, .. } => {
                let damage = self.watch.segment_damage(self.partition, file, &error);
                self.watch.leave_out(damage, error.into()).map(|()| None)
            }
            _ => Err(error.into()),
        })
    }

    /// Appends the live part of what matches. Columns of a block with the same live slots stay one
    /// product.
    pub fn push(&self, found: BlockMatch, out: &mut Vec<BlockMatch>) {
        if found.columns.iter().all(|column| self.has_slots(&found.block, column, &found.slots)) {
            out.push(found);
            return;
        }
        push_kept(&found, &|column, slot| self.has(&found.block, column, slot), out);
    }

    /// Whether a series is live.
    fn has(&self, block: &BlockRef, column: u16, slot: u16) -> bool {
        self.has_row(block.entity(slot)) || self.ordinals.contains(block.ordinal(column, slot))
    }

    fn has_row(&self, entity: u32) -> bool {
        match &self.rows {
            LiveRows::Newest(oldest) => *oldest <= self.state.head.arena.last_row(entity),
            LiveRows::Entities(entities) => entities.contains(entity),
        }
    }

    /// Whether all these slots of a column are live.
    fn has_slots(&self, block: &BlockRef, column: u16, slots: &Subset) -> bool {
        if slots.is_all() && !self.ordinals.is_empty() {
            let first = block.ordinal(column, 0);
            let last = first + to_u32(slots.len()) - 1;
            if self.ordinals.contains_range(first..=last) {
                return true;
            }
        }
        slots.iter().all(|slot| self.has(block, column, slot))
    }

    fn add_singles(&mut self, days: &RangeInclusive<i32>) -> Result<()> {
        let singles = self.state.head.singles();
        let live = singles.filter(|single| days.contains(&day_of(single.timestamp)));
        let live: HashSet<(u32, u16)> = live.map(|one| (one.entity, one.column)).collect();
        for (entity, column) in live {
            if let Some(block) = self.block_of(entity)? {
                self.ordinals.insert(block.ordinal(column, block.slot(entity)));
            }
        }
        Ok(())
    }
}

/// All series of a part whose sets of live ones are rotten.
#[cold]
fn all_of(
    partition: &Partition,
    source: &ViewedPart,
    watch: &Watch,
    error: Error,
) -> Result<RoaringBitmap> {
    if !error.is_corrupt() || !source.is_on_disk {
        return Err(error);
    }
    source.part.set_damaged();
    watch
        .leave_out(live_days_damage(watch.damage_list(), partition, &source.part, &error), error)?;
    let mut all = RoaringBitmap::new();
    for slice in source.part.part.slices().iter() {
        // One past the last ordinal may not fit.
        all.insert_range(slice.series_start..=to_ordinal(slice.series_end() - 1));
    }
    Ok(all)
}

/// The damage of a rotten set of the series that are live on a day.
pub fn live_days_damage(
    damage_list: &DamageList,
    partition: &Partition,
    part: &LivePart,
    error: &Error,
) -> Damage {
    let what = match error {
        Error::Corrupt { offset, what, .. } => format!("{what} at byte {offset}"),
        other => other.to_string(),
    };
    let what = format!("{what}: which series are live on a day");
    let file = damage_list.relative(part.part.name());
    let damage = Damage::of_partition(partition.period, DamagePlace::Page, file, what);
    Damage { span: part.span(), ..damage }
}

/// Appends the series of a match that are to be kept, told by column and slot. Columns with the same
/// slots stay one product.
pub fn push_kept(
    found: &BlockMatch,
    is_kept: &dyn Fn(u16, u16) -> bool,
    out: &mut Vec<BlockMatch>,
) {
    let mut by_slots: Vec<(Vec<u16>, Vec<u16>)> = Vec::new();
    for column in found.columns.iter() {
        let slots: Vec<u16> = found.slots.iter().filter(|slot| is_kept(column, *slot)).collect();
        match by_slots.iter_mut().find(|(known, _)| *known == slots) {
            Some((_, columns)) => columns.push(column),
            None => by_slots.push((slots, vec![column])),
        }
    }
    for (slots, columns) in by_slots.into_iter().filter(|(slots, _)| !slots.is_empty()) {
        out.push(found.restricted(Subset::from_sorted(&columns), Subset::from_sorted(&slots)));
    }
}

fn live_rows(state: &PartitionState, span: &TimeRange, days: &RangeInclusive<i32>) -> LiveRows {
    let taken = state.head.taken().iter().map(|taken| taken.view.time_min_max());
    let mut spans = taken.chain([state.head.arena.time_min_max()]).flatten();
    match spans.all(|(min, max)| span.covers(&TimeRange::new(min, max))) {
        true => LiveRows::Newest(state.head.first_unsealed_row()),
        false => LiveRows::Entities(entities_of(state, Some(days))),
    }
}

/// Entities with an unsealed row, on these days only if any are given.
fn entities_of(state: &PartitionState, days: Option<&RangeInclusive<i32>>) -> RoaringBitmap {
    let mut entities = RoaringBitmap::new();
    let is_wanted = |timestamp| days.is_none_or(|days| days.contains(&day_of(timestamp)));
    let mut add = |entity, timestamp| {
        if is_wanted(timestamp) {
            entities.insert(entity);
        }
    };
    for taken in state.head.taken() {
        taken.view.rows().for_each(|row| add(row.entity, row.timestamp));
    }
    state.head.arena.view().rows().for_each(|row| add(row.entity, row.timestamp));
    entities
}

fn whole_days(first_day: i32, last_day: i32) -> TimeRange {
    let day_start = |day: i32| i64::from(day).saturating_mul(model::sample::NANOS_PER_DAY);
    TimeRange::new(day_start(first_day), day_start(last_day + 1).saturating_sub(1))
}
