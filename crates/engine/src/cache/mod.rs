//! A range query that repeats with a moving window reuses what it computed.
//!
//! ```text
//! kept      |----------------------------------------|
//! changed                     x                    xxxxx       (late samples, and new ones)
//! asked          |----------------------------------------|
//!                 reused      ?? reused            ????????    evaluated, then joined by labels
//! ```
//!
//! The answer is that of an evaluation of all steps, bit for bit:
//! - only expressions are kept whose value at a step depends on the samples that the step sees and
//!   on nothing else (`reach`);
//! - a step is evaluated again when one of these samples may have changed: the source notes every
//!   change, and its version is taken before anything is selected ([`crate::ChangeClock`]);
//! - the order of additions does not depend on which steps are evaluated (`crate::order`); where the
//!   source's own order might, nothing is reused;
//! - notes are the union of the steps' notes; where that is not certain, all steps are evaluated.

mod entry;
mod plan;
mod reach;
mod shelf;

pub use shelf::{CacheLimits, CacheStats, ResultCache};

use crate::error::{QueryError, Result};
use crate::gap::is_absent;
use crate::options::{NameRemoval, QueryOptions, StepStats};
use crate::query::{check_range, parse, range, range_parsed};
use crate::result::{Matrix, QueryResult, QueryStats, Timings, Value};
use crate::source::{ChangeClock, Source};
use crate::time::{Grid, StepRange};
use entry::{Entry, Notes, Rows, join, matrix};
use model::TimeRange;
use plan::Plan;
use promql::{Dialect, Expr, QueryTimes};
use reach::Reach;
use shelf::Key;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::Asks;

/// As [`crate::range()`], with steps that `cache` has from an earlier query of the same source.
///
/// # Errors
/// As [`crate::range()`].
pub fn range_cached(
    source: &dyn Source,
    cache: &ResultCache,
    text: &str,
    asked: StepRange,
    options: &QueryOptions,
) -> Result<QueryResult> {
    // Answers are kept of all there is.
    let clock = source.changes().filter(|_| cache.is_on() && options.asks == Asks::All);
    let Some(clock) = clock.filter(|_| options.dialect == Dialect::PromQl) else {
        return range(source, text, asked, options);
    };
    let StepRange { start_ms, end_ms, step_ms } = asked;
    let times = QueryTimes { step_ms, range_ms: end_ms.saturating_sub(start_ms) };
    let (expr, parse) = parse(text, options, times)?;
    let query = Query { source, text, expr: &expr, options };
    // What steps read is known of those only that are evaluated now.
    let is_kept = options.step_stats == StepStats::Omitted;
    let mut result = match Question::of(query, clock, asked).filter(|_| is_kept) {
        Some(question) => question.answer(cache)?,
        None => {
            let result = query.evaluate(asked)?;
            count(&cache.counters.unfit, 1);
            result
        }
    };
    result.timings.parse = parse;
    Ok(result)
}

fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}

#[derive(Clone, Copy)]
struct Query<'q> {
    source: &'q dyn Source,
    text: &'q str,
    expr: &'q Expr,
    options: &'q QueryOptions,
}

impl Query<'_> {
    fn evaluate(&self, steps: StepRange) -> Result<QueryResult> {
        range_parsed(self.source, self.text, self.expr, steps, self.options)
    }
}

/// A query whose steps can be kept.
struct Question<'q> {
    query: Query<'q>,
    clock: &'q dyn ChangeClock,
    grid: Grid,
    reach: Reach,
    /// The time that its steps read.
    reads: TimeRange,
    key: Key,
}

impl<'q> Question<'q> {
    /// `None` for a query whose steps cannot be kept, or that makes no sense.
    fn of(query: Query<'q>, clock: &'q dyn ChangeClock, asked: StepRange) -> Option<Question<'q>> {
        let grid = check_range(asked).ok()?;
        let options = query.options;
        let reach = Reach::of(query.expr, grid.step_ms, options)?;
        let reads = reach.reads(grid)?;
        let key = Key {
            text: query.text.to_string(),
            step_ms: grid.step_ms,
            phase_ms: grid.start_ms.rem_euclid(grid.step_ms),
            len_class: grid.len.next_power_of_two(),
            lookback_ms: options.lookback_ms,
            subquery_step_ms: options.subquery_step_ms,
            keeps_over_time: options.name_removal == NameRemoval::KeepOverTime,
            // `range()` is a function, and a part of calculated durations.
            range_ms: (options.experimental_functions || query.text.contains("range"))
                .then(|| asked.end_ms.saturating_sub(asked.start_ms)),
            filters: Arc::clone(&options.filters),
        };
        let question = Question { query, clock, grid, reach, reads, key };
        question.has_order().then_some(question)
    }

    /// Whether rows come in the same order whichever steps are evaluated.
    fn has_order(&self) -> bool {
        !self.reach.needs_order || self.clock.keeps_order(&self.reads)
    }

    fn answer(self, cache: &ResultCache) -> Result<QueryResult> {
        // Before anything is selected: what is not seen then will have a later version.
        let version = self.clock.take_version();
        if let Some(held) = cache.find(&self.key)
            && let Some(result) = self.reuse(&held, version, cache)?
        {
            return Ok(result);
        }
        let result = self.query.evaluate(self.steps(&(0..self.grid.len)))?;
        count(&cache.counters.misses, 1);
        let notes = Notes::of(&result);
        if let Value::Matrix(matrix) = &result.value
            && !result.is_partial
            && cache.is_worth(result.timings.evaluate)
            && cache.may_hold(matrix.cells())
            && !notes.tell_of_all()
            && let Some(rows) = Rows::of(matrix)
        {
            self.keep(cache, Entry { version, grid: self.grid, notes, rows });
        }
        Ok(result)
    }

    /// The answer with steps of an earlier one; `None` when all have to be evaluated.
    fn reuse(
        &self,
        held: &Entry,
        version: u64,
        cache: &ResultCache,
    ) -> Result<Option<QueryResult>> {
        // Who may hold little must not copy much either.
        if self.query.options.limits.samples_max < held.rows.values.len() as u64 {
            return Ok(None);
        }
        let changed = self.clock.changed_since(held.version, &self.reads);
        let mut plan = Plan::new(held.grid, self.grid, &self.reach, &changed);
        if !held.notes.is_empty() {
            // Whether the steps that are left have these notes is not known.
            plan.evaluate_some();
        }
        if plan.reused.is_empty() {
            return Ok(None);
        }
        let Some(fresh) = self.evaluate_runs(&plan.missing)? else { return Ok(None) };
        let Fresh { matrices, notes, mut stats, timings } = fresh;
        if !held.notes.are_among(&notes) || notes.tell_of_all() {
            return Ok(None);
        }
        let joined = join(held, &plan, &matrices, self.grid.len);
        let Some(rows) = joined.filter(|rows| self.may_hold(rows, &mut stats)) else {
            return Ok(None);
        };
        stats.steps_reused = plan.reused_len() as u64;
        let counters = &cache.counters;
        let is_whole = plan.missing.is_empty();
        count(if is_whole { &counters.hits } else { &counters.partial }, 1);
        count(&counters.steps_reused, stats.steps_reused);
        if (!is_whole || held.grid != self.grid) && cache.may_hold(rows.values.len()) {
            let (grid, notes, rows) = (self.grid, notes.clone(), rows.clone());
            self.keep(cache, Entry { version, grid, notes, rows });
        }
        let value = Matrix::on_grid_as_they_stand(self.grid, rows.labels, rows.values);
        let Notes { warnings, infos } = notes;
        let (value, is_partial) = (Value::Matrix(value), false);
        let step_samples = Vec::new();
        Ok(Some(QueryResult { value, warnings, is_partial, infos, stats, timings, step_samples }))
    }

    /// Evaluates runs of steps; `None` when that fails, so that the whole fails in its own words, or
    /// when the runs' notes differ.
    fn evaluate_runs(&self, runs: &[Range<usize>]) -> Result<Option<Fresh>> {
        let mut fresh = Fresh::default();
        for run in runs {
            let result = match self.query.evaluate(self.steps(run)) {
                Err(error @ (QueryError::Timeout(_) | QueryError::Canceled(_))) => {
                    return Err(error);
                }
                Err(_) => return Ok(None),
                // What is missing is said for all steps, and not kept.
                Ok(result) if result.is_partial => return Ok(None),
                Ok(result) => result,
            };
            let notes = Notes::of(&result);
            if !fresh.matrices.is_empty() && notes != fresh.notes {
                return Ok(None);
            }
            fresh.notes = notes;
            fresh.add_costs(&result);
            let Some(matrix) = matrix(result.value) else { return Ok(None) };
            fresh.matrices.push(matrix);
        }
        Ok(Some(fresh))
    }

    fn steps(&self, run: &Range<usize>) -> StepRange {
        StepRange {
            start_ms: self.grid.at_ms(run.start),
            end_ms: self.grid.at_ms(run.end - 1),
            step_ms: self.grid.step_ms,
        }
    }

    /// Whether a query may hold so much; an evaluation of all steps says best why not.
    fn may_hold(&self, rows: &Rows, stats: &mut QueryStats) -> bool {
        let samples = rows.values.iter().filter(|value| !is_absent(**value)).count() as u64;
        let bytes = rows.size() as u64;
        stats.samples_peak = stats.samples_peak.max(samples);
        stats.bytes_peak = stats.bytes_peak.max(bytes);
        let limits = &self.query.options.limits;
        samples <= limits.samples_max && bytes <= limits.memory_bytes_max
    }

    fn keep(&self, cache: &ResultCache, entry: Entry) {
        // A month may have come into being while the steps were evaluated.
        if self.has_order() {
            cache.keep(self.key.clone(), entry);
        }
    }
}

/// What evaluating some runs of steps gave.
#[derive(Default)]
struct Fresh {
    matrices: Vec<Matrix>,
    notes: Notes,
    stats: QueryStats,
    timings: Timings,
}

impl Fresh {
    fn add_costs(&mut self, result: &QueryResult) {
        let (stats, more) = (&mut self.stats, &result.stats);
        stats.series = stats.series.max(more.series);
        stats.samples_read += more.samples_read;
        stats.samples_peak = stats.samples_peak.max(more.samples_peak);
        stats.bytes_peak = stats.bytes_peak.max(more.bytes_peak);
        stats.steps += more.steps;
        let (timings, more) = (&mut self.timings, &result.timings);
        timings.select += more.select;
        timings.evaluate += more.evaluate;
        timings.sort += more.sort;
    }
}
