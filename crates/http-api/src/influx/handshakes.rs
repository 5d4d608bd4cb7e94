//! What InfluxDB's clients ask before they do anything: signs of life, buckets, organisations.

use super::query;
use super::write::VERSION;
use crate::http::answer::Answer;
use crate::http::request::Request;
use crate::http::request::selection;
use app::App;
use model::sample::NANOS_PER_SECOND;
use net::failure::Failure;
use serde_json::json;
use std::sync::Arc;

/// The one organisation.
const ORGANISATION: &str = "quipu";

/// `/ping`: 204, or the version on demand.
pub fn ping(_app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let answer = match request.params.get("verbose") {
        None | Some("" | "false" | "0") => Answer::no_content(),
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

/// `/ready` as InfluxDB 2 says it.
pub fn ready(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let mut started = String::new();
    influxql::format_time(app.started_at, None, &mut started);
    let up = (request.now - app.started_at).max(0) / NANOS_PER_SECOND;
    Ok(Answer::json(&json!({ "status": "ready", "started": started, "up": format!("{up}s") })))
}

/// `/api/v2/buckets?name=...&id=...&after=...&offset=...&limit=...`: databases and their policies.
pub fn buckets(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let given = |parameter: &str| request.params.filled(parameter);
    let (wanted, id, after) = (given("name"), given("id"), given("after"));
    let limit = selection::limit(request)?.unwrap_or(usize::MAX);
    let offset = selection::count(request, "offset")?.unwrap_or(0);
    let mut all = query::buckets(app, request)?;
    if let Some(after) = after {
        let place = all.iter().position(|name| flux::bucket_id(name) == after);
        all.drain(..place.map_or(all.len(), |place| place + 1));
    }
    let is_named = |name: &String| {
        wanted.is_none_or(|wanted| wanted == name)
            && id.is_none_or(|id| flux::bucket_id(name) == id)
    };
    let named = all.into_iter().filter(is_named).skip(offset).take(limit);
    let list: Vec<serde_json::Value> = named.map(|name| bucket_json(&name)).collect();
    Ok(Answer::json(&json!({ "links": { "self": "/api/v2/buckets" }, "buckets": list })))
}

/// A database as InfluxDB 2 tells of a bucket.
pub(super) fn bucket_json(name: &str) -> serde_json::Value {
    json!({
        "id": flux::bucket_id(name), "orgID": flux::ORGANISATION_ID, "type": "user", "name": name,
        "retentionRules": [],
    })
}

/// `/api/v2/orgs`: there is one.
pub fn organisations(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let only = json!({ "id": flux::ORGANISATION_ID, "name": ORGANISATION, "status": "active" });
    Ok(Answer::json(&json!({ "links": { "self": "/api/v2/orgs" }, "orgs": [only] })))
}
