//! JSON lines in.
//!
//! Bad lines are told by number with 400, after the good ones were stored.

use crate::app::App;
use crate::doors::http::answer::Answer;
use crate::doors::http::insert::{self, durability, extra_labels};
use crate::doors::http::request::Request;
use crate::doors::http::unpack;
use crate::failure::Failure;
use crate::ingest::Outcome;
use crate::telemetry::Protocol;
use std::sync::Arc;
use wire::Start;
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
    Ok(insert::told(&outcome).unwrap_or_else(Answer::no_content))
}
