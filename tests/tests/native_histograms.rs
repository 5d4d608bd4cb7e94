//! Native histograms from door to door: written by remote write, asked by PromQL, exported and
//! imported, deleted; after restarts too.

use anyhow::{Context, Result, ensure};
use e2e::{Launch, Response, Server, answers, percent};
use histogram::{Bucket, CUSTOM_SCHEMA, Histogram, ResetHint};
use serde_json::{Value, json};
use wire::remote_write::encode::{MillisSample, RequestV1, RequestV2};
use wire::remote_write::encode_histograms::{CountForm, MillisHistogram};

const V1: &str = "application/x-protobuf";
const V2: &str = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;
/// Between two samples.
const STEP: i64 = 15_000;

fn send(server: &Server, content_type: &str, message: &[u8]) -> Result<Response> {
    let body = snap::raw::Encoder::new().compress_vec(message)?;
    let headers = [("Content-Type", content_type), ("Content-Encoding", "snappy")];
    server.post_with("/api/v1/write", &headers, body)
}

fn bucket(index: i32, count: f64) -> Bucket {
    Bucket { index, count }
}

/// A server's latencies after `step` scrapes: each adds 1 of zero, 2 around 1 s and 1 around 3 s.
fn latency(step: i64) -> Histogram {
    let step = step as f64;
    Histogram {
        zero_threshold: 0.001,
        zero_count: step,
        count: 4.0 * step,
        sum: 5.0 * step,
        positive: vec![bucket(0, 2.0 * step), bucket(2, step)],
        ..Histogram::default()
    }
}

/// A series of them, one a step up to noon.
fn latencies(count: i64, form: CountForm) -> Vec<MillisHistogram> {
    let at = |step: i64| NOON - (count - step) * STEP;
    let steps = 1..=count;
    steps.map(|step| MillisHistogram { millis: at(step), histogram: latency(step), form }).collect()
}

/// The same as an answer of the API shows it.
fn shown(step: i64) -> Value {
    let text = |count: i64| count.to_string();
    json!({
        "count": text(4 * step),
        "sum": text(5 * step),
        "buckets": [
            [3, "-0.001", "0.001", text(step)],
            [0, "0.5", "1", text(2 * step)],
            [0, "2", "4", text(step)],
        ],
    })
}

fn result(server: &Server, query: &str, at_ms: i64) -> Result<Vec<Value>> {
    let data = server.get(&answers::instant_path(query, at_ms as f64 / 1e3))?.data()?;
    Ok(data["result"].as_array().context("a list")?.clone())
}

/// The one number that a query answers.
fn number(server: &Server, query: &str) -> Result<f64> {
    let found = server.vector(query, NOON as f64 / 1e3)?;
    ensure!(found.len() == 1, "{query}: {found:?}");
    Ok(found.values().next().context("one")?.parse()?)
}

/// What was written is there, asked in every way.
fn check_latencies(server: &Server) -> Result<()> {
    for job in ["whole", "float"] {
        let series = format!("latency_seconds{{job=\"{job}\"}}");
        let metric = json!({"__name__": "latency_seconds", "job": job});
        let instant = result(server, &series, NOON)?;
        assert_eq!(instant, [json!({"metric": metric, "histogram": [NOON / 1000, shown(20)]})]);
        let range = result(server, &format!("{series}[1m]"), NOON)?;
        let points: Vec<Value> = (17..=20)
            .map(|step| json!([(NOON - (20 - step) * STEP) / 1000, shown(step)]))
            .collect();
        assert_eq!(range, [json!({"metric": metric, "histograms": points})]);
        let path = format!(
            "/api/v1/query_range?query={}&start={}&end={}&step=15",
            percent(&series),
            (NOON - 3 * STEP) / 1000,
            NOON / 1000
        );
        let steps = server.get(&path)?.data()?["result"].clone();
        assert_eq!(steps, json!([{"metric": metric, "histograms": points}]));
        for (query, expected) in [
            (format!("histogram_count({series})"), 80.0),
            (format!("histogram_sum({series})"), 100.0),
            (format!("histogram_avg({series})"), 1.25),
            (format!("histogram_count(rate({series}[2m]))"), 4.0 / 15.0),
            (format!("histogram_fraction(0.5, 1, {series})"), 0.5),
            (format!("histogram_quantile(1, {series})"), 4.0),
        ] {
            let found = number(server, &query)?;
            ensure!((found - expected).abs() < 1e-9, "{query}: {found}, not {expected}");
        }
    }
    assert_eq!(number(server, "histogram_count(sum(latency_seconds))")?, 160.0);
    assert_eq!(number(server, "count(latency_seconds)")?, 2.0);
    check_names(server)
}

/// Nothing tells how histograms are kept.
fn check_names(server: &Server) -> Result<()> {
    assert_eq!(server.get("/api/v1/labels")?.data()?, json!(["__name__", "job"]));
    let names = server.get("/api/v1/label/__name__/values")?.data()?;
    assert_eq!(names, json!(["latency_seconds"]));
    for selector in ["{job!=\"\"}", "{__name__=~\".*\"}"] {
        let path = format!("/api/v1/series?match[]={}", percent(selector));
        let series = server.get(&path)?.data()?;
        assert_eq!(series.as_array().map(Vec::len), Some(2), "{series}");
    }
    Ok(())
}

fn write_latencies(server: &Server) -> Result<()> {
    let labels = |job| [("__name__", "latency_seconds"), ("job", job)];
    let mut one = RequestV1::new();
    one.mixed_series(&labels("whole"), &[], &latencies(20, CountForm::Whole));
    let answer = send(server, V1, one.as_bytes())?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    let mut two = RequestV2::new();
    two.mixed_series(&labels("float"), &[], &latencies(20, CountForm::Float));
    let answer = send(server, V2, &two.to_bytes())?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    assert_eq!(answer.header("x-prometheus-remote-write-histograms-written"), "20");
    assert_eq!(answer.header("x-prometheus-remote-write-samples-written"), "0");
    for protocol in ["remote_write_v1", "remote_write_v2"] {
        let name = format!("quipu_insert_histograms_total{{protocol=\"{protocol}\"}}");
        assert_eq!(server.metric(&name)?, 20.0);
    }
    Ok(())
}

#[test]
fn both_versions_are_kept_through_every_end() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path());
    let server = launch.start()?;
    write_latencies(&server)?;
    check_latencies(&server)?;
    // From the log alone, as nothing was flushed.
    server.kill()?;
    let server = launch.start()?;
    check_latencies(&server)?;
    let answer = server.post("/internal/force_flush", "")?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    check_latencies(&server)?;
    let server = server.restart()?;
    check_latencies(&server)?;
    let answer = server.post("/internal/force_merge", "")?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    check_latencies(&server)?;
    server.stop()
}

#[test]
fn a_bad_histogram_is_refused_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let good = latencies(2, CountForm::Whole);
    let mut bad = good.clone();
    bad[0].histogram.count += 1.0;
    for (version, job) in [(V1, "one"), (V2, "two")] {
        let labels = |idx| [("__name__", "latency_seconds"), ("idx", idx), ("job", job)];
        let samples = [MillisSample { millis: NOON, value: 1.0 }];
        let (mut one, mut two) = (RequestV1::new(), RequestV2::new());
        for (idx, histograms) in [("0", &good), ("1", &bad), ("2", &good)] {
            one.mixed_series(&labels(idx), &[], histograms);
            two.mixed_series(&labels(idx), &[], histograms);
        }
        one.series(&[("__name__", "up"), ("job", job)], &samples);
        two.series(&[("__name__", "up"), ("job", job)], &samples, None);
        let two = two.to_bytes();
        let message = if version == V1 { one.as_bytes() } else { &two };
        let answer = send(&server, version, message)?;
        assert_eq!(answer.status, 400, "{}", answer.excerpt());
        let text = answer.text();
        assert!(text.contains("6 samples stored, 1 "), "{text}");
        let reason = "series 1: histogram: 4 observations in its buckets, but its count is 5";
        assert!(text.contains(reason), "{text}");
        if version == V2 {
            assert_eq!(answer.header("x-prometheus-remote-write-histograms-written"), "5");
            assert_eq!(answer.header("x-prometheus-remote-write-samples-written"), "1");
        }
        let count = format!("sum(count_over_time(latency_seconds{{job=\"{job}\"}}[5m]))");
        assert_eq!(number(&server, &count)?, 5.0);
    }
    let refused = server.metric("quipu_insert_lossy_total{kind=\"native_histogram_refused\"}")?;
    assert_eq!(refused, 2.0);
    server.stop()
}

#[test]
fn floats_histograms_and_markers_take_turns() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let custom = Histogram {
        schema: CUSTOM_SCHEMA,
        reset_hint: ResetHint::Gauge,
        count: 3.0,
        sum: 1.5,
        positive: vec![bucket(0, 1.0), bucket(2, 2.0)],
        custom_bounds: vec![0.25, 1.0],
        ..Histogram::default()
    };
    let at = |step: i64| NOON + step * STEP;
    let sent =
        |step, histogram| MillisHistogram { millis: at(step), histogram, form: CountForm::Float };
    let histograms =
        [sent(1, latency(1)), sent(2, custom), sent(5, Histogram::stale()), sent(7, latency(2))];
    let samples = [0, 3, 4].map(|step| MillisSample { millis: at(step), value: step as f64 });
    let mut request = RequestV1::new();
    request.mixed_series(&[("__name__", "mixed")], &samples, &histograms);
    let answer = send(&server, V1, request.as_bytes())?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    let custom_shown = json!({
        "count": "3", "sum": "1.5",
        "buckets": [[3, "-Inf", "0.25", "1"], [0, "1", "+Inf", "2"]],
    });
    let path = format!(
        "/api/v1/query_range?query=mixed&start={}&end={}&step=15",
        at(0) / 1000,
        at(7) / 1000
    );
    let seconds = |step| at(step) / 1000;
    let expected = json!([{
        "metric": {"__name__": "mixed"},
        "values": [[seconds(0), "0"], [seconds(3), "3"], [seconds(4), "4"]],
        "histograms": [
            [seconds(1), shown(1)], [seconds(2), custom_shown], [seconds(7), shown(2)],
        ],
    }]);
    assert_eq!(server.get(&path)?.data()?["result"], expected);
    // The marker ends the series; text has the floats, and says that something is missing.
    assert_eq!(result(&server, "mixed", at(5))?.len(), 0);
    let text = server.get("/api/v1/export?format=prometheus&match[]=mixed")?;
    assert_eq!(text.header("x-quipu-left-out"), "native-histograms");
    assert_eq!(text.text().lines().count(), 4, "{}", text.excerpt());
    let lines = server.get("/api/v1/export?match[]=mixed")?;
    assert_eq!(lines.header("x-quipu-left-out"), "");
    // MetricsQL knows floats only.
    let path = format!(
        "/api/v1/query?dialect=metricsql&query={}&time={}",
        percent("count_over_time(mixed[10m])"),
        at(7) / 1000
    );
    let found = server.get(&path)?.vector()?;
    assert_eq!(found.values().collect::<Vec<_>>(), ["3"]);
    server.stop()
}

/// All JSON lines of a selector, sorted.
fn lines(server: &Server, selector: &str) -> Result<Vec<String>> {
    let answer = server.get(&format!("/api/v1/export?match[]={}", percent(selector)))?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    let mut lines: Vec<String> = answer.text().lines().map(str::to_string).collect();
    lines.sort();
    Ok(lines)
}

#[test]
fn exports_are_imports_and_deletions_delete() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(&directory.path().join("first")).start()?;
    write_latencies(&server)?;
    let exported = lines(&server, "latency_seconds")?;
    assert_eq!(exported.len(), 2);
    let first: Value = serde_json::from_str(&exported[0])?;
    assert_eq!(first["histogram_timestamps"][19], NOON);
    assert_eq!(
        first["histograms"][19],
        json!({
            "schema": 0, "zero_threshold": 0.001, "zero_count": 20, "count": 80, "sum": 100,
            "positive": [[0, 40], [2, 20]],
        })
    );
    let other = Launch::new(&directory.path().join("other")).start()?;
    other.write("/api/v1/import", exported.join("\n"))?;
    check_latencies(&other)?;
    assert_eq!(lines(&other, "{job=~\".+\"}")?, exported);
    other.stop()?;
    let selector = percent("{job=\"whole\"}");
    let delete = format!("/api/v1/admin/tsdb/delete_series?match[]={selector}");
    let answer = server.post(&delete, "")?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    assert_eq!(lines(&server, "{__name__!=\"\"}")?, exported[..1]);
    assert_eq!(number(&server, "count(latency_seconds)")?, 1.0);
    let server = server.restart()?;
    assert_eq!(lines(&server, "{__name__!=\"\"}")?, exported[..1]);
    let answer = server.post(
        "/api/v1/import",
        r#"{"metric":{"__name__":"x"},"histograms":[{"count":-1}],"histogram_timestamps":[1]}"#,
    )?;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("counts are not negative"), "{}", answer.excerpt());
    server.stop()
}

#[test]
fn text_leaves_histograms_out() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis() as i64;
    let histogram =
        |millis| MillisHistogram { millis, histogram: latency(1), form: CountForm::Whole };
    let sample = |millis| MillisSample { millis, value: 1.0 };
    let mut request = RequestV1::new();
    request.mixed_series(&[("__name__", "only")], &[], &[histogram(now - 2000)]);
    request.mixed_series(&[("__name__", "then")], &[sample(now - 3000)], &[histogram(now - 2000)]);
    request.mixed_series(&[("__name__", "now")], &[sample(now - 1000)], &[histogram(now - 2000)]);
    let answer = send(&server, V1, request.as_bytes())?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    let text = server.get(&format!("/federate?match[]={}", percent("{__name__!=\"\"}")))?.text();
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(samples, [format!("now{{instance=\"\"}} 1 {}", now - 1000)]);
    server.stop()
}
