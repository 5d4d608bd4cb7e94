//! Exemplars from senders to `/api/v1/query_exemplars`: remote write 1.0 and 2.0, OpenMetrics, a real
//! Prometheus; after restarts and kill -9, deletions, and when there are too many.

use anyhow::{Result, ensure};
use e2e::protobuf::{bytes, double, label, number};
use e2e::{Client, Launch, Prometheus, Response, Server, answers, poll};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::scope;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const V1: &str = "application/x-protobuf";
const V2: &str = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: u64 = 1_709_208_000_000;
/// No step takes longer, also on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn send(client: &mut Client, content_type: &str, message: &[u8]) -> Result<Response> {
    let body = snap::raw::Encoder::new().compress_vec(message)?;
    let headers = [("Content-Type", content_type), ("Content-Encoding", "snappy")];
    client.post("/api/v1/write", &headers, &body)
}

fn sample(millis: u64, value: f64) -> Vec<u8> {
    bytes(2, &[double(1, value), number(2, millis)].concat())
}

/// `{__name__="name"}` and what follows, as a series of version 1.0.
fn series_v1(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    bytes(1, &[label(b"__name__", name.as_bytes()), parts.concat()].concat())
}

fn exemplar_v1(trace: &str, millis: u64, value: f64) -> Vec<u8> {
    let parts = [label(b"trace_id", trace.as_bytes()), double(2, value), number(3, millis)];
    bytes(3, &parts.concat())
}

/// A request of version 2.0 of a series `name` and exemplars: trace, milliseconds, value.
fn request_v2(name: &str, with_sample: bool, exemplars: &[(&str, u64, f64)]) -> Vec<u8> {
    let mut symbols = vec!["", "__name__", name, "trace_id"];
    let mut series = bytes(1, &[1, 2]);
    if with_sample {
        series.extend(sample(NOON, 3.0));
    }
    for (trace, millis, value) in exemplars {
        let refs = bytes(1, &[3, symbols.len() as u8]);
        symbols.push(trace);
        series.extend(bytes(4, &[refs, double(2, *value), number(3, *millis)].concat()));
    }
    let symbols: Vec<u8> = symbols.iter().flat_map(|text| bytes(4, text.as_bytes())).collect();
    [symbols, bytes(5, &series)].concat()
}

fn exemplars_path(query: &str, range: &str) -> String {
    format!("/api/v1/query_exemplars?query={}{range}", answers::percent(query))
}

fn exemplars(server: &Server, query: &str) -> Result<Value> {
    server.get(&exemplars_path(query, ""))?.data()
}

/// What `/api/v1/query_exemplars` says of one series.
fn told(labels: Value, list: &[(&str, f64, &str)]) -> Value {
    let one = |(trace, at, value): &(&str, f64, &str)| {
        // JSON has whole numbers without a point.
        let at = if at.fract() == 0.0 { json!(*at as i64) } else { json!(at) };
        json!({ "labels": { "trace_id": trace }, "value": value, "timestamp": at })
    };
    json!({ "seriesLabels": labels, "exemplars": list.iter().map(one).collect::<Vec<_>>() })
}

fn written(answer: &Response) -> &str {
    answer.header("x-prometheus-remote-write-exemplars-written")
}

#[test]
fn both_versions_of_remote_write() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let client = &mut server.client();
    // Series of nothing but exemplars, as Prometheus sends them; unknown ones are no error.
    let message = [
        series_v1("one_total", &[sample(NOON, 1.0)]),
        series_v1("one_total", &[exemplar_v1("a", NOON - 500, 0.5)]),
        series_v1("one_total", &[exemplar_v1("b", NOON, f64::INFINITY)]),
        series_v1("nobody_total", &[exemplar_v1("c", NOON, 1.0)]),
    ];
    for _ in 0..2 {
        let answer = send(client, V1, &message.concat())?;
        assert_eq!(answer.status, 204, "{}", answer.excerpt());
    }
    let late = series_v1("one_total", &[exemplar_v1("late", NOON - 100, 1.0)]);
    assert_eq!(send(client, V1, &late)?.status, 204, "no error in 1.0");
    let refused = server.metric("quipu_insert_lossy_total{kind=\"exemplar_refused\"}")?;
    assert_eq!(refused, 3.0, "two of nobody and the late one");

    let two = [("d", NOON, 1.5), ("e", NOON + 250, 2.5)];
    for _ in 0..2 {
        let answer = send(client, V2, &request_v2("two_total", true, &two))?;
        assert_eq!((answer.status, written(&answer)), (204, "2"), "{}", answer.excerpt());
    }
    let long = "x".repeat(121);
    let rest = [("f", NOON + 100, 1.0), ("g", NOON + 300, 1.0), (&long, NOON + 400, 1.0)];
    let answer = send(client, V2, &request_v2("two_total", false, &rest))?;
    assert_eq!((answer.status, written(&answer)), (400, "1"), "{}", answer.excerpt());
    let text = answer.text();
    assert!(text.contains("1 exemplars stored, 2 refused:\nseries 0: out of order"), "{text}");

    let seconds = NOON as f64 / 1e3;
    let one = told(
        json!({ "__name__": "one_total" }),
        &[("a", seconds - 0.5, "0.5"), ("b", seconds, "+Inf")],
    );
    let two = told(
        json!({ "__name__": "two_total" }),
        &[("d", seconds, "1.5"), ("e", seconds + 0.25, "2.5"), ("g", seconds + 0.3, "1")],
    );
    let both = "rate(two_total[5m]) / one_total > 0";
    assert_eq!(exemplars(&server, both)?, json!([one, two]));
    let server = server.restart()?;
    assert_eq!(exemplars(&server, both)?, json!([one, two]), "from their file");
    questions(&server, &two)?;
    let path = "/api/v1/admin/tsdb/delete_series?match[]=one_total";
    assert_eq!(server.post(path, "")?.status, 204);
    server.kill()?;
    let server = Launch::new(directory.path()).start()?;
    assert_eq!(exemplars(&server, "{__name__=~\".+_total\"}")?, json!([two]));
    server.stop()
}

/// As Prometheus' suite for receivers asks: a series of which nothing but an exemplar is known.
#[test]
fn exemplars_alone_begin_a_series_in_version_2() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let client = &mut server.client();
    for _ in 0..2 {
        let answer = send(client, V2, &request_v2("orphan_total", false, &[("t", NOON, 42.0)]))?;
        assert_eq!((answer.status, written(&answer)), (204, "1"), "{}", answer.excerpt());
    }
    let answer = send(client, V2, &request_v2("orphan_total", false, &[("s", NOON - 1, 1.0)]))?;
    assert_eq!((answer.status, written(&answer)), (400, "0"), "{}", answer.excerpt());
    let orphan = told(json!({ "__name__": "orphan_total" }), &[("t", NOON as f64 / 1e3, "42")]);
    assert_eq!(exemplars(&server, "orphan_total")?, json!([orphan]));
    // It is no series of samples for that.
    assert_eq!(server.get("/api/v1/series?match[]=orphan_total&start=0")?.data()?, json!([]));
    server.kill()?;
    let server = Launch::new(directory.path()).start()?;
    assert_eq!(exemplars(&server, "orphan_total")?, json!([orphan]));
    server.stop()
}

/// Times, bounds and errors of the question; `two` is the answer for `two_total`.
fn questions(server: &Server, two: &Value) -> Result<()> {
    let range = |start: u64, end: u64| {
        let (start, end) = (start as f64 / 1e3, end as f64 / 1e3);
        exemplars_path("two_total", &format!("&start={start}&end={end}"))
    };
    let found = server.get(&range(NOON + 1, NOON + 299))?.data()?;
    assert_eq!(found[0]["exemplars"], json!([two["exemplars"][1]]));
    assert_eq!(server.get(&range(NOON + 1, NOON + 2))?.data()?, json!([]));
    let form = "query=two_total&end=2024-03-01T00:00:00Z";
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let answer = server.post_with("/api/v1/query_exemplars", &headers, form)?;
    assert_eq!(answer.data()?, json!([two]));
    assert_eq!(exemplars(server, "two_total{nothing!=\"\"}")?, json!([]));
    assert_eq!(exemplars(server, "1 + 1")?, json!([]), "no selector");
    let answer = server.get(&exemplars_path("{__name__=~\".+_total\"}", "&limit=1"))?;
    assert_eq!(answer.data()?.as_array().map(Vec::len), Some(1));
    assert!(answer.text().contains("truncated"), "{}", answer.excerpt());
    let answer = server.get(&exemplars_path("WITH (x = two_total) x", "&dialect=metricsql"))?;
    assert_eq!(answer.data()?, json!([two]));

    for (path, message) in [
        (range(2, 1), "end timestamp must not be before start timestamp"),
        (exemplars_path("two_total{", ""), "parse error"),
        (exemplars_path("{}", ""), "at least one non-empty matcher"),
        (exemplars_path("two_total", "&start=x"), "invalid parameter"),
    ] {
        let answer = server.get(&path)?;
        assert_eq!(answer.status, 400, "{path}");
        let answer = answer.json()?;
        assert_eq!(answer["errorType"], "bad_data");
        let error = answer["error"].to_string();
        assert!(error.contains(message), "{path}: {error}");
    }
    Ok(())
}

#[test]
fn a_native_histogram_has_them_too() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    // Count 3, sum 6.5, one positive bucket; a series of nothing but this has exemplars.
    let span = bytes(11, &number(2, 1));
    let fields = [number(1, 3), double(3, 6.5), span, bytes(12, &[6]), number(15, NOON)];
    let histogram = bytes(4, &fields.concat());
    let exemplars = [exemplar_v1("a", NOON - 9, 1.5), exemplar_v1("b", NOON - 4, 2.5)];
    for message in [histogram, exemplars.concat()] {
        let message = series_v1("latency", &[message]);
        let answer = send(&mut server.client(), V1, &message)?;
        assert_eq!(answer.status, 204, "{}", answer.excerpt());
    }
    let query = "histogram_quantile(0.9, rate(latency[5m]))";
    let found = exemplars_of(&server, query)?;
    assert_eq!(found, ["a", "b"]);
    let server = server.restart()?;
    assert_eq!(exemplars_of(&server, query)?, found);
    server.stop()
}

/// The traces of all exemplars.
fn exemplars_of(server: &Server, query: &str) -> Result<Vec<String>> {
    let found = exemplars(server, query)?;
    let series = found.as_array().into_iter().flatten();
    let lists = series.filter_map(|series| series["exemplars"].as_array());
    let traces = lists.flatten().filter_map(|one| one["labels"]["trace_id"].as_str());
    Ok(traces.map(str::to_string).collect())
}

#[test]
fn openmetrics() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let body = "# TYPE hits counter\n\
        hits_total{path=\"/\"} 7 1709208000 # {trace_id=\"a\"} 1 1709207999.5\n\
        bad_total 1 1709208000 # {trace_id=\"b\"} one\n\
        # TYPE time histogram\n\
        time_bucket{le=\"1\"} 3 1709208000.25 # {trace_id=\"c\"} 0.67\n# EOF\n";
    let headers = [("Content-Type", "application/openmetrics-text; version=1.0.0")];
    let answer = server.post_with("/api/v1/import/prometheus/metrics/job/j", &headers, body)?;
    assert_eq!(answer.status, 400, "{}", answer.excerpt());
    let told_error = "line 3: the sample is stored, its exemplar is not: invalid value";
    assert!(answer.text().contains(told_error), "{}", answer.excerpt());
    assert_eq!(server.export("{job=\"j\"}")?.len(), 3, "all samples");
    let hits = json!({ "__name__": "hits_total", "job": "j", "path": "/" });
    let time = json!({ "__name__": "time_bucket", "job": "j", "le": "1" });
    assert_eq!(
        exemplars(&server, "{job=\"j\"}")?,
        json!([
            told(hits, &[("a", 1_709_207_999.5, "1")]),
            told(time, &[("c", 1_709_208_000.25, "0.67")]),
        ])
    );
    server.stop()
}

#[test]
fn the_number_is_bounded() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path()).flag("max-exemplars", "10");
    let server = launch.start()?;
    let many: Vec<Vec<u8>> =
        (0..25).map(|idx| exemplar_v1(&idx.to_string(), NOON + idx, 1.0)).collect();
    let message = series_v1("many_total", &[sample(NOON, 1.0), many.concat()]);
    assert_eq!(send(&mut server.client(), V1, &message)?.status, 204);
    let found = exemplars(&server, "many_total")?;
    assert_eq!(found[0]["exemplars"].as_array().map(Vec::len), Some(10));
    assert_eq!(found[0]["exemplars"][0]["labels"]["trace_id"], "15");
    assert_eq!(server.metric("quipu_store_exemplars")?, 10.0);
    assert_eq!(server.metric("quipu_store_exemplars_evicted_total")?, 15.0);
    server.stop()?;
    let server = Launch::new(directory.path()).flag("max-exemplars", "0").start()?;
    assert_eq!(exemplars(&server, "many_total")?, json!([]));
    let message = series_v1("many_total", &[exemplar_v1("off", NOON + 99, 1.0)]);
    assert_eq!(send(&mut server.client(), V1, &message)?.status, 204);
    let refused = server.metric("quipu_insert_lossy_total{kind=\"exemplar_refused\"}")?;
    assert_eq!(refused, 1.0);
    server.stop()
}

/// Sends sample and exemplar with that number until the server is gone.
fn write(authority: &str, acknowledged: &AtomicU64) -> Result<()> {
    let mut client = Client::new(authority);
    loop {
        let number = acknowledged.load(Relaxed);
        let name = format!("load{}_total", number % 7);
        let exemplar = exemplar_v1(&number.to_string(), NOON + number, 1.0);
        let message = series_v1(&name, &[sample(NOON + number, 1.0), exemplar]);
        match send(&mut client, V1, &message) {
            Ok(answer) => ensure!(answer.status == 204, "{}", answer.excerpt()),
            Err(_) => return Ok(()),
        }
        acknowledged.store(number + 1, Relaxed);
    }
}

/// How many there are; they must be the first ones, of which `acknowledged` were promised.
fn count(server: &Server, acknowledged: u64) -> Result<()> {
    let found = exemplars(server, "{__name__=~\"load.*\"}")?;
    let series = found.as_array().into_iter().flatten();
    let lists = series.filter_map(|series| series["exemplars"].as_array());
    let numbers = lists.flatten().filter_map(|one| one["labels"]["trace_id"].as_str());
    let mut numbers: Vec<u64> = numbers.filter_map(|text| text.parse().ok()).collect();
    numbers.sort_unstable();
    ensure!(numbers.iter().copied().eq(0..numbers.len() as u64), "gaps or repetitions");
    let count = numbers.len() as u64;
    ensure!(
        (acknowledged..=acknowledged + 1).contains(&count),
        "{acknowledged} were acknowledged, {count} are there"
    );
    Ok(())
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() -> Result<()> {
    let directory = tempfile::tempdir()?;
    // A small log makes flushes part of the load.
    let launch = Launch::new(directory.path()).flag("wal-size", "1MiB");
    let acknowledged = AtomicU64::new(0);
    for round in 1..=4 {
        let server = launch.start()?;
        count(&server, acknowledged.load(Relaxed))?;
        let authority = server.authority().to_string();
        scope(|threads| -> Result<()> {
            let writer = threads.spawn(|| write(&authority, &acknowledged));
            while acknowledged.load(Relaxed) < round * 150 && !writer.is_finished() {
                std::thread::yield_now();
            }
            server.kill()?;
            writer.join().expect("the writer ends")
        })?;
        let data_dir = format!("--data-dir={}", directory.path().display());
        let verify = e2e::launch::quipu(&["verify", &data_dir])?.output()?;
        ensure!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stdout));
    }
    let server = launch.start()?;
    count(&server, acknowledged.load(Relaxed))?;
    server.stop()
}

/// Scrapes that bring something new; after them the last answer comes again.
const SCRAPES: u64 = 8;

/// Serves a counter and a histogram in OpenMetrics, with an exemplar each, until the listener's
/// last client is gone.
fn serve(listener: &TcpListener, start: u64, scrapes: &AtomicU64) -> Result<()> {
    loop {
        let (mut stream, _) = listener.accept()?;
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let request = lines.next().transpose()?.unwrap_or_default();
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        if request.starts_with("GET /end") {
            return Ok(());
        }
        let number = scrapes.fetch_add(1, Relaxed).min(SCRAPES);
        let at = start as f64 + number as f64 / 4.0;
        let body = format!(
            "# TYPE job counter\n\
             job_total {number} # {{trace_id=\"t{number}\",span=\"s\"}} {number}.5 {at}\n\
             # TYPE time histogram\n\
             time_bucket{{le=\"1\"}} {number} # {{trace_id=\"u{number}\"}} 0.{number} {at}\n\
             time_bucket{{le=\"+Inf\"}} {number}\ntime_count {number}\ntime_sum 1\n# EOF\n"
        );
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; \
             charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )?;
    }
}

fn start_prometheus(directory: &Path, quipu: &Server, target: &str) -> Result<Prometheus> {
    let text = format!(
        "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\n\
         remote_write:\n\
         - url: {}/api/v1/write\n\
         \x20 send_exemplars: true\n\
         \x20 queue_config: {{ batch_send_deadline: 300ms, min_backoff: 30ms, max_backoff: 300ms }}\n\
         scrape_configs:\n\
         - job_name: traced\n\
         \x20 static_configs: [ {{ targets: ['{target}'] }} ]\n",
        quipu.url()
    );
    Prometheus::start(directory, &["--enable-feature=exemplar-storage"], |_| text)
}

#[test]
fn what_prometheus_has_quipu_has() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let quipu = Launch::new(&directory.path().join("quipu")).start()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let target = listener.local_addr()?.to_string();
    let start = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let scrapes = AtomicU64::new(0);
    scope(|threads| -> Result<()> {
        let server = threads.spawn(|| serve(&listener, start, &scrapes));
        let compared = compare(directory.path(), &quipu, &target);
        // Whatever the outcome, the thread must end.
        drop(Client::new(&target).get("/end"));
        server.join().expect("the target ends")?;
        compared
    })?;
    let query = "{__name__=~\"job_total|time_bucket\"}";
    let before = exemplars(&quipu, query)?;
    let quipu = quipu.restart()?;
    assert_eq!(exemplars(&quipu, query)?, before);
    quipu.stop()
}

/// Waits until Prometheus has all exemplars and both give the same answers.
fn compare(directory: &Path, quipu: &Server, target: &str) -> Result<()> {
    let prometheus = start_prometheus(directory, quipu, target)?;
    for query in ["rate(job_total[1m])", "histogram_quantile(0.9, rate(time_bucket[1m]))"] {
        let path = exemplars_path(query, "");
        let found = poll("equal exemplars", PATIENCE, || {
            let expected = prometheus.get(&path)?.data()?;
            let count = expected[0]["exemplars"].as_array().map_or(0, Vec::len) as u64;
            ensure!(count == SCRAPES + 1, "{count} exemplars in Prometheus");
            let found = quipu.get(&path)?.data()?;
            ensure!(found == expected, "{found}\n{expected}");
            Ok(found)
        })?;
        println!("{query}: {found}");
    }
    Ok(())
}
