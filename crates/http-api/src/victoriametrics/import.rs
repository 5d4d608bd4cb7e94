//! JSON lines and VictoriaMetrics' native blocks in.
//!
//! Bad lines, and blocks, are told by number with 400, after the good ones were stored.

use super::strings;
use crate::http::answer::{Answer, TEXT};
use crate::http::insert;
use crate::http::insert::{durability, extra_labels};
use crate::http::request::Request;
use crate::http::request::unpack;
use app::App;
use app::block_strings::BlockStrings;
use app::ingest::Outcome;
use hyper::StatusCode;
use net::failure::Failure;
use net::telemetry::Protocol;
use std::sync::Arc;
use wire::json_lines::{self, JsonKeys};
use wire::vm_native::decode::SAMPLES_PER_REQUEST_MAX;
use wire::vm_native::{self, NativeKeys};
use wire::{Error, Limit, Start};

/// `POST /api/v1/import`
pub fn json_lines(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let durability = durability(app, request)?;
    let extra = extra_labels(request, Vec::new())?;
    let body = unpack::body(app, request)?;
    let renamed = strings::note_fields(app, &body, &extra)?;
    let strings = BlockStrings::new(&app.texts);
    let keys = JsonKeys::new(extra).with_texts(strings.for_decoder());
    let hasher = app.store.hasher();
    let mut outcome = Outcome::default();
    renamed.each_piece(&body, |lines, start| {
        let mut next = Some(start);
        while let Some(start) = next {
            let mut decoded = json_lines::decode(lines, start, &hasher, &keys)?;
            next = decoded.rest;
            strings.settle(app, &mut decoded, &mut outcome)?;
            outcome.append(app, decoded, durability)?;
        }
        Ok(())
    })?;
    body.give_back(app);
    outcome.finish(app, Protocol::JsonLines, request.body.len())?;
    let answer = insert::told(&outcome).unwrap_or_else(Answer::no_content);
    Ok(insert::with_unit_warning(app, &outcome, Protocol::JsonLines, answer))
}

/// `POST /api/v1/import/native`
pub fn native(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let durability = durability(app, request)?;
    let keys = NativeKeys::new(extra_labels(request, Vec::new())?);
    let body = unpack::body(app, request)?;
    let hasher = app.store.hasher();
    let mut outcome = Outcome::default();
    let mut next = Some(Start::default());
    let mut samples = 0;
    while let Some(start) = next {
        let decoded = vm_native::decode(&body, start, &hasher, &keys)?;
        next = decoded.rest;
        samples += decoded.counts.samples;
        if SAMPLES_PER_REQUEST_MAX < samples {
            let (limit, max) = (Limit::Samples, SAMPLES_PER_REQUEST_MAX);
            return Err(Error::LimitExceeded { limit, value: samples, max }.into());
        }
        outcome.append(app, decoded, durability)?;
    }
    body.give_back(app);
    outcome.finish(app, Protocol::Native, request.body.len())?;
    let answer = match outcome.is_complete() {
        true => Answer::no_content(),
        false => {
            let text = outcome.report("block") + "\n";
            Answer::bytes(StatusCode::BAD_REQUEST, TEXT, text.into_bytes())
        }
    };
    Ok(insert::with_unit_warning(app, &outcome, Protocol::Native, answer))
}
