//! InfluxDBs as legacy backends that stall, lie, break off, say no, or have too much: answers say so, and
//! what is here stays what it is.

use crate::legacy_faults::ask;
use anyhow::{Context, Result, ensure};
use e2e::fake_server::read_request;
use e2e::{Launch, Server, percent, poll};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// 2026-08-30 00:00:00 UTC in seconds.
const START: i64 = 1_788_048_000;
const NANOS: i64 = 1_000_000_000;

type Way = Arc<Mutex<&'static str>>;

/// Rows of a series, each as `[time,value]`.
fn rows(count: i64) -> String {
    let row = |n: i64| format!("[{},{}]", START * NANOS + n * 1_000_000, 5 + n);
    (0..count).map(row).collect::<Vec<_>>().join(",")
}

/// An answer with a series.
fn series(host: &str, rows: &str, more: &str) -> String {
    format!(
        "{{\"results\":[{{\"statement_id\":0,\"series\":[{{\"name\":\"m\",\"tags\":{{\"host\":\"{host}\"}},\
         \"columns\":[\"time\",\"c0\"],\"values\":[{rows}]}}]{more}}}]}}\n"
    )
}

/// What the catalog's questions are answered with.
fn catalog(asked: &str) -> Option<String> {
    let result = |statement: u32, columns: &str, values: &str| {
        format!(
            "{{\"results\":[{{\"statement_id\":{statement},\"series\":[{{\"name\":\"m\",\"columns\":[{columns}],\
             \"values\":[{values}]}}]}}]}}\n"
        )
    };
    if asked.contains("DATABASES") {
        return Some(result(0, "\"name\"", "[\"x\"]"));
    }
    let is_catalog = asked.contains("POLICIES");
    is_catalog.then(|| {
        result(0, "\"name\",\"default\"", "[\"autogen\",true]")
            + &result(1, "\"fieldKey\",\"fieldType\"", "[\"value\",\"float\"]")
    })
}

fn body(way: &str, asked: &str) -> String {
    if let Some(catalog) = catalog(asked) {
        return catalog;
    }
    let good = series("there", &rows(3), "");
    match way {
        "garbage" => "\u{1}\u{2}<html>{{{".to_string(),
        "error" => {
            "{\"results\":[{\"statement_id\":0,\"error\":\"max-select-point limit exceeded\"}]}\n"
                .to_string()
        }
        "late error" => {
            series("there", &rows(3), ",\"partial\":true")
                + "{\"error\":\"engine: shard is closed\"}\n"
        }
        "partial" => series("there", &rows(3), ",\"partial\":true"),
        "empty" => String::new(),
        "another statement" => good.replace("\"statement_id\":0", "\"statement_id\":7"),
        "another" => good.replace("there", "other"),
        "later" => series("there", &format!("[{},1]", (START + 90_000) * NANOS), ""),
        "unsorted" => {
            let row = |n: i64| format!("[{},{}]", START * NANOS + n * 1_000_000, 5 + n);
            series("there", &[row(2), row(0), row(1), row(0)].join(","), "")
        }
        "text" => good.replace(",5]", ",\"five\"]"),
        "more columns" => good.replace(",5]", ",5,6]"),
        "many samples" => series("there", &rows(2000), ""),
        "many series" => (0..200)
            .map(|n| {
                series(&format!("t{n}"), &rows(1), if n < 199 { ",\"partial\":true" } else { "" })
            })
            .collect(),
        // Each a few bytes here, and many in memory.
        "bomb" => format!(
            "{{\"results\":[{{\"series\":[{{\"values\":[{}[1]]}}]}}]}}",
            "[1,1],".repeat(7 << 17)
        ),
        "many bytes" => " ".repeat(3 << 20),
        _ => good,
    }
}

fn serve(mut stream: TcpStream, way: &Way) -> Option<()> {
    let (_, asked) = read_request(&stream)?;
    let way = *way.lock().ok()?;
    let is_catalog = catalog(&asked).is_some();
    let body = body(way, &asked);
    let status = match way {
        _ if is_catalog => "200 OK",
        "500" => "500 Internal Server Error",
        "401" => "401 Unauthorized",
        _ => "200 OK",
    };
    if way == "stall" && !is_catalog {
        sleep(Duration::from_secs(30));
    }
    let head =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).ok()?;
    match way {
        "cut" if !is_catalog => stream.write_all(&body.as_bytes()[..body.len() / 2]).ok(),
        "drip" if !is_catalog => body.as_bytes().iter().try_for_each(|byte| {
            sleep(Duration::from_millis(50));
            stream.write_all(&[*byte]).ok()
        }),
        _ => stream.write_all(body.as_bytes()).ok(),
    }
}

fn backend() -> Result<(u16, Way)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let way: Way = Arc::new(Mutex::new("good"));
    let shared = way.clone();
    spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let way = shared.clone();
            spawn(move || serve(stream, &way));
        }
    });
    Ok((port, way))
}

fn start(directory: &std::path::Path, port: u16) -> Result<Server> {
    let until = START + 80_000;
    let legacy = format!("url=http://127.0.0.1:{port} kind=influxdb until={until} timeout=700ms");
    let launch = Launch::new(directory).flag("legacy", &legacy).flag("query.max-series", "100");
    let server =
        launch.flag("legacy-max-samples", "1000").flag("legacy-max-size", "16MiB").start()?;
    server.write("/write?precision=s&db=x", format!("m,host=here value=9 {START}\n"))?;
    Ok(server)
}

fn query_path(query: &str) -> String {
    format!("/api/v1/query?query={}&time={}", percent(query), START + 60)
}

#[test]
fn answers_say_what_a_bad_influxdb_did_not_give() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (port, way) = backend()?;
    let server = start(directory.path(), port)?;
    let set = |to| *way.lock().expect("no panic") = to;
    let query = query_path("{__name__=~\"m_.*\"}");
    for (bad, words) in [
        ("stall", "within"),
        ("drip", "within"),
        ("garbage", "InfluxQL"),
        ("500", "500"),
        ("401", "401"),
        ("cut", "broke off"),
        ("error", "max-select-point"),
        ("late error", "shard is closed"),
        ("partial", "ends before its end"),
        ("empty", "ends before its end"),
        ("another statement", "not asked"),
        ("more columns", "more columns"),
        ("many bytes", ""),
    ] {
        set("good");
        let whole = || -> Result<()> {
            let (_, json, _) = ask(&server, &query)?;
            let is_whole = json["data"]["result"].as_array().is_some_and(|all| all.len() == 2);
            ensure!(json["isPartial"] != true && is_whole, "{bad}: {json}");
            Ok(())
        };
        poll("a whole answer", Duration::from_secs(20), whole)?;
        set(bad);
        for path in [query.as_str(), "/api/v1/series?match[]=m_value&start=1788048000"] {
            if bad == "drip" && path.contains("/series") {
                continue;
            }
            let (status, json, took) = ask(&server, path)?;
            ensure!(status == 200 && json["isPartial"] == true, "{bad} {path}: {json}");
            let warning = json["warnings"][0].as_str().unwrap_or_default().to_string();
            ensure!(warning.contains("legacy backend http://127.0.0.1"), "{bad}: {warning}");
            ensure!(warning.contains(words), "{bad}: {warning}");
            ensure!(took < Duration::from_secs(10), "{bad}: {took:?}");
            let text = json["data"].to_string();
            ensure!(text.contains("here") && !text.contains("there"), "{bad} {path}: {json}");
        }
    }
    server.stop()
}

#[test]
fn what_no_influxdb_was_asked_for_gets_in_nowhere() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (port, way) = backend()?;
    let server = start(directory.path(), port)?;
    let set = |to| *way.lock().expect("no panic") = to;
    for (bad, expected) in [("another", 1), ("later", 1), ("unsorted", 2), ("text", 2)] {
        set(bad);
        let (_, json, _) = ask(&server, &query_path("m_value{host=~\".*here\"}"))?;
        ensure!(json["isPartial"] != true, "{bad}: {json}");
        let result = json["data"]["result"].as_array().context("no result")?;
        ensure!(result.len() == expected, "{bad}: {json}");
    }
    set("unsorted");
    let (_, json, _) = ask(&server, &query_path("m_value{host=\"there\"}[2m]"))?;
    let values = json["data"]["result"].to_string();
    let expected = "[[1788048000,\"5\"],[1788048000.001,\"6\"],[1788048000.002,\"7\"]]";
    ensure!(values.contains(expected), "{values}");
    server.stop()
}

#[test]
fn more_of_an_influxdb_than_a_limit_is_an_error_that_names_it() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (port, way) = backend()?;
    let server = start(directory.path(), port)?;
    for (bad, limit) in [
        ("bomb", "legacy-max-samples"),
        ("many samples", "legacy-max-samples"),
        ("many series", "query.max-series"),
    ] {
        *way.lock().expect("no panic") = bad;
        let (status, json, _) = ask(&server, &query_path("m_value"))?;
        ensure!(status == 422, "{bad}: {status} {json}");
        ensure!(json["error"].as_str().is_some_and(|text| text.contains(limit)), "{bad}: {json}");
    }
    let (status, json, _) = ask(&server, "/api/v1/series?match[]=m_value&start=1788048000")?;
    ensure!(status == 422, "{json}");
    let peak = server.metric("process_resident_memory_peak_bytes")?;
    ensure!(peak < 1e9, "{peak} bytes of memory");
    server.stop()
}
