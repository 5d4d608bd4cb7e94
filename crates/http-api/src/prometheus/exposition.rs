//! Prometheus' exposition format and OpenMetrics in.
//!
//! Bad lines are told by number with 400, after the good ones were stored.

use super::push_path::labels_of_path;
use crate::http::answer::Answer;
use crate::http::insert;
use crate::http::insert::{durability, extra_labels};
use crate::http::request::Request;
use crate::http::request::unpack;
use app::App;
use app::ingest::Outcome;
use hyper::header::CONTENT_TYPE;
use model::sample::NANOS_PER_MILLI;
use net::failure::Failure;
use net::telemetry::Protocol;
use std::sync::Arc;
use wire::Start;
use wire::exposition::{self, Created, ExpositionKeys, Format};

/// `POST /api/v1/import/prometheus`, also below `.../metrics/job/...`
pub fn import(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let labels = labels_of_path(&request.captured)?;
    store(app, request, labels, Answer::no_content())
}

/// Stores the lines of a request, each with `labels`; returns `success` unless some were refused.
///
/// # Errors
/// When nothing was stored, or some of it must be sent again.
pub fn store(
    app: &App,
    request: &Request,
    labels: Vec<(String, String)>,
    success: Answer,
) -> Result<Answer, Failure> {
    let durability = durability(app, request)?;
    let of_path = labels.iter().map(|(name, _)| name.clone()).collect();
    let extra = extra_labels(request, labels)?.moving_others_aside(of_path);
    let keys = ExpositionKeys::new(extra);
    let options = exposition::Options {
        format: Format::of_content_type(request.header(CONTENT_TYPE)),
        now: default_time(request)?,
        created: match app.config.insert.keeps_starts {
            true => Created::Starts,
            false => Created::Samples,
        },
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
    let answer = insert::told(&outcome).unwrap_or(success);
    Ok(insert::with_unit_warning(app, &outcome, Protocol::Exposition, answer))
}

/// `?timestamp=` in milliseconds, else now in whole milliseconds: readers of exports in JSON lines
/// skip others.
fn default_time(request: &Request) -> Result<i64, Failure> {
    let Some(text) = request.params.filled("timestamp") else {
        return Ok(request.now - request.now.rem_euclid(NANOS_PER_MILLI));
    };
    let nanos = text.parse::<i64>().ok().and_then(|millis| millis.checked_mul(NANOS_PER_MILLI));
    nanos.ok_or_else(|| {
        Failure::bad_input(format!("timestamp {text:?} is no count of milliseconds"))
    })
}
