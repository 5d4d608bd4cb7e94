//! Legacy backends that are slow, lie, break off or send too much: answers say so, in time, and what
//! is here is told.

use anyhow::{Context, Result, ensure};
use e2e::{Launch, Server, percent};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// 2026-08-30 00:00:00 UTC in seconds.
const START: i64 = 1_788_048_000;

/// What the backend does; a test changes it.
type Way = Arc<Mutex<&'static str>>;

/// A backend that does as it is told.
fn backend() -> Result<(u16, Way)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let way: Way = Arc::new(Mutex::new("good"));
    let shared = way.clone();
    spawn(move || {
        for stream in listener.incoming() {
            let (Ok(stream), shared) = (stream, shared.clone()) else { return };
            spawn(move || serve(stream, &shared));
        }
    });
    Ok((port, way))
}

fn series(name: &str, samples: usize) -> String {
    let values: Vec<String> = (0..samples).map(|at| at.to_string()).collect();
    let times: Vec<String> =
        (0..samples).map(|at| (START * 1000 + at as i64).to_string()).collect();
    format!(
        "{{\"metric\":{{\"__name__\":\"{name}\",\"from\":\"there\"}},\"values\":[{}],\"timestamps\":[{}]}}\n",
        values.join(","),
        times.join(",")
    )
}

/// The same as VictoriaMetrics' native stream, a block for each sample.
fn native(lines: &str) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    for line in lines.lines() {
        let Ok(json) = serde_json::from_str::<Value>(line) else { return lines.into() };
        let metric = json["metric"].as_object().cloned().unwrap_or_default();
        let text = |name: &str| metric[name].as_str().unwrap_or_default();
        let key = format!("{}\u{1}from\u{1}{}\u{1}", text("__name__"), text("from"));
        let list = |name: &str| json[name].as_array().cloned().unwrap_or_default();
        for (time, value) in list("timestamps").iter().zip(list("values")) {
            let (time, value) = (time.as_i64().unwrap_or(0), value.as_i64().unwrap_or(0));
            let mut content = Vec::new();
            for number in [2 * time, 2 * time, 2 * value, 1, 0, 3, 3, 64, 0, 0] {
                let mut rest = number as u64;
                while 128 <= rest {
                    content.push(rest as u8 | 128);
                    rest >>= 7;
                }
                content.push(rest as u8);
            }
            for piece in [key.as_bytes(), &content] {
                bytes.extend_from_slice(&(piece.len() as u32).to_be_bytes());
                bytes.extend_from_slice(piece);
            }
        }
    }
    bytes
}

fn serve(mut stream: TcpStream, way: &Way) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines().map_while(Result::ok);
    let asked = lines.next()?;
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let way = *way.lock().ok()?;
    let is_native = asked.contains("/export/native");
    let body = match (way, asked.contains("/export")) {
        ("echo", _) => headers.join("\n"),
        ("garbage", _) => "\u{1}\u{2}<html>{{{".to_string(),
        ("another", true) => series("other", 3),
        ("later", true) => series("m", 3).replace(&format!("{START}"), &format!("{}", START + 90_000)),
        ("unsorted", true) => "{\"metric\":{\"__name__\":\"m\",\"from\":\"there\"},\"values\":[5,6,7],\"timestamps\":[1788048000002,1788048000000,1788048000001]}\n".to_string(),
        ("many samples", true) => series("m", 2000),
        ("many series", true) => (0..200).map(|n| series("m", 1).replace("there", &format!("t{n}"))).collect(),
        // Of a time that nobody asked for, so that no sample counts.
        ("many bytes", true) if is_native => series(&"m".repeat(900 << 10), 3)
            .replace(&format!("{START}"), &format!("{}", START + 90_000)),
        ("many bytes", _) => " ".repeat(3 << 20),
        (_, true) => series("m", 3),
        ("many series", false) => {
            let one = |n: i32| format!("{{\"__name__\":\"m\",\"from\":\"t{n}\"}}");
            let all: Vec<String> = (0..200).map(one).collect();
            format!("{{\"status\":\"success\",\"data\":[{}]}}", all.join(","))
        }
        (_, false) if asked.contains("/series") => {
            "{\"status\":\"success\",\"data\":[{\"__name__\":\"m\",\"from\":\"there\"}]}".to_string()
        }
        (_, false) => "{\"status\":\"success\",\"data\":[\"__name__\",\"from\"]}".to_string(),
    };
    let body = match is_native {
        true => native(&body),
        false => body.into_bytes(),
    };
    let status = match way {
        "500" | "echo" => "500 Internal Server Error",
        "429" => "429 Too Many Requests\r\nRetry-After: 60",
        "422" => "422 Unprocessable Entity",
        _ => "200 OK",
    };
    if way == "stall" {
        sleep(Duration::from_secs(30));
    }
    let head =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).ok()?;
    let half = body.len() / 2;
    match way {
        "cut" => stream.write_all(&body[..half]).ok(),
        "drip" => body.iter().try_for_each(|byte| {
            sleep(Duration::from_millis(50));
            stream.write_all(&[*byte]).ok()
        }),
        _ => stream.write_all(&body).ok(),
    }
}

/// What a path answers, and how long that took.
pub fn ask(server: &Server, path: &str) -> Result<(u16, Value, Duration)> {
    let began = Instant::now();
    let response = server.get(path)?;
    let json = serde_json::from_slice(&response.body).context(response.excerpt())?;
    Ok((response.status, json, began.elapsed()))
}

fn query_path(query: &str) -> String {
    format!("/api/v1/query?query={}&time={}", percent(query), START + 60)
}

/// How a VictoriaMetrics may be asked for samples.
const EXPORTS: [&str; 2] = ["blocks", "lines"];

fn start(directory: &std::path::Path, port: u16, export: &str) -> Result<Server> {
    let legacy = format!(
        "url=http://127.0.0.1:{port} kind=victoriametrics until={} timeout=700ms export={export}",
        START + 80_000
    );
    let launch = Launch::new(directory).flag("legacy", &legacy).flag("query.max-series", "100");
    let server =
        launch.flag("legacy-max-samples", "1000").flag("legacy-max-size", "1MiB").start()?;
    server.write("/write?precision=s", format!("m,from=here value=9 {START}\n"))?;
    Ok(server)
}

#[test]
fn answers_say_what_a_bad_backend_did_not_give() -> Result<()> {
    EXPORTS.iter().try_for_each(|export| check_bad(export))
}

fn check_bad(export: &str) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (port, way) = backend()?;
    let server = start(directory.path(), port, export)?;
    let set = |to| *way.lock().expect("no panic") = to;
    let query = query_path("{__name__=~\"m.*\"}");
    for bad in ["stall", "drip", "garbage", "500", "429", "422", "cut"] {
        // After a few of them it is left alone: a good one ends that.
        set("good");
        let whole = || -> Result<()> {
            let (_, json, _) = ask(&server, &query)?;
            ensure!(json["isPartial"] != true, "{bad}: {json}");
            ensure!(
                json["data"]["result"].as_array().is_some_and(|all| all.len() == 2),
                "{bad}: {json}"
            );
            Ok(())
        };
        e2e::poll("a whole answer", Duration::from_secs(20), whole)?;
        set(bad);
        let paths = [query.as_str(), "/api/v1/series?match[]=m_value&start=1788048000"];
        for path in paths.iter().filter(|path| bad != "drip" || !path.contains("/series")) {
            let (status, json, took) = ask(&server, path)?;
            ensure!(status == 200 && json["isPartial"] == true, "{bad} {path}: {json}");
            let warning = json["warnings"][0].as_str().unwrap_or_default().to_string();
            ensure!(warning.contains("legacy backend http://127.0.0.1"), "{bad}: {warning}");
            ensure!(took < Duration::from_secs(10), "{bad}: {took:?}");
            let text = json["data"].to_string();
            ensure!(text.contains("here") && !text.contains("there"), "{bad} {path}: {json}");
            println!("{bad}: {warning}");
        }
    }
    server.stop()
}

#[test]
fn what_nobody_asked_for_gets_in_nowhere() -> Result<()> {
    EXPORTS.iter().try_for_each(|export| check_unasked(export))
}

fn check_unasked(export: &str) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (port, way) = backend()?;
    let server = start(directory.path(), port, export)?;
    let set = |to| *way.lock().expect("no panic") = to;
    for (bad, expected) in [("another", 1), ("later", 1), ("unsorted", 2)] {
        set(bad);
        let (_, json, _) = ask(&server, &query_path("{__name__=~\"m.*\"}"))?;
        ensure!(json["isPartial"] != true, "{bad}: {json}");
        let result = json["data"]["result"].as_array().context("no result")?;
        ensure!(result.len() == expected, "{bad}: {json}");
    }
    let (_, json, _) = ask(&server, &query_path("m[2m]"))?;
    let values = json["data"]["result"].to_string();
    ensure!(
        values.contains("[[1788048000,\"6\"],[1788048000.001,\"7\"],[1788048000.002,\"5\"]]"),
        "{values}"
    );
    server.stop()
}

#[test]
fn more_than_a_limit_is_an_error_that_names_it() -> Result<()> {
    EXPORTS.iter().try_for_each(|export| check_limits(export))
}

fn check_limits(export: &str) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (port, way) = backend()?;
    let server = start(directory.path(), port, export)?;
    for (bad, limit) in [
        ("many samples", "legacy-max-samples"),
        ("many bytes", "legacy-max-size"),
        ("many series", "query.max-series"),
    ] {
        *way.lock().expect("no panic") = bad;
        let (status, json, _) = ask(&server, &query_path("{__name__=~\"m.*\"}"))?;
        ensure!(status == 422, "{bad}: {status} {json}");
        ensure!(json["error"].as_str().is_some_and(|text| text.contains(limit)), "{bad}: {json}");
        let hits = format!("quipu_limit_hits_total{{limit=\"{limit}\"}}");
        ensure!(0.0 < server.metric(&hits)?, "{limit} is counted");
    }
    let (status, json, _) = ask(&server, "/api/v1/series?match[]=m&start=1788048000")?;
    ensure!(status == 422, "{json}");
    server.stop()
}

#[test]
fn a_flag_that_makes_no_sense_keeps_it_from_starting() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = |rule: &str| Launch::new(directory.path()).flag("legacy", rule);
    let said = launch("url=http://a kind=influxdb until=1 export=lines").refusal()?;
    ensure!(said.contains("--legacy (command line)") && said.contains("export="), "{said}");
    let said =
        launch("url=http://a kind=prometheus until=1 bearer-token-file=/nowhere").refusal()?;
    ensure!(said.contains("/nowhere") && said.contains("--legacy"), "{said}");
    Ok(())
}

#[test]
fn a_secret_that_a_backend_shows_is_not_shown_on() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (port, way) = backend()?;
    *way.lock().expect("no panic") = "echo";
    let token = directory.path().join("token");
    std::fs::write(&token, "hunter2hunter2\n")?;
    let legacy = format!(
        "url=http://127.0.0.1:{port} kind=victoriametrics until={} bearer-token-file={}",
        START + 80_000,
        token.display()
    );
    let server = Launch::new(&directory.path().join("data")).flag("legacy", &legacy).start()?;
    let (status, json, _) = ask(&server, &query_path("m"))?;
    let text = json.to_string();
    ensure!(status == 200 && text.contains("Bearer ***"), "{text}");
    ensure!(!text.contains("hunter2"), "{text}");
    // Three of them are a line in the log.
    ask(&server, &query_path("m"))?;
    ask(&server, &query_path("m"))?;
    server.wait_for_log("in a row")?;
    ensure!(!server.log().contains("hunter2"), "{}", server.log());
    let is_its_own = |line: &str| line.starts_with("authorization");
    ensure!(!server.log().lines().any(is_its_own), "a backend writes lines: {}", server.log());
    server.stop()
}
