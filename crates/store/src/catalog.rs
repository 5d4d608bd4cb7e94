//! Which series, label names and values there are in a span of time, exact to the UTC day.

use crate::live::Live;
use crate::partition::{Partition, State};
use crate::select::compile;
use crate::store::Store;
use crate::{Result, SelectLimits};
use index::{BlockMatch, CompiledMatchers, Index};
use model::{Labels, LabelsBuilder, Matcher, TimeRange};

/// Matched blocks between two looks at the clock.
const GROUPS_PER_CHECK: usize = 4096;

/// What is done with the live matched series of a partition.
pub(crate) type VisitLive<'a> =
    dyn FnMut(&Partition, &State, &mut Vec<BlockMatch>) -> Result<()> + 'a;

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
        let mut all = Vec::new();
        let sets = compile(sets)?;
        self.for_each_live(&sets, range, limits, &mut |_, state, live| {
            index::sort_by_entity(live);
            let start = all.len();
            for some in live.chunks(GROUPS_PER_CHECK) {
                push_labels(&state.index, some, &mut all)?;
                // Sets may name a series twice, so this bound is generous.
                limits.check_series((all.len() - start) / sets.len())?;
                limits.check_deadline()?;
            }
            all.sort();
            all.dedup();
            limits.check_series(all.len())
        })?;
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
        let mut names = Vec::new();
        self.for_each_live(&compile(sets)?, range, limits, &mut |_, state, live| {
            index::merge_sorted(&mut names, state.index.label_names(live)?);
            Ok(())
        })?;
        Ok(names)
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
        let mut values = Vec::new();
        // Series without the label have no value to add, and the index finds those with it.
        let sets: Vec<_> = compile(sets)?.into_iter().map(|set| set.and_has(name)).collect();
        self.for_each_live(&sets, range, limits, &mut |_, state, live| {
            index::merge_sorted(&mut values, state.index.label_values(name, live)?);
            Ok(())
        })?;
        Ok(values)
    }

    /// Hands the live matched series of each partition to `visit`, in no order.
    pub(crate) fn for_each_live(
        &self,
        sets: &[CompiledMatchers],
        range: TimeRange,
        limits: &SelectLimits,
        visit: &mut VisitLive<'_>,
    ) -> Result<()> {
        let range = range.intersect(&self.kept_span());
        for partition in self.partitions_in(&range) {
            limits.check_deadline()?;
            let state = partition.read();
            let live = Live::new(&state, &range)?;
            if !live.is_empty() {
                visit(&partition, &state, &mut live_groups(&live, &state.index, sets)?)?;
            }
        }
        Ok(())
    }
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

/// The live part of what matches; of several sets in the order of the blocks.
fn live_groups(
    live: &Live<'_>,
    index: &Index,
    sets: &[CompiledMatchers],
) -> Result<Vec<BlockMatch>> {
    let listed = live.listed()?;
    let mut groups = Vec::new();
    for set in sets {
        let found = index.search_among(set, listed.as_ref())?;
        groups.reserve(found.len());
        found.into_iter().for_each(|group| live.push(group, &mut groups));
    }
    if 1 < sets.len() {
        index::sort_by_entity(&mut groups);
    }
    Ok(groups)
}
