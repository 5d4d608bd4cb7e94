//! InfluxDB's doors in: line protocol, 1.x and 2.x.
//!
//! A request without an error is 204. Bad lines are told in InfluxDB's words with 400, after the
//! good ones were stored; clients that drop the batch then lose only what was bad.

use super::query::table_name;
use crate::app::App;
use crate::doors::http::answer::{Answer, JSON};
use crate::doors::http::insert::{durability, extra_labels};
use crate::doors::http::request::Request;
use crate::doors::http::unpack;
use crate::failure::Failure;
use crate::ingest::Outcome;
use crate::telemetry::Protocol;
use hyper::StatusCode;
use serde_json::json;
use std::sync::Arc;
use wire::Start;
use wire::influx::{InfluxKeys, Options, Precision, decode, error_text};

/// What clients that ask for a version are told: 1.8 is the last that all of them know.
pub(super) const VERSION: &str = "1.8.10";

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
    let table = table_name(app, database.unwrap_or(""));
    let keys = InfluxKeys::new(extra_labels(request, first)?);
    let body = unpack::body(app, request)?;
    let options = Options { precision, now: request.now };
    let hasher = app.store.hasher();
    let mut outcome = Outcome::default();
    let mut start = Start::default();
    loop {
        let decoded = decode(&body, start, &options, &hasher, &keys)?;
        let rest = decoded.rest;
        let learned = app.measurements.learn(&app.store, table, &body, &decoded.batch);
        let learned = learned.map_err(Failure::of_write)?;
        outcome.append(app, decoded, durability)?;
        app.measurements.confirm(&app.store, table, &learned).map_err(Failure::of_write)?;
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
