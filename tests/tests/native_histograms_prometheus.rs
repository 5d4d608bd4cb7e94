//! Native histograms of a real Prometheus: what it scrapes and writes to Quipu, both answer alike;
//! what both were sent, both tell by remote read byte for byte.
//!
//! `QUIPU_TEST_PROMETHEUS` names another Prometheus than the installed one.

use anyhow::{Context, Result, ensure};
use e2e::protobuf::{bytes, double, number};
use e2e::{Client, Launch, Prometheus, answers, poll, prometheus, run};
use histogram::{Bucket, Histogram, ResetHint};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread::spawn;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wire::remote_write::encode::{MillisSample, RequestV1};
use wire::remote_write::encode_histograms::{CountForm, MillisHistogram};

/// No step takes longer, also on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Expressions that both must answer alike; quantiles within a bucket are another matter.
const EXPRESSIONS: &[&str] = &[
    "latency_seconds",
    "rate(latency_seconds[10s])",
    "sum(increase(latency_seconds[10s]))",
    "histogram_count(latency_seconds)",
    "histogram_sum(sum without (code) (rate(latency_seconds[8s])))",
    "histogram_quantile(1, rate(latency_seconds[10s]))",
    "histogram_quantile(0, latency_seconds)",
];
/// How values are spread within a bucket has changed with version 3.
const EXPRESSIONS_OF_3: &[&str] = &[
    "histogram_quantile(0.9, rate(latency_seconds[10s]))",
    "histogram_quantile(0.5, sum(latency_seconds))",
    "histogram_fraction(0.1, 1.5, latency_seconds)",
    "histogram_stddev(latency_seconds)",
    "histogram_avg(rate(latency_seconds[10s]))",
];

/// A Prometheus with native histograms.
fn start_prometheus(directory: &Path, configuration: String) -> Result<Prometheus> {
    let flags = ["--web.enable-remote-write-receiver", "--enable-feature=native-histograms"];
    Prometheus::start(directory, &flags, |_| configuration)
}

/// Whether it is of the versions before 3, which calculate quantiles otherwise.
fn is_version_2() -> Result<bool> {
    let output = run(prometheus::program(), &["--version"])?;
    let text = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&text).contains("version 2."))
}

/// A page with native histograms, more of everything at each look.
fn page(look: u64) -> Vec<u8> {
    let mut metrics = Vec::new();
    for (code, factor) in [("200", 3), ("500", 1)] {
        let label = bytes(1, &[bytes(1, b"code"), bytes(2, code.as_bytes())].concat());
        let count = |part: u64| factor * part * look;
        let zigzag = |value: i64| (value << 1 ^ value >> 63) as u64;
        let span =
            |offset: i64, length: u64| [number(1, zigzag(offset)), number(2, length)].concat();
        // Buckets -3, -2 and 1 with 1, 4 and 2; below zero bucket 0 with 1; of zero 1.
        let fields = [
            number(1, count(9)),
            double(2, count(5) as f64 / 4.0),
            number(5, zigzag(1)),
            double(6, 0.001),
            number(7, count(1)),
            bytes(9, &span(0, 1)),
            number(10, zigzag(count(1) as i64)),
            bytes(12, &span(-3, 2)),
            bytes(12, &span(2, 1)),
            number(13, zigzag(count(1) as i64)),
            number(13, zigzag(count(3) as i64)),
            number(13, zigzag(-(count(2) as i64))),
        ];
        metrics.extend(bytes(4, &[label, bytes(7, &fields.concat())].concat()));
    }
    let head = [bytes(1, b"latency_seconds"), bytes(2, b"How long."), number(3, 4)].concat();
    let family = [head, metrics].concat();
    // A message with its length before it: the same bytes as a field without its tag.
    bytes(1, &family)[1..].to_vec()
}

/// Answers every scrape with the next page; returns the port.
fn target() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    spawn(move || {
        for (stream, look) in listener.incoming().zip(1..) {
            let Ok(mut stream) = stream else { return };
            let head = BufReader::new(&stream).lines().map_while(Result::ok);
            let head: Vec<String> = head.take_while(|line| !line.is_empty()).collect();
            assert!(head.iter().any(|line| line.contains("vnd.google.protobuf")), "{head:?}");
            let body = page(look);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\nContent-Type: \
                 application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(&[answer.as_bytes(), &body].concat());
        }
    });
    Ok(port)
}

fn now_ms() -> Result<i64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64)
}

fn result(authority: &str, query: &str, at: f64) -> Result<Vec<Value>> {
    let data = Client::new(authority).get(&answers::instant_path(query, at))?.data()?;
    let mut list = data["result"].as_array().context("a list")?.clone();
    list.sort_by_key(|sample| sample["metric"].to_string());
    Ok(list)
}

/// Equal but for the last digits of numbers.
fn alike(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<f64>().ok());
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.keys().eq(b.keys()) && a.iter().all(|(name, value)| alike(value, &b[name]))
        }
        _ => match (number(a), number(b)) {
            (Some(x), Some(y)) => a == b || (x - y).abs() <= 1e-9 * x.abs().max(y.abs()),
            _ => a == b,
        },
    }
}

#[test]
fn what_prometheus_scrapes_both_answer_alike() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let quipu = Launch::new(&directory.path().join("quipu")).start()?;
    let switch = if is_version_2()? { "" } else { "  scrape_native_histograms: true\n" };
    let configuration = format!(
        "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\n\
         remote_write:\n\
         - url: {}/api/v1/write\n\
         \x20 send_native_histograms: true\n\
         \x20 queue_config: {{ batch_send_deadline: 300ms }}\n\
         scrape_configs:\n\
         - job_name: app\n{switch}\
         \x20 static_configs: [ {{ targets: ['127.0.0.1:{}'] }} ]\n",
        quipu.url(),
        target()?
    );
    let peer = start_prometheus(directory.path(), configuration)?;
    poll("scrapes", PATIENCE, || {
        let found =
            quipu.vector("sum(count_over_time(latency_seconds[15m]))", now_ms()? as f64 / 1e3)?;
        let count = found.values().next().context("no scrape yet")?.parse::<f64>()?;
        ensure!(30.0 <= count, "{count} of 30 samples");
        Ok(())
    })?;
    // Half a second off the scrapes, so that ranges hold the same samples whatever their ends.
    let last = result(quipu.authority(), "latency_seconds[5s]", now_ms()? as f64 / 1e3)?;
    let last = last[0]["histograms"][0][0].as_f64().context("a time")?;
    let more = if is_version_2()? { &[] } else { EXPRESSIONS_OF_3 };
    for query in EXPRESSIONS.iter().chain(more) {
        for at in [last - 0.5, last - 1.5] {
            let expected = result(peer.authority(), query, at)?;
            let found = result(quipu.authority(), query, at)?;
            ensure!(!expected.is_empty(), "{query} has no answer to compare");
            let (a, b) = (Value::Array(expected), Value::Array(found));
            ensure!(alike(&a, &b), "{query}:\n{a}\n{b}");
        }
    }
    quipu.stop()
}

/// One query of remote read: all series of `latency`.
fn read_request(start: i64, end: i64, accepted: &[u8]) -> Vec<u8> {
    let matcher = bytes(3, &[bytes(2, b"__name__"), bytes(3, b"latency")].concat());
    let query = [number(1, start as u64), number(2, end as u64), matcher].concat();
    [bytes(1, &query), bytes(2, accepted)].concat()
}

fn post(authority: &str, path: &str, message: &[u8]) -> Result<Vec<u8>> {
    let body = snap::raw::Encoder::new().compress_vec(message)?;
    let headers = [
        ("Content-Type", "application/x-protobuf"),
        ("Content-Encoding", "snappy"),
        ("X-Prometheus-Remote-Write-Version", "0.1.0"),
    ];
    let answer = Client::new(authority).post(path, &headers, &body)?;
    ensure!(answer.status / 100 == 2, "{}", answer.excerpt());
    Ok(answer.body)
}

/// Counters that grow, a bucket more half-way, then all again from little.
fn drawn(end: i64, count: i64, hint: ResetHint) -> Vec<MillisHistogram> {
    let histogram = |step: i64| {
        let of = |factor: i64| (factor * (step % 40)) as f64 + 0.5;
        let mut positive = vec![(-7, 1), (-6, 2), (3, 1)];
        if 20 < step {
            positive.push((4, 5));
        }
        let bucket = |(index, factor)| Bucket { index, count: of(factor) };
        let mut histogram = Histogram {
            schema: 3,
            zero_threshold: 2f64.powi(-128),
            zero_count: of(1),
            count: 0.0,
            sum: (step as f64).sqrt(),
            positive: positive.into_iter().map(bucket).collect(),
            negative: vec![Bucket { index: 0, count: of(2) }],
            reset_hint: if step == 0 { ResetHint::Unknown } else { hint },
            ..Histogram::default()
        };
        let buckets = histogram.positive.iter().chain(&histogram.negative);
        histogram.count = histogram.zero_count + buckets.map(|bucket| bucket.count).sum::<f64>();
        histogram
    };
    let at = |step| end - (count - step) * 250 + step % 7;
    let form = CountForm::Float;
    (0..count)
        .map(|step| MillisHistogram { millis: at(step), histogram: histogram(step), form })
        .collect()
}

#[test]
fn remote_read_tells_the_same_bytes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    if is_version_2()? {
        println!("skipped: this Prometheus tells no histograms to others");
        return Ok(());
    }
    let quipu = Launch::new(&directory.path().join("quipu")).start()?;
    let peer = start_prometheus(directory.path(), String::new())?;
    let end = now_ms()? / 1000 * 1000;
    let labels = [("__name__", "latency"), ("job", "x")];
    let histograms = drawn(end, 20, ResetHint::NoReset);
    let mut request = RequestV1::new();
    request.mixed_series(&labels, &[], &histograms);
    let floats: Vec<MillisSample> =
        (1..5).map(|idx| MillisSample { millis: end + idx * 100, value: idx as f64 }).collect();
    request.mixed_series(&labels, &floats, &[]);
    for authority in [quipu.authority(), peer.authority()] {
        post(authority, "/api/v1/write", request.as_bytes())?;
    }
    let (start, end) = (end - 60_000, end + 60_000);
    for accepted in [&[1u8, 0][..], &[0]] {
        let asked = read_request(start, end, accepted);
        let expected = post(peer.authority(), "/api/v1/read", &asked)?;
        let found = post(quipu.authority(), "/api/v1/read", &asked)?;
        ensure!(!expected.is_empty() && 300 < found.len(), "{} bytes", found.len());
        ensure!(found == expected, "{accepted:?}:\n{found:x?}\n{expected:x?}");
    }
    quipu.stop()
}

#[test]
fn prometheus_reads_what_only_quipu_has() -> Result<()> {
    let directory = tempfile::tempdir()?;
    if is_version_2()? {
        println!("skipped: this Prometheus reads no histograms from others");
        return Ok(());
    }
    let quipu = Launch::new(&directory.path().join("quipu")).start()?;
    let text = format!("remote_read: [ {{ url: {}/api/v1/read }} ]\n", quipu.url());
    let peer = start_prometheus(directory.path(), text)?;
    // 2024-02-29 12:00:00 UTC: long before that Prometheus was started.
    let end = 1_709_208_000_000;
    let mut request = RequestV1::new();
    request.mixed_series(
        &[("__name__", "latency"), ("job", "x")],
        &[],
        &drawn(end, 300, ResetHint::Unknown),
    );
    post(quipu.authority(), "/api/v1/write", request.as_bytes())?;
    let at = end as f64 / 1e3;
    for query in [
        "latency",
        "latency[9s]",
        "histogram_count(latency)",
        "histogram_sum(rate(latency[30s]))",
        "histogram_quantile(1, latency)",
        "count_over_time(latency[1m])",
    ] {
        // Before the last sample, off all others.
        let at = at - 0.3;
        let expected = result(quipu.authority(), query, at)?;
        let found = result(peer.authority(), query, at)?;
        ensure!(!expected.is_empty(), "{query} has no answer to compare");
        let (a, b) = (Value::Array(expected), Value::Array(found));
        ensure!(alike(&a, &b), "{query}:\n{a}\n{b}");
    }
    quipu.stop()
}
