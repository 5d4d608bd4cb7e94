//! Remote databases as the store asks them.

use super::backend::Backend;
use super::{catalogue, folding, samples};
use model::{Labels, TimeRange, Timestamp};
use std::time::{Duration, Instant};
use store::{Answer, Asked, Elsewhere, Fault, Fold, FoldedRow, FoundSeries};

/// How long the look at start may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that the look at start asks for.
const LOOK_BACK: i64 = 30 * model::sample::NANOS_PER_DAY;

impl Backend {
    /// Whether it has anything of the last time before `until`.
    ///
    /// # Errors
    /// Why it does not answer.
    pub fn look(&self) -> Result<bool, String> {
        let end = self.until_now().saturating_sub(1);
        let range = TimeRange::new(end.saturating_sub(LOOK_BACK), end);
        let found =
            self.with(Instant::now() + LOOK_TIMEOUT, |request| catalogue::has_any(request, &range));
        found.map_err(|fault| match fault {
            Fault::Away(reason) => reason,
            other => format!("{other:?}"),
        })
    }
}

impl Elsewhere for Backend {
    fn name(&self) -> &str {
        Backend::name(self)
    }

    fn until(&self) -> Timestamp {
        self.until_now()
    }

    fn until_at_first(&self) -> Timestamp {
        self.rule().until
    }

    fn select(&self, asked: &Asked<'_>) -> Answer<Vec<FoundSeries>> {
        self.answer(asked, |request| samples::select(request, asked))
    }

    fn series(&self, asked: &Asked<'_>) -> Answer<Vec<Labels>> {
        self.answer(asked, |request| catalogue::series(request, asked))
    }

    fn label_names(&self, asked: &Asked<'_>) -> Answer<Vec<String>> {
        self.answer(asked, |request| catalogue::label_names(request, asked))
    }

    fn label_values(&self, name: &str, asked: &Asked<'_>) -> Answer<Vec<String>> {
        self.answer(asked, |request| catalogue::label_values(request, name, asked))
    }

    fn fold(&self, fold: &Fold<'_>, asked: &Asked<'_>) -> Answer<Option<Vec<FoldedRow>>> {
        if !self.now().is_some_and(|now| folding::can(self.rule(), fold, now)) {
            return Ok(None);
        }
        self.answer(asked, |request| folding::fold(request, fold, asked))
    }
}
