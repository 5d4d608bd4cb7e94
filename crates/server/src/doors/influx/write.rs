//! InfluxDB's doors: line protocol in (1.x and 2.x), and the handshakes that its clients begin with.
//!
//! A request without an error is 204. Bad lines are told in InfluxDB's words with 400, after the
//! good ones were stored; clients that drop the batch then lose only what was bad.

use crate::app::App;
use crate::doors::http::answer::{Answer, JSON};
use crate::doors::http::insert::{durability, extra_labels};
use crate::doors::http::request::Request;
use crate::doors::http::unpack;
use crate::failure::Failure;
use crate::ingest::Outcome;
use crate::telemetry::Protocol;
use hyper::{Method, StatusCode};
use serde_json::json;
use std::sync::Arc;
use wire::Start;
use wire::influx::{InfluxKeys, Options, Precision, decode, error_text};

/// What clients that ask for a version are told: 1.8 is the last that all of them know.
const VERSION: &str = "1.8.10";

/// `POST /write?db=...&precision=...`
pub fn write_v1(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let database = request.params.filled("db");
    let (outcome, text) = write(app, request, database)?;
    if outcome.is_complete() {
        return Ok(Answer::no_content().with_header("x-influxdb-version", VERSION));
    }
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(256).collect();
    let body = json!({ "error": text }).to_string().into_bytes();
    Ok(Answer::bytes(StatusCode::BAD_REQUEST, JSON, body)
        .with_header("x-influxdb-version", VERSION)
        .with_header("x-influxdb-error", line))
}

/// `POST /api/v2/write?bucket=...&precision=...`
pub fn write_v2(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    // A bucket that maps a 1.x database is called `database/retention-policy`.
    let bucket = request.params.filled("bucket").or(request.params.filled("db"));
    let database = bucket.map(|name| name.split_once('/').map_or(name, |(database, _)| database));
    let (outcome, text) = write(app, request, database)?;
    if outcome.is_complete() {
        return Ok(Answer::no_content());
    }
    let first_error = outcome.errors.kept().first().map(|error| error.position);
    let first_rejection = outcome.rejections.first().map(|row| row.position);
    let line = first_error.into_iter().chain(first_rejection).min();
    let body = json!({ "code": "invalid", "message": text, "line": line });
    Ok(Answer::bytes(StatusCode::BAD_REQUEST, JSON, body.to_string().into_bytes()))
}

/// Stores the lines of a request; also returns what was refused, in InfluxDB's words.
fn write(
    app: &App,
    request: &Request,
    database: Option<&str>,
) -> Result<(Outcome, String), Failure> {
    let word = request.params.get("precision").unwrap_or("");
    let precision = Precision::parse(word).ok_or_else(|| {
        Failure::bad_input(format!("invalid precision {word:?} (use n, u, ms, s, m or h)"))
    })?;
    let durability = durability(app, request)?;
    let label = &app.config.insert.database_label;
    let first = match database {
        Some(name) if !label.is_empty() => vec![(label.clone(), name.to_string())],
        _ => Vec::new(),
    };
    let keys = InfluxKeys::new(extra_labels(request, first)?);
    let body = unpack::body(app, request)?;
    let options = Options { precision, now: request.now };
    let hasher = app.store.hasher();
    let mut outcome = Outcome::default();
    let mut start = Start::default();
    loop {
        let decoded = decode(&body, start, &options, &hasher, &keys)?;
        let rest = decoded.rest;
        outcome.append(app, decoded, durability)?;
        match rest {
            Some(next) => start = next,
            None => break,
        }
    }
    outcome.finish(app, Protocol::Influx, request.body.len())?;
    let Outcome { errors, rejections, rejected, samples, .. } = &outcome;
    let text = match outcome.is_complete() {
        true => String::new(),
        false => error_text(&body, errors, rejections, *rejected, *samples),
    };
    body.give_back(app);
    Ok((outcome, text))
}

/// `/query`: enough of InfluxQL that Telegraf and client libraries find a server they know.
pub fn query(_app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let text = request.params.get("q").unwrap_or("").trim().trim_end_matches(';').trim();
    if text.is_empty() {
        return Err(Failure::bad_input("missing required parameter \"q\""));
    }
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let result = match words.as_slice() {
        ["show", "databases", ..] => {
            let values = json!([["quipu"]]);
            let series = json!([{ "name": "databases", "columns": ["name"], "values": values }]);
            json!({ "statement_id": 0, "series": series })
        }
        ["show", "retention", "policies", ..] => {
            let columns = json!(["name", "duration", "shardGroupDuration", "replicaN", "default"]);
            let values = json!([["autogen", "0s", "168h0m0s", 1, true]]);
            json!({ "statement_id": 0, "series": [{ "columns": columns, "values": values }] })
        }
        // Databases need no creating: the name becomes a label.
        ["create", "database", ..] if request.method == Method::POST => {
            json!({ "statement_id": 0 })
        }
        ["create", "database", ..] => return Err(Failure::bad_input("CREATE DATABASE needs POST")),
        _ => json!({
            "statement_id": 0,
            "error": "InfluxQL queries are not available; query with PromQL at /api/v1/query_range",
        }),
    };
    Ok(Answer::json(&json!({ "results": [result] })).with_header("x-influxdb-version", VERSION))
}

/// `/ping`: 204, or the version on demand.
pub fn ping(_app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let answer = match request.params.get("verbose") {
        None | Some("false" | "0") => Answer::no_content(),
        Some(_) => Answer::json(&json!({ "version": VERSION })),
    };
    Ok(answer.with_header("x-influxdb-version", VERSION).with_header("x-influxdb-build", "OSS"))
}

/// `/health` as InfluxDB says it.
pub fn health(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::json(&json!({
        "name": "quipu", "message": "ready for queries and writes", "status": "pass",
        "checks": [], "version": VERSION,
    })))
}
