//! A query: its options and limits going in, its value, notes and counters coming out.

use crate::annotations::{Annotations, Level};
use crate::brief::is_brief;
use crate::error::{Limit, QueryError, Result};
use crate::eval::Evaluator;
use crate::histograms::results::{only_histogram, take_points};
use crate::histograms::totals::Reading;
use crate::metricsql;
use crate::names::{Collision, with_names_if_needed};
use crate::result::{Matrix, Sample, Value};
use crate::source::{SelectLimits, Source, SourceError};
use crate::step_samples::{CountingScope, Scope, StepSamples, Tally};
use crate::time::Grid;
use crate::vector::{Scalar, Usage, Vector};
use model::Labels;
use promql::{Dialect, Expr, QueryTimes, ValueType};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::Missing;

/// Steps that Prometheus' HTTP API allows after the first.
pub const STEPS_MAX: i64 = 11_000;

/// How often a query starts again because series were deleted meanwhile.
const CHANGES_MAX: usize = 3;

/// Bounds on one query; each has a flag of the binary.
#[derive(Clone, Debug)]
pub struct QueryLimits {
    /// Samples held at once (`--query.max-samples`).
    pub samples_max: u64,
    /// Series that one selector may match (`--query.max-series`).
    pub series_max: usize,
    /// Bytes held at once (`--query.max-memory`).
    pub memory_bytes_max: u64,
    /// Which limit that is: the query's own, or its share of the process'.
    pub memory_limit: Limit,
    /// What one selector may cost, in samples read, estimated beforehand; no flag: the server sets
    /// it to find out whether a query is short.
    pub select_cost_max: u64,
}

impl Default for QueryLimits {
    fn default() -> QueryLimits {
        // Prometheus' 50 M samples; the others are our own.
        QueryLimits {
            samples_max: 50_000_000,
            series_max: 10_000_000,
            memory_bytes_max: 4 << 30,
            memory_limit: Limit::QueryMemory,
            select_cost_max: u64::MAX,
        }
    }
}

/// When functions that drop the metric's name do so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRemoval {
    /// At once: Prometheus' default.
    #[default]
    AtOnce,
    /// At the end of the query: Prometheus' `promql-delayed-name-removal`.
    Late,
    /// At once, but rollups whose value is one of the series' own scale (`max_over_time`,
    /// `avg_over_time`, `quantile_over_time`, ...) keep it, so that `by (__name__)` works on
    /// them: what VictoriaMetrics does and what TSBS' queries count on.
    KeepOverTime,
}

/// What only MetricsQL asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsQlOptions {
    /// The step of an instant query, which windows that are left out and `[1i]` refer to.
    pub step_ms: i64,
    /// How far back samples may be looked for; without it each series' own interval decides.
    pub lookback_ms: Option<i64>,
    /// The clock, for `now()`.
    pub now_ms: i64,
}

/// How a query is to be evaluated.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// Whose language and numbers.
    pub dialect: Dialect,
    /// Whether functions and syntax that Prometheus calls experimental are known.
    pub experimental_functions: bool,
    /// When metric names go.
    pub name_removal: NameRemoval,
    /// How far an instant selector looks back.
    pub lookback_ms: i64,
    /// The step of subqueries that name none.
    pub subquery_step_ms: i64,
    /// For queries in MetricsQL.
    pub metricsql: MetricsQlOptions,
    /// Bounds.
    pub limits: QueryLimits,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Set by somebody else to make the query stop.
    pub cancelled: Option<Arc<AtomicBool>>,
    /// What becomes of a query for which not everything can be read.
    pub partial: Partial,
    /// Whether the samples of each step are counted.
    pub step_stats: StepStats,
    /// What PromQL makes of start timestamps.
    pub start_timestamps: StartTimestamps,
}

/// Whether `rate`, `increase`, `irate` and `resets` ask since when a counter counts, and
/// `start_timestamp` tells it: Prometheus' `use-start-timestamps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartTimestamps {
    /// Nobody looks for them.
    #[default]
    Ignored,
    /// They do.
    Used,
}

/// Whether [`QueryResult::step_samples`] is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepStats {
    /// Nobody asks, and nothing is counted for it.
    #[default]
    Omitted,
    /// It is, for queries in PromQL.
    Counted,
}

/// What is done when something that was asked for is rotten or gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partial {
    /// The rest is the answer, with a warning.
    #[default]
    Answer,
    /// There is no answer.
    Deny,
}

impl Default for QueryOptions {
    fn default() -> QueryOptions {
        QueryOptions {
            dialect: Dialect::PromQl,
            experimental_functions: false,
            name_removal: NameRemoval::AtOnce,
            lookback_ms: 5 * 60_000,
            subquery_step_ms: 60_000,
            metricsql: MetricsQlOptions::default(),
            limits: QueryLimits::default(),
            deadline: None,
            cancelled: None,
            partial: Partial::Answer,
            step_stats: StepStats::Omitted,
            start_timestamps: StartTimestamps::Ignored,
        }
    }
}

impl QueryOptions {
    /// Fails when the deadline has passed or somebody cancelled the query.
    pub(crate) fn check(&self) -> Result<()> {
        const WHERE: &str = "expression evaluation";
        if self.cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(QueryError::Canceled(WHERE));
        }
        // The deadline is the caller's clock, so this is no new source of time.
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(QueryError::Timeout(WHERE));
        }
        Ok(())
    }

    /// Whether the query is only tried: what is not little work for sure is not to be begun.
    fn is_try(&self) -> bool {
        self.limits.select_cost_max < u64::MAX
    }
}

/// What a query did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryStats {
    /// Series that selectors matched.
    pub series: u64,
    /// Samples read from the source.
    pub samples_read: u64,
    /// Most samples held at once.
    pub samples_peak: u64,
    /// Most bytes held at once.
    pub bytes_peak: u64,
    /// Steps evaluated.
    pub steps: u64,
    /// Steps whose values a cache had.
    pub steps_reused: u64,
}

/// Where the time of a query went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Text to tree.
    pub parse: Duration,
    /// Selectors finding their series.
    pub select: Duration,
    /// Everything from the tree to the value, selecting and ordering included.
    pub evaluate: Duration,
    /// Ordering the value's series.
    pub sort: Duration,
}

impl Timings {
    /// Evaluating without selecting and ordering: reading samples and calculating.
    pub fn work(&self) -> Duration {
        self.evaluate.saturating_sub(self.select + self.sort)
    }
}

/// The answer to a query.
#[derive(Debug)]
pub struct QueryResult {
    /// Its value.
    pub value: Value,
    /// Texts that say why the value may be wrong.
    pub warnings: Vec<String>,
    /// Whether something is missing that could not be read; the warnings say what.
    pub is_partial: bool,
    /// Texts that say why the value may surprise.
    pub infos: Vec<String>,
    /// What it cost.
    pub stats: QueryStats,
    /// How long it took.
    pub timings: Timings,
    /// By step, how many samples an instant query at its time would see; empty unless
    /// [`StepStats::Counted`] was asked for.
    pub step_samples: Vec<u64>,
}

/// The first and last step of a range query, and what lies between steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRange {
    /// First step, in milliseconds since the epoch.
    pub start_ms: i64,
    /// No step is later.
    pub end_ms: i64,
    /// Between steps.
    pub step_ms: i64,
}

/// Evaluates `text` at one moment.
///
/// # Errors
/// The text is no expression, the expression has no value, a limit or the deadline is reached.
pub fn instant(
    source: &dyn Source,
    text: &str,
    at_ms: i64,
    options: &QueryOptions,
) -> Result<QueryResult> {
    if options.dialect == Dialect::MetricsQl {
        return in_metricsql(
            source,
            text,
            options,
            (Grid::instant(at_ms), at_ms),
            &|context, expr| metricsql::instant(context, expr, at_ms),
        );
    }
    let times = QueryTimes { step_ms: 0, range_ms: 0 };
    let (expr, parse) = parse(text, options, times)?;
    let evaluate = |options: &QueryOptions, collision| {
        let grid = Grid::instant(at_ms);
        let context = Context::new(source, text, options, grid, at_ms).watching(collision);
        let result = evaluate_instant(&context, &expr, grid)?;
        Ok((result, context.collision.get()))
    };
    let mut result = again_if_changed(|| with_names_if_needed(evaluate, &expr, options))?;
    result.timings.parse = parse;
    Ok(result)
}

/// Evaluates an expression, parsed from `text`, at one moment.
///
/// # Errors
/// As [`instant`].
pub fn instant_expr(
    source: &dyn Source,
    text: &str,
    expr: &Expr,
    at_ms: i64,
    options: &QueryOptions,
) -> Result<QueryResult> {
    let grid = Grid::instant(at_ms);
    let context = || Context::new(source, text, options, grid, at_ms);
    again_if_changed(|| evaluate_instant(&context(), expr, grid))
}

fn evaluate_instant(context: &Context<'_>, expr: &Expr, grid: Grid) -> Result<QueryResult> {
    let evaluator = Evaluator { context };
    let value = match expr.value_type() {
        ValueType::String => Value::String(evaluator.string(expr)?),
        ValueType::Scalar => Value::Scalar(evaluator.scalar(expr, grid)?.at(0)),
        ValueType::Vector => {
            let vector = context.named(evaluator.vector(expr, grid)?)?;
            Value::Vector(context.sorting(|| samples(vector)))
        }
        ValueType::Matrix => Value::Matrix(evaluator.matrix(expr, grid.start_ms)?),
    };
    context.finish(value)
}

/// Evaluates `text` at every step of a range.
///
/// # Errors
/// As [`instant`]; also when the range makes no sense or has too many steps.
pub fn range(
    source: &dyn Source,
    text: &str,
    range: StepRange,
    options: &QueryOptions,
) -> Result<QueryResult> {
    if options.dialect == Dialect::MetricsQl {
        let grid = Grid::span(range.start_ms, range.end_ms, range.step_ms.max(1));
        let grid = grid.unwrap_or(Grid::instant(range.start_ms));
        return in_metricsql(source, text, options, (grid, range.end_ms), &|context, expr| {
            metricsql::range(context, expr, range)
        });
    }
    let StepRange { start_ms, end_ms, step_ms } = range;
    let times = QueryTimes { step_ms, range_ms: end_ms.saturating_sub(start_ms) };
    let (expr, parse) = parse(text, options, times)?;
    let mut result = range_parsed(source, text, &expr, range, options)?;
    result.timings.parse = parse;
    Ok(result)
}

/// As [`range`] in PromQL for what has been parsed already.
pub(crate) fn range_parsed(
    source: &dyn Source,
    text: &str,
    expr: &Expr,
    range: StepRange,
    options: &QueryOptions,
) -> Result<QueryResult> {
    let evaluate = |options: &QueryOptions, collision| {
        let grid = check_range(range)?;
        let context = Context::new(source, text, options, grid, range.end_ms).watching(collision);
        let result = evaluate_range(&context, expr, grid)?;
        Ok((result, context.collision.get()))
    };
    again_if_changed(|| with_names_if_needed(evaluate, expr, options))
}

/// Evaluates an expression, parsed from `text`, at every step of a range.
///
/// # Errors
/// As [`range`].
pub fn range_expr(
    source: &dyn Source,
    text: &str,
    expr: &Expr,
    range: StepRange,
    options: &QueryOptions,
) -> Result<QueryResult> {
    let grid = check_range(range)?;
    let context = || Context::new(source, text, options, grid, range.end_ms);
    again_if_changed(|| evaluate_range(&context(), expr, grid))
}

/// Evaluates a text in the other dialect over a grid and its end.
fn in_metricsql(
    source: &dyn Source,
    text: &str,
    options: &QueryOptions,
    (grid, end_ms): (Grid, i64),
    evaluate: &dyn Fn(&Context<'_>, &promql::metricsql::Expr) -> Result<Value>,
) -> Result<QueryResult> {
    let started = Instant::now();
    let expr = match options.is_try() {
        true => metricsql::parse_brief(text)?,
        false => metricsql::parse(text)?,
    };
    let parse = started.elapsed();
    let mut result = again_if_changed(|| {
        let context = Context::new(source, text, options, grid, end_ms);
        let value = evaluate(&context, &expr)?;
        context.finish(value)
    })?;
    result.timings.parse = parse;
    Ok(result)
}

/// A merge may drop deleted series between their selection and their reading.
fn again_if_changed(evaluate: impl Fn() -> Result<QueryResult>) -> Result<QueryResult> {
    for _ in 0..CHANGES_MAX {
        match evaluate() {
            Err(QueryError::Changed) => {}
            other => return other,
        }
    }
    evaluate()
}

fn evaluate_range(context: &Context<'_>, expr: &Expr, grid: Grid) -> Result<QueryResult> {
    let evaluator = Evaluator { context };
    let value = match expr.value_type() {
        ValueType::Scalar => {
            let values = match evaluator.scalar(expr, grid)? {
                Scalar::Constant(value) => vec![value; grid.len],
                Scalar::Steps(values) => values,
            };
            Matrix::on_grid(grid, vec![Labels::default()], values)
        }
        ValueType::Vector => {
            let vector = context.named(evaluator.vector(expr, grid)?)?;
            let (keys, mut values, histograms) = vector.into_parts();
            let histograms = take_points(grid, &mut values, histograms);
            let labels = keys.into_iter().map(|key| key.labels).collect();
            context.sorting(|| Matrix::on_grid(grid, labels, values).with_histograms(histograms))
        }
        other => {
            return Err(QueryError::BadData(format!(
                "invalid expression type \"{}\" for range query, must be Scalar or instant Vector",
                other.documented()
            )));
        }
    };
    context.finish(Value::Matrix(value))
}

/// The tree, and how long it took to make it.
pub(crate) fn parse(
    text: &str,
    options: &QueryOptions,
    times: QueryTimes,
) -> Result<(Expr, Duration)> {
    let started = Instant::now();
    let known = promql::Options { experimental_functions: options.experimental_functions };
    let mut expr = promql::parse_with(text, &known)?;
    if options.is_try() && !is_brief(&expr) {
        return Err(QueryError::NotBrief);
    }
    if options.experimental_functions {
        promql::settle_durations(text, &mut expr, times)?;
    }
    Ok((expr, started.elapsed()))
}

/// The grid of a range, whose errors are those of Prometheus' HTTP API.
pub(crate) fn check_range(range: StepRange) -> Result<Grid> {
    let bad = |message: &str| Err(QueryError::BadData(message.to_string()));
    if range.end_ms < range.start_ms {
        return bad("invalid parameter \"end\": end timestamp must not be before start time");
    }
    if range.step_ms <= 0 {
        return bad(
            "invalid parameter \"step\": zero or negative query resolution step widths are not \
             accepted. Try a positive integer",
        );
    }
    match Grid::span(range.start_ms, range.end_ms, range.step_ms) {
        Some(grid) if grid.len as i64 - 1 <= STEPS_MAX => Ok(grid),
        _ => {
            bad("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the \
             query resolution (?step=XX)")
        }
    }
}

/// The samples of a vector of one step, in order.
fn samples(vector: Vector) -> Vec<Sample> {
    let is_ordered = vector.is_ordered;
    let (keys, values, histograms) = vector.into_parts();
    let mut samples: Vec<Sample> = keys
        .into_iter()
        .zip(values)
        .map(|(key, value)| Sample::number(key.labels, value))
        .collect();
    if let Some(rows) = histograms {
        for (idx, sample) in samples.iter_mut().enumerate() {
            sample.histogram = only_histogram(&rows, idx);
        }
    }
    if !is_ordered {
        samples.sort_by(|a, b| a.labels.cmp(&b.labels));
    }
    samples
}

/// What all parts of one evaluation share. One thread's.
pub(crate) struct Context<'a> {
    pub source: &'a dyn Source,
    pub options: &'a QueryOptions,
    /// What `start()` and `end()` stand for.
    pub start_ms: i64,
    pub end_ms: i64,
    /// The query's own step, zero for an instant.
    pub step_ms: i64,
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
    fn new(
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

    fn watching(self, collision: Collision) -> Context<'a> {
        self.collision.set(collision);
        self
    }

    /// As [`QueryOptions::check`].
    pub fn check(&self) -> Result<()> {
        self.options.check()
    }

    /// Fails when the evaluation holds more than it may.
    pub fn check_memory(&self) -> Result<()> {
        let limits = &self.options.limits;
        if limits.samples_max < self.usage.samples.get() {
            return Err(too_many_samples());
        }
        let bytes = self.usage.bytes.get();
        if limits.memory_bytes_max < bytes {
            let (max, limit) = (limits.memory_bytes_max, limits.memory_limit);
            let flag = limit.flag();
            let message = format!("the query holds {bytes} bytes, the limit is {max} ({flag})");
            return Err(QueryError::Limit { limit, message });
        }
        Ok(())
    }

    /// Fails when a grid has so many steps that one row of it would be over the sample limit.
    pub fn check_steps(&self, grid: Grid) -> Result<()> {
        if self.options.limits.samples_max < grid.len as u64 {
            return Err(too_many_samples());
        }
        Ok(())
    }

    pub fn select_limits(&self) -> SelectLimits {
        SelectLimits {
            series_max: self.options.limits.series_max,
            deadline: self.options.deadline,
            cost_max: self.options.limits.select_cost_max,
            missing: Some(Arc::clone(&self.missing)),
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
    fn sorting<T>(&self, sort: impl FnOnce() -> T) -> T {
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

    /// The vector with the names dropped that were to be dropped late.
    fn named(&self, vector: Vector) -> Result<Vector> {
        if !vector.keys().iter().any(|key| key.drops_name) {
            return Ok(vector);
        }
        vector.rekey(
            |key| {
                if key.drops_name { key.nameless(NameRemoval::AtOnce) } else { key.clone() }
            },
        )
    }

    fn finish(&self, value: Value) -> Result<QueryResult> {
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

/// Prometheus' words.
fn too_many_samples() -> QueryError {
    let message = "query processing would load too many samples into memory in query execution";
    QueryError::Limit { limit: Limit::Samples, message: message.to_string() }
}

impl From<SourceError> for QueryError {
    fn from(error: SourceError) -> QueryError {
        match error {
            SourceError::DeadlineExceeded => QueryError::Timeout("expression evaluation"),
            SourceError::LimitExceeded { limit, message } => QueryError::Limit { limit, message },
            SourceError::Changed => QueryError::Changed,
            SourceError::Failed(message) => QueryError::Storage(message),
        }
    }
}
