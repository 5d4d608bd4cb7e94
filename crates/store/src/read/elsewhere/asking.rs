//! All other databases asked at once, and their answers made good.

use super::fold::{Fold, FoldedRow, checked};
use super::joined::tidy;
use super::{Answer, Asked, Elsewhere, Fault, FoundSeries, Lacks, Taken, waiting};
use crate::partition::changes::ChangeClock;
use crate::partition::histograms::names;
use crate::read::missing::Missing;
use crate::{Error, Result, SelectLimits};
use index::CompiledMatchers;
use model::{Labels, Matcher, TimeRange, Timestamp};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Those that are asked besides the store. Said once, before the first question.
#[derive(Default)]
pub(crate) struct Others {
    known: OnceLock<Known>,
}

struct Known {
    list: Vec<Arc<dyn Elsewhere>>,
    moved: Moved,
}

/// That an `until` has moved, for who keeps answers: what comes from elsewhere at one time and from
/// here at another may differ.
struct Moved {
    /// Versions up to this one were taken before it was done; all while it is being done.
    up_to: AtomicU64,
    /// The latest `until` there ever was.
    latest: AtomicI64,
}

/// A question that concerns some of them.
pub(crate) struct Concerned<'a> {
    /// Each with its time. Taken once: an `until` may move while it is asked.
    list: Vec<(&'a dyn Elsewhere, TimeRange)>,
    limits: &'a SelectLimits,
    missing: Option<&'a Arc<Missing>>,
}

/// The latest `until`; nobody has any samples where there is none.
fn latest(list: &[Arc<dyn Elsewhere>]) -> Timestamp {
    list.iter().map(|one| one.until()).max().unwrap_or(Timestamp::MIN)
}

/// Up to when one is asked. What the retention hides here was copied from there, and is asked for again; of
/// one that is not asked at all nothing is.
fn asked_until(one: &dyn Elsewhere, kept: Timestamp) -> Timestamp {
    match one.until() {
        Timestamp::MIN => Timestamp::MIN,
        until => until.max(kept.min(one.until_at_first())),
    }
}

impl Others {
    /// Names them. Only the first call counts.
    pub fn set(&self, list: Vec<Arc<dyn Elsewhere>>) {
        let until = latest(&list);
        let moved = Moved { up_to: AtomicU64::new(0), latest: AtomicI64::new(until) };
        let _ = self.known.set(Known { list, moved });
    }

    /// Whether there are any.
    pub fn is_any(&self) -> bool {
        self.known.get().is_some()
    }

    /// Lets one of them change its `until`, and notes that. One call at a time.
    pub fn move_until(&self, clock: &ChangeClock, change: impl FnOnce()) {
        let Some(known) = self.known.get() else { return change() };
        // Whoever sees the new time sees that something has moved: see `unsettled`.
        known.moved.up_to.store(u64::MAX, Ordering::Release);
        change();
        let until = latest(&known.list);
        known.moved.latest.fetch_max(until, Ordering::AcqRel);
        // Who takes a later version than this sees all of the above.
        known.moved.up_to.store(clock.take_version(), Ordering::Release);
    }

    /// Where the last time ends that they may have samples of, where nothing is seen here before `kept`.
    pub fn until(&self, kept: Timestamp) -> Timestamp {
        let all = self.known.get().into_iter().flat_map(|known| &known.list);
        all.map(|one| asked_until(&**one, kept)).max().unwrap_or(Timestamp::MIN)
    }

    /// Where the time ends of which selections since `version` may have samples from elsewhere that
    /// are others now, or come from another place.
    pub fn unsettled(&self, version: u64) -> Timestamp {
        let Some(known) = self.known.get() else { return i64::MIN };
        // In this order: a time that has moved is seen after that it moves.
        let until = latest(&known.list);
        if known.moved.up_to.load(Ordering::Acquire) < version {
            return until;
        }
        known.moved.latest.load(Ordering::Acquire).max(until)
    }

    /// Those that may have something of a range, of which nothing is seen here before `kept`; `None` when
    /// there are none.
    ///
    /// # Errors
    /// [`Error::LimitExceeded`] of a question that must not take long: they are far away.
    pub fn concerned<'a>(
        &'a self,
        (range, kept): (TimeRange, Timestamp),
        limits: &'a SelectLimits,
        missing: Option<&'a Arc<Missing>>,
    ) -> Result<Option<Concerned<'a>>> {
        let Some(known) = self.known.get().filter(|_| !range.is_empty()) else {
            return Ok(None);
        };
        let one = |one: &'a Arc<dyn Elsewhere>| (&**one, asked_until(&**one, kept));
        let mut list: Vec<(&dyn Elsewhere, Timestamp)> = known.list.iter().map(one).collect();
        list.retain(|(_, until)| range.start < *until);
        if list.is_empty() {
            return Ok(None);
        }
        limits.check_cost(u64::MAX)?;
        // Who failed one part of an answer would only keep the others waiting.
        let is_away = |one: &dyn Elsewhere| missing.is_some_and(|all| all.is_away(one.name()));
        list.retain(|(one, _)| !is_away(*one));
        let with_range = |(one, until): (&'a dyn Elsewhere, Timestamp)| {
            (one, TimeRange::new(range.start, range.end.min(until.saturating_sub(1))))
        };
        let list = list.into_iter().map(with_range).collect();
        Ok(Some(Concerned { list, limits, missing }))
    }
}

impl<'a> Concerned<'a> {
    /// Series with their samples, each once, sorted by their labels.
    pub fn select(
        &self,
        sets: &[Vec<Matcher>],
        compiled: &[CompiledMatchers],
    ) -> Result<Vec<FoundSeries>> {
        let mut all = Vec::new();
        for (mut found, range) in self.ask(sets, |one, asked| one.select(asked))? {
            found.retain_mut(|series| {
                tidy(series, &range);
                let is_some = !series.times.is_empty() || !series.histogram_times.is_empty();
                is_some && matches_any(compiled, &series.labels)
            });
            // Of equal times the one counts that is named first.
            all.append(&mut found);
            all = each_once(all);
            self.limits.check_series(all.len())?;
        }
        Ok(all)
    }

    /// Adds the labels of series to a sorted list.
    pub fn series(
        &self,
        sets: &[Vec<Matcher>],
        compiled: &[CompiledMatchers],
        out: &mut Vec<Labels>,
    ) -> Result<()> {
        for (found, _) in self.ask(sets, |one, asked| one.series(asked))? {
            out.extend(found.into_iter().filter(|labels| matches_any(compiled, labels)));
            out.sort_unstable();
            out.dedup();
            self.limits.check_series(out.len())?;
        }
        Ok(())
    }

    /// Adds the names of labels to a sorted list.
    pub fn label_names(&self, sets: &[Vec<Matcher>], out: &mut Vec<String>) -> Result<()> {
        let answers = self.ask(sets, |one, asked| one.label_names(asked))?;
        self.add_texts(answers, |name| name != names::LABEL, out)
    }

    /// Adds the values of a label to a sorted list.
    pub fn label_values(
        &self,
        name: &str,
        sets: &[Vec<Matcher>],
        out: &mut Vec<String>,
    ) -> Result<()> {
        let answers = self.ask(sets, |one, asked| one.label_values(name, asked))?;
        self.add_texts(answers, |_| true, out)
    }

    /// Where what the only one that is concerned has of the range ends; `None` where there are others.
    pub fn end_of_only(&self) -> Option<Timestamp> {
        match self.list.as_slice() {
            [(_, range)] => Some(range.end.saturating_add(1)),
            _ => None,
        }
    }

    /// What the only one that is concerned makes itself of its samples. `None` where it cannot, and
    /// where it did not: that is noted then.
    pub fn fold(&self, sets: &[Vec<Matcher>], fold: &Fold<'_>) -> Result<Option<Vec<FoldedRow>>> {
        debug_assert_eq!(self.list.len(), 1, "of several each would have a part");
        let ask = |one: &dyn Elsewhere, asked: &Asked<'_>| {
            let rows = one.fold(fold, asked)?;
            rows.map(|rows| checked(rows, fold).map_err(Fault::Away)).transpose()
        };
        let rows = self.ask(sets, ask)?.pop().and_then(|(rows, _)| rows);
        if let Some(rows) = &rows {
            self.limits.check_series(rows.len())?;
        }
        Ok(rows)
    }

    fn add_texts(
        &self,
        answers: Vec<(Vec<String>, TimeRange)>,
        is_one: impl Fn(&str) -> bool,
        out: &mut Vec<String>,
    ) -> Result<()> {
        for (mut found, _) in answers {
            found.retain(|text| !text.is_empty() && is_one(text));
            found.sort_unstable();
            found.dedup();
            self.limits.check_series(found.len())?;
            index::merge_sorted(out, found);
        }
        Ok(())
    }

    /// Asks all of them at once, each for its own time; what does not come is missing. On the caller's
    /// thread only where that may wait.
    fn ask<T: Send>(
        &self,
        sets: &[Vec<Matcher>],
        ask: impl Fn(&dyn Elsewhere, &Asked<'_>) -> Answer<T> + Sync,
    ) -> Result<Vec<(T, TimeRange)>> {
        let own = Taken::default();
        let taken = self.missing.map_or(&own, |missing| missing.taken());
        // A quarter of the time that is left stays for what is here.
        let deadline = self.limits.deadline.map(|end| end - (end - Instant::now()) / 4);
        let series_max = self.limits.series_max;
        let lacks: Vec<Lacks> = self.list.iter().map(|_| Lacks::default()).collect();
        let asked = |((one, range), lacks): (&(&'a dyn Elsewhere, TimeRange), _)| {
            (*one, Asked { sets, range: *range, deadline, series_max, taken, lacks })
        };
        let all: Vec<_> = self.list.iter().zip(&lacks).map(asked).collect();
        let answers = match all.as_slice() {
            [(one, asked)] if waiting::may_wait() => {
                let ask = AssertUnwindSafe(|| ask(*one, asked));
                vec![catch_unwind(ask).unwrap_or_else(|_| Err(panicked()))]
            }
            all => ask_at_once(all, &ask),
        };
        let mut given = Vec::with_capacity(answers.len());
        for (((one, range), answer), lacks) in self.list.iter().zip(answers).zip(&lacks) {
            match answer {
                Ok(answer) => {
                    self.note_lacks(*one, lacks)?;
                    given.push((answer, *range));
                }
                Err(fault) => self.leave_out(*one, fault)?,
            }
        }
        Ok(given)
    }

    /// Goes on without what one of them leaves out, where that is allowed.
    fn note_lacks(&self, one: &dyn Elsewhere, lacks: &Lacks) -> Result<()> {
        let Some(words) = lacks.words() else { return Ok(()) };
        let what = format!("{} leaves something out: {words}", one.name());
        match self.missing {
            Some(missing) => {
                missing.note_lack(what);
                Ok(())
            }
            None => Err(Error::Away { what }),
        }
    }

    /// Goes on without one of them, where that is allowed.
    fn leave_out(&self, one: &dyn Elsewhere, fault: Fault) -> Result<()> {
        let reason = match fault {
            Fault::Away(reason) => reason,
            Fault::TooMuch { limit, what, value, max } => {
                return Err(Error::LimitExceeded { limit, what, value, max });
            }
        };
        // Its own words, or that nobody waits any longer, are the same to who asked.
        self.limits.check_interrupt()?;
        let what = format!("{} gave no whole answer: {reason}", one.name());
        match self.missing {
            Some(missing) => {
                missing.note_away(one.name(), what);
                Ok(())
            }
            None => Err(Error::Away { what }),
        }
    }
}

/// Each is asked on a thread of its own.
fn ask_at_once<T: Send>(
    all: &[(&dyn Elsewhere, Asked<'_>)],
    ask: &(impl Fn(&dyn Elsewhere, &Asked<'_>) -> Answer<T> + Sync),
) -> Vec<Answer<T>> {
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(all.len());
        for (one, asked) in all {
            let named = std::thread::Builder::new().name("elsewhere".to_string());
            threads.push(named.spawn_scoped(scope, move || ask(*one, asked)));
        }
        let wait = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, Answer<T>>>| {
            let thread = thread.map_err(|error| Fault::Away(format!("no thread: {error}")))?;
            thread.join().unwrap_or_else(|_| Err(panicked()))
        };
        threads.into_iter().map(wait).collect()
    })
}

fn panicked() -> Fault {
    Fault::Away("asking it panicked".to_string())
}

/// Series in the order of their labels, those of the same labels joined.
fn each_once(mut all: Vec<FoundSeries>) -> Vec<FoundSeries> {
    if all.is_sorted_by(|a, b| a.labels < b.labels) {
        return all;
    }
    // Stable: of equal labels the first counts.
    all.sort_by(|a, b| a.labels.cmp(&b.labels));
    let mut once: Vec<FoundSeries> = Vec::with_capacity(all.len());
    for series in all {
        match once.last_mut().filter(|known| known.labels == series.labels) {
            Some(known) => known.join(series),
            None => once.push(series),
        }
    }
    once
}

fn matches_any(compiled: &[CompiledMatchers], labels: &Labels) -> bool {
    compiled.iter().any(|set| set.matches(labels))
}
