//! Units of timestamps: of line protocol without `precision`, of requests that use another unit than the
//! protocol has, and of exports in whole milliseconds.

use anyhow::{Context, Result, ensure};
use e2e::{Launch, Server};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// The lines of an export.
fn export(server: &Server, parameters: &str) -> Result<Vec<Value>> {
    let answer =
        server.get(&format!("/api/v1/export?match[]={{__name__=~\".%2B\"}}&{parameters}"))?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    answer.text().lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

#[test]
fn lines_without_a_precision_have_the_default_one() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path()).flag("influx.default-precision", "auto");
    let server = launch.flag("influx-listen", "127.0.0.1:0").start()?;
    for (name, factor) in [("s", 1), ("ms", 1_000), ("us", 1_000_000), ("ns", 1_000_000_000)] {
        server.write("/write?precision=", format!("{name} v=1 {}", NOON * factor))?;
        server.write("/api/v2/write?bucket=b", format!("{name} v=1 {}", NOON * factor))?;
    }
    // What the request says counts.
    server.write("/write?precision=ms", format!("named v=1 {NOON}"))?;
    let lines = export(&server, "")?;
    ensure!(lines.len() == 9, "{lines:?}");
    for line in lines {
        let millis = if line["metric"]["__name__"] == "named_v" { NOON } else { NOON * 1000 };
        ensure!(line["timestamps"] == json!([millis]), "{line}");
    }
    let address = e2e::poll("the address of the listener", PATIENCE, || {
        let log = server.log();
        let (_, rest) = log.rsplit_once("over TCP and UDP at ").context("not said")?;
        Ok(rest.split_once(' ').context("not whole")?.0.to_string())
    })?;
    let mut socket = TcpStream::connect(&address)?;
    socket.write_all(format!("socket v=1 {NOON}\n").as_bytes())?;
    drop(socket);
    e2e::poll("the line", PATIENCE, || {
        let answer = server.get("/api/v1/export?match[]=socket_v")?;
        let expected = format!("\"timestamps\":[{}]", NOON * 1000);
        ensure!(answer.text().contains(&expected), "{}", answer.excerpt());
        Ok(())
    })?;
    server.stop()
}

#[test]
fn samples_in_1970_are_answered_with_a_warning() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let warning = |path: &str, body: &str| -> Result<String> {
        let answer = server.post(path, body)?;
        ensure!(answer.status < 300, "{path}: {}", answer.excerpt());
        Ok(answer.header("x-quipu-warning").to_string())
    };
    let line = |time: i64| format!("m v=1 {time}\n");
    for path in ["/write", "/api/v2/write?bucket=b"] {
        for time in [NOON, NOON * 1_000, NOON * 1_000_000] {
            let text = warning(path, &line(time))?;
            ensure!(text.contains("1970") && text.contains("--influx.default-precision"), "{text}");
        }
    }
    ensure!(server.log().matches("all samples of the request are in 1970").count() == 1);
    let json = |time: i64| {
        format!(r#"{{"metric":{{"__name__":"j"}},"values":[1],"timestamps":[{time}]}}"#)
    };
    let csv = "/api/v1/import/csv?format=1:metric:c,2:time:unix_ns";
    for (path, body) in [
        ("/api/v1/import", json(NOON)),
        ("/api/v1/import/prometheus", format!("p 1 {NOON}\n")),
        ("/metrics/job/j", format!("p 1 {NOON}\n")),
        (csv, format!("1,{NOON}\n")),
        ("/api/v3/write_lp?db=d&precision=nanosecond", line(NOON)),
    ] {
        ensure!(!warning(path, &body)?.is_empty(), "{path}");
    }
    for (path, body) in [
        ("/write", line(NOON * 1_000_000_000)),
        ("/write", "m v=1\n".to_string()),
        ("/write", line(-1)),
        ("/write", String::new()),
        ("/write", line(NOON) + "m v=1\n"),
        ("/write", line(NOON) + &line(365 * 86_400 * 1_000_000_000)),
        ("/write?precision=s", line(NOON)),
        ("/api/v3/write_lp?db=d", line(NOON)),
        ("/api/v1/import", json(NOON * 1000)),
        ("/api/v1/import/prometheus", format!("p 1 {NOON}000\n")),
    ] {
        ensure!(warning(path, &body)?.is_empty(), "{path} {body}");
    }
    server.stop()
}

#[test]
fn exports_have_whole_milliseconds_where_they_are_asked_for() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let nanos = |offset: i64| NOON * 1_000_000_000 + offset;
    let mut lines = String::new();
    for (offset, value) in [(0, 1), (1_000_001, 2), (1_999_999, 3), (2_000_000, 4)] {
        lines += &format!("m v={value},s=\"t{value}\" {}\n", nanos(offset));
    }
    server.write("/write", lines)?;
    let millis = NOON * 1000;
    let histogram = json!({
        "metric": {"__name__": "m_v", "db": ""}, "histograms": [{"schema": 0, "count": 1, "sum": 7}],
        "histogram_timestamps": [format!("{}.5", millis + 2)],
    });
    let histogram = histogram
        .to_string()
        .replace(&format!("\"{}.5\"", millis + 2), &format!("{}.5", millis + 2));
    ensure!(server.post("/api/v1/import", histogram)?.status == 204);

    // The instant of a query is ignored.
    ensure!(export(&server, &format!("time={NOON}"))? == export(&server, "")?);
    let fractions = |line: &Value| line.to_string().matches('.').count();
    let exact = export(&server, "strings=1")?;
    ensure!(exact.iter().map(fractions).sum::<usize>() != 0, "{exact:?}");
    let whole = export(&server, "strings=1&time=ms")?;
    ensure!(whole.len() == 3 && whole.iter().all(|line| fractions(line) == 0), "{whole:?}");
    for line in &whole {
        let (times, values) = match &line["strings"] {
            Value::Null if line["values"].is_null() => {
                ensure!(line["histogram_timestamps"] == json!([millis + 2]), "{line}");
                continue;
            }
            // A histogram follows the last number within the same millisecond.
            Value::Null => (json!([millis, millis + 1]), (&line["values"], json!([1, 3]))),
            texts => (json!([millis, millis + 1, millis + 2]), (texts, json!(["t1", "t3", "t4"]))),
        };
        ensure!(line["timestamps"] == times && *values.0 == values.1, "{line}");
    }
    for bad in [
        "time=s",
        "format=prometheus&time=x",
        "format=prometheus&time=ms",
        "format=promapi&time=ms",
    ] {
        let answer = server.get(&format!("/api/v1/export?match[]=m_v&{bad}"))?;
        ensure!(
            answer.status == 400 && answer.text().contains("\\\"time\\\""),
            "{}",
            answer.excerpt()
        );
    }
    server.stop()
}
