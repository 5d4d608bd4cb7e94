//! How a query is to be evaluated: its language, its bounds, when to give up.

use crate::error::{Limit, QueryError, Result};
use model::Matcher;
use promql::Dialect;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use store::Asks;

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
    /// Whether other databases are asked for what they have.
    pub asks: Asks,
    /// Label filters that confine the query: each series must match at least one. Empty: no restriction.
    pub filters: Arc<[Vec<Matcher>]>,
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

/// Whether [`crate::QueryResult::step_samples`] is wanted.
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
            asks: Asks::All,
            filters: Arc::default(),
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
    pub(crate) fn is_try(&self) -> bool {
        self.limits.select_cost_max < u64::MAX
    }
}
