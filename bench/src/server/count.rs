//! How many samples a server finds again, asked in its own language.

use super::Peer;
use crate::http::HttpClient;
use crate::instant::{SECOND_NS, format_rfc3339};
use crate::sql::SqlClient;
use crate::tsbs::FIELDS;
use crate::tsbs::queries::{Language, percent_encode};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::Duration;

/// Counting all samples may take so long.
const COUNT_TIMEOUT: Duration = Duration::from_secs(600);

/// The number of samples from the first to the last instant of `span_ns`, both included.
///
/// # Errors
/// When the server does not say, or cannot be asked.
pub fn stored_samples(peer: &Peer, authority: &str, span_ns: (i64, i64)) -> Result<f64> {
    let language = peer.language.with_context(|| format!("{} cannot be asked", peer.name))?;
    match language {
        Language::PromQl => promql(authority, span_ns),
        Language::InfluxQl => influxql(authority, span_ns),
        Language::Sql { .. } => sql(authority, span_ns),
    }
}

/// Adds up the metrics one by one, because strict PromQL refuses to count over several at once.
fn promql(authority: &str, (first_ns, last_ns): (i64, i64)) -> Result<f64> {
    let (start_s, end_s) = (first_ns / SECOND_NS, last_ns / SECOND_NS + 1);
    // A range is open at its start, so it begins a second early.
    let range_s = end_s - start_s + 1;
    let mut client = HttpClient::new(authority, COUNT_TIMEOUT);
    let path = format!("/api/v1/label/__name__/values?start={start_s}&end={end_s}");
    let names = get_json(&mut client, &path)?;
    let mut count = 0.0;
    for name in names["data"].as_array().context("no list of metric names")? {
        let name = name.as_str().context("a metric name is no text")?;
        let expression = format!("sum(count_over_time({{__name__={name:?}}}[{range_s}s]))");
        let path = format!("/api/v1/query?query={}&time={end_s}", percent_encode(&expression));
        let json = get_json(&mut client, &path)?;
        // A metric that the server knows from other times has no result.
        if let Some(text) = json["data"]["result"][0]["value"][1].as_str() {
            count += text.parse::<f64>()?;
        }
    }
    Ok(count)
}

/// Adds up all fields of all measurements.
fn influxql(authority: &str, (first_ns, last_ns): (i64, i64)) -> Result<f64> {
    let statement =
        format!("SELECT count(*) FROM /.*/ WHERE time >= {first_ns} AND time <= {last_ns}");
    let path = format!("/query?db=benchmark&q={}", percent_encode(&statement));
    let json = get_json(&mut HttpClient::new(authority, COUNT_TIMEOUT), &path)?;
    let result = &json["results"][0];
    ensure!(result["error"].is_null(), "{}", result["error"]);
    Ok(sum_of_counts(result))
}

/// The first column of each row is a time, the others are counts or null.
fn sum_of_counts(result: &Value) -> f64 {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let rows = list(&result["series"]).into_iter().flat_map(|series| list(&series["values"]));
    rows.flat_map(|row| list(&row).into_iter().skip(1)).filter_map(|count| count.as_f64()).sum()
}

fn sql(authority: &str, (first_ns, last_ns): (i64, i64)) -> Result<f64> {
    let counts = FIELDS.map(|field| format!("count({field})")).join(" + ");
    // Up to a second later than the last instant, which has no fraction then.
    let (first, last) = (format_rfc3339(first_ns), format_rfc3339(last_ns + SECOND_NS));
    let statement = format!("SELECT {counts} FROM cpu WHERE time >= '{first}' AND time < '{last}'");
    let rows = SqlClient::new(authority, COUNT_TIMEOUT).rows(&statement)?;
    Ok(rows.first.context("no count in the answer")?.parse()?)
}

fn get_json(client: &mut HttpClient, path: &str) -> Result<Value> {
    let answer = client.get(path)?;
    ensure!(answer.status == 200, "status {}: {}", answer.status, answer.excerpt());
    Ok(serde_json::from_slice(&answer.body)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_measurements_and_fields_are_added() {
        let result = serde_json::json!({"series": [
            {"name": "cpu", "columns": ["time", "count_a", "count_b"], "values": [["t", 1, 2]]},
            {"name": "m", "columns": ["time", "count_a", "count_b"], "values": [["t", null, 4]]},
        ]});
        assert_eq!(sum_of_counts(&result), 7.0);
        assert_eq!(sum_of_counts(&serde_json::json!({"statement_id": 0})), 0.0);
    }
}
