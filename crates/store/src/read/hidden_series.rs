//! The hidden series that belong to a selection, frozen with it.
//!
//! ```text
//! matchers ── those on __name__ moved to LABEL ──► per partition: index.search ──► PartitionView
//! plain series ── fingerprint of its labels ──► places (piece, view, group, slot)
//! ```

use crate::base::locks::lock;
use crate::base::select_limits::SelectLimits;
use crate::partition::histograms::names::{LABEL, Piece, RUN_LABEL, START_COLUMNS, plain_labels};
use crate::read::missing::Watch;
use crate::read::view::PartitionView;
use crate::{Error, Result};
use index::{BlockMatch, CompiledMatchers};
use model::{LabelsBuilder, METRIC_NAME, TimeRange};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

/// Matched blocks whose labels are read under one lock: some milliseconds.
const GROUPS_PER_LOCK: usize = 64;

/// The hidden series of what these matchers select: those of histograms and start timestamps.
///
/// Empty when they select none.
pub fn matchers_of_hidden(sets: &[CompiledMatchers]) -> Vec<CompiledMatchers> {
    let moved = |set: &CompiledMatchers| set.moved(METRIC_NAME, LABEL, &[LABEL, RUN_LABEL]);
    sets.iter().filter_map(moved).collect()
}

/// Removes the blocks of start timestamps, which are no part of histograms.
pub fn without_starts(matches: &mut Vec<BlockMatch>) {
    matches.retain(|found| found.block.columns as usize != START_COLUMNS.len());
}

/// Bytes of a matched block with the newest rows of its entities, about.
const HIDDEN_GROUP_SIZE: usize = 1024;

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

    /// Bytes of memory held, about.
    pub fn memory_size(&self) -> usize {
        // Their rows are those of the views that they belong to.
        let groups: usize = self.views.iter().map(|view| view.groups.len()).sum();
        let places = self.places.get().map_or(0, Vec::len);
        HIDDEN_GROUP_SIZE * groups + size_of::<HiddenPlace>() * places
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
            for (some, first) in
                view.groups.chunks(GROUPS_PER_LOCK).zip((0u32..).step_by(GROUPS_PER_LOCK))
            {
                limits.check_interrupt()?;
                let state = view.partition.read();
                let mut reader = state.series.index.label_reader();
                for (found, group) in some.iter().zip(first..) {
                    for slot in &found.slots {
                        labels.clear();
                        let read = reader.match_labels(found, 0, slot, &mut labels);
                        read.map_err(|error| watch.found_rot(&view.partition, error))?;
                        let (piece, fingerprint) = identify(&mut labels, found)
                            .ok_or_else(|| view_corrupt(view, "labels of a histogram"))?;
                        places.push(HiddenPlace {
                            fingerprint,
                            piece,
                            view: view_idx,
                            group,
                            slot,
                        });
                    }
                }
            }
        }
        places.sort_unstable();
        // Several matcher sets may have found an entity twice.
        places.dedup_by_key(|place| (place.fingerprint, place.piece, place.view));
        Ok(places)
    }
}

/// Which piece of which series a hidden entity is, by its labels.
fn identify(labels: &mut LabelsBuilder, found: &BlockMatch) -> Option<(Piece, u128)> {
    let piece = Piece::parse(labels.get(RUN_LABEL).unwrap_or_default())?;
    let is_its = piece.columns().len() == found.block.columns as usize;
    is_its.then(|| (piece, plain_labels(labels).fingerprint()))
}

/// What is in a partition is not what was written.
pub fn view_corrupt(view: &PartitionView, what: &str) -> Error {
    Error::Corrupt { file: view.partition.dir.clone(), offset: 0, what: what.into() }
}
