//! All other databases asked at once, and their answers made good.

use super::joined::tidy;
use super::{Answer, Asked, Elsewhere, Fault, FoundSeries, Taken};
use crate::histograms::names;
use crate::missing::Missing;
use crate::{Error, Result, SelectLimits};
use hashbrown::HashMap;
use index::CompiledMatchers;
use model::{Labels, Matcher, TimeRange, Timestamp};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Those that are asked besides the store. Said once, before the first question.
#[derive(Default)]
pub(crate) struct Others {
    known: OnceLock<Known>,
}

struct Known {
    list: Vec<Arc<dyn Elsewhere>>,
    /// The latest `until`: what begins later is no concern of theirs.
    until: Timestamp,
}

/// A question that concerns some of them.
pub(crate) struct Concerned<'a> {
    list: Vec<&'a dyn Elsewhere>,
    range: TimeRange,
    limits: &'a SelectLimits,
    missing: Option<&'a Arc<Missing>>,
}

impl Others {
    /// Names them. Only the first call counts.
    pub fn set(&self, list: Vec<Arc<dyn Elsewhere>>) {
        if let Some(until) = list.iter().map(|one| one.until()).max() {
            let _ = self.known.set(Known { list, until });
        }
    }

    /// Where the last time ends that they may have samples of.
    pub fn until(&self) -> Timestamp {
        self.known.get().map_or(i64::MIN, |known| known.until)
    }

    /// Those that may have something of a range; `None` when there are none.
    ///
    /// # Errors
    /// [`Error::LimitExceeded`] of a question that must not take long: they are far away.
    pub fn concerned<'a>(
        &'a self,
        range: TimeRange,
        limits: &'a SelectLimits,
        missing: Option<&'a Arc<Missing>>,
    ) -> Result<Option<Concerned<'a>>> {
        let Some(known) = self.known.get().filter(|known| range.start < known.until) else {
            return Ok(None);
        };
        if range.is_empty() {
            return Ok(None);
        }
        limits.check_cost(u64::MAX)?;
        // Who failed one part of an answer would only keep the others waiting.
        let is_away = |one: &dyn Elsewhere| missing.is_some_and(|all| all.is_away(one.name()));
        let has = |one: &&Arc<dyn Elsewhere>| range.start < one.until() && !is_away(&***one);
        let list = known.list.iter().filter(has).map(|one| &**one).collect();
        Ok(Some(Concerned { list, range, limits, missing }))
    }
}

impl Concerned<'_> {
    /// Series with their samples, each once, sorted by their labels.
    pub fn select(
        &self,
        sets: &[Vec<Matcher>],
        compiled: &[CompiledMatchers],
    ) -> Result<Vec<FoundSeries>> {
        let mut all: HashMap<Labels, FoundSeries> = HashMap::new();
        for (mut found, range) in self.ask(sets, |one, asked| one.select(asked))? {
            for series in &mut found {
                tidy(series, &range);
            }
            for series in found {
                let is_some = !series.times.is_empty() || !series.histogram_times.is_empty();
                if !is_some || !matches_any(compiled, &series.labels) {
                    continue;
                }
                // Of equal times the one counts that is named first.
                match all.get_mut(&series.labels) {
                    Some(known) => known.join(series),
                    None => {
                        all.insert(series.labels.clone(), series);
                    }
                }
            }
            self.limits.check_series(all.len())?;
        }
        let mut all: Vec<FoundSeries> = all.into_values().collect();
        all.sort_unstable_by(|a, b| a.labels.cmp(&b.labels));
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

    /// Asks all of them at once, each for its own time; what does not come is missing.
    fn ask<T: Send>(
        &self,
        sets: &[Vec<Matcher>],
        ask: impl Fn(&dyn Elsewhere, &Asked<'_>) -> Answer<T> + Sync,
    ) -> Result<Vec<(T, TimeRange)>> {
        let own = Taken::default();
        let taken = self.missing.map_or(&own, |missing| missing.taken());
        let range_of = |one: &dyn Elsewhere| {
            TimeRange::new(self.range.start, self.range.end.min(one.until().saturating_sub(1)))
        };
        // A quarter of the time that is left stays for what is here.
        let deadline = self.limits.deadline.map(|end| end - (end - Instant::now()) / 4);
        let asked = |one: &dyn Elsewhere| Asked {
            sets,
            range: range_of(one),
            deadline,
            series_max: self.limits.series_max,
            taken,
        };
        // Never on the caller's thread, which may be one that must not block on a socket.
        let answers: Vec<Answer<T>> = std::thread::scope(|scope| {
            let (ask, asked) = (&ask, &asked);
            let threads: Vec<_> = self
                .list
                .iter()
                .map(|one| {
                    let named = std::thread::Builder::new().name("elsewhere".to_string());
                    named.spawn_scoped(scope, move || ask(*one, &asked(*one)))
                })
                .collect();
            let wait = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, Answer<T>>>| {
                let thread = thread.map_err(|error| Fault::Away(format!("no thread: {error}")))?;
                thread.join().unwrap_or_else(|_| Err(Fault::Away("asking it panicked".into())))
            };
            threads.into_iter().map(wait).collect()
        });
        let mut given = Vec::with_capacity(answers.len());
        for (one, answer) in self.list.iter().zip(answers) {
            match answer {
                Ok(answer) => given.push((answer, range_of(*one))),
                Err(fault) => self.leave_out(*one, fault)?,
            }
        }
        Ok(given)
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
        self.limits.check_deadline()?;
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

fn matches_any(compiled: &[CompiledMatchers], labels: &Labels) -> bool {
    compiled.iter().any(|set| set.matches(labels))
}
