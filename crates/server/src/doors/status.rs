//! What the server tells about itself: signs of life, versions, flags, metrics, cardinality.

use super::answer::{Answer, Failure};
use super::request::Request;
use super::selection;
use crate::app::App;
use hyper::StatusCode;
use model::sample::{NANOS_PER_DAY, NANOS_PER_MILLI, NANOS_PER_SECOND};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::{CardinalityRequest, NameCount};

/// The version of Prometheus whose API this is, as Grafana decides by it what to ask for.
const PROMETHEUS_VERSION: &str = "3.5.0";

/// Rows of each list of `/api/v1/status/tsdb`, when not asked otherwise, and at most.
const TOP_DEFAULT: usize = 10;
const TOP_MAX: usize = 1000;

/// `/-/healthy`: the process lives.
pub fn healthy(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::text("Quipu is healthy.\n"))
}

/// `/-/ready`: requests are welcome.
pub fn ready(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    if app.is_stopping.load(Relaxed) {
        let message = "Quipu is stopping.";
        return Err(Failure::other(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message));
    }
    Ok(Answer::text("Quipu is ready.\n"))
}

/// `/metrics`
pub fn metrics(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let mut answer = Answer::text(exposition(app));
    answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    Ok(answer)
}

/// The text of `/metrics`.
pub fn exposition(app: &App) -> String {
    let started = app.started_at as f64 / NANOS_PER_SECOND as f64;
    app.telemetry.exposition(&app.store.stats(), started)
}

/// `/api/v1/status/buildinfo`: the shape and a version that Grafana's Prometheus source knows.
pub fn build(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({
        "version": PROMETHEUS_VERSION,
        "revision": "",
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
        "application": "quipu",
        "quipuVersion": env!("CARGO_PKG_VERSION"),
    })))
}

/// `/api/v1/status/runtimeinfo`
pub fn runtime(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let stats = app.store.stats();
    Ok(Answer::success(json!({
        "startTime": rfc3339(app.started_at),
        "CWD": std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default(),
        "hostname": "",
        "serverTime": rfc3339(app.vfs.now()),
        "reloadConfigSuccess": true,
        "lastConfigTime": rfc3339(app.started_at),
        "corruptionCount": stats.corrupt_parts_total,
        "goroutineCount": crate::process::figures().threads,
        "GOMAXPROCS": crate::config::cpus(),
        "GOMEMLIMIT": 0,
        "GOGC": "",
        "GODEBUG": "",
        "storageRetention": app.config.settings.text("retention"),
        "readOnlyReason": stats.read_only_reason,
    })))
}

/// `YYYY-MM-DDTHH:MM:SS.mmmZ`
fn rfc3339(timestamp: i64) -> String {
    let day = timestamp.div_euclid(NANOS_PER_DAY);
    let millis = timestamp.rem_euclid(NANOS_PER_DAY) / NANOS_PER_MILLI;
    let (year, month, day) = civil(day);
    let (seconds, millis) = (millis / 1000, millis % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a day number since 1970, by counting from a 1 March: then leap days come last.
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468; // days from 0000-03-01 to 1970-01-01
    let era = shifted.div_euclid(146_097); // days in 400 years
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// `/api/v1/status/flags`
pub fn flags(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let flags: Map<String, Value> =
        app.config.settings.shown().map(|(name, text)| (name.to_string(), json!(text))).collect();
    Ok(Answer::success(Value::Object(flags)))
}

/// `/api/v1/status/config`: the settings as a TOML file would hold them.
pub fn config(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let lines: String = app
        .config
        .settings
        .shown()
        .filter(|(name, text)| *name != "config" && !text.is_empty())
        .map(|(name, text)| format!("{name:?} = {text:?}\n"))
        .collect();
    Ok(Answer::success(json!({ "yaml": lines })))
}

/// `/api/v1/rules`: there are none; Grafana asks.
pub fn no_rules(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({ "groups": [] })))
}

/// `/api/v1/alerts`: there are none; Grafana asks.
pub fn no_alerts(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({ "alerts": [] })))
}

/// `/api/v1/status/tsdb`: which metrics, labels and pairs make the series.
pub fn cardinality(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let top = request.params.filled("limit").or(request.params.filled("topN"));
    let top_n = match top.map(str::parse::<usize>) {
        None => TOP_DEFAULT,
        Some(Ok(top)) if 0 < top => top.min(TOP_MAX),
        Some(_) => return Err(Failure::bad_data("limit must be a number from 1")),
    };
    let day = request.params.filled("date").map(parse_day).transpose()?;
    let sets = selection::matcher_sets(request)?;
    let found = app.store.cardinality(&CardinalityRequest { top_n, day, sets })?;
    let stats = app.store.stats();
    let (min, max) = found.time_min_max.or(stats.time_min_max).unwrap_or((0, 0));
    Ok(Answer::success(json!({
        "headStats": {
            "numSeries": found.series,
            "numLabelPairs": found.label_pairs,
            "chunkCount": stats.parts,
            "minTime": min / NANOS_PER_MILLI,
            "maxTime": max / NANOS_PER_MILLI,
        },
        "seriesCountByMetricName": counts(&found.by_metric),
        "labelValueCountByLabelName": counts(&found.values_by_label),
        "memoryInBytesByLabelName": counts(&found.bytes_by_label),
        "seriesCountByLabelValuePair": counts(&found.by_pair),
    })))
}

fn counts(list: &[NameCount]) -> Vec<Value> {
    list.iter().map(|row| json!({ "name": row.name, "value": row.count })).collect()
}

/// `YYYY-MM-DD` to a day number since 1970.
fn parse_day(text: &str) -> Result<i32, Failure> {
    let refuse = || Failure::bad_data(format!("date {text:?} is not of the form YYYY-MM-DD"));
    let mut pieces = text.split('-').map(|piece| piece.parse::<i64>().ok());
    let mut next = || pieces.next().flatten().ok_or_else(refuse);
    let (year, month, day) = (next()?, next()?, next()?);
    if !(1970..2263).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(refuse());
    }
    // Three years around the guess hold the day.
    let guess = (year - 1970) * 365 + (year - 1969) / 4;
    let found = (guess - 2..guess + 400).find(|number| civil(*number) == (year, month, day));
    found.and_then(|number| i32::try_from(number).ok()).ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(rfc3339(1_456_790_399_123_000_000), "2016-02-29T23:59:59.123Z");
        for day in [0, 59, 365, 19_782, 19_783, 20_000, 60_000] {
            let (year, month, date) = civil(day);
            let text = format!("{year:04}-{month:02}-{date:02}");
            assert_eq!(parse_day(&text).ok(), Some(day as i32), "{text}");
        }
        for bad in ["", "2024", "2024-02-30", "2024-13-01", "x-y-z", "9999-01-01"] {
            assert!(parse_day(bad).is_err(), "{bad}");
        }
    }
}
