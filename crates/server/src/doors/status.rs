//! What the server tells about itself: signs of life, versions, flags, metrics, cardinality.

use super::answer::{Answer, Failure};
use super::request::Request;
use super::selection;
use crate::app::App;
use crate::calendar::{parse_day, rfc3339};
use hyper::StatusCode;
use model::sample::{NANOS_PER_MILLI, NANOS_PER_SECOND};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::{CardinalityRequest, NameCount};

/// The version of Prometheus whose API this is, as Grafana decides by it what to ask for.
const PROMETHEUS_VERSION: &str = "3.5.0";

/// Rows of each list of `/api/v1/status/tsdb`, when not asked otherwise, and at most.
const TOP_DEFAULT: usize = 10;
const TOP_MAX: usize = 1000;

/// `/-/healthy`: the process lives.
pub fn healthy(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::text("Quipu is healthy.\n"))
}

/// `/-/ready`: requests are welcome.
pub fn ready(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    if app.is_stopping.load(Relaxed) {
        let message = "Quipu is stopping.";
        return Err(Failure::other(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message));
    }
    Ok(Answer::text("Quipu is ready.\n"))
}

/// `/metrics`
pub fn metrics(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let mut answer = Answer::text(exposition(app));
    answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    Ok(answer)
}

/// The text of `/metrics`.
pub fn exposition(app: &App) -> String {
    let started = app.started_at as f64 / NANOS_PER_SECOND as f64;
    app.telemetry.exposition(&app.store.stats(), &app.memory, started)
}

/// `/api/v1/status/buildinfo`: the shape and a version that Grafana's Prometheus source knows.
pub fn build(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({
        "version": PROMETHEUS_VERSION,
        "revision": "",
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
        "application": "quipu",
        "quipuVersion": env!("CARGO_PKG_VERSION"),
    })))
}

/// `/api/v1/status/runtimeinfo`
pub fn runtime(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let stats = app.store.stats();
    Ok(Answer::success(json!({
        "startTime": rfc3339(app.started_at),
        "CWD": std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default(),
        "hostname": "",
        "serverTime": rfc3339(app.vfs.now()),
        "reloadConfigSuccess": true,
        "lastConfigTime": rfc3339(app.started_at),
        "corruptionCount": stats.corrupt_parts_total,
        "goroutineCount": crate::process::figures().threads,
        "GOMAXPROCS": crate::config::cpus(),
        "GOMEMLIMIT": 0,
        "GOGC": "",
        "GODEBUG": "",
        "storageRetention": app.config.settings.text("retention"),
        "readOnlyReason": stats.read_only_reason,
        "minTimeMs": stats.time_min_max.map(|(min, _)| min.div_euclid(NANOS_PER_MILLI)),
        "maxTimeMs": stats.time_min_max.map(|(_, max)| max.div_euclid(NANOS_PER_MILLI)),
    })))
}

/// `/api/v1/status/flags`
pub fn flags(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let flags: Map<String, Value> =
        app.config.settings.shown().map(|(name, text)| (name.to_string(), json!(text))).collect();
    Ok(Answer::success(Value::Object(flags)))
}

/// `/api/v1/status/config`: the settings as a TOML file would hold them.
pub fn config(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let lines: String = app
        .config
        .settings
        .shown()
        .filter(|(name, text)| *name != "config" && !text.is_empty())
        .map(|(name, text)| format!("{name:?} = {text:?}\n"))
        .collect();
    Ok(Answer::success(json!({ "yaml": lines })))
}

/// `/api/v1/rules`: there are none; Grafana asks.
pub fn no_rules(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({ "groups": [] })))
}

/// `/api/v1/alerts`: there are none; Grafana asks.
pub fn no_alerts(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({ "alerts": [] })))
}

/// `/api/v1/status/tsdb`: which metrics, labels and pairs make the series.
pub fn cardinality(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let top = request.params.filled("limit").or(request.params.filled("topN"));
    let top_n = match top.map(str::parse::<usize>) {
        None => TOP_DEFAULT,
        Some(Ok(top)) if 0 < top => top.min(TOP_MAX),
        Some(_) => return Err(Failure::bad_data("limit must be a number from 1")),
    };
    let date = request.params.filled("date");
    let day = date
        .map(|text| parse_day(text).ok_or_else(|| selection::invalid("date", &"use YYYY-MM-DD")))
        .transpose()?;
    let sets = selection::matcher_sets(request)?;
    let found = app.store.cardinality(&CardinalityRequest { top_n, day, sets })?;
    let stats = app.store.stats();
    let (min, max) = found.time_min_max.or(stats.time_min_max).unwrap_or((0, 0));
    Ok(Answer::success(json!({
        "headStats": {
            "numSeries": found.series,
            "numLabelPairs": found.label_pairs,
            "chunkCount": stats.parts,
            "minTime": min / NANOS_PER_MILLI,
            "maxTime": max / NANOS_PER_MILLI,
        },
        "seriesCountByMetricName": counts(&found.by_metric),
        "labelValueCountByLabelName": counts(&found.values_by_label),
        "memoryInBytesByLabelName": counts(&found.bytes_by_label),
        "seriesCountByLabelValuePair": counts(&found.by_pair),
    })))
}

fn counts(list: &[NameCount]) -> Vec<Value> {
    list.iter().map(|row| json!({ "name": row.name, "value": row.count })).collect()
}
