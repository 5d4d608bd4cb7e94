//! Instant and range queries: parameters to the engine, its value to JSON as it is written.

use super::query_hints;
use super::report::{Report, Wishes, step_stats};
use crate::http::answer::PIECE_SIZE;
use crate::http::answer::{Answer, Content, JSON};
use crate::http::partial;
use crate::http::request::Request;
use crate::http::request::selection;
use crate::http::request::selection::{has_switch, invalid};
use app::App;
use engine::{
    Matrix, MetricsQlOptions, NameRemoval, Partial, QueryError, QueryLimits, QueryOptions,
    QueryResult, Sample, StepRange, Value,
};
use hyper::StatusCode;
use model::sample::NANOS_PER_MILLI;
use net::activity::{Active, Asked};
use net::failure::{Failure, Kind};
use promql::Dialect;
use promql::metricsql::{Expr, FunctionKind};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use wire::params;
use wire::prom_json::{self, ResultKind, push_scalar, push_string_result};

/// Points of an answer that is made as a whole: about 100 KiB. Larger ones are streamed.
const WHOLE_POINTS_MAX: usize = 4096;
/// The same where points are histograms, each as large as many numbers.
const WHOLE_HISTOGRAMS_MAX: usize = 64;

/// What a query may cost, in samples read, to be answered without a worker thread: half a
/// millisecond, ten times what handing it over and back costs. Long enough for the graphs of a
/// few series, too short for another connection to notice.
const BRIEF_COST_MAX: u64 = 250_000;

/// Steps that cost about as much to evaluate as the samples of a series to read.
const STEPS_PER_COST: u64 = 256;

/// `/api/v1/query?query=...&time=...`
pub fn instant(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    instant_with(app, request, options(app, request)?)
}

/// As [`instant`] when it is little work.
pub fn instant_brief(app: &Arc<App>, request: &Request) -> Option<Answer> {
    instant_with(app, request, brief_options(app, request)?).ok()
}

/// As [`range`] when it is little work.
pub fn range_brief(app: &Arc<App>, request: &Request) -> Option<Answer> {
    range_with(app, request, brief_options(app, request)?).ok()
}

fn brief_options(app: &App, request: &Request) -> Option<QueryOptions> {
    // Of what is short, the engine tries only what it sees to be brief once it is parsed.
    if BRIEF_TEXT_MAX < text(request).len() {
        return None;
    }
    let mut options = options(app, request).ok()?;
    options.deadline = options.deadline.map(|at| at.min(request.started + BRIEF_TIME_MAX));
    options.limits.select_cost_max = BRIEF_COST_MAX;
    options.limits.samples_max = options.limits.samples_max.min(BRIEF_COST_MAX);
    Some(options)
}

/// Bytes of an expression that may be little work.
const BRIEF_TEXT_MAX: usize = 1024;
/// When to give up what looked like little work and was not: many selectors, a cold disk.
const BRIEF_TIME_MAX: Duration = Duration::from_millis(5);

fn instant_with(
    app: &Arc<App>,
    request: &Request,
    options: QueryOptions,
) -> Result<Answer, Failure> {
    let at_ms = match selection::time(request, "time")? {
        Some(at) => at.div_euclid(NANOS_PER_MILLI),
        None => now_ms(request),
    };
    let steps = StepRange { start_ms: at_ms, end_ms: at_ms, step_ms: 0 };
    run(app, request, steps, &options, &|| {
        engine::instant(&*app.store, text(request), at_ms, &options)
    })
}

/// `/api/v1/query_range?query=...&start=...&end=...&step=...`
pub fn range(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    range_with(app, request, options(app, request)?)
}

fn range_with(
    app: &Arc<App>,
    request: &Request,
    mut options: QueryOptions,
) -> Result<Answer, Failure> {
    let steps = step_range(request, options.dialect)?;
    let StepRange { start_ms, end_ms, step_ms } = steps;
    if options.limits.select_cost_max < u64::MAX {
        let count = end_ms.saturating_sub(start_ms).max(0) / step_ms.max(1);
        options.limits.select_cost_max /= 1 + count as u64 / STEPS_PER_COST;
    }
    let reuses = !has_switch(request, "nocache")?;
    run(app, request, steps, &options, &|| match reuses {
        true => engine::range_cached(&*app.store, &app.results, text(request), steps, &options),
        false => engine::range(&*app.store, text(request), steps, &options),
    })
}

/// Evaluates a query that is listed as running meanwhile. One that is tried because it may be
/// brief is over before anybody could look, and counts only when that was all: else it comes again.
fn run(
    app: &App,
    request: &Request,
    steps: StepRange,
    options: &QueryOptions,
    evaluate: &dyn Fn() -> Result<QueryResult, QueryError>,
) -> Result<Answer, Failure> {
    let wishes = Wishes::of(request)?;
    let StepRange { start_ms, end_ms, step_ms } = steps;
    let asked = Asked { text: text(request).into(), start_ms, end_ms, step_ms };
    let queued = request.started.elapsed();
    let is_tried = options.limits.select_cost_max < u64::MAX;
    let result = match is_tried {
        true => evaluate(),
        false => {
            let (peer, started) = (request.peer, request.started);
            let cancelled = request.cancelled.clone();
            let active = Active { asked: asked.clone(), peer, started, cancelled };
            let mut running = app.activity.begin(active);
            let result = evaluate();
            running.bytes = result.as_ref().map_or(0, |result| result.stats.bytes_peak);
            result
        }
    };
    let mut result = result.map_err(|error| failure(error, &asked.text, options))?;
    let bytes = result.stats.bytes_peak;
    let is_partial = result.is_partial;
    let report = Report::new(wishes, request, &asked, queued, &mut result);
    let mut answer = answer(result.value, end_ms, report);
    if is_partial {
        answer = partial::mark(answer);
        app.telemetry.partial_answers.add(1);
    }
    if is_tried && !matches!(answer.content, Content::Stream(_)) {
        app.activity.note_ended(&asked, request.started, bytes);
    }
    Ok(answer)
}

/// `start`, `end` and `step`, which VictoriaMetrics' clients may leave out: the last five minutes.
fn step_range(request: &Request, dialect: Dialect) -> Result<StepRange, Failure> {
    let is_lax = dialect == Dialect::MetricsQl;
    let moment = |name: &str, default_ms: i64| match selection::time(request, name)? {
        Some(at) => Ok(at.div_euclid(NANOS_PER_MILLI)),
        None if is_lax => Ok(default_ms),
        None => Err(invalid(name, &"cannot parse \"\" to a valid timestamp")),
    };
    let start_ms = moment("start", now_ms(request) - METRICSQL_STEP_MS)?;
    let end_ms = moment("end", now_ms(request))?;
    let step_ms = match request.params.filled("step") {
        None if is_lax => METRICSQL_STEP_MS,
        text => {
            let step = params::parse_duration(text.unwrap_or(""));
            step.map_err(|error| invalid("step", &error))? / NANOS_PER_MILLI
        }
    };
    Ok(StepRange { start_ms, end_ms, step_ms })
}

/// The time of queries that name none: the millisecond that begins next, for a sample without a time
/// of its own has nanoseconds and was acknowledged in the one that runs.
fn now_ms(request: &Request) -> i64 {
    request.now.div_euclid(NANOS_PER_MILLI) + 1
}

/// VictoriaMetrics' step where none is given.
const METRICSQL_STEP_MS: i64 = 5 * 60_000;

fn metricsql_options(request: &Request) -> Result<MetricsQlOptions, Failure> {
    let duration_ms = |name: &str| -> Result<Option<i64>, Failure> {
        let Some(text) = request.params.filled(name) else { return Ok(None) };
        let nanos = params::parse_duration(text).map_err(|error| invalid(name, &error))?;
        Ok(Some(nanos / NANOS_PER_MILLI))
    };
    // VictoriaMetrics refuses the first two below a millisecond.
    let positive_ms = |name: &str| match duration_ms(name)? {
        Some(..=0) => Err(invalid(name, &"must be at least 1ms")),
        given => Ok(given),
    };
    let lookback_ms = match positive_ms("max_lookback")? {
        None => duration_ms("lookback_delta")?.filter(|ms| 0 < *ms),
        given => given,
    };
    Ok(MetricsQlOptions {
        step_ms: positive_ms("step")?.or(lookback_ms).unwrap_or(METRICSQL_STEP_MS),
        lookback_ms,
        now_ms: now_ms(request),
    })
}

fn text(request: &Request) -> &str {
    request.params.get("query").unwrap_or("")
}

/// `lookback_delta` of Prometheus, else `max_lookback` of VictoriaMetrics.
fn lookback_ms(request: &Request) -> Result<Option<i64>, Failure> {
    for name in ["lookback_delta", "max_lookback"] {
        if let Some(text) = request.params.filled(name) {
            let nanos = params::parse_duration(text).map_err(|error| invalid(name, &error))?;
            // Others ask for the default, as in Prometheus.
            return Ok(Some(nanos / NANOS_PER_MILLI).filter(|ms| 0 < *ms));
        }
    }
    Ok(None)
}

fn options(app: &App, request: &Request) -> Result<QueryOptions, Failure> {
    let config = &app.config.query;
    let lookback_ms = lookback_ms(request)?.unwrap_or(config.lookback.as_millis() as i64);
    let name_removal = match request.params.filled("name_removal") {
        None | Some("at_once") => NameRemoval::AtOnce,
        Some("late") => NameRemoval::Late,
        Some("keep_over_time") => NameRemoval::KeepOverTime,
        Some(_) => {
            return Err(invalid("name_removal", &"use at_once, late or keep_over_time"));
        }
    };
    let dialect = match selection::dialect(app, request)? {
        Dialect::PromQl if is_metricsql_call(request) => Dialect::MetricsQl,
        dialect => dialect,
    };
    let (memory_bytes_max, memory_limit) = selection::memory_max(app);
    Ok(QueryOptions {
        dialect,
        metricsql: match dialect {
            Dialect::PromQl => MetricsQlOptions::default(),
            Dialect::MetricsQl => metricsql_options(request)?,
        },
        experimental_functions: config.has_experimental,
        name_removal,
        lookback_ms,
        limits: QueryLimits {
            samples_max: config.samples_max as u64,
            series_max: config.series_max,
            memory_bytes_max,
            memory_limit,
            ..QueryLimits::default()
        },
        deadline: Some(selection::deadline(app, request)?),
        cancelled: Some(request.cancelled.clone()),
        partial: match partial::is_denied(app, request)? {
            true => Partial::Deny,
            false => Partial::Answer,
        },
        asks: selection::asks(request)?,
        filters: request.filters.clone(),
        step_stats: step_stats(request),
        start_timestamps: config.start_timestamps,
        ..QueryOptions::default()
    })
}

/// Whether a query that names no dialect is one call of a function that MetricsQL alone has, on a
/// selector: PromQL has no meaning for it. vmalert restores its state with `default_rollup(..)`.
fn is_metricsql_call(request: &Request) -> bool {
    let text = text(request).trim_start();
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let function = promql::metricsql::find_function(name);
    if name.is_empty()
        || promql::find_function(&name.to_ascii_lowercase()).is_some()
        || function.is_none_or(|function| function.kind == FunctionKind::Aggregate)
        || !rest.trim_start().starts_with('(')
        || request.params.filled("dialect").is_some()
        || promql::parse(text).is_ok()
    {
        return false;
    }
    let is_plain = |argument: &Expr| match argument {
        Expr::Number(_) | Expr::String(_) | Expr::Duration(_) | Expr::Selector(_) => true,
        Expr::Rollup(rollup) => matches!(rollup.expr, Expr::Selector(_)) && rollup.at.is_none(),
        _ => false,
    };
    let parsed = promql::metricsql::parse_without_templates(text);
    matches!(parsed, Ok(Expr::Call(call)) if call.arguments.iter().all(is_plain))
}

/// The failure that an error of the engine is to the client; limits are counted by their name.
fn failure(error: QueryError, query: &str, options: &QueryOptions) -> Failure {
    let text = error.to_string();
    match error {
        QueryError::Parse(error) => {
            let failure = invalid("query", &text);
            match query_hints::advice(query, &error, options) {
                Some(advice) => failure.advised(advice),
                None => failure,
            }
        }
        QueryError::BadData(_) => Failure::bad_input(text),
        QueryError::Partial(_) => partial::denial(text),
        QueryError::Execution(_) | QueryError::NotBrief => Failure::unanswerable(text),
        QueryError::Limit { limit, .. } => Failure::limited(limit.into(), text),
        QueryError::Timeout(_) => Failure::timeout(text),
        QueryError::Canceled(_) => Failure::new(Kind::Canceled, text),
        QueryError::Changed => Failure::busy(text),
        QueryError::Storage(_) => Failure::internal(text),
    }
}

fn answer(value: Value, at_ms: i64, report: Report) -> Answer {
    let mut whole = Vec::new();
    match value {
        Value::Scalar(value) => push_scalar(&mut whole, at_ms, value, &report.notes()),
        Value::String(text) => push_string_result(&mut whole, at_ms, &text, &report.notes()),
        Value::Vector(samples) if samples.len() <= whole_max(has_histograms(&samples)) => {
            write_vector(&mut whole, &samples, at_ms, &report).expect("memory takes every byte");
        }
        Value::Matrix(matrix) if matrix.cells() <= whole_max(matrix.has_histograms()) => {
            write_matrix(&mut whole, &matrix, &report).expect("memory takes every byte");
        }
        Value::Vector(samples) => {
            return stream(move |out| write_vector(out, &samples, at_ms, &report));
        }
        Value::Matrix(matrix) => return stream(move |out| write_matrix(out, &matrix, &report)),
    }
    Answer::bytes(StatusCode::OK, JSON, whole)
}

fn has_histograms(samples: &[Sample]) -> bool {
    samples.iter().any(|sample| sample.histogram.is_some())
}

fn whole_max(has_histograms: bool) -> usize {
    if has_histograms { WHOLE_HISTOGRAMS_MAX } else { WHOLE_POINTS_MAX }
}

fn stream(write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> Answer {
    Answer::stream(JSON, Box::new(write))
}

fn write_vector(
    out: &mut dyn Write,
    samples: &[Sample],
    at_ms: i64,
    report: &Report,
) -> io::Result<()> {
    let mut buffer = buffer_for(samples.len());
    let mut json = prom_json::Answer::begin(&mut buffer, ResultKind::Vector);
    for Sample { labels, value, histogram } in samples {
        match histogram {
            None => json.vector_sample(&mut buffer, labels, at_ms, *value),
            Some(histogram) => json.vector_histogram(&mut buffer, labels, at_ms, histogram),
        }
        hand_on(out, &mut buffer)?;
    }
    json.end(&mut buffer, &report.notes());
    out.write_all(&buffer)
}

fn write_matrix(out: &mut dyn Write, matrix: &Matrix, report: &Report) -> io::Result<()> {
    let mut buffer = buffer_for(matrix.cells());
    let mut json = prom_json::Answer::begin(&mut buffer, ResultKind::Matrix);
    for idx in 0..matrix.len() {
        let mut points = matrix.points(idx).peekable();
        let mut histograms = matrix.histograms(idx).peekable();
        if points.peek().is_none() && histograms.peek().is_none() {
            continue;
        }
        json.series(&mut buffer, matrix.labels(idx));
        for (millis, value) in points {
            json.point(&mut buffer, millis, value);
            if PIECE_SIZE <= buffer.len() {
                hand_on(out, &mut buffer)?;
            }
        }
        for (millis, histogram) in histograms {
            json.histogram(&mut buffer, millis, histogram);
            hand_on(out, &mut buffer)?;
        }
    }
    json.end(&mut buffer, &report.notes());
    out.write_all(&buffer)
}

/// Memory to write so many points in, piece by piece when they are many: what is as large as a
/// piece costs an allocator as much as a small query does.
fn buffer_for(points: usize) -> Vec<u8> {
    Vec::with_capacity((2 * PIECE_SIZE).min(512 + POINT_SIZE * points))
}

/// Bytes of a point, about.
const POINT_SIZE: usize = 40;

/// Hands a full buffer on and empties it.
fn hand_on(out: &mut dyn Write, buffer: &mut Vec<u8>) -> io::Result<()> {
    if PIECE_SIZE <= buffer.len() {
        out.write_all(buffer)?;
        buffer.clear();
    }
    Ok(())
}
