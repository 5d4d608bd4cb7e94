//! Queries that run, those that cost most lately, and an end to one: shapes of VictoriaMetrics.

use crate::http::answer::Answer;
use crate::http::request::Request;
use crate::http::request::selection::invalid;
use app::App;
use net::activity::{Active, Asked, DURATION_MIN, ENDED_MAX, Total};
use net::failure::Failure;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use wire::params;

/// How many queries a list has when the request does not say.
const TOP_DEFAULT: usize = 20;
/// How far back the lists look when the request does not say.
const LIFETIME_DEFAULT: Duration = Duration::from_secs(600);

/// `/api/v1/status/active_queries`
pub fn active(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let queries: Vec<Value> = app.activity.active().iter().map(describe).collect();
    Ok(Answer::json(&json!({ "status": "ok", "data": queries })))
}

fn describe((id, query): &(u64, Active)) -> Value {
    let Asked { text, start_ms, end_ms, step_ms } = &query.asked;
    json!({
        "duration": format!("{:.3}s", query.started.elapsed().as_secs_f64()),
        "id": format!("{id:016X}"),
        "remote_addr": query.peer.map_or(String::new(), |peer| peer.to_string()),
        "query": &**text,
        "start": start_ms,
        "end": end_ms,
        "step": step_ms,
    })
}

/// `POST /api/v1/status/active_queries/{id}/kill`
pub fn kill(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    end_query(app, &request.captured)
}

/// `DELETE /api/v1/status/active_queries?id=...`
pub fn kill_by_parameter(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    end_query(app, request.params.get("id").unwrap_or(""))
}

fn end_query(app: &App, id: &str) -> Result<Answer, Failure> {
    let number = u64::from_str_radix(id, 16);
    let number = number.map_err(|_| invalid("id", &"use an id of the active queries"))?;
    if !app.activity.kill(number) {
        return Err(Failure::not_found(format!("no query {id} is running")));
    }
    tracing::info!(id, "killed a query on request");
    Ok(Answer::success(json!({ "id": id })))
}

/// `/api/v1/status/top_queries?topN=...&maxLifetime=...`
pub fn top(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let count = match request.params.filled("topN").map(str::parse) {
        None => TOP_DEFAULT,
        Some(Ok(count)) if 0 < count => count,
        Some(_) => return Err(invalid("topN", &"must be a whole number above 0")),
    };
    let lifetime = match request.params.filled("maxLifetime") {
        None => LIFETIME_DEFAULT,
        Some(text) => {
            let nanos = params::parse_duration(text).map_err(|e| invalid("maxLifetime", &e))?;
            let nanos = u64::try_from(nanos);
            Duration::from_nanos(nanos.map_err(|_| invalid("maxLifetime", &"is below 0"))?)
        }
    };
    let totals = app.activity.totals(lifetime);
    let list = |rank: fn(&Total) -> u128, name: &str, value: fn(&Total) -> Value| {
        let mut order: Vec<&Total> = totals.iter().collect();
        order.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.text.cmp(&b.text)));
        let rows = order.into_iter().take(count).map(|total| row(total, name, value(total)));
        rows.collect::<Vec<Value>>()
    };
    let runs = |total: &Total| u128::from(total.count);
    Ok(Answer::json(&json!({
        "topN": count.to_string(),
        "maxLifetime": format!("{lifetime:?}"),
        "search.queryStats.lastQueriesCount": ENDED_MAX,
        "search.queryStats.minQueryDuration": format!("{DURATION_MIN:?}"),
        "topByCount": list(runs, "count", |total| json!(total.count)),
        "topByAvgDuration": list(
            |total| total.took.as_nanos() / u128::from(total.count),
            "avgDurationSeconds",
            |total| json!(total.took.as_secs_f64() / total.count as f64),
        ),
        "topBySumDuration": list(
            |total| total.took.as_nanos(),
            "sumDurationSeconds",
            |total| json!(total.took.as_secs_f64()),
        ),
        "topByAvgMemoryUsage": list(
            |total| u128::from(total.bytes / total.count),
            "avgMemoryBytes",
            |total| json!(total.bytes / total.count),
        ),
    })))
}

fn row(total: &Total, name: &str, value: Value) -> Value {
    let mut row = json!({
        "query": &*total.text,
        "timeRangeSeconds": total.range_seconds,
        "count": total.count,
    });
    row[name] = value;
    row
}
