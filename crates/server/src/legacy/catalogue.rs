//! Which series, names and values a backend knows: the same JSON of all kinds.

use super::backend::Request;
use super::rule::Kind;
use super::selector;
use crate::commands::client::encode;
use crate::commands::migrate::days;
use crate::commands::migrate::victoriametrics::{FIRST, seconds};
use anyhow::{Context as _, bail, ensure};
use model::{Labels, LabelsBuilder, TimeRange};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use store::Asked;

/// The shape of every answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reply<T> {
    status: String,
    #[serde(default)]
    is_partial: bool,
    data: Option<T>,
}

/// The labels of series.
pub fn series(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<Labels>> {
    let found: Vec<BTreeMap<String, String>> = get(request, "/api/v1/series", asked)?;
    request.check_series(found.len(), asked)?;
    let labels = |pairs: BTreeMap<String, String>| {
        let mut builder = LabelsBuilder::new();
        pairs.iter().for_each(|(name, value)| builder.push(name, value));
        builder.finish()
    };
    Ok(found.into_iter().map(labels).collect())
}

/// The names of their labels.
pub fn label_names(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<String>> {
    get(request, "/api/v1/labels", asked)
}

/// The values of one of their labels.
pub fn label_values(
    request: &mut Request<'_>,
    name: &str,
    asked: &Asked<'_>,
) -> anyhow::Result<Vec<String>> {
    get(request, &format!("/api/v1/label/{}/values", value_path(name)), asked)
}

/// Whether there is anything in a time.
pub fn has_any(request: &mut Request<'_>, range: &TimeRange) -> anyhow::Result<bool> {
    let span = span_of(request.kind(), range);
    let found: Vec<String> = parse(&request.text("/api/v1/labels", &format!("limit=1&{span}"))?)?;
    Ok(!found.is_empty())
}

fn get<T: DeserializeOwned + Default>(
    request: &mut Request<'_>,
    path: &str,
    asked: &Asked<'_>,
) -> anyhow::Result<T> {
    let kind = request.kind();
    let mut query = span_of(kind, &asked.range);
    // No selector at all is the quicker question, where it may be asked.
    if !asked.sets.is_empty() || path.ends_with("/series") {
        for text in selector::texts(kind, asked.sets) {
            query.push_str(&format!("&match[]={}", encode(&text)));
        }
    }
    parse(&request.text(path, &query)?)
}

/// The parameters that say which time.
pub fn span_of(kind: Kind, range: &TimeRange) -> String {
    let start = match kind {
        Kind::VictoriaMetrics => range.start.max(FIRST),
        Kind::Prometheus => range.start,
    };
    let (first, last) = days::millis(&TimeRange::new(start, range.end));
    // Of a cluster all or nothing; of a Quipu what it has itself, or two could ask each other for
    // ever.
    let switches = match kind {
        Kind::VictoriaMetrics => "deny_partial_response=1&nolegacy=1",
        Kind::Prometheus => "nolegacy=1",
    };
    format!("{switches}&start={}&end={}", seconds(first), seconds(last))
}

fn parse<T: DeserializeOwned + Default>(text: &[u8]) -> anyhow::Result<T> {
    let reply: Reply<T> = serde_json::from_slice(text).context("not the JSON that was expected")?;
    ensure!(!reply.is_partial, "a part of its cluster does not answer");
    match reply.status.as_str() {
        "success" => Ok(reply.data.unwrap_or_default()),
        _ => bail!(
            "it answers with the status {:?}",
            reply.status.chars().take(32).collect::<String>()
        ),
    }
}

/// A label's name as a piece of a path.
fn value_path(name: &str) -> String {
    encode(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_or_refused() {
        let names = |text: &str| parse::<Vec<String>>(text.as_bytes());
        let good = r#"{"status":"success","isPartial":false,"data":["a","b"],"warnings":["x"]}"#;
        assert_eq!(names(good).expect("names"), ["a", "b"]);
        assert!(names(r#"{"status":"success","data":null}"#).expect("none").is_empty());
        for bad in [
            r#"{"status":"success","isPartial":true,"data":[]}"#,
            r#"{"status":"error","errorType":"x","error":"y"}"#,
            r#"{"status":"success","data":{"a":1}}"#,
            r#"{"status":"success","data":["#,
            "<html>",
        ] {
            assert!(names(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_seconds() {
        let range = TimeRange::new(i64::MIN, 1_500_000_001);
        let of = |kind| span_of(kind, &range);
        assert_eq!(of(Kind::Prometheus), "nolegacy=1&start=-9223372036.854&end=1.500");
        let of_victoria = of(Kind::VictoriaMetrics);
        let expected = "deny_partial_response=1&nolegacy=1&start=86400.000&end=1.500";
        assert_eq!(of_victoria, expected);
    }
}
