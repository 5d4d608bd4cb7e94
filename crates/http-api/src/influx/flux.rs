//! `/api/v2/query`: Flux over the store.
//!
//! ```text
//! JSON or text ─ flux::run over query/source ─► tables ─ flux::Dialect ─► annotated CSV
//! ```
//!
//! All is read before the first byte is sent, so that what goes wrong has its status.

use super::query::source::StoreSource;
use crate::http::answer::Answer;
use crate::http::partial::Partial;
use crate::http::request::Request;
use crate::http::request::{selection, unpack};
use app::App;
use flux::{Dialect, Error, ErrorKind, Limits, Query};
use influx_schema::records::RECORDS_PATH;
use net::failure::{Failure, Kind};
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What answers are.
const CSV: &str = "text/csv; charset=utf-8";

/// What a request asks.
struct Asked {
    text: String,
    dialect: Dialect,
    /// The whole body, for `extern` and `params`.
    json: Value,
    now: i64,
}

/// `POST /api/v2/query`
pub fn query(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let body = unpack::body(app, request)?;
    let asked = asked(request, &body);
    body.give_back(app);
    let Asked { text, dialect, json, now } = asked?;
    let partial = Partial::of_mute_format(app, request)?;
    // It has the strings, and the types of fields.
    partial.note_side_file(app, RECORDS_PATH);
    // An earlier version may have lost them with the file of metadata.
    partial.note_side_file(app, "metadata");
    let limits = selection::limits(app, request)?;
    let deadline = limits.deadline;
    let source = StoreSource { app, questions: partial.noting(app).showing_all(), limits };
    let (memory_max, memory_limit) = selection::memory_max(app);
    let is_late = || deadline.is_some_and(|deadline| deadline < Instant::now());
    let is_over = || match request.cancelled.load(Ordering::Relaxed) {
        true => Some("nobody waits for the answer any more".to_string()),
        false => is_late().then(|| "the query took longer than --query.timeout".to_string()),
    };
    let filled = |name: &str| json.get(name).filter(|value| !value.is_null());
    let query =
        Query { text: &text, external: filled("extern"), parameters: filled("params"), now };
    let found = flux::run(&source, query, Limits { memory_max, is_over: &is_over });
    let outcomes = found.map_err(|error| match is_late() {
        true => Failure::timeout(error.words(&text)),
        false => failure(&error, &text, memory_limit),
    })?;
    let write = move |out: &mut dyn Write| dialect.write(&outcomes, out);
    partial.finish(app, Answer::stream(CSV, Box::new(write)))
}

/// Reads a body: JSON with the text in it, or the text alone.
fn asked(request: &Request, body: &[u8]) -> Result<Asked, Failure> {
    let as_text = || {
        let text = std::str::from_utf8(body);
        text.map(str::to_string).map_err(|_| Failure::bad_input("the query is not UTF-8"))
    };
    if request.has_media_type("application/vnd.flux") {
        let dialect = Dialect::default();
        return Ok(Asked { text: as_text()?, dialect, json: Value::Null, now: request.now });
    }
    let json: Value = serde_json::from_slice(body).map_err(|error| {
        Failure::bad_input(format!("invalid JSON: {error}")).advised(
            "send {\"query\": ..} as JSON, or Flux with Content-Type: application/vnd.flux",
        )
    })?;
    if let Some(kind) = json.get("type").and_then(Value::as_str).filter(|kind| *kind != "flux") {
        let failure = Failure::bad_input(format!("unknown query type {kind:?}"));
        return Err(failure.advised("send Flux here, and InfluxQL to /query"));
    }
    let Some(text) = json.get("query").and_then(Value::as_str).filter(|text| !text.is_empty())
    else {
        return Err(Failure::bad_input("request body requires either query or AST"));
    };
    let dialect = match json.get("dialect") {
        Some(dialect) => Dialect::of_json(dialect).map_err(Failure::bad_input)?,
        None => Dialect::default(),
    };
    let now = match json.get("now").and_then(Value::as_str) {
        None => request.now,
        Some(text) => flux::parse_time(text)
            .ok_or_else(|| Failure::bad_input(format!("invalid now: {text:?} is no RFC 3339")))?,
    };
    Ok(Asked { text: text.to_string(), dialect, now, json })
}

fn failure(error: &Error, text: &str, memory: engine::Limit) -> Failure {
    let words = error.words(text);
    match error.kind {
        ErrorKind::Syntax | ErrorKind::Name if is_influxql(text) => {
            Failure::bad_input(words).advised("this is InfluxQL: send it to /query?db=..&q=..")
        }
        ErrorKind::Syntax | ErrorKind::Name | ErrorKind::Runtime => Failure::bad_input(words),
        ErrorKind::NotFound => Failure::not_found(words),
        ErrorKind::Limit => Failure::limited(memory.into(), words),
        ErrorKind::Read => Failure::new(Kind::Unanswerable, words),
    }
}

/// Whether a text begins as a statement of InfluxQL, which no pipeline of Flux does.
fn is_influxql(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or("").to_ascii_uppercase();
    matches!(first.as_str(), "SELECT" | "SHOW" | "CREATE" | "DROP" | "DELETE" | "ALTER" | "EXPLAIN")
        && words.next().is_some_and(|second| !second.starts_with(['=', '(']))
}
