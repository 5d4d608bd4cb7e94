//! The way out: whatever is read from the store begins here.
//!
//! - A question sees what the retention keeps at the moment it is asked, and no more.
//! - What nobody can read of its time is told before anything is read: an answer lacks nothing
//!   without saying so.
//! - Nothing is changed but what is remembered of parts, which bounds its memory itself.

use crate::base::ground::Ground;
use crate::log::exemplars::{ExemplarQueue, ExemplarSeries};
use crate::part::page_headers::PageHeaders;
use crate::partition::Partition;
use crate::partition::changes::ChangeClock;
use crate::partition::partitions::Partitions;
use crate::partition::retention::Retention;
use crate::partition::shared::Shared;
use crate::read::elsewhere::asking::{Concerned, Others};
use crate::read::missing::{Missing, Watch};
use crate::{Result, SelectLimits, Selection};
use index::CompiledMatchers;
use model::TimeRange;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// What answers questions.
pub(crate) struct Reader {
    pub ground: Arc<Ground>,
    pub partitions: Arc<Partitions>,
    retention: Arc<Retention>,
    exemplars: Arc<ExemplarQueue>,
    /// What readers have missed.
    pub changes: Arc<ChangeClock>,
    /// What queries have parsed of parts.
    pub page_headers: Arc<PageHeaders>,
    /// Other databases that are asked too.
    pub others: Others,
    /// What the names of metrics end with that are found by name alone.
    hidden_endings: RwLock<Arc<[String]>>,
}

impl Reader {
    pub fn new(shared: &Shared) -> Reader {
        Reader {
            ground: shared.ground.clone(),
            partitions: shared.partitions.clone(),
            retention: shared.retention.clone(),
            exemplars: shared.exemplars.clone(),
            changes: shared.changes.clone(),
            page_headers: Arc::default(),
            others: Others::default(),
            hidden_endings: RwLock::default(),
        }
    }

    /// Metrics whose names end so are hidden from now on.
    pub fn hide_names(&self, ending: &str) {
        if self.hidden_endings().iter().any(|known| known == ending) {
            return;
        }
        let mut known = self.hidden_endings.write().unwrap_or_else(PoisonError::into_inner);
        let more = known.iter().cloned().chain([ending.to_string()]);
        let more: BTreeSet<String> = more.collect();
        *known = more.into_iter().collect();
    }

    /// What the names of metrics end with that are found by name alone.
    pub fn hidden_endings(&self) -> Arc<[String]> {
        self.hidden_endings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a question does about rot.
    pub fn watch(&self, missing: Option<&Arc<Missing>>) -> Watch {
        Watch::new(&self.ground, missing)
    }

    /// What of a range may be seen, and the partitions that have it, oldest first. What of it is
    /// lost is told.
    pub fn visible(
        &self,
        range: &TimeRange,
        watch: &Watch,
    ) -> Result<(TimeRange, Vec<Arc<Partition>>)> {
        let range = range.intersect(&self.retention.kept_span());
        watch.note_lost(&self.partitions.lost_in(&range))?;
        Ok((range, self.partitions.overlapping(&range)))
    }

    /// Other databases that may have something of a range.
    ///
    /// # Errors
    /// As [`Others::concerned`].
    pub fn concerned<'a>(
        &'a self,
        range: TimeRange,
        limits: &'a SelectLimits,
        missing: Option<&'a Arc<Missing>>,
    ) -> Result<Option<Concerned<'a>>> {
        if !self.others.is_any() {
            return Ok(None);
        }
        self.others.concerned((range, self.retention.kept_span().start), limits, missing)
    }

    /// The series that match any of `sets` and may have samples in `range`.
    pub fn select(
        &self,
        sets: Vec<CompiledMatchers>,
        range: TimeRange,
        limits: &SelectLimits,
        watch: Watch,
    ) -> Result<Selection> {
        let (range, partitions) = self.visible(&range, &watch)?;
        Selection::new(&partitions, sets, range, limits, &self.page_headers, watch)
    }

    /// The exemplars in `range` of the series that match any of `sets`, by labels.
    pub fn exemplars(
        &self,
        sets: &[CompiledMatchers],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<ExemplarSeries>> {
        let range = range.intersect(&self.retention.kept_span());
        self.exemplars.select(sets, &range, limits)
    }

    /// The times in `range` whose samples may read differently than to a selection that was made
    /// after `version` was taken. By and large in order; they may overlap.
    pub fn changed_since(&self, version: u64, range: &TimeRange) -> Vec<TimeRange> {
        // Notes how far the retention has come.
        let _ = self.retention.kept_span();
        let mut out = Vec::new();
        let hidden_before = self.changes.hidden_before();
        if range.start < hidden_before {
            out.push(TimeRange::new(range.start, range.end.min(hidden_before - 1)));
        }
        // What others have may change at any time, and nobody tells.
        let until = self.others.unsettled(version);
        if range.start < until {
            out.push(TimeRange::new(range.start, range.end.min(until - 1)));
        }
        for partition in self.partitions.overlapping(range) {
            partition.read().changed.since(version, range, &mut out);
        }
        out
    }

    /// Whether selections within `range` list the series they share in the same order, whatever
    /// part of the range each is for. Across partitions that is not so: series stand where they are
    /// first met. Nor is it where others are asked, which brings an order of its own.
    pub fn keeps_order(&self, range: &TimeRange) -> bool {
        let kept = self.retention.kept_span();
        if range.start < self.others.until(kept.start) {
            return false;
        }
        self.partitions.overlapping(&range.intersect(&kept)).len() <= 1
    }
}
