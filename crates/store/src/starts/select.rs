//! The start timestamps of the series that matchers select, as a selection of their own.

use crate::histograms::append::plain_labels;
use crate::histograms::hidden::matchers_of_hidden;
use crate::histograms::names::{RUN_LABEL, START_RUN};
use crate::missing::{Noting, Watch};
use crate::select::compile;
use crate::{Result, SelectLimits, Selection, Store};
use model::{Labels, Matcher, TimeRange};

impl Store {
    /// The start timestamps of the series that match any of `sets` and may have samples in `range`:
    /// a selection whose values are milliseconds since the epoch, at the times of the samples that
    /// have one. [`series_of_starts`] tells whose they are.
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn select_starts(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Selection> {
        self.select_starts_watched(sets, range, limits, self.watch(None))
    }

    fn select_starts_watched(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
        watch: Watch,
    ) -> Result<Selection> {
        let moved = matchers_of_hidden(&compile(sets)?);
        let starts = moved.into_iter().map(|set| set.and_is(RUN_LABEL, START_RUN)).collect();
        self.select_compiled(starts, range, limits, watch)
    }
}

impl Noting<'_> {
    /// As [`Store::select_starts`]; what reading the selection later leaves out is noted, too.
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn select_starts(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Selection> {
        self.store().select_starts_watched(sets, range, limits, self.watch())
    }
}

/// The labels of the series that start timestamps of these labels belong to.
pub fn series_of_starts(labels: &Labels) -> Labels {
    plain_labels(&mut labels.to_builder())
}
