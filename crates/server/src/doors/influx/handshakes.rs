//! What InfluxDB's clients ask before they do anything: signs of life, buckets, organisations.

use super::query::databases;
use super::write::VERSION;
use crate::app::App;
use crate::doors::http::answer::Answer;
use crate::doors::http::request::Request;
use crate::failure::Failure;
use model::sample::NANOS_PER_SECOND;
use serde_json::json;
use std::sync::Arc;

/// The one organisation.
const ORGANISATION: &str = "quipu";

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

/// `/ready` as InfluxDB 2 says it.
pub fn ready(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let mut started = String::new();
    influxql::format_time(app.started_at, None, &mut started);
    let up = (request.now - app.started_at).max(0) / NANOS_PER_SECOND;
    Ok(Answer::json(&json!({ "status": "ready", "started": started, "up": format!("{up}s") })))
}

/// `/api/v2/buckets`: the databases.
pub fn buckets(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let wanted = request.params.filled("name");
    let all = databases(app, request)?.into_iter();
    let named = all.filter(|name| wanted.is_none_or(|wanted| wanted == name));
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
