//! The store as a source.

use crate::error::Limit;
use crate::source::{
    ChangeClock, LabelSink, MixedSink, SampleSink, SelectLimits, SeriesSet, Source, SourceError,
};
use model::{Labels, Matcher, TimeRange};
use std::ops::Range;
use std::sync::Arc;

impl Source for store::Store {
    fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Box<dyn SeriesSet + '_>, SourceError> {
        let bounds = bounds_of(limits);
        let selection = questions(self, limits).select(sets, range, &bounds);
        Ok(Box::new(selection.map_err(translate)?))
    }

    fn select_starts(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Option<Box<dyn SeriesSet + '_>>, SourceError> {
        let bounds = bounds_of(limits);
        let selection = questions(self, limits).select_starts(sets, range, &bounds);
        let selection = selection.map_err(translate)?;
        Ok((!selection.is_empty()).then(|| Box::new(StartSet(selection)) as Box<dyn SeriesSet>))
    }

    fn fold(
        &self,
        sets: &[Vec<Matcher>],
        fold: &store::Fold<'_>,
        limits: &SelectLimits,
    ) -> Result<Option<store::Folded>, SourceError> {
        questions(self, limits).fold(sets, fold, &bounds_of(limits)).map_err(translate)
    }

    fn changes(&self) -> Option<&dyn ChangeClock> {
        Some(self)
    }
}

/// The store as the one who evaluates wants it.
fn questions<'a>(store: &'a store::Store, limits: &'a SelectLimits) -> store::Questions<'a> {
    let questions = match &limits.missing {
        Some(missing) => store.noting(missing),
        None => store.strict(),
    };
    questions.asking(limits.asks).confined_to(&limits.filters)
}

impl ChangeClock for store::Store {
    fn take_version(&self) -> u64 {
        store::Store::take_version(self)
    }

    fn changed_since(&self, version: u64, range: &TimeRange) -> Vec<TimeRange> {
        store::Store::changed_since(self, version, range)
    }

    fn keeps_order(&self, range: &TimeRange) -> bool {
        store::Store::keeps_order(self, range)
    }
}

impl SeriesSet for store::Selection {
    fn len(&self) -> usize {
        store::Selection::len(self)
    }

    fn batch_len(&self) -> usize {
        store::Selection::batch_len(self)
    }

    fn labels(&self, idx: usize) -> Result<Labels, SourceError> {
        store::Selection::labels(self, idx).map_err(translate)
    }

    fn read_labels(
        &self,
        range: Range<usize>,
        wanted: Option<&[&str]>,
        sink: &mut LabelSink<'_>,
    ) -> Result<(), SourceError> {
        store::Selection::read_labels(self, range, wanted, sink).map_err(translate)
    }

    fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<(), SourceError> {
        store::Selection::read(self, range, sink).map_err(translate)
    }

    fn has_histograms(&self) -> bool {
        store::Selection::has_histograms(self)
    }

    fn read_mixed(&self, range: Range<usize>, sink: &mut MixedSink<'_>) -> Result<(), SourceError> {
        store::Selection::read_mixed(self, range, sink).map_err(translate)
    }
}

/// Start timestamps under the labels of the series that they belong to.
struct StartSet(store::Selection);

impl SeriesSet for StartSet {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn batch_len(&self) -> usize {
        self.0.batch_len()
    }

    fn labels(&self, idx: usize) -> Result<Labels, SourceError> {
        let labels = self.0.labels(idx).map_err(translate)?;
        Ok(store::series_of_starts(&labels))
    }

    fn read_labels(
        &self,
        range: Range<usize>,
        _wanted: Option<&[&str]>,
        sink: &mut LabelSink<'_>,
    ) -> Result<(), SourceError> {
        let mut of_series = |idx, labels: Labels| sink(idx, store::series_of_starts(&labels));
        self.0.read_labels(range, None, &mut of_series).map_err(translate)
    }

    fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<(), SourceError> {
        self.0.read(range, sink).map_err(translate)
    }
}

fn bounds_of(limits: &SelectLimits) -> store::SelectLimits {
    store::SelectLimits {
        series_max: limits.series_max,
        deadline: limits.deadline,
        cancelled: limits.cancelled.clone().map(|flag| flag as Arc<dyn store::CancelFlag>),
        cost_max: limits.cost_max,
    }
}

fn translate(error: store::Error) -> SourceError {
    match error {
        store::Error::DeadlineExceeded => SourceError::DeadlineExceeded,
        store::Error::Cancelled => SourceError::Cancelled,
        store::Error::LimitExceeded { limit, .. } => {
            let limit = match limit {
                store::Limit::Series => Limit::Series,
                store::Limit::SelectionCost => Limit::Cost,
                store::Limit::ListSize => Limit::QueryMemory,
                store::Limit::ElsewhereSamples => Limit::ElsewhereSamples,
                store::Limit::ElsewhereSize => Limit::ElsewhereSize,
                store::Limit::Partitions | store::Limit::RequestPartitions => {
                    return SourceError::Failed(error.to_string());
                }
            };
            SourceError::LimitExceeded { limit, message: error.to_string() }
        }
        store::Error::SeriesDropped => SourceError::Changed,
        store::Error::Invalid(message) => SourceError::Invalid(message),
        other => SourceError::Failed(other.to_string()),
    }
}
