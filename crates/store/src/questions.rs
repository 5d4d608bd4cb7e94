//! What is asked of a store, by those who want all or nothing, and by those who take answers that are
//! not whole as long as what is missing is told.

use crate::damage::Damage;
use crate::exemplars::{self, ExemplarSeries};
use crate::histograms::hidden::matchers_of_hidden;
use crate::histograms::names::{RUN_LABEL, START_RUN};
use crate::missing::{Missing, Watch};
use crate::reader::Reader;
use crate::select::matchers::compile;
use crate::stats::{Cardinality, CardinalityRequest};
use crate::{Result, SelectLimits, Selection, cardinality, catalog};
use model::{Labels, Matcher, TimeRange};
use std::sync::Arc;

/// A store for who asks: [`crate::Store::strict`] or [`crate::Store::noting`].
///
/// Where something is rotten or lost, the first one's answer is the error; the second one's is what
/// is left, and what is missing is noted, also when a selection is read later.
#[derive(Clone, Copy)]
pub struct Questions<'a> {
    reader: &'a Reader,
    missing: Option<&'a Arc<Missing>>,
}

impl<'a> Questions<'a> {
    pub(crate) fn new(reader: &'a Reader, missing: Option<&'a Arc<Missing>>) -> Questions<'a> {
        Questions { reader, missing }
    }

    fn watch(&self) -> Watch {
        self.reader.watch(self.missing)
    }

    /// The series that match any of `sets` (each a conjunction) and may have samples in `range`.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a regular expression that does not compile,
    /// [`crate::Error::LimitExceeded`], [`crate::Error::DeadlineExceeded`]; of who wants all or
    /// nothing [`crate::Error::Corrupt`] or [`crate::Error::Index`] where something is rotten.
    pub fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Selection> {
        self.reader.select(compile(sets)?, range, limits, self.watch())
    }

    /// The start timestamps of the series that match any of `sets` and may have samples in `range`:
    /// a selection whose values are milliseconds since the epoch, at the times of the samples that
    /// have one. [`crate::series_of_starts`] tells whose they are.
    ///
    /// # Errors
    /// As [`Questions::select`].
    pub fn select_starts(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Selection> {
        let hidden = matchers_of_hidden(&compile(sets)?);
        let starts = hidden.into_iter().map(|set| set.and_is(RUN_LABEL, START_RUN)).collect();
        self.reader.select(starts, range, limits, self.watch())
    }

    /// Label sets live in `range`, exact to the UTC day, sorted. No sets: all.
    ///
    /// # Errors
    /// As [`Questions::select`].
    pub fn series(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<Labels>> {
        catalog::series(self.reader, sets, range, limits, &self.watch())
    }

    /// Sorted label names, as [`Questions::series`].
    ///
    /// # Errors
    /// As [`Questions::select`].
    pub fn label_names(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<String>> {
        catalog::label_names(self.reader, sets, range, limits, &self.watch())
    }

    /// Sorted values of one label, as [`Questions::series`].
    ///
    /// # Errors
    /// As [`Questions::select`].
    pub fn label_values(
        &self,
        name: &str,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<String>> {
        catalog::label_values(self.reader, name, sets, range, limits, &self.watch())
    }

    /// The exemplars in `range` of the series that match any of `sets` (each a conjunction), by
    /// labels. They are in memory: nothing of them is rotten, but a file of them may be lost, which
    /// is noted and no error.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a regular expression that does not compile,
    /// [`crate::Error::LimitExceeded`], [`crate::Error::DeadlineExceeded`].
    pub fn exemplars(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<ExemplarSeries>> {
        if self.missing.is_some() {
            let is_theirs = |damage: &Damage| damage.file == exemplars::FILE_NAME;
            let lost = self.reader.ground.damage.list();
            self.watch().note_lost(&lost.into_iter().filter(is_theirs).collect::<Vec<_>>())?;
        }
        self.reader.exemplars(&compile(sets)?, range, limits)
    }

    /// Counts the series live on a day, by default the newest with data.
    ///
    /// # Errors
    /// As [`Questions::select`].
    pub fn cardinality(&self, request: &CardinalityRequest) -> Result<Cardinality> {
        cardinality::cardinality(self.reader, request, &self.watch())
    }

    /// The same of those among them whose samples nobody has asked for since start.
    ///
    /// # Errors
    /// As [`Questions::select`].
    pub fn unqueried(&self, request: &CardinalityRequest) -> Result<Cardinality> {
        cardinality::unqueried(self.reader, request, &self.watch())
    }
}
