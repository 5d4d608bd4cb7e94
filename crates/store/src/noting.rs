//! The store for who takes answers that are not whole, as long as what is missing is told.

use crate::damage::Damage;
use crate::exemplars::{self, ExemplarSeries};
use crate::missing::{Missing, Watch};
use crate::reader::Reader;
use crate::stats::{Cardinality, CardinalityRequest};
use crate::{Result, SelectLimits, Selection, cardinality, catalog};
use model::{Labels, Matcher, TimeRange};
use std::sync::Arc;

/// The store for who wants what there is and to be told what is missing. Its methods are those of
/// [`crate::Store`].
#[derive(Clone, Copy)]
pub struct Noting<'a> {
    reader: &'a Reader,
    missing: &'a Arc<Missing>,
}

impl<'a> Noting<'a> {
    pub(crate) fn new(reader: &'a Reader, missing: &'a Arc<Missing>) -> Noting<'a> {
        Noting { reader, missing }
    }

    fn watch(&self) -> Watch {
        self.reader.watch(Some(self.missing))
    }

    /// As [`crate::Store::select`]; what reading the selection later leaves out is noted, too.
    ///
    /// # Errors
    /// As [`crate::Store::select`].
    pub fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Selection> {
        self.reader.select(sets, range, limits, self.watch())
    }

    /// As [`crate::Store::select_starts`]; what reading the selection later leaves out is noted, too.
    ///
    /// # Errors
    /// As [`crate::Store::select`].
    pub fn select_starts(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Selection> {
        self.reader.select_starts(sets, range, limits, self.watch())
    }

    /// As [`crate::Store::series`].
    ///
    /// # Errors
    /// As [`crate::Store::select`].
    pub fn series(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<Labels>> {
        catalog::series(self.reader, sets, range, limits, &self.watch())
    }

    /// As [`crate::Store::label_names`].
    ///
    /// # Errors
    /// As [`crate::Store::select`].
    pub fn label_names(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<String>> {
        catalog::label_names(self.reader, sets, range, limits, &self.watch())
    }

    /// As [`crate::Store::label_values`].
    ///
    /// # Errors
    /// As [`crate::Store::select`].
    pub fn label_values(
        &self,
        name: &str,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<String>> {
        catalog::label_values(self.reader, name, sets, range, limits, &self.watch())
    }

    /// As [`crate::Store::exemplars`]; a file of them that was lost is noted.
    ///
    /// # Errors
    /// As [`crate::Store::select`].
    pub fn exemplars(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<ExemplarSeries>> {
        let is_theirs = |damage: &Damage| damage.file == exemplars::FILE_NAME;
        let lost = self.reader.ground.damage.list();
        self.watch().note_lost(&lost.into_iter().filter(is_theirs).collect::<Vec<_>>())?;
        self.reader.exemplars(sets, range, limits)
    }

    /// As [`crate::Store::cardinality`].
    ///
    /// # Errors
    /// As [`crate::Store::select`].
    pub fn cardinality(&self, request: &CardinalityRequest) -> Result<Cardinality> {
        cardinality::cardinality(self.reader, request, &self.watch())
    }

    /// As [`crate::Store::unqueried`].
    ///
    /// # Errors
    /// As [`crate::Store::select`].
    pub fn unqueried(&self, request: &CardinalityRequest) -> Result<Cardinality> {
        cardinality::unqueried(self.reader, request, &self.watch())
    }
}
