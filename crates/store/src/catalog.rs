//! Which series, label names and values there are in a span of time, exact to the UTC day.

use crate::partition::{Partition, State};
use crate::select::compile;
use crate::store::Store;
use crate::view::sources_in;
use crate::{Result, SelectLimits};
use hashbrown::HashSet;
use index::{BlockMatch, CompiledMatchers, Subset};
use model::time_range::day_of;
use model::{Labels, LabelsBuilder, Matcher, TimeRange};
use roaring::RoaringBitmap;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Store {
    /// Label sets live in `range`, exact to the UTC day, sorted. No sets: all.
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn series(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<Labels>> {
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        self.for_each_live(sets, range, limits, &mut |state, live| {
            let mut builder = LabelsBuilder::new();
            for group in live {
                for column in group.columns.iter() {
                    for slot in group.slots.iter() {
                        builder.clear();
                        state.index.labels(&group.block, column, slot, &mut builder)?;
                        let labels = builder.finish();
                        if seen.insert(labels.fingerprint()) {
                            all.push(labels);
                        }
                    }
                }
                limits.check_series(all.len())?;
                limits.check_deadline()?;
            }
            Ok(())
        })?;
        all.sort_unstable();
        Ok(all)
    }

    /// Sorted label names, as [`Store::series`].
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn label_names(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<String>> {
        let mut names = BTreeSet::new();
        self.for_each_live(sets, range, limits, &mut |state, live| {
            names.append(&mut state.index.label_names(live)?);
            Ok(())
        })?;
        Ok(names.into_iter().collect())
    }

    /// Sorted values of one label, as [`Store::series`].
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn label_values(
        &self,
        name: &str,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<String>> {
        let mut values = BTreeSet::new();
        self.for_each_live(sets, range, limits, &mut |state, live| {
            values.append(&mut state.index.label_values(name, live)?);
            Ok(())
        })?;
        Ok(values.into_iter().collect())
    }

    /// Hands the live matched series of each partition to `visit`.
    pub(crate) fn for_each_live(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
        visit: &mut dyn FnMut(&State, &[BlockMatch]) -> Result<()>,
    ) -> Result<()> {
        let range = range.intersect(&self.kept_span());
        let sets = compile(sets)?;
        for partition in self.partitions_in(&range) {
            limits.check_deadline()?;
            let live = live_series(&partition, &range)?;
            if live.is_empty() {
                continue;
            }
            let state = partition.read();
            let groups = live_groups(&state, &sets, &live)?;
            visit(&state, &groups)?;
        }
        Ok(())
    }
}

/// Ordinals of the series with a sample on a UTC day that `range` touches.
pub fn live_series(partition: &Arc<Partition>, range: &TimeRange) -> Result<RoaringBitmap> {
    let (first_day, last_day) = range.days();
    let (sources, views) = {
        let state = partition.read();
        // Whole days, so that a part is not left out for lying in another hour of the same day.
        let sources = sources_in(&state, &whole_days(first_day, last_day));
        let mut views: Vec<_> = state.taken.iter().map(|taken| Arc::clone(&taken.view)).collect();
        if state.arena.samples() != 0 {
            views.push(Arc::new(state.arena.view()));
        }
        (sources, views)
    };
    let mut live = RoaringBitmap::new();
    for source in sources {
        let mut of_part = source.part.part.live_on(first_day, last_day)?;
        let summary = source.part.part.summary();
        let span = whole_days(first_day, last_day)
            .intersect(&TimeRange::new(summary.min_ts, summary.max_ts));
        for tombstone in source.tombstones.iter().filter(|t| t.range.covers(&span)) {
            of_part -= &tombstone.series;
        }
        live |= of_part;
    }
    let days = first_day..=last_day;
    let mut entities = RoaringBitmap::new();
    let mut singles = HashSet::new();
    for view in &views {
        for row in view.rows().filter(|row| days.contains(&day_of(row.timestamp))) {
            entities.insert(row.entity);
        }
        let live_singles = view.singles().iter().filter(|s| days.contains(&day_of(s.timestamp)));
        singles.extend(live_singles.map(|single| (single.entity, single.column)));
    }
    add_entities(&partition.read(), &entities, &singles, &mut live)?;
    Ok(live)
}

fn whole_days(first_day: i32, last_day: i32) -> TimeRange {
    let day_start = |day: i32| i64::from(day).saturating_mul(model::sample::NANOS_PER_DAY);
    TimeRange::new(day_start(first_day), day_start(last_day + 1).saturating_sub(1))
}

fn add_entities(
    state: &State,
    entities: &RoaringBitmap,
    singles: &HashSet<(u32, u16)>,
    live: &mut RoaringBitmap,
) -> Result<()> {
    for entity in entities {
        if let Some(block) = state.index.block_of(entity)? {
            let slot = block.slot(entity);
            live.extend((0..block.columns).map(|column| block.ordinal(column as u16, slot)));
        }
    }
    for (entity, column) in singles {
        if let Some(block) = state.index.block_of(*entity)? {
            live.insert(block.ordinal(*column, block.slot(*entity)));
        }
    }
    Ok(())
}

/// The live part of what matches, each series once.
fn live_groups(
    state: &State,
    sets: &[CompiledMatchers],
    live: &RoaringBitmap,
) -> Result<Vec<BlockMatch>> {
    let mut groups = Vec::new();
    for set in sets {
        for group in state.index.search(set)? {
            push_live(&group, live, &mut groups);
        }
    }
    // As the index wants them; several sets come one after the other.
    groups.sort_by_key(|group: &BlockMatch| group.block.entity_start);
    Ok(groups)
}

/// Columns of a block with the same live slots stay one product.
fn push_live(group: &BlockMatch, live: &RoaringBitmap, groups: &mut Vec<BlockMatch>) {
    let mut by_slots: Vec<(Vec<u16>, Vec<u16>)> = Vec::new();
    for column in group.columns.iter() {
        let is_live = |slot: &u16| live.contains(group.block.ordinal(column, *slot));
        let slots: Vec<u16> = group.slots.iter().filter(is_live).collect();
        match by_slots.iter_mut().find(|(known, _)| *known == slots) {
            Some((_, columns)) => columns.push(column),
            None => by_slots.push((slots, vec![column])),
        }
    }
    for (slots, columns) in by_slots.into_iter().filter(|(slots, _)| !slots.is_empty()) {
        groups.push(BlockMatch {
            block: group.block,
            columns: Subset::from_sorted(&columns),
            slots: Subset::from_sorted(&slots),
        });
    }
}
