//! What the doors out have in common: `match[]`, `start`, `end`, `limit`, `timeout`, `dialect`.

use super::request::Request;
use crate::app::App;
use crate::failure::Failure;
use crate::selector::matchers_of;
use model::{Matcher, TimeRange, Timestamp};
use promql::{Dialect, Expr, ParseError};
use std::time::{Duration, Instant};
use store::{Asks, SelectLimits};
use wire::params;

/// Selectors in one request.
const SELECTORS_MAX: usize = 1000;

/// The matcher sets of all `match[]` parameters (`match` will do); each must ask for something.
///
/// # Errors
/// 400 with the parser's words for text that is no selector.
pub fn matcher_sets(request: &Request) -> Result<Vec<Vec<Matcher>>, Failure> {
    parse_sets(request, promql::parse)
}

/// The same for doors that list what there is: a selector may match every series, as clients of
/// VictoriaMetrics ask with `{__name__=~".*"}`.
///
/// # Errors
/// As [`matcher_sets`].
pub fn listing_sets(request: &Request) -> Result<Vec<Vec<Matcher>>, Failure> {
    parse_sets(request, promql::parse_listing)
}

/// What makes a tree of a text.
type ParseFn = fn(&str) -> Result<Expr, ParseError>;

fn parse_sets(request: &Request, parse: ParseFn) -> Result<Vec<Vec<Matcher>>, Failure> {
    let texts: Vec<&str> =
        request.params.all("match[]").chain(request.params.all("match")).collect();
    if SELECTORS_MAX < texts.len() {
        let message = format!("{} match[] parameters, the limit is {SELECTORS_MAX}", texts.len());
        return Err(Failure::bad_input(message));
    }
    texts.into_iter().map(|text| parse_selector(text, parse)).collect()
}

/// The same, of which there must be one.
///
/// # Errors
/// As [`matcher_sets`].
pub fn required_matcher_sets(request: &Request) -> Result<Vec<Vec<Matcher>>, Failure> {
    required(matcher_sets(request)?)
}

/// The same of [`listing_sets`].
///
/// # Errors
/// As [`matcher_sets`].
pub fn required_listing_sets(request: &Request) -> Result<Vec<Vec<Matcher>>, Failure> {
    required(listing_sets(request)?)
}

fn required(sets: Vec<Vec<Matcher>>) -> Result<Vec<Vec<Matcher>>, Failure> {
    if sets.is_empty() {
        return Err(Failure::bad_input("no match[] parameter provided"));
    }
    Ok(sets)
}

fn parse_selector(text: &str, parse: ParseFn) -> Result<Vec<Matcher>, Failure> {
    let refuse = |reason| Failure::bad_input(format!("invalid parameter \"match[]\": {reason}"));
    let expr = parse(text).map_err(|error| refuse(error.to_string()))?;
    matchers_of(expr).ok_or_else(|| refuse(format!("{text:?} is no series selector")))
}

/// The instant that a parameter names.
///
/// # Errors
/// 400 for text that is no time.
pub fn time(request: &Request, name: &str) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = request.params.filled(name) else { return Ok(None) };
    let parsed = params::parse_time(text, request.now);
    parsed.map(Some).map_err(|error| invalid(name, &error))
}

/// A failure about one parameter, in Prometheus' words.
pub fn invalid(name: &str, reason: &dyn std::fmt::Display) -> Failure {
    Failure::bad_input(format!("invalid parameter {name:?}: {reason}"))
}

/// Whether a parameter that is yes or no is there and says yes.
///
/// # Errors
/// 400 for what is neither.
pub fn has_switch(request: &Request, name: &str) -> Result<bool, Failure> {
    match request.params.filled(name) {
        None | Some("0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(_) => Err(invalid(name, &"use 1 or 0")),
    }
}

/// Whether legacy backends are asked, too: not with `nolegacy=1`, for who compares what is here.
///
/// # Errors
/// 400 for what is neither yes nor no.
pub fn asks(request: &Request) -> Result<Asks, Failure> {
    Ok(if has_switch(request, "nolegacy")? { Asks::Own } else { Asks::All })
}

/// From `start` to `end`; without them, all time.
///
/// # Errors
/// 400 for text that is no time, or an end before the start.
pub fn time_range(request: &Request) -> Result<TimeRange, Failure> {
    let start = time(request, "start")?.unwrap_or(i64::MIN);
    let end = time(request, "end")?.unwrap_or(i64::MAX);
    if end < start {
        return Err(invalid("end", &"end timestamp must not be before start time"));
    }
    Ok(TimeRange::new(start, end))
}

/// `limit`; `None` when there is none, which `0` says too.
///
/// # Errors
/// 400 for text that is no number.
pub fn limit(request: &Request) -> Result<Option<usize>, Failure> {
    let Some(text) = request.params.filled("limit") else { return Ok(None) };
    let limit: usize = text.parse().map_err(|_| invalid("limit", &"must be a whole number"))?;
    Ok(Some(limit).filter(|limit| *limit != 0))
}

/// When to give up: after query.timeout, or earlier when `timeout` asks for less.
///
/// # Errors
/// 400 for text that is no duration.
pub fn deadline(app: &App, request: &Request) -> Result<Instant, Failure> {
    let longest = app.config.query.timeout;
    let timeout = match request.params.filled("timeout") {
        None => longest,
        Some(text) => {
            let nanos = params::parse_duration(text).map_err(|error| invalid("timeout", &error))?;
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)).min(longest)
        }
    };
    Ok(request.started + timeout)
}

/// Bounds on a selection.
///
/// # Errors
/// As [`deadline`].
pub fn limits(app: &App, request: &Request) -> Result<SelectLimits, Failure> {
    let deadline = Some(deadline(app, request)?);
    Ok(SelectLimits { series_max: app.config.query.series_max, deadline, cost_max: u64::MAX })
}

/// Bytes that a query may hold, and the limit that says so.
pub fn memory_max(app: &App) -> (u64, engine::Limit) {
    let config = &app.config.query;
    let share = app.memory.share_of_query(config.concurrency_max);
    match share < config.memory_max {
        true => (share, engine::Limit::Memory),
        false => (config.memory_max, engine::Limit::QueryMemory),
    }
}

/// Whose language the query is in: `dialect`, else query.dialect.
///
/// # Errors
/// 400 for a language that is not there.
pub fn dialect(app: &App, request: &Request) -> Result<Dialect, Failure> {
    match request.params.filled("dialect") {
        None => Ok(app.config.query.dialect),
        Some("promql") => Ok(Dialect::PromQl),
        Some("metricsql") => Ok(Dialect::MetricsQl),
        Some(other) => {
            Err(invalid("dialect", &format!("{other:?} is not known; use promql or metricsql")))
        }
    }
}
