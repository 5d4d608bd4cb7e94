//! The hidden series that belong to a selection, frozen with it.
//!
//! ```text
//! matchers ── those on __name__ moved to LABEL ──► per partition: index.search ──► PartitionView
//! plain series ── fingerprint of its labels ──► places (piece, view, group, slot)
//! ```

use super::names::{LABEL, Piece, RUN_LABEL, START_COLUMNS};
use crate::locks::lock;
use crate::missing::Watch;
use crate::partition::PartitionState;
use crate::select::limits::SelectLimits;
use crate::view::PartitionView;
use crate::{Error, Result};
use index::{BlockMatch, CompiledMatchers, OnRot};
use model::{Labels, LabelsBuilder, METRIC_NAME, TimeRange};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

/// The hidden series of what these matchers select: those of histograms and start timestamps.
///
/// Empty when they select none.
pub fn matchers_of_hidden(sets: &[CompiledMatchers]) -> Vec<CompiledMatchers> {
    let moved = |set: &CompiledMatchers| set.moved(METRIC_NAME, LABEL, &[LABEL, RUN_LABEL]);
    sets.iter().filter_map(moved).collect()
}

/// The blocks of the hidden series of what these matchers select; nothing is looked at while
/// there is no hidden series.
///
/// # Errors
/// As [`index::Index::search_noting`].
pub fn search_hidden(
    state: &PartitionState,
    sets: &[CompiledMatchers],
    on_rot: &mut OnRot<'_>,
) -> Result<Vec<BlockMatch>> {
    let mut matches = Vec::new();
    if state.series.index.knows_tag_noting(LABEL, on_rot)? {
        for set in matchers_of_hidden(sets) {
            matches.extend(state.series.index.search_noting(&set, on_rot)?);
        }
    }
    Ok(matches)
}

/// As [`search_hidden`] without the blocks of start timestamps, which are no part of histograms.
///
/// # Errors
/// As [`search_hidden`].
pub fn search_histograms(
    state: &PartitionState,
    sets: &[CompiledMatchers],
    on_rot: &mut OnRot<'_>,
) -> Result<Vec<BlockMatch>> {
    let mut matches = search_hidden(state, sets, on_rot)?;
    matches.retain(|found| found.block.columns as usize != START_COLUMNS.len());
    Ok(matches)
}

/// Where a hidden entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HiddenPlace {
    /// Of the labels of the series that it belongs to.
    fingerprint: u128,
    /// What it holds.
    pub piece: Piece,
    /// Index into [`Hidden::views`], which are by time.
    pub view: u16,
    /// Index into the view's groups.
    pub group: u32,
    /// The slot in the group's block.
    pub slot: u16,
}

/// The hidden series of a selection.
pub struct Hidden {
    /// One for each partition that has any, oldest first.
    pub views: Vec<PartitionView>,
    /// Sorted; listed when somebody first asks.
    places: OnceLock<Vec<HiddenPlace>>,
    /// Held while they are listed, so that this is done once.
    listing: Mutex<()>,
    /// Whether some of them are rotten: a marker without a histogram is then no float.
    is_rotten: AtomicBool,
    /// Partitions in which some could not be looked for: nobody knows of which histograms they are.
    lost: Vec<TimeRange>,
}

impl Hidden {
    /// Those in these views, which are all but in the `lost` partitions; `None` when there is none.
    pub fn new(views: Vec<PartitionView>, lost: Vec<TimeRange>) -> Option<Hidden> {
        assert!(views.len() <= usize::from(u16::MAX), "partitions have a limit");
        let (places, listing) = (OnceLock::new(), Mutex::new(()));
        let is_rotten = AtomicBool::new(!lost.is_empty());
        let hidden = Hidden { views, places, listing, is_rotten, lost };
        (!hidden.lost.is_empty() || !hidden.views.is_empty()).then_some(hidden)
    }

    /// The partitions in which some may be missing: what is left of their histograms is not told.
    pub fn lost(&self) -> &[TimeRange] {
        &self.lost
    }

    /// Whether some of them are rotten.
    pub fn is_rotten(&self) -> bool {
        self.is_rotten.load(Ordering::Relaxed)
    }

    /// Notes that some of them are rotten.
    pub fn set_rotten(&self) {
        self.is_rotten.store(true, Ordering::Relaxed);
    }

    /// All places, by series.
    ///
    /// # Errors
    /// When the index turns out to be corrupt, or one of the series is gone from it, or the deadline
    /// passed.
    pub fn places(&self, limits: &SelectLimits, watch: &Watch) -> Result<&[HiddenPlace]> {
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let _one = lock(&self.listing);
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let places = self.list(limits, watch)?;
        Ok(self.places.get_or_init(|| places))
    }

    /// The places of one series, as indexes into [`Hidden::places`].
    pub fn range_of(places: &[HiddenPlace], fingerprint: u128) -> Range<usize> {
        let start = places.partition_point(|place| place.fingerprint < fingerprint);
        let count = places[start..].partition_point(|place| place.fingerprint == fingerprint);
        start..start + count
    }

    fn list(&self, limits: &SelectLimits, watch: &Watch) -> Result<Vec<HiddenPlace>> {
        let mut places = Vec::new();
        let mut labels = LabelsBuilder::new();
        for (view, view_idx) in self.views.iter().zip(0u16..) {
            let state = view.partition.read();
            let mut reader = state.series.index.label_reader();
            for (found, group) in view.groups.iter().zip(0u32..) {
                limits.check_deadline()?;
                for slot in &found.slots {
                    labels.clear();
                    let read = reader.match_labels(found, 0, slot, &mut labels);
                    read.map_err(|error| watch.found_rot(&view.partition, error))?;
                    let run = labels.get(RUN_LABEL).unwrap_or_default();
                    let piece = Piece::parse(run)
                        .filter(|piece| piece.columns().len() == found.block.columns as usize);
                    let piece = piece.ok_or_else(|| view_corrupt(view, "labels of a histogram"))?;
                    let fingerprint = plain_labels(&mut labels).fingerprint();
                    places.push(HiddenPlace { fingerprint, piece, view: view_idx, group, slot });
                }
            }
        }
        places.sort_unstable();
        // Several matcher sets may have found an entity twice.
        places.dedup_by_key(|place| (place.fingerprint, place.piece, place.view));
        Ok(places)
    }
}

/// What is in a partition is not what was written.
pub fn view_corrupt(view: &PartitionView, what: &str) -> Error {
    Error::Corrupt { file: view.partition.dir.clone(), offset: 0, what: what.into() }
}

/// The labels of the series that a hidden one with these labels belongs to.
pub fn plain_labels(hidden: &mut LabelsBuilder) -> Labels {
    let metric = hidden.get(LABEL).unwrap_or_default().to_string();
    hidden.remove(LABEL);
    hidden.remove(RUN_LABEL);
    hidden.set(METRIC_NAME, &metric);
    hidden.finish()
}
