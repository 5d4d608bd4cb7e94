//! What a partition has of the selected series, frozen, and what reading it costs.

use super::limits::{SERIES_COST, SelectLimits};
use crate::Result;
use crate::histograms::hidden::search_histograms;
use crate::missing::Watch;
use crate::partition::{Partition, PartitionState};
use crate::view::PartitionView;
use index::CompiledMatchers;
use model::TimeRange;
use std::sync::Arc;

/// How often taken rows are sealed without keeping writers out.
const SEAL_TRIES: usize = 3;
/// What sealing costs: always too much for who has a limit.
const SEAL_COST: u64 = 1 << 40;

/// What a partition has of the selected series.
pub(crate) struct Views {
    pub view: PartitionView,
    /// Of the hidden series that belong to them.
    pub hidden: Option<PartitionView>,
    /// Whether these are all hidden series that there are, as far as is known.
    pub is_whole: bool,
}

/// What a partition has of the selected series, and of the hidden ones that belong to them, frozen
/// at the same moment.
pub(crate) fn views_of(
    partition: &Arc<Partition>,
    sets: &[CompiledMatchers],
    range: &TimeRange,
    limits: &SelectLimits,
    watch: &Watch,
) -> Result<Views> {
    // Singles of taken rows have no chain heads any more; they are rare, so they are sealed first.
    // Writers may take others before the lock is there again, so it is looked once more.
    for _ in 0..SEAL_TRIES {
        let state = partition.read();
        if !has_taken_singles(&state) {
            return views_in(partition, &state, sets, range, watch);
        }
        drop(state);
        limits.check_cost(SEAL_COST)?;
        partition.seal_taken()?;
    }
    // They are faster: nobody writes while these are sealed and looked at.
    let state = partition.write_sealed()?;
    views_in(partition, &state, sets, range, watch)
}

fn has_taken_singles(state: &PartitionState) -> bool {
    state.head.taken().iter().any(|taken| !taken.view.singles().is_empty())
}

fn views_in(
    partition: &Arc<Partition>,
    state: &PartitionState,
    sets: &[CompiledMatchers],
    range: &TimeRange,
    watch: &Watch,
) -> Result<Views> {
    let mut is_whole = true;
    let mut on_rot = |segment: &index::Segment, error| {
        is_whole = false;
        watch.leave_out_segment(partition, segment, error)
    };
    let mut matches = Vec::new();
    for set in sets {
        matches.extend(state.series.index.search_noting(set, &mut on_rot)?);
    }
    let view = PartitionView::new(partition, state, matches, range, None);
    let hidden = search_histograms(state, sets, &mut on_rot)?;
    if view.groups.is_empty() || hidden.is_empty() {
        return Ok(Views { view, hidden: None, is_whole });
    }
    let hidden = PartitionView::new(partition, state, hidden, range, Some(&view));
    let has_any = !hidden.groups.is_empty();
    Ok(Views { view, hidden: has_any.then_some(hidden), is_whole })
}

/// What it costs to read a view of hidden series, in samples.
pub(crate) fn cost_of_hidden(view: &PartitionView, range: &TimeRange) -> u64 {
    let entities = view.groups.iter().map(|group| group.slots.len() as u64).sum::<u64>();
    SERIES_COST.saturating_mul(entities).saturating_add(samples_of(view, range))
}

/// How many samples a view's parts have of its series, about.
pub(crate) fn samples_of(view: &PartitionView, range: &TimeRange) -> u64 {
    let mut samples = 0u64;
    for group in &view.groups {
        let mut series_samples = 0;
        for source in &view.sources {
            let part = &source.part.part;
            for slice in part.slices_of(group.block.series_start) {
                if range.overlaps(&TimeRange::new(slice.min_ts, slice.max_ts)) {
                    let cells = u64::from(slice.slots) * u64::from(slice.columns);
                    series_samples += 1 + slice.samples / cells.max(1);
                }
            }
        }
        samples = samples.saturating_add(series_samples.saturating_mul(group.series_count()));
    }
    samples
}
