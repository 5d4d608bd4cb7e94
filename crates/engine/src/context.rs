//! What all parts of one evaluation share: where samples come from, options, notes, counters and
//! the memory that is held.

use crate::annotations::{Annotations, Level};
use crate::error::{Limit, QueryError, Result};
use crate::histograms::totals::Reading;
use crate::options::{Partial, QueryOptions, StepStats};
use crate::reservation::Usage;
use crate::result::{QueryResult, QueryStats, Timings, Value};
use crate::source::{SelectLimits, Source, SourceError};
use crate::step_samples::{CountingScope, Scope, StepSamples, Tally};
use crate::time::Grid;
use model::size::format_size;
use promql::Dialect;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use store::Missing;

/// What all parts of one evaluation share. One thread's.
pub(crate) struct Context<'a> {
    pub source: &'a dyn Source,
    pub options: &'a QueryOptions,
    /// What `start()` and `end()` stand for.
    pub start_ms: i64,
    pub end_ms: i64,
    /// The query's own step, zero for an instant.
    pub step_ms: i64,
    /// Whether the present evaluation ends after it starts, also if it has one step.
    pub is_range: Cell<bool>,
    pub annotations: Annotations,
    pub usage: Rc<Usage>,
    /// Whether rows that keep their names would collide without them.
    pub collision: Cell<Collision>,
    /// What selectors read of histograms.
    pub reading: Cell<Reading>,
    /// Of each step, if somebody asks.
    pub step_samples: Option<StepSamples>,
    /// What could not be read.
    missing: Arc<Missing>,
    stats: Cell<QueryStats>,
    started: Instant,
    timings: Cell<Timings>,
}

impl<'a> Context<'a> {
    pub fn new(
        source: &'a dyn Source,
        text: &str,
        options: &'a QueryOptions,
        grid: Grid,
        end_ms: i64,
    ) -> Context<'a> {
        Context {
            source,
            options,
            start_ms: grid.start_ms,
            end_ms,
            step_ms: if grid.start_ms == end_ms { 0 } else { grid.step_ms },
            is_range: Cell::new(grid.start_ms != end_ms),
            annotations: Annotations::new(text),
            usage: Rc::default(),
            collision: Cell::new(Collision::Unwatched),
            reading: Cell::default(),
            step_samples: (options.step_stats == StepStats::Counted
                && options.dialect == Dialect::PromQl)
                .then(|| StepSamples::new(grid.len)),
            missing: Missing::new(),
            stats: Cell::new(QueryStats { steps: grid.len as u64, ..QueryStats::default() }),
            started: Instant::now(),
            timings: Cell::default(),
        }
    }

    pub fn watching(self, collision: Collision) -> Context<'a> {
        self.collision.set(collision);
        self
    }

    /// As [`QueryOptions::check`].
    pub fn check(&self) -> Result<()> {
        self.options.check()
    }

    /// Fails when the evaluation holds more than it may.
    pub fn check_memory(&self) -> Result<()> {
        self.check_room(0)
    }

    /// Fails when `size` more bytes would exceed the memory limit of the query.
    pub fn check_room(&self, size: usize) -> Result<()> {
        let limits = &self.options.limits;
        if limits.samples_max < self.usage.samples.get() {
            return Err(too_many_samples(limits.samples_max));
        }
        let bytes = self.usage.bytes.get().saturating_add(size as u64);
        if limits.memory_bytes_max < bytes {
            let (max, limit) = (limits.memory_bytes_max, limits.memory_limit);
            let flag = limit.flag();
            let message = format!(
                "the query holds {}, the limit is {} ({flag}). Select fewer series, a shorter range \
                 or a longer step, or raise --{flag}",
                format_size(bytes),
                format_size(max)
            );
            return Err(QueryError::Limit { limit, message });
        }
        Ok(())
    }

    /// Fails when a grid has so many steps that one row of it would be over the sample limit.
    pub fn check_steps(&self, grid: Grid) -> Result<()> {
        if self.options.limits.samples_max < grid.len as u64 {
            return Err(too_many_samples(self.options.limits.samples_max));
        }
        Ok(())
    }

    pub fn select_limits(&self) -> SelectLimits {
        SelectLimits {
            series_max: self.options.limits.series_max,
            deadline: self.options.deadline,
            cancelled: self.options.cancelled.clone(),
            cost_max: self.options.limits.select_cost_max,
            missing: Some(Arc::clone(&self.missing)),
            asks: self.options.asks,
            filters: Arc::clone(&self.options.filters),
        }
    }

    /// Notes a selection: how many series it found, and when it began.
    pub fn count_series(&self, count: usize, began: Instant) {
        let mut stats = self.stats.get();
        stats.series += count as u64;
        self.stats.set(stats);
        let mut timings = self.timings.get();
        timings.select += began.elapsed();
        self.timings.set(timings);
    }

    /// Notes how long it takes to order the value.
    pub fn sorting<T>(&self, sort: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let sorted = sort();
        let mut timings = self.timings.get();
        timings.sort += began.elapsed();
        self.timings.set(timings);
        sorted
    }

    /// Where samples of the present grid's steps are counted, if they are.
    pub fn tally(&self) -> Option<Tally<'_>> {
        self.step_samples.as_ref().and_then(StepSamples::tally)
    }

    /// Counts so until what is returned is dropped.
    pub fn counting(&self, scope: Scope) -> CountingScope<'_> {
        CountingScope::begin(self.step_samples.as_ref(), scope)
    }

    pub fn count_samples_read(&self, count: u64) {
        let mut stats = self.stats.get();
        stats.samples_read += count;
        self.stats.set(stats);
    }

    pub fn finish(&self, value: Value) -> Result<QueryResult> {
        let is_partial = !self.missing.is_empty();
        let missing = if is_partial { self.missing.sentences() } else { Vec::new() };
        if is_partial && self.options.partial == Partial::Deny {
            return Err(QueryError::Partial(missing.join("; ")));
        }
        let mut stats = self.stats.get();
        stats.samples_peak = self.usage.samples_peak.get();
        stats.bytes_peak = self.usage.bytes_peak.get();
        let timings = Timings { evaluate: self.started.elapsed(), ..self.timings.get() };
        let mut warnings = missing;
        warnings.extend(self.annotations.render(Level::Warning));
        Ok(QueryResult {
            value,
            warnings,
            is_partial,
            infos: self.annotations.render(Level::Info),
            stats,
            timings,
            step_samples: self.step_samples.as_ref().map(StepSamples::totals).unwrap_or_default(),
        })
    }
}

/// Prometheus' error, with the limit and the remedy.
fn too_many_samples(max: u64) -> QueryError {
    let message = format!(
        "query processing would load too many samples into memory in query execution: the limit is \
         {max} (query.max-samples). Select fewer series, a shorter range or a longer step, or raise \
         --query.max-samples"
    );
    QueryError::Limit { limit: Limit::Samples, message }
}

impl From<SourceError> for QueryError {
    fn from(error: SourceError) -> QueryError {
        match error {
            SourceError::DeadlineExceeded => QueryError::Timeout("expression evaluation"),
            SourceError::Cancelled => QueryError::Canceled("expression evaluation"),
            SourceError::LimitExceeded { limit, message } => QueryError::Limit { limit, message },
            SourceError::Changed => QueryError::Changed,
            SourceError::Invalid(message) => QueryError::BadData(message),
            SourceError::Failed(message) => QueryError::Storage(message),
        }
    }
}

/// Sets [`Context::is_range`] until it is dropped.
pub(crate) struct RangeScope<'c> {
    is_range: &'c Cell<bool>,
    before: bool,
}

impl RangeScope<'_> {
    pub fn begin(is_range: &Cell<bool>, value: bool) -> RangeScope<'_> {
        RangeScope { is_range, before: is_range.replace(value) }
    }
}

impl Drop for RangeScope<'_> {
    fn drop(&mut self) {
        self.is_range.set(self.before);
    }
}

/// Whether rows that keep their names would collide without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collision {
    /// Nobody asks.
    Unwatched,
    /// Not so far.
    Watched,
    /// Yes.
    Found,
}
