//! What a query tells of itself besides its value: warnings, and `stats` and `trace` when asked.
//!
//! Times are measured, never guessed: what is not measured by itself is a part of what it stands in.

use crate::http::request::Request;
use crate::http::request::selection;
use crate::http::request::selection::has_switch;
use engine::{QueryResult, QueryStats, StepStats, Timings, Value};
use net::activity::Asked;
use net::failure::Failure;
use serde_json::json;
use std::time::{Duration, Instant};
use wire::prom_json::Notes;

/// What the request wants to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// Series in the answer at most.
    limit: Option<usize>,
    stats: bool,
    trace: bool,
}

impl Wishes {
    /// From `limit`, `stats` and `trace`.
    ///
    /// # Errors
    /// 400 for a limit that is no number, and a trace that is neither yes nor no.
    pub fn of(request: &Request) -> Result<Wishes, Failure> {
        let trace = has_switch(request, "trace")?;
        // As Prometheus: any text at all is a yes, but we believe a plain no.
        let stats = !matches!(request.params.filled("stats"), None | Some("0" | "false"));
        Ok(Wishes { limit: selection::limit(request)?, stats, trace })
    }
}

/// Whether the samples of each step are to be told: `stats=all`.
pub fn step_stats(request: &Request) -> StepStats {
    match request.params.filled("stats") {
        Some("all") => StepStats::Counted,
        _ => StepStats::Omitted,
    }
}

/// What there is to tell.
pub struct Report {
    notes: Notes,
    trace: Option<Trace>,
}

/// Where the time went, up to the encoding.
struct Trace {
    message: String,
    started: Instant,
    queued: Duration,
    evaluated: Instant,
    timings: Timings,
    stats: QueryStats,
    series: usize,
}

impl Report {
    /// Takes the notes of a result and cuts it to the limit. `queued` is how long the request
    /// waited before the query began.
    pub fn new(
        wishes: Wishes,
        request: &Request,
        asked: &Asked,
        queued: Duration,
        result: &mut QueryResult,
    ) -> Report {
        let mut notes = Notes {
            warnings: std::mem::take(&mut result.warnings),
            is_partial: result.is_partial,
            infos: std::mem::take(&mut result.infos),
            ..Notes::default()
        };
        if wishes.limit.is_some_and(|limit| cut(&mut result.value, limit)) {
            notes.warnings.push("results truncated due to limit".to_string());
        }
        let QueryResult { stats, timings, .. } = *result;
        if wishes.stats {
            let times = [("execQueueTime", queued), ("execTotalTime", request.started.elapsed())];
            notes.stats = stats_json(asked, result, times);
        }
        let trace = wishes.trace.then(|| Trace {
            message: asked_text(asked),
            started: request.started,
            queued,
            evaluated: Instant::now(),
            timings,
            stats,
            series: series_of(&result.value),
        });
        Report { notes, trace }
    }

    /// The notes for the end of the answer; a trace ends with this.
    pub fn notes(&self) -> Notes {
        let mut notes = self.notes.clone();
        if let Some(trace) = &self.trace {
            notes.trace = trace.json();
        }
        notes
    }
}

/// Whether series were left out.
fn cut(value: &mut Value, limit: usize) -> bool {
    let len = series_of(value);
    match value {
        Value::Vector(samples) => samples.truncate(limit),
        Value::Matrix(matrix) => matrix.truncate(limit),
        Value::Scalar(_) | Value::String(_) => return false,
    }
    limit < len
}

fn series_of(value: &Value) -> usize {
    match value {
        Value::Vector(samples) => samples.len(),
        Value::Matrix(matrix) => matrix.len(),
        Value::Scalar(_) | Value::String(_) => 1,
    }
}

/// The shape and the names of Prometheus.
fn stats_json(asked: &Asked, result: &QueryResult, times: [(&str, Duration); 2]) -> String {
    let QueryResult { stats, timings, step_samples, .. } = result;
    let seconds = |time: Duration| time.as_secs_f64();
    let mut told = json!({
        "timings": {
            "evalTotalTime": seconds(timings.evaluate),
            "resultSortTime": seconds(timings.sort),
            "queryPreparationTime": seconds(timings.select),
            "innerEvalTime": seconds(timings.work()),
        },
        "samples": {
            "totalQueryableSamples": stats.samples_read,
            "peakSamples": stats.samples_peak,
        },
    });
    for (name, time) in times {
        told["timings"][name] = json!(seconds(time));
    }
    if !step_samples.is_empty() {
        // Each step for itself, so samples that several see count several times, as in Prometheus.
        told["samples"]["totalQueryableSamples"] = json!(step_samples.iter().sum::<u64>());
        told["samples"]["totalQueryableSamplesPerStep"] = steps_json(asked, step_samples);
    }
    told.to_string()
}

/// `[[time in seconds, count], ...]`
fn steps_json(asked: &Asked, counts: &[u64]) -> serde_json::Value {
    let times =
        (0i64..).map(|idx| asked.start_ms.saturating_add(asked.step_ms.saturating_mul(idx)));
    let seconds = |at_ms: i64| match at_ms % 1000 {
        0 => json!(at_ms / 1000),
        _ => json!(at_ms as f64 / 1000.0),
    };
    times.zip(counts).map(|(at_ms, count)| json!([seconds(at_ms), count])).collect()
}

fn asked_text(asked: &Asked) -> String {
    let Asked { text, start_ms, end_ms, step_ms } = asked;
    match step_ms {
        0 => format!("/api/v1/query: query={text:?}, time={start_ms}"),
        _ => format!(
            "/api/v1/query_range: query={text:?}, start={start_ms}, end={end_ms}, step={step_ms}"
        ),
    }
}

impl Trace {
    /// The shape of VictoriaMetrics.
    fn json(&self) -> String {
        let Trace { timings, stats, series, .. } = self;
        let now = Instant::now();
        let leaf = |time: Duration, message: String| json!({ "duration_msec": millis(time), "message": message });
        let QueryStats { steps, steps_reused, samples_read, samples_peak, bytes_peak, .. } = stats;
        let work = format!(
            "read, roll up and combine {samples_read} samples at {steps} steps; \
             {steps_reused} steps were taken from an earlier answer; at most \
             {samples_peak} samples and {bytes_peak} bytes were held"
        );
        let evaluate = json!({
            "duration_msec": millis(timings.evaluate),
            "message": "evaluate",
            "children": [
                leaf(timings.select, format!("select: {} series found", stats.series)),
                leaf(timings.work(), work),
                leaf(timings.sort, format!("sort {series} series")),
            ],
        });
        json!({
            "duration_msec": millis(now - self.started),
            "message": format!("{}: {series} series", self.message),
            "children": [
                leaf(self.queued, "receive the request and wait for a turn".to_string()),
                leaf(timings.parse, "parse".to_string()),
                evaluate,
                leaf(now - self.evaluated, format!("encode and send {series} series")),
            ],
        })
        .to_string()
    }
}

/// Milliseconds, to the microsecond.
fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}
