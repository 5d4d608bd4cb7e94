//! What a partition has of the selected series, frozen, and what reading it costs.

use crate::Result;
use crate::base::select_limits::{SERIES_COST, SelectLimits};
use crate::partition::histograms::names::LABEL;
use crate::partition::{Partition, PartitionState};
use crate::read::hidden_series::{matchers_of_hidden, without_starts};
use crate::read::missing::Watch;
use crate::read::view::PartitionView;
use index::{CompiledMatchers, Completeness, OnRot, Search, Step};
use model::TimeRange;
use std::cell::OnceCell;
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
/// at the same moment. Writers are kept out for short steps only.
pub(crate) fn views_of(
    partition: &Arc<Partition>,
    sets: &[CompiledMatchers],
    range: &TimeRange,
    limits: &SelectLimits,
    watch: &Watch,
) -> Result<Views> {
    let mut is_whole = true;
    let mut on_rot = |segment: &index::Segment, error| {
        is_whole = false;
        watch.leave_out_segment(partition, segment, error)
    };
    let hidden_sets = OnceCell::new();
    let mut search = ViewSearch::new(sets, &hidden_sets);
    let mut seals = 0;
    let mut views = loop {
        let state = partition.read();
        if search.step(&state, &mut on_rot)? == Step::Run {
            drop(state);
            search.run(&mut on_rot)?;
            continue;
        }
        if !has_taken_singles(&state) {
            break search.freeze(partition, &state, range);
        }
        // Singles of taken rows have no chain heads any more; they are rare, so they are sealed
        // first. Writers may take others before the lock is there again, so it is looked once more.
        drop(state);
        limits.check_cost(SEAL_COST)?;
        if seals < SEAL_TRIES {
            seals += 1;
            partition.seal_taken()?;
            continue;
        }
        // They are faster: nobody writes while these are sealed and looked at.
        let state = partition.write_sealed()?;
        if search.step(&state, &mut on_rot)? == Step::Done {
            break search.freeze(partition, &state, range);
        }
        drop(state);
        search.run(&mut on_rot)?;
    };
    views.is_whole = is_whole;
    Ok(views)
}

fn has_taken_singles(state: &PartitionState) -> bool {
    state.head.taken().iter().any(|taken| !taken.view.singles().is_empty())
}

/// The search for the series of a view and the hidden ones that belong to them.
struct ViewSearch<'s> {
    sets: &'s [CompiledMatchers],
    plain: Search<'s>,
    hidden_sets: &'s OnceCell<Vec<CompiledMatchers>>,
    /// Every marker of a view needs its hidden series, so these are complete when it is frozen.
    hidden: Option<Search<'s>>,
    /// Whether there are hidden series.
    needs_hidden: bool,
}

impl<'s> ViewSearch<'s> {
    fn new(
        sets: &'s [CompiledMatchers],
        hidden_sets: &'s OnceCell<Vec<CompiledMatchers>>,
    ) -> ViewSearch<'s> {
        let plain = Search::new(sets, Completeness::AtStart);
        ViewSearch { sets, plain, hidden_sets, hidden: None, needs_hidden: false }
    }

    /// A step under the partition's lock. What is found is complete while the lock is held.
    fn step(&mut self, state: &PartitionState, on_rot: &mut OnRot<'_>) -> Result<Step> {
        let index = &state.series.index;
        if self.plain.step(index, on_rot)? == Step::Run {
            return Ok(Step::Run);
        }
        match &mut self.hidden {
            Some(hidden) => Ok(hidden.step(index, on_rot)?),
            None => {
                self.needs_hidden = index.knows_tag_noting(LABEL, on_rot)?;
                Ok(if self.needs_hidden { Step::Run } else { Step::Done })
            }
        }
    }

    /// The work between two steps, without the lock.
    fn run(&mut self, on_rot: &mut OnRot<'_>) -> Result<()> {
        self.plain.run(on_rot)?;
        if self.needs_hidden && self.hidden.is_none() {
            let sets = self.hidden_sets.get_or_init(|| matchers_of_hidden(self.sets));
            self.hidden = Some(Search::new(sets, Completeness::AtEnd));
        }
        self.hidden.as_mut().map_or(Ok(()), |hidden| hidden.run(on_rot))?;
        Ok(())
    }

    /// Freezes what was found, under the lock of the last step.
    fn freeze(
        &mut self,
        partition: &Arc<Partition>,
        state: &PartitionState,
        range: &TimeRange,
    ) -> Views {
        let view = PartitionView::new(partition, state, self.plain.take(), range, None);
        let mut hidden = self.hidden.as_mut().map(Search::take).unwrap_or_default();
        without_starts(&mut hidden);
        if view.groups.is_empty() || hidden.is_empty() {
            return Views { view, hidden: None, is_whole: true };
        }
        let hidden = PartitionView::new(partition, state, hidden, range, Some(&view));
        let has_any = !hidden.groups.is_empty();
        Views { view, hidden: has_any.then_some(hidden), is_whole: true }
    }
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
