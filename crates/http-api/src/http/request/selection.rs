//! What the doors out have in common: `match[]`, `start`, `end`, `limit`, `timeout`, `dialect`.

use super::Request;
use app::App;
use model::{Matcher, TimeRange, Timestamp};
use net::failure::{Failure, Kind};
use promql::matchers_of;
use promql::{Dialect, Expr, ParseError, PatternChecker};
use std::time::{Duration, Instant};
use store::{Asks, SelectLimits};
use wire::params;

/// Selectors in one request.
const SELECTORS_MAX: usize = 1000;

/// The matcher sets of all `match[]` parameters (`match` will do); each must ask for something.
///
/// # Errors
/// 400 with the parser's words for text that is no selector.
pub fn matcher_sets(app: &App, request: &Request) -> Result<Vec<Vec<Matcher>>, Failure> {
    parse_sets(app, request, promql::parse_among)
}

/// The same for doors that list what there is: a selector may match every series, as clients of
/// VictoriaMetrics ask with `{__name__=~".*"}`.
///
/// # Errors
/// As [`matcher_sets`].
pub fn listing_sets(app: &App, request: &Request) -> Result<Vec<Vec<Matcher>>, Failure> {
    parse_sets(app, request, promql::parse_listing_among)
}

/// What makes a tree of a text.
type ParseFn = fn(&str, &mut PatternChecker) -> Result<Expr, ParseError>;

fn parse_sets(app: &App, request: &Request, parse: ParseFn) -> Result<Vec<Vec<Matcher>>, Failure> {
    let dialect = dialect(app, request)?;
    let texts: Vec<&str> =
        request.params.all("match[]").chain(request.params.all("match")).collect();
    if SELECTORS_MAX < texts.len() {
        let message = format!("{} match[] parameters, the limit is {SELECTORS_MAX}", texts.len());
        return Err(Failure::bad_input(message));
    }
    let (mut patterns, mut sets) = (PatternChecker::default(), Vec::new());
    for text in texts {
        match dialect {
            Dialect::PromQl => sets.push(parse_selector(text, parse, &mut patterns)?),
            Dialect::MetricsQl => {
                for alternative in metricsql_alternatives(text)? {
                    sets.push(parse_selector(&alternative, parse, &mut patterns)?);
                }
            }
        }
        if SELECTORS_MAX < sets.len() {
            let message =
                format!("match[] of {} selectors, the limit is {SELECTORS_MAX}", sets.len());
            return Err(Failure::bad_input(message));
        }
    }
    Ok(sets)
}

/// The alternatives of a selector of MetricsQL, `{a="1" or a="2"}`, as selectors of PromQL.
fn metricsql_alternatives(text: &str) -> Result<Vec<String>, Failure> {
    let refuse = |reason| Failure::bad_input(format!("invalid parameter \"match[]\": {reason}"));
    let expr = promql::metricsql::parse(text).map_err(|error| refuse(error.to_string()))?;
    let promql::metricsql::Expr::Selector(selector) = expr else {
        return Err(refuse(format!("{text:?} is no series selector")));
    };
    let print = |set: &Vec<Matcher>| {
        let filters: Vec<String> = set
            .iter()
            .map(|one| {
                format!("{}{}{}", promql::quote(&one.name), one.op, promql::quote(&one.value))
            })
            .collect();
        format!("{{{}}}", filters.join(","))
    };
    Ok(selector.sets.iter().map(print).collect())
}

/// The same, of which there must be one.
///
/// # Errors
/// As [`matcher_sets`].
pub fn required_matcher_sets(app: &App, request: &Request) -> Result<Vec<Vec<Matcher>>, Failure> {
    required(matcher_sets(app, request)?)
}

/// The same of [`listing_sets`].
///
/// # Errors
/// As [`matcher_sets`].
pub fn required_listing_sets(app: &App, request: &Request) -> Result<Vec<Vec<Matcher>>, Failure> {
    required(listing_sets(app, request)?)
}

fn required(sets: Vec<Vec<Matcher>>) -> Result<Vec<Vec<Matcher>>, Failure> {
    if sets.is_empty() {
        return Err(Failure::bad_input("no match[] parameter provided"));
    }
    Ok(sets)
}

fn parse_selector(
    text: &str,
    parse: ParseFn,
    patterns: &mut PatternChecker,
) -> Result<Vec<Matcher>, Failure> {
    let refuse = |reason| Failure::bad_input(format!("invalid parameter \"match[]\": {reason}"));
    let expr = parse(text, patterns).map_err(|error| refuse(error.to_string()))?;
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
    count(request, "limit")
}

/// A parameter that bounds how many there are, as [`limit`].
///
/// # Errors
/// As [`limit`].
pub fn count(request: &Request, name: &str) -> Result<Option<usize>, Failure> {
    let Some(text) = request.params.filled(name) else { return Ok(None) };
    let count: usize = text.parse().map_err(|_| invalid(name, &"must be a whole number"))?;
    Ok(Some(count).filter(|count| *count != 0))
}

/// When to give up: after query.timeout, or earlier when `timeout` asks for less.
///
/// # Errors
/// 400 for text that is no duration.
pub fn deadline(app: &App, request: &Request) -> Result<Instant, Failure> {
    let longest = app.config.query.timeout;
    let timeout = requested_timeout(request)?.map_or(longest, |timeout| timeout.min(longest));
    Ok(request.started + timeout)
}

fn requested_timeout(request: &Request) -> Result<Option<Duration>, Failure> {
    let Some(text) = request.params.filled("timeout") else { return Ok(None) };
    let nanos = params::parse_duration(text).map_err(|error| invalid("timeout", &error))?;
    Ok(Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))))
}

/// Names the parameter `timeout` in the failure of a request whose own time limit passed, not that of
/// the server.
pub fn name_timeout(longest: Duration, request: &Request, mut failure: Failure) -> Failure {
    let requested = requested_timeout(request).ok().flatten();
    if failure.kind == Kind::Timeout && requested.is_some_and(|timeout| timeout < longest) {
        let message = failure.message.replace("(query.timeout)", "(parameter timeout)");
        failure.message =
            message.replace("raise --query.timeout", "ask with a longer timeout=DURATION");
    }
    failure
}

/// Bounds on a selection that may take as long as its client reads, and ends when the client has closed
/// its connection.
///
/// # Errors
/// As [`deadline`].
pub fn limits_without_deadline(app: &App, request: &Request) -> Result<SelectLimits, Failure> {
    Ok(SelectLimits { deadline: None, ..limits(app, request)? })
}

/// Bounds on a selection. It also ends once the client has closed its connection.
///
/// # Errors
/// As [`deadline`].
pub fn limits(app: &App, request: &Request) -> Result<SelectLimits, Failure> {
    Ok(SelectLimits {
        series_max: app.config.query.series_max,
        deadline: Some(deadline(app, request)?),
        cancelled: Some(request.cancelled.clone()),
        cost_max: u64::MAX,
    })
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
