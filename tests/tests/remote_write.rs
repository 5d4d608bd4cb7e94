//! Prometheus remote write 1.0 and 2.0 by hand: headers, answers, partial writes.

use anyhow::{Result, ensure};
use e2e::protobuf::{bytes, double, label, number};
use e2e::{Launch, Response, Server};
use wire::remote_write::encode::{MillisSample, RequestV1, RequestV2};

const V1: &str = "application/x-protobuf";
const V2: &str = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;

fn sample(millis: i64, value: f64) -> MillisSample {
    MillisSample { millis, value }
}

/// Sends a message as Prometheus does.
fn send(server: &Server, content_type: &str, message: &[u8]) -> Result<Response> {
    let body = snap::raw::Encoder::new().compress_vec(message)?;
    let version = if content_type == V2 { "2.0.0" } else { "0.1.0" };
    let headers = [
        ("Content-Type", content_type),
        ("Content-Encoding", "snappy"),
        ("User-Agent", "test"),
        ("X-Prometheus-Remote-Write-Version", version),
    ];
    server.post_with("/api/v1/write", &headers, body)
}

fn written(answer: &Response, what: &str) -> String {
    answer.header(&format!("x-prometheus-remote-write-{what}-written")).to_string()
}

#[test]
fn version_1_keeps_every_bit() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let values = [
        (1.5, "1.5"),
        (-0.0, "-0"),
        (f64::INFINITY, "\"Infinity\""),
        (f64::NEG_INFINITY, "\"-Infinity\""),
        (f64::from_bits(0x7ff8_0000_0000_0001), "null"),
        (f64::from_bits(0x7ff0_0000_0000_0002), "\"NaN:7ff0000000000002\""),
        (f64::from_bits(0xfff8_dead_beef_cafe), "\"NaN:fff8deadbeefcafe\""),
        (f64::from_bits(1), "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (0.1 + 0.2, "0.30000000000000004"),
    ];
    let times = (0..).map(|idx| NOON + idx * 1000);
    let samples: Vec<MillisSample> =
        times.zip(values).map(|(at, (value, _))| sample(at, value)).collect();
    let mut request = RequestV1::new();
    request.series(&[("__name__", "bits"), ("job", "a b"), ("λ", "☃")], &samples);
    let answer = send(&server, V1, request.as_bytes())?;
    assert_eq!(answer.status, 204, "{}", answer.excerpt());
    let expected: Vec<String> = samples
        .iter()
        .zip(values)
        .map(|(sample, (_, text))| format!("{} {text}", sample.millis))
        .collect();
    let labels = "bits{job=\"a b\",λ=\"☃\"}";
    assert_eq!(server.export("bits")?.samples(labels), expected);
    let answer = server.post("/internal/force_flush", "")?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    let server = server.restart()?;
    assert_eq!(server.export("bits")?.samples(labels), expected, "from a part on disk");
    // A stale marker hides the series; other values do not.
    let at = |idx: i64| (NOON + idx * 1000) as f64 / 1e3;
    assert_eq!(server.vector("bits", at(5))?.len(), 0);
    assert_eq!(server.vector("bits", at(6))?.len(), 1);
    server.stop()
}

#[test]
fn version_2_says_what_was_written() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let metadata = model::Metadata {
        metric: "requests_total".to_string(),
        kind: model::MetricKind::Counter,
        help: "Requests.".to_string(),
        unit: "requests".to_string(),
    };
    let mut request = RequestV2::new();
    let samples = [sample(NOON, 1.0), sample(NOON + 1000, 2.0)];
    request.series(&[("__name__", "requests_total"), ("job", "a")], &samples, Some(&metadata));
    request.series(&[("__name__", "up"), ("job", "a")], &samples[..1], None);
    let answer = send(&server, V2, &request.to_bytes())?;
    assert_eq!(answer.status, 204, "{}", answer.excerpt());
    assert_eq!(written(&answer, "samples"), "3");
    assert_eq!(written(&answer, "histograms"), "0");
    assert_eq!(written(&answer, "exemplars"), "0");
    let series = server.export("{job=\"a\"}")?;
    assert_eq!(
        series.samples("requests_total{job=\"a\"}"),
        [format!("{NOON} 1"), format!("{} 2", NOON + 1000)]
    );
    let metadata = server.get("/api/v1/metadata?metric=requests_total")?.data()?;
    assert_eq!(metadata["requests_total"][0]["type"], "counter");
    assert_eq!(metadata["requests_total"][0]["help"], "Requests.");
    let samples = server.metric("quipu_insert_samples_total{protocol=\"remote_write_v2\"}")?;
    assert_eq!(samples, 3.0);
    server.stop()
}

/// `{__name__="name"}` and what follows, as a series of version 1.0.
fn series_v1(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    bytes(1, &[label(b"__name__", name.as_bytes()), parts.concat()].concat())
}

fn sample_field(field: u8, value: f64) -> Vec<u8> {
    bytes(field, &[double(1, value), number(2, NOON as u64)].concat())
}

#[test]
fn bad_histograms_are_counted_and_samples_and_exemplars_kept() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let exemplar =
        bytes(3, &[label(b"trace_id", b"x"), double(2, 1.0), number(3, NOON as u64)].concat());
    let histogram = bytes(4, &[number(1, 3), number(15, NOON as u64)].concat());
    let lossy = |kind: &str| server.metric(&format!("quipu_insert_lossy_total{{kind=\"{kind}\"}}"));

    let message = series_v1("with_exemplar", &[sample_field(2, 1.0), exemplar]);
    let answer = send(&server, V1, &message)?;
    assert_eq!(answer.status, 204, "{}", answer.excerpt());
    assert_eq!(lossy("exemplar_refused")?, 0.0);

    let good = series_v1("beside", &[sample_field(2, 2.0)]);
    let message = [series_v1("native", std::slice::from_ref(&histogram)), good].concat();
    let answer = send(&server, V1, &message)?;
    assert_eq!(answer.status, 400, "{}", answer.excerpt());
    let reason = "series 0: histogram: 0 observations in its buckets, but its count is 3";
    assert!(answer.text().contains(reason), "{}", answer.excerpt());
    assert_eq!(lossy("native_histogram_refused")?, 1.0);
    assert_eq!(server.export("{__name__=~\"with_exemplar|beside\"}")?.len(), 2);

    // 2.0: symbols "", "__name__", "both"; the same two with numbers of fields of their own.
    let symbols = ["", "__name__", "both"].map(|text| bytes(4, text.as_bytes())).concat();
    let parts = [
        bytes(1, &[1, 2]),
        sample_field(2, 3.0),
        bytes(3, &[number(1, 3), number(15, NOON as u64)].concat()),
        bytes(4, &[double(2, 1.0), number(3, NOON as u64)].concat()),
    ];
    let answer = send(&server, V2, &[symbols, bytes(5, &parts.concat())].concat())?;
    assert_eq!(answer.status, 400, "{}", answer.excerpt());
    assert_eq!(written(&answer, "samples"), "1");
    assert_eq!(written(&answer, "histograms"), "0");
    assert_eq!(written(&answer, "exemplars"), "1");
    assert_eq!(server.export("both")?.len(), 1);
    assert_eq!((lossy("exemplar_refused")?, lossy("native_histogram_refused")?), (0.0, 2.0));
    server.stop()
}

#[test]
fn bad_series_are_named_and_the_others_kept() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let one = [sample(NOON, 1.0)];
    let long = "x".repeat(4097);
    let many: Vec<String> = (0..10_000).map(|idx| format!("label_{idx:05}")).collect();
    let mut too_many: Vec<(&str, &str)> = vec![("__name__", "too_many")];
    too_many.extend(many.iter().map(|name| (name.as_str(), "v")));
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[("job", "no name")], "metric name"),
        (&[("__name__", "twice"), ("a", "1"), ("a", "2")], "duplicate label"),
        (&[("__name__", "long"), ("a", &long)], "max-label-value-size"),
        (&too_many, "max-labels-per-series"),
    ];
    for version in [V1, V2] {
        for (labels, reason) in cases {
            let message = match version {
                V1 => {
                    let mut request = RequestV1::new();
                    request.series(&[("__name__", "good"), ("case", reason)], &one);
                    request.series(labels, &one);
                    request.series(&[("__name__", "fine"), ("case", reason)], &one);
                    request.as_bytes().to_vec()
                }
                _ => {
                    let mut request = RequestV2::new();
                    request.series(&[("__name__", "good"), ("case", reason)], &one, None);
                    request.series(labels, &one, None);
                    request.series(&[("__name__", "fine"), ("case", reason)], &one, None);
                    request.to_bytes()
                }
            };
            let answer = send(&server, version, &message)?;
            let text = answer.text();
            assert_eq!(answer.status, 400, "{}", answer.excerpt());
            assert!(text.contains("series 1: ") && text.contains(reason), "{reason}: {text}");
            assert!(text.contains("2 samples stored"), "{text}");
            if version == V2 {
                assert_eq!(written(&answer, "samples"), "2");
            }
        }
    }
    assert_eq!(server.export("{__name__=~\"good|fine\"}")?.len(), 2 * cases.len());
    assert_eq!(
        server.get("/api/v1/label/__name__/values")?.data()?.to_string(),
        r#"["fine","good"]"#
    );
    server.stop()
}

#[test]
fn only_known_types_and_encodings_are_taken() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let answer = send(&server, "application/json", b"{}")?;
    assert_eq!(answer.status, 415, "{}", answer.excerpt());
    let answer = send(&server, "application/x-protobuf;proto=io.prometheus.write.v9.Request", b"")?;
    assert_eq!(answer.status, 415, "{}", answer.excerpt());
    let headers = [("Content-Type", V1), ("Content-Encoding", "br")];
    let answer = server.post_with("/api/v1/write", &headers, "x")?;
    assert_eq!(answer.status, 415, "{}", answer.excerpt());
    assert_eq!(server.get("/api/v1/write")?.status, 405);
    let answer = send(&server, V1, b"")?;
    assert_eq!(answer.status, 204, "an empty request is none: {}", answer.excerpt());
    server.stop()
}
