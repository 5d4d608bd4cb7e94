//! What is asked of a store, by those who want all or nothing, and by those who take answers that are
//! not whole as long as what is missing is told.

use crate::base::damage::Damage;
use crate::base::file_names::EXEMPLARS_FILE;
use crate::log::exemplars::ExemplarSeries;
use crate::partition::histograms::names::{RUN_LABEL, START_RUN};
use crate::read::cardinality::{self, Cardinality, CardinalityRequest};
use crate::read::catalog;
use crate::read::catalog::ListBounds;
use crate::read::elsewhere::asking::Concerned;
use crate::read::elsewhere::fold::{Fold, Folded};
use crate::read::hidden_series::matchers_of_hidden;
use crate::read::missing::{Missing, Watch};
use crate::read::reader::Reader;
use crate::read::select::matchers::{compile, plain};
use crate::{Error, Result, SelectLimits, Selection};
use model::sample::NANOS_PER_MILLI;
use model::{Labels, METRIC_NAME, MatchOp, Matcher, TimeRange};
use std::borrow::Cow;
use std::sync::Arc;

/// A store for who asks: [`crate::Store::strict`] or [`crate::Store::noting`].
///
/// Where something is rotten or lost, the first one's answer is the error; the second one's is what
/// is left, and what is missing is noted, also when a selection is read later.
#[derive(Clone, Copy)]
pub struct Questions<'a> {
    reader: &'a Reader,
    missing: Option<&'a Arc<Missing>>,
    asks: Asks,
    shows: Shows,
    /// Every series of an answer matches one of these, too; none of them: all series.
    filters: &'a [Vec<Matcher>],
    /// Bytes of memory that a list of series, label names or values may take.
    list_size_max: u64,
}

/// Which metrics are found by who does not ask for them by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shows {
    /// Those that [`crate::Store::hide_names`] does not hide.
    #[default]
    Plain,
    /// All.
    All,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asks {
    /// The store, and other databases for what is before their `until`.
    #[default]
    All,
    /// The store alone.
    Own,
}

/// Takes the metrics with an ending out of sets that do not ask for them.
fn hide(sets: &mut Cow<'_, [Vec<Matcher>]>, ending: &str) {
    let is_told = |matcher: &Matcher| {
        let is_name = matcher.name == METRIC_NAME;
        is_name && (matcher.op == MatchOp::Equal || matcher.value.contains(ending))
    };
    let tells = |set: &Vec<Matcher>| set.iter().any(is_told);
    if !sets.is_empty() && sets.iter().all(tells) {
        return;
    }
    let hidden = Matcher::new(METRIC_NAME, MatchOp::NotRegex, format!(".*{ending}"));
    let sets = sets.to_mut();
    if sets.is_empty() {
        sets.push(Vec::new());
    }
    sets.iter_mut().filter(|set| !tells(set)).for_each(|set| set.push(hidden.clone()));
}

/// Selector sets that one selection may have once label filters are added.
const CONFINED_SETS_MAX: usize = 10_000;

/// Adds label filters to selector sets: a series matches the result if it matches one of `sets` (no
/// sets: all series) and one of `filters` (no filters: all series).
///
/// # Errors
/// [`crate::Error::Invalid`] for too many combinations.
pub fn confine<'s>(
    sets: &'s [Vec<Matcher>],
    filters: &[Vec<Matcher>],
) -> Result<Cow<'s, [Vec<Matcher>]>> {
    if filters.is_empty() {
        return Ok(Cow::Borrowed(sets));
    }
    if sets.is_empty() {
        return Ok(Cow::Owned(filters.to_vec()));
    }
    let count = sets.len().saturating_mul(filters.len());
    if CONFINED_SETS_MAX < count {
        return Err(Error::Invalid(format!(
            "{} selectors with {} label filters are {count} combinations, the limit is \
             {CONFINED_SETS_MAX}",
            sets.len(),
            filters.len(),
        )));
    }
    let confined =
        sets.iter().flat_map(|set| filters.iter().map(move |filter| [&set[..], filter].concat()));
    Ok(Cow::Owned(confined.collect()))
}

impl<'a> Questions<'a> {
    pub(crate) fn new(reader: &'a Reader, missing: Option<&'a Arc<Missing>>) -> Questions<'a> {
        Questions {
            reader,
            missing,
            asks: Asks::All,
            shows: Shows::Plain,
            filters: &[],
            list_size_max: u64::MAX,
        }
    }

    /// The same, where a list of series, label names or values takes so many bytes of memory at most.
    pub fn listing_at_most(self, list_size_max: u64) -> Questions<'a> {
        Questions { list_size_max, ..self }
    }

    /// The same of what this store has itself, whatever other databases have: for who must not wait
    /// for them, and for who changes what there is.
    pub fn own(self) -> Questions<'a> {
        Questions { asks: Asks::Own, ..self }
    }

    /// The same of some or of all.
    pub fn asking(self, asks: Asks) -> Questions<'a> {
        Questions { asks, ..self }
    }

    /// Whether other databases are asked.
    pub fn asks(&self) -> Asks {
        self.asks
    }

    /// The same of all metrics, hidden names among them.
    pub fn showing_all(self) -> Questions<'a> {
        Questions { shows: Shows::All, ..self }
    }

    /// Confines every answer to series that match one of `filters`, each a conjunction; none of them:
    /// all series.
    pub fn confined_to(self, filters: &'a [Vec<Matcher>]) -> Questions<'a> {
        Questions { filters, ..self }
    }

    /// The sets that are searched: those of the question without hidden metrics, with the filters.
    fn searched<'s>(&self, sets: &'s [Vec<Matcher>]) -> Result<Cow<'s, [Vec<Matcher>]>> {
        let shown = self.shown(sets);
        match self.filters.is_empty() {
            true => Ok(shown),
            false => Ok(Cow::Owned(confine(&shown, self.filters)?.into_owned())),
        }
    }

    /// The sets without the metrics that are hidden: those are found only where a matcher of the
    /// name has their ending in it.
    fn shown<'s>(&self, sets: &'s [Vec<Matcher>]) -> Cow<'s, [Vec<Matcher>]> {
        let mut shown = Cow::Borrowed(sets);
        if self.shows == Shows::Plain {
            for ending in self.reader.hidden_endings().iter() {
                hide(&mut shown, ending);
            }
        }
        shown
    }

    /// Other databases that a question concerns.
    fn others<'q>(
        &'q self,
        range: TimeRange,
        limits: &'q SelectLimits,
    ) -> Result<Option<Concerned<'q>>> {
        match self.asks {
            Asks::All => self.reader.concerned(range, limits, self.missing),
            Asks::Own => Ok(None),
        }
    }

    /// Bounds on one list.
    fn bounds<'l>(&self, limits: &'l SelectLimits) -> ListBounds<'l> {
        ListBounds { limits, size_max: self.list_size_max }
    }

    fn watch(&self) -> Watch {
        self.reader.watch(self.missing)
    }

    /// The series that match any of `sets` (each a conjunction) and may have samples in `range`.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a regular expression that does not compile,
    /// [`crate::Error::LimitExceeded`], [`crate::Error::DeadlineExceeded`]; of who wants all or
    /// nothing [`crate::Error::Corrupt`] or [`crate::Error::Index`] where something is rotten, and
    /// [`crate::Error::Away`] where another database does not answer.
    pub fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Selection> {
        let sets = &*self.searched(sets)?;
        let compiled = compile(sets, limits)?;
        let Some(others) = self.others(range, limits)? else {
            return self.reader.select(compiled, range, limits, self.watch());
        };
        let found = others.select(&plain(sets)?, &compiled)?;
        // What is copied meanwhile is here at the latest when it is not there any more.
        self.reader.select(compiled, range, limits, self.watch())?.joined_with(found)
    }

    /// What another database makes itself of the samples of the series that match any of `sets`: of
    /// the first steps, those that see nothing but what it has. `None` where no step is such a one, where
    /// others behind them see some of that, too, or it cannot; then, and for all further steps, samples
    /// are to be selected.
    ///
    /// # Errors
    /// As [`Questions::select`].
    pub fn fold(
        &self,
        sets: &[Vec<Matcher>],
        fold: &Fold<'_>,
        limits: &SelectLimits,
    ) -> Result<Option<Folded>> {
        if !self.filters.is_empty() {
            return Ok(None);
        }
        let sets = &*self.searched(sets)?;
        let Some(others) = self.others(fold.range(), limits)? else { return Ok(None) };
        let Some(end) = others.end_of_only() else { return Ok(None) };
        let steps = fold.steps_before(end);
        // Where samples have to come for the steps behind, they are the whole answer's: blocks come whole.
        let needs_samples = steps < fold.len && fold.from(steps).range().start < end;
        if steps == 0 || needs_samples || self.is_any_here(sets, &fold.first(steps), limits)? {
            return Ok(None);
        }
        let rows = others.fold(&plain(sets)?, &fold.first(steps))?;
        Ok(rows.map(|rows| Folded { steps, rows }))
    }

    /// Whether a sample is here that the windows see, or one that is theirs: what is here within a
    /// millisecond of theirs is the same sample.
    fn is_any_here(
        &self,
        sets: &[Vec<Matcher>],
        fold: &Fold<'_>,
        limits: &SelectLimits,
    ) -> Result<bool> {
        let TimeRange { start, end } = fold.range();
        let range = TimeRange::new(start, end.saturating_add(NANOS_PER_MILLI - 1));
        let own = self.reader.select(compile(sets, limits)?, range, limits, self.watch())?;
        let (mut is_any, mut from) = (false, 0);
        while from < own.len() && !is_any {
            let batch = from..own.len().min(from + own.batch_len());
            from = batch.end;
            own.read_mixed(batch, &mut |_, times, _, histogram_times, _| {
                is_any |= !times.is_empty() || !histogram_times.is_empty();
            })?;
        }
        Ok(is_any)
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
        let hidden = matchers_of_hidden(&compile(&confine(sets, self.filters)?, limits)?);
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
        let sets = &*self.searched(sets)?;
        // Before what is here is read: what is moved over later is still asked for.
        let others = self.others(range, limits)?;
        let mut all =
            catalog::series(self.reader, sets, range, &self.bounds(limits), &self.watch())?;
        if let Some(others) = others {
            others.series(&plain(sets)?, &compile(sets, limits)?, &mut all)?;
        }
        Ok(all)
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
        let sets = &*self.searched(sets)?;
        // Before what is here is read: what is moved over later is still asked for.
        let others = self.others(range, limits)?;
        let mut all =
            catalog::label_names(self.reader, sets, range, &self.bounds(limits), &self.watch())?;
        if let Some(others) = others {
            others.label_names(&plain(sets)?, &mut all)?;
        }
        Ok(all)
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
        let sets = &*self.searched(sets)?;
        // Before what is here is read: what is moved over later is still asked for.
        let others = self.others(range, limits)?;
        let mut all = catalog::label_values(
            self.reader,
            name,
            sets,
            range,
            &self.bounds(limits),
            &self.watch(),
        )?;
        if let Some(others) = others {
            others.label_values(name, &plain(sets)?, &mut all)?;
        }
        Ok(all)
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
            let is_theirs = |damage: &Damage| damage.file == EXEMPLARS_FILE;
            let lost = self.reader.ground.damage.list();
            self.watch().note_lost(&lost.into_iter().filter(is_theirs).collect::<Vec<_>>())?;
        }
        self.reader.exemplars(&compile(&confine(sets, self.filters)?, limits)?, range, limits)
    }

    /// Counts the series live on a day, by default the newest with data.
    ///
    /// # Errors
    /// As [`Questions::select`].
    pub fn cardinality(&self, request: &CardinalityRequest) -> Result<Cardinality> {
        self.counted(request, |request| {
            cardinality::cardinality(self.reader, request, &self.watch())
        })
    }

    /// The same of those among them whose samples nobody has asked for since start.
    ///
    /// # Errors
    /// As [`Questions::select`].
    pub fn unqueried(&self, request: &CardinalityRequest) -> Result<Cardinality> {
        self.counted(request, |request| cardinality::unqueried(self.reader, request, &self.watch()))
    }

    /// Counts the series that match the filters, too; what the index has no count of by series is
    /// left out then.
    fn counted(
        &self,
        request: &CardinalityRequest,
        count: impl FnOnce(&CardinalityRequest) -> Result<Cardinality>,
    ) -> Result<Cardinality> {
        if self.filters.is_empty() {
            return count(request);
        }
        let sets = confine(&request.sets, self.filters)?.into_owned();
        let counted = count(&CardinalityRequest { sets, ..request.clone() })?;
        Ok(Cardinality { index_bytes_by_label: Vec::new(), ..counted })
    }
}
