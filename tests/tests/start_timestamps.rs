//! Start timestamps of remote write 2.0, from the door to PromQL: both forms of the protocol, floats
//! and histograms, after restarts and kill -9, and that they cost nothing who did not ask for them.

use anyhow::Result;
use e2e::protobuf::{bytes, double, number};
use e2e::{Launch, Response, Server, percent};
use serde_json::json;

const V2: &str = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: u64 = 1_709_208_000_000;
const MINUTE: u64 = 60_000;

/// A sample: value, time, and its own start timestamp.
fn sample(value: f64, millis: u64, start: Option<u64>) -> Vec<u8> {
    let start = start.map_or(Vec::new(), |start| number(3, start));
    bytes(2, &[double(1, value), number(2, millis), start].concat())
}

/// A histogram of so many observations, which are zero.
fn histogram(count: u64, millis: u64, start: u64) -> Vec<u8> {
    let parts = [number(1, count), double(3, 0.0), number(6, count), number(15, millis)];
    let mut message = parts.concat();
    // The tag of field 17 has two bytes.
    message.extend([0x88, 0x01]);
    message.extend(&number(0, start)[1..]);
    bytes(3, &message)
}

/// A request of one series of this name.
fn request(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    let symbols = ["", "__name__", name].map(|text| bytes(4, text.as_bytes())).concat();
    [symbols, bytes(5, &[bytes(1, &[1, 2]), parts.concat()].concat())].concat()
}

fn send(server: &Server, message: &[u8]) -> Result<Response> {
    let body = snap::raw::Encoder::new().compress_vec(message)?;
    let headers = [("Content-Type", V2), ("Content-Encoding", "snappy")];
    server.post_with("/api/v1/write", &headers, body)
}

/// The value of the only series of an instant query, if there is one.
fn value(server: &Server, query: &str) -> Result<Option<String>> {
    let at = (NOON + 5 * MINUTE) / 1000;
    let path = format!("/api/v1/query?query={}&time={at}", percent(query));
    let found = server.get(&path)?.data()?["result"].take();
    let one = found[0]["value"][1].as_str().map(str::to_string);
    assert!(found.as_array().is_some_and(|all| all.len() <= 1), "{found}");
    Ok(one)
}

/// Counters that began again each minute and never fell: one whose samples say so, one whose series
/// does, one that says nothing.
fn write(server: &Server) -> Result<()> {
    let times = || (0..6).map(|idx| NOON + idx * MINUTE);
    let own: Vec<_> = times().map(|at| sample(7.0, at, Some(at - 30_000))).collect();
    let plain: Vec<_> = times().map(|at| sample(7.0, at, None)).collect();
    let histograms: Vec<_> = times().map(|at| histogram(7, at, at - 30_000)).collect();
    let mut requests = vec![
        request("own_total", &own),
        request("plain_total", &plain),
        request("histogram", &histograms),
    ];
    for (at, sample) in times().zip(&plain) {
        requests.push(request("series_total", &[sample.clone(), number(6, at - 30_000)]));
    }
    for request in requests {
        let answer = send(server, &request)?;
        assert_eq!(answer.status, 204, "{}", answer.excerpt());
    }
    Ok(())
}

fn check(server: &Server) -> Result<()> {
    let text = |value: &str| Some(value.to_string());
    for name in ["own_total", "series_total"] {
        assert_eq!(value(server, &format!("resets({name}[10m])"))?, text("5"));
        // Six times seven since half a minute before the first, the last at the window's end.
        assert_eq!(value(server, &format!("increase({name}[6m])"))?, text("42"));
        assert_eq!(value(server, &format!("irate({name}[6m]) * 60"))?, text("7"));
        let start = ((NOON + 5 * MINUTE) / 1000 - 30).to_string();
        assert_eq!(value(server, &format!("start_timestamp({name})"))?, text(&start));
    }
    let count = "histogram_count(increase(histogram[6m]))";
    assert_eq!(value(server, count)?, text("42"));
    assert_eq!(value(server, "increase(plain_total[6m])")?, text("0"));
    assert_eq!(value(server, "start_timestamp(plain_total)")?, text("0"));
    Ok(())
}

#[test]
fn they_are_kept_and_used_through_every_end() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = || {
        let launch = Launch::new(directory.path()).flag("start-timestamps", "true");
        let launch = launch.flag("query.start-timestamps", "true");
        launch.flag("query.experimental-functions", "true")
    };
    let server = launch().start()?;
    write(&server)?;
    check(&server)?;
    server.kill()?;
    let server = launch().start()?;
    check(&server)?;
    let server = server.restart()?;
    check(&server)?;
    // Ranges as instants, with the result cache and without.
    let (start, end) = (NOON / 1000, (NOON + 5 * MINUTE) / 1000);
    for more in ["", "", "&nocache=1"] {
        let path = format!(
            "/api/v1/query_range?query=resets(own_total[2m])&start={start}&end={end}&step=150{more}"
        );
        let values = server.get(&path)?.data()?["result"][0]["values"].take();
        assert_eq!(values, json!([[start, "0"], [start + 150, "1"], [end, "1"]]));
    }
    // No series is seen for them, and no start timestamp is left of one that is deleted.
    let names = server.get(&format!("/api/v1/label/__name__/values?start={start}"))?.data()?;
    assert_eq!(names, json!(["histogram", "own_total", "plain_total", "series_total"]));
    let path = "/api/v1/admin/tsdb/delete_series?match[]=own_total";
    assert_eq!(server.post(path, "")?.status, 204);
    let again: Vec<_> = (0..6).map(|idx| sample(7.0, NOON + idx * MINUTE, None)).collect();
    assert_eq!(send(&server, &request("own_total", &again))?.status, 204);
    assert_eq!(value(&server, "resets(own_total[10m])")?, Some("0".to_string()));
    assert_eq!(server.metric("quipu_insert_lossy_total{kind=\"created_timestamp_ignored\"}")?, 0.0);
    server.stop()
}

#[test]
fn nobody_keeps_or_uses_them_unasked() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("query.start-timestamps", "true").start()?;
    write(&server)?;
    let ignored = server.metric("quipu_insert_lossy_total{kind=\"created_timestamp_ignored\"}")?;
    assert_eq!(ignored, 18.0);
    assert_eq!(value(&server, "resets(own_total[10m])")?, Some("0".to_string()));
    server.stop()?;
    let server = Launch::new(directory.path())
        .flag("start-timestamps", "true")
        .flag("query.experimental-functions", "true")
        .start()?;
    write(&server)?;
    assert_eq!(value(&server, "resets(own_total[10m])")?, Some("0".to_string()));
    assert_eq!(value(&server, "start_timestamp(own_total)")?, None);
    server.stop()
}

#[test]
fn an_export_as_json_lines_carries_them_to_another_server() -> Result<()> {
    let directories = [tempfile::tempdir()?, tempfile::tempdir()?];
    let start = |directory: &tempfile::TempDir| {
        let launch = Launch::new(directory.path()).flag("start-timestamps", "true");
        let launch = launch.flag("query.start-timestamps", "true");
        launch.flag("query.experimental-functions", "true").start()
    };
    let from = start(&directories[0])?;
    write(&from)?;
    let selector = "{__name__=~\"own_total|plain_total|histogram|series_total\"}";
    let path = &format!("/api/v1/export?match[]={}", percent(selector));
    // Of parts on disk too, and in short lines.
    for more in ["", "&max_rows_per_line=2"] {
        let answer = from.get(&format!("{path}{more}"))?;
        assert_eq!(answer.status, 200, "{}", answer.excerpt());
        let lines = answer.text();
        assert!(lines.contains("\"start_timestamps\":["), "{lines}");
        assert!(lines.contains("\"histogram_start_timestamps\":["), "{lines}");
        let plain = lines.lines().find(|line| line.contains("plain_total"));
        assert!(plain.is_some_and(|line| !line.contains("start_timestamps")), "{plain:?}");
        let directory = tempfile::tempdir()?;
        let to = start(&directory)?;
        assert_eq!(to.post("/api/v1/import", lines.as_bytes())?.status, 204);
        check(&to)?;
        let again = to.get(&format!("{path}{more}"))?.text();
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&again), sorted(&lines));
        to.stop()?;
    }
    let lines = from.get(path)?.text();
    from.stop()?;
    // A server that keeps none stores the samples and counts what it leaves aside.
    let to = Launch::new(directories[1].path()).start()?;
    assert_eq!(to.post("/api/v1/import", lines.as_bytes())?.status, 204);
    let ignored = to.metric("quipu_insert_lossy_total{kind=\"created_timestamp_ignored\"}")?;
    assert_eq!(ignored, 18.0);
    assert!(!to.get(path)?.text().contains("start_timestamps"));
    to.stop()
}
