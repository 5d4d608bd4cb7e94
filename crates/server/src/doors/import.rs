//! Text in: Prometheus' exposition format and OpenMetrics, Pushgateway's paths, JSON lines.
//!
//! Bad lines are told by number with 400, after the good ones were stored.

use super::answer::{Answer, Failure, TEXT};
use super::insert::{Outcome, durability, extra_labels};
use super::request::{Request, decode_percent};
use super::unpack;
use crate::app::App;
use crate::telemetry::Protocol;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use model::sample::NANOS_PER_MILLI;
use std::sync::Arc;
use wire::Start;
use wire::exposition::{self, ExpositionKeys, Format};
use wire::json_lines::{self, JsonKeys};

/// `POST /api/v1/import`
pub fn json_lines(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let durability = durability(app, request)?;
    let keys = JsonKeys::new(extra_labels(request, Vec::new())?);
    let body = unpack::body(app, request)?;
    let hasher = app.store.hasher();
    let mut outcome = Outcome::default();
    let mut next = Some(Start::default());
    while let Some(start) = next {
        let decoded = json_lines::decode(&body, start, &hasher, &keys)?;
        next = decoded.rest;
        outcome.append(app, decoded, durability)?;
    }
    body.give_back(app);
    outcome.finish(app, Protocol::JsonLines, request.body.len())?;
    Ok(told(&outcome).unwrap_or_else(Answer::no_content))
}

/// `POST /api/v1/import/prometheus`, also below `.../metrics/job/...`
pub fn exposition(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let labels = path_labels(&request.captured)?;
    let refusal = store_exposition(app, request, labels)?;
    Ok(refusal.unwrap_or_else(Answer::no_content))
}

/// `POST /metrics/job/...`, where Pushgateway's clients expect 200.
pub fn pushgateway(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let labels = path_labels(&request.captured)?;
    let refusal = store_exposition(app, request, labels)?;
    Ok(refusal.unwrap_or_else(|| Answer::bytes(StatusCode::OK, "", Vec::new())))
}

/// Stores the lines of a request; returns what to answer if some were refused.
fn store_exposition(
    app: &App,
    request: &Request,
    labels: Vec<(String, String)>,
) -> Result<Option<Answer>, Failure> {
    let durability = durability(app, request)?;
    let keys = ExpositionKeys::new(extra_labels(request, labels)?);
    let options = exposition::Options {
        format: Format::of_content_type(request.header(CONTENT_TYPE)),
        now: default_time(request)?,
    };
    let body = unpack::body(app, request)?;
    let hasher = app.store.hasher();
    let mut outcome = Outcome::default();
    let mut next = Some(Start::default());
    while let Some(start) = next {
        let decoded = exposition::decode(&body, start, &options, &hasher, &keys)?;
        next = decoded.rest;
        outcome.append(app, decoded, durability)?;
    }
    body.give_back(app);
    outcome.finish(app, Protocol::Exposition, request.body.len())?;
    Ok(told(&outcome))
}

fn told(outcome: &Outcome) -> Option<Answer> {
    if outcome.is_complete() {
        return None;
    }
    let text = outcome.report("line") + "\n";
    Some(Answer::bytes(StatusCode::BAD_REQUEST, TEXT, text.into_bytes()))
}

/// `?timestamp=` in milliseconds, else now.
fn default_time(request: &Request) -> Result<i64, Failure> {
    let Some(text) = request.params.filled("timestamp") else { return Ok(request.now) };
    let nanos = text.parse::<i64>().ok().and_then(|millis| millis.checked_mul(NANOS_PER_MILLI));
    nanos
        .ok_or_else(|| Failure::bad_data(format!("timestamp {text:?} is no count of milliseconds")))
}

/// Labels in a path, behind its `job`: `/J/name/value`, or `@base64/J64/name@base64/value64`.
fn path_labels(captured: &str) -> Result<Vec<(String, String)>, Failure> {
    if captured.is_empty() {
        return Ok(Vec::new());
    }
    let path = format!("job{captured}");
    let pieces: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    if !pieces.len().is_multiple_of(2) {
        let message =
            format!("/metrics/{path}: the label {:?} has no value", pieces[pieces.len() - 1]);
        return Err(Failure::bad_data(message));
    }
    pieces.chunks_exact(2).map(|pair| path_label(pair[0], pair[1])).collect()
}

fn path_label(name: &str, value: &str) -> Result<(String, String), Failure> {
    let name = decode_percent(name.as_bytes());
    let value = decode_percent(value.as_bytes());
    let Some(name) = name.strip_suffix("@base64") else {
        return Ok((name.into_owned(), value.into_owned()));
    };
    let decoded = URL_SAFE_NO_PAD.decode(value.trim_end_matches('='));
    let text = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| {
        Failure::bad_data(format!("label {name:?}: {value:?} is no text in URL-safe base64"))
    })?;
    Ok((name.to_string(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(captured: &str, expected: &[(&str, &str)]) {
        let labels = path_labels(captured).expect("labels");
        let labels: Vec<(&str, &str)> =
            labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(labels, expected);
    }

    #[test]
    fn labels_in_paths() {
        check("", &[]);
        check("/j", &[("job", "j")]);
        check("/j/instance/a%2Fb/", &[("job", "j"), ("instance", "a/b")]);
        check("@base64/YS9i/x@base64/=", &[("job", "a/b"), ("x", "")]);
        assert!(path_labels("/j/instance").is_err());
        assert!(path_labels("@base64/!!").is_err());
    }
}
