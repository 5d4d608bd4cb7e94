//! Which series, names and values a backend knows: the same JSON of all kinds but InfluxDB's.

use super::backend::Request;
use super::influx;
use super::lists::{LabelsOf, parse};
use super::rule::Kind;
use super::selector;
use http_client::client::encode;
use http_client::json_lines::{FIRST, seconds};
use model::{Labels, TimeRange};
use serde::de::DeserializeOwned;
use store::Asked;

/// Names of labels that the look at start reads.
const NAMES_MAX: usize = 1_000_000;

/// The labels of series.
pub fn series(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<Labels>> {
    if request.kind() == Kind::InfluxDb {
        return influx::series(request, asked);
    }
    let found: Vec<LabelsOf> = get(request, "/api/v1/series", asked)?;
    Ok(found.into_iter().map(|LabelsOf(labels)| labels).collect())
}

/// The names of their labels.
pub fn label_names(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<String>> {
    if request.kind() == Kind::InfluxDb {
        return influx::label_names(request, asked);
    }
    get(request, "/api/v1/labels", asked)
}

/// The values of one of their labels.
pub fn label_values(
    request: &mut Request<'_>,
    name: &str,
    asked: &Asked<'_>,
) -> anyhow::Result<Vec<String>> {
    if request.kind() == Kind::InfluxDb {
        return influx::label_values(request, name, asked);
    }
    get(request, &format!("/api/v1/label/{}/values", value_path(name)), asked)
}

/// Whether there is anything in a time.
pub fn has_any(request: &mut Request<'_>, range: &TimeRange) -> anyhow::Result<bool> {
    if request.kind() == Kind::InfluxDb {
        return influx::has_any(request);
    }
    let span = span_of(request.kind(), range);
    let text = request.text("/api/v1/labels", &format!("limit=1&{span}"))?;
    // Some do not know this limit.
    Ok(!parse::<String>(&text, NAMES_MAX)?.is_empty())
}

fn get<T: DeserializeOwned>(
    request: &mut Request<'_>,
    path: &str,
    asked: &Asked<'_>,
) -> anyhow::Result<Vec<T>> {
    let kind = request.kind();
    let mut query = span_of(kind, &asked.range);
    // No selector at all is the quicker question, where it may be asked.
    if !asked.sets.is_empty() || path.ends_with("/series") {
        for text in selector::texts(kind, asked.sets) {
            query.push_str(&format!("&match[]={}", encode(&text)));
        }
    }
    let text = request.text(path, &query)?;
    let found = parse(&text, asked.series_max.saturating_add(1))?;
    request.bounds().check_series(found.len(), asked)?;
    Ok(found)
}

/// The parameters that say which time.
pub fn span_of(kind: Kind, range: &TimeRange) -> String {
    let start = match kind {
        Kind::VictoriaMetrics => range.start.max(FIRST),
        Kind::Prometheus | Kind::InfluxDb => range.start,
    };
    let (first, last) = TimeRange::new(start, range.end).whole_millis();
    // Of a cluster all or nothing, of a Quipu too; and of that what it has itself, or two could ask
    // each other for ever.
    let switches = "deny_partial_response=1&nolegacy=1";
    format!("{switches}&start={}&end={}", seconds(first), seconds(last))
}

/// A label's name as a piece of a path.
fn value_path(name: &str) -> String {
    encode(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds() {
        let range = TimeRange::new(i64::MIN, 1_500_000_001);
        let of = |kind| span_of(kind, &range);
        let of_prometheus = of(Kind::Prometheus);
        let expected = "deny_partial_response=1&nolegacy=1&start=-9223372036.854&end=1.500";
        assert_eq!(of_prometheus, expected);
        let of_victoria = of(Kind::VictoriaMetrics);
        let expected = "deny_partial_response=1&nolegacy=1&start=86400.000&end=1.500";
        assert_eq!(of_victoria, expected);
    }
}
