//! InfluxDBs as legacy backends whose catalogs have too much, names that nobody can say, or less than they
//! had: the rest is told, and what is not is said.

use crate::legacy_faults::ask;
use anyhow::{Context, Result, ensure};
use e2e::fake_server::read_request;
use e2e::{Launch, Server, percent};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::spawn;

/// 2026-08-30 00:00:00 UTC in seconds.
const START: i64 = 1_788_048_000;
const NANOS: i64 = 1_000_000_000;
/// Bytes of memory that the server may take at most.
const PEAK_MAX: f64 = 1e9;

/// Series of a piece of a list.
const PIECE: usize = 1000;

/// What a backend has.
#[derive(Clone, Default)]
struct Has {
    databases: Vec<&'static str>,
    policies: Vec<String>,
    /// Measurements, fields and types.
    fields: Vec<(String, String, &'static str)>,
    /// The values of a series, as JSON.
    values: Vec<String>,
}

impl Has {
    /// A database with a measurement.
    fn one() -> Has {
        Has {
            databases: vec!["x"],
            policies: vec!["autogen".to_string()],
            fields: vec![("m".to_string(), "value".to_string(), "float")],
            values: vec!["5".to_string()],
        }
    }

    fn answer(&self, asked: &str) -> String {
        let piece = |statement: usize, series: &[String], more: &str| {
            let all = series.join(",");
            format!("{{\"results\":[{{\"statement_id\":{statement},\"series\":[{all}]{more}}}]}}\n")
        };
        let line = |statement: usize, series: &[String]| piece(statement, series, "");
        let list = |name: &str, columns: &str, values: &[String]| {
            let (name, values) = (serde_json::json!(name), values.join(","));
            format!("{{\"name\":{name},\"columns\":[{columns}],\"values\":[{values}]}}")
        };
        if asked.contains("DATABASES") {
            let names: Vec<String> = self.databases.iter().map(|n| format!("[\"{n}\"]")).collect();
            return line(0, &[list("databases", "\"name\"", &names)]);
        }
        let fields = |statement: usize| {
            let field = |(measurement, field, kind): &(String, String, &str)| {
                let row = format!("[{},\"{kind}\"]", serde_json::json!(field));
                list(measurement, "\"fieldKey\",\"fieldType\"", &[row])
            };
            let fields: Vec<String> = self.fields.iter().map(field).collect();
            let pieces = fields.chunks(PIECE);
            let cut: String =
                pieces.map(|some| piece(statement, some, ",\"partial\":true")).collect();
            cut + &line(statement, &[])
        };
        if asked.contains("POLICIES") {
            let row = |(at, name): (usize, &String)| format!("[\"{name}\",{}]", at == 0);
            let policies: Vec<String> = self.policies.iter().enumerate().map(row).collect();
            return line(0, &[list("", "\"name\",\"default\"", &policies)]) + &fields(1);
        }
        // The policies with one digit have the fields of the default one, the others none.
        if asked.contains("FIELD") {
            let ends = asked.split("%3B").map(|text| text.contains("%22p") && is_short(text));
            return ends
                .enumerate()
                .map(|(at, is)| if is { fields(at) } else { line(at, &[]) })
                .collect();
        }
        // What its parser does with such a name.
        if asked.contains("%0D") || asked.contains("%00") {
            return "{\"error\":\"error parsing query: found BADSTRING\"}\n".to_string();
        }
        let row = |(at, value): (i64, &String)| format!("[{},{value}]", START * NANOS + at);
        let rows: Vec<String> = (0..).zip(&self.values).map(row).collect();
        let series = format!(
            "{{\"name\":\"m\",\"tags\":{{\"host\":\"there\"}},\"columns\":[\"time\",\"c0\"],\"values\":[{}]}}",
            rows.join(",")
        );
        let shown = asked.matches("SHOW").count();
        if 0 < shown {
            return (0..shown).map(|at| line(at, &[])).collect();
        }
        let count = asked.matches("SELECT").count();
        (0..count)
            .map(|at| line(at, if at == 0 { std::slice::from_ref(&series) } else { &[] }))
            .collect()
    }
}

/// Whether the policy of a statement has one digit.
fn is_short(text: &str) -> bool {
    let name = text.split("%22p").nth(1).unwrap_or_default();
    name.split("%22").next().is_some_and(|name| name.len() == 1)
}

fn serve(mut stream: TcpStream, has: &Mutex<Has>) -> Option<()> {
    let (_, asked) = read_request(&stream)?;
    let body = has.lock().ok()?.answer(&asked);
    let size = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n")
        .ok()?;
    stream.write_all(body.as_bytes()).ok()
}

fn backend(has: Has) -> Result<(u16, Arc<Mutex<Has>>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let has = Arc::new(Mutex::new(has));
    let shared = has.clone();
    spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let has = shared.clone();
            spawn(move || serve(stream, &has));
        }
    });
    Ok((port, has))
}

fn launch(directory: &Path, port: u16, more: &str) -> Launch {
    let until = START + 80_000;
    let legacy =
        format!("url=http://127.0.0.1:{port} kind=influxdb until={until} timeout=20s {more}");
    Launch::new(directory).flag("legacy", &legacy)
}

fn with_own(launch: Launch) -> Result<Server> {
    let server = launch.start()?;
    server.write("/write?precision=s&db=x", format!("m,host=here value=9 {START}\n"))?;
    Ok(server)
}

fn query_path(query: &str) -> String {
    format!("/api/v1/query?query={}&time={}", percent(query), START + 60)
}

/// Fails unless a query finds so many series, and says what is missing, if anything is.
fn check(server: &Server, query: &str, count: usize, words: &str) -> Result<()> {
    let (status, json, _) = ask(server, &query_path(query))?;
    let found = json["data"]["result"].as_array().context(json.to_string())?.len();
    ensure!(status == 200 && found == count, "{query}: {json}");
    let warnings = json["warnings"].to_string();
    match words {
        "" => ensure!(json["isPartial"] != true, "{query}: {json}"),
        words => {
            ensure!(json["isPartial"] == true && warnings.contains(words), "{query}: {warnings}")
        }
    }
    Ok(())
}

#[test]
fn a_vast_catalog_is_refused_before_it_is_in_memory() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut has = Has::one();
    has.policies.extend((1..1000).map(|n| format!("p{n}")));
    let field = |n: usize| ("m".to_string(), format!("f{n}"), "float");
    has.fields.extend((0..100_000).map(field));
    let (port, has) = backend(has)?;
    let server = with_own(launch(directory.path(), port, ""))?;
    check(&server, "{__name__=~\"m_.*\"}", 1, "more than 524288 fields of all policies")?;
    let shown = server.get("/query?db=x&q=SHOW+FIELD+KEYS+FROM+m")?.text();
    ensure!(shown.contains("f99999"), "InfluxQL knows them");
    let peak = server.metric("process_resident_memory_peak_bytes")?;
    ensure!(peak < PEAK_MAX, "{peak} bytes of memory");
    server.stop()?;

    has.lock().expect("no panic").fields.extend((100_000..600_000).map(field));
    let server = with_own(launch(&directory.path().join("more"), port, ""))?;
    check(&server, "m_value", 1, "it has more than 524288 fields")?;
    let state = server.get("/api/v1/status/legacy")?.data()?;
    ensure!(state["backends"][0]["isAway"] == false, "it is there: {state}");
    let peak = server.metric("process_resident_memory_peak_bytes")?;
    ensure!(peak < PEAK_MAX, "{peak} bytes of memory");
    server.stop()
}

#[test]
fn names_that_cannot_be_said_are_left_out_and_the_rest_is_told() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut has = Has::one();
    for (measurement, field) in [("m", "va\rlue"), ("m\r", "v"), ("m", "z\0")] {
        has.fields.push((measurement.to_string(), field.to_string(), "float"));
    }
    let (port, _) = backend(has)?;
    let server = with_own(launch(directory.path(), port, ""))?;
    let wide = "{__name__=~\"m.*\"}";
    check(&server, wide, 2, "3 fields whose names InfluxQL cannot say, as ")?;
    check(&server, "m_value", 2, "")?;
    let path = "/api/v1/label/host/values?start=1788048000";
    let (_, json, _) = ask(&server, path)?;
    ensure!(json["data"].to_string().contains("here") && json["isPartial"] == true, "{json}");
    let denied = server.get(&format!("{}&deny_partial_response=1", query_path(wide)))?;
    ensure!(denied.status == 503 && denied.text().contains("cannot say"), "{}", denied.excerpt());
    // Each statement says it, for clients take them apart.
    let statements = percent("SELECT last(/.*/) FROM /m.*/; SELECT last(value) FROM m");
    let (_, json, _) = ask(&server, &format!("/query?db=x&q={statements}"))?;
    for at in 0..2 {
        let messages = json["results"][at]["messages"].to_string();
        ensure!(messages.contains("part of the answer is missing"), "{at}: {json}");
    }
    server.stop()
}

#[test]
fn databases_and_policies_that_are_not_there_are_said() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (port, has) = backend(Has { databases: vec![], ..Has::one() })?;
    let server = with_own(launch(&directory.path().join("a"), port, ""))?;
    check(&server, "m_value", 1, "it shows no databases")?;
    *has.lock().expect("no panic") = Has::one();
    check(&server, "m_value", 2, "")?;
    server.stop()?;
    let policies = "retention-policy=gone retention-policy=autogen";
    let server = with_own(launch(&directory.path().join("b"), port, policies))?;
    for _ in 0..4 {
        check(&server, "m_value", 2, "no retention policy is called \\\"gone\\\"")?;
        check(&server, "m_value", 2, "there are: \\\"autogen\\\"")?;
    }
    let state = server.get("/api/v1/status/legacy")?.data()?;
    ensure!(state["backends"][0]["isAway"] == false, "it is there: {state}");
    server.stop()
}

#[test]
fn an_answer_with_too_many_strings_takes_no_numbers_from_others() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut has = Has::one();
    has.fields = vec![("m".to_string(), "s".to_string(), "string")];
    let strings = |n: std::ops::Range<usize>| n.map(|n| format!("\"text {n}\"")).collect();
    has.values = strings(0..20);
    let (port, has) = backend(has)?;
    let server = launch(directory.path(), port, "").flag("influx.max-strings", "10").start()?;
    let select = format!("/query?db=x&q={}", percent("SELECT s FROM m"));
    let (_, json, _) = ask(&server, &select)?;
    let messages = json["results"][0]["messages"].to_string();
    ensure!(messages.contains("more than 10 different strings"), "{json}");
    has.lock().expect("no panic").values = strings(20..30);
    let (_, json, _) = ask(&server, &select)?;
    let rows = json["results"][0]["series"][0]["values"].to_string();
    ensure!(rows.contains("text 20") && rows.contains("text 29"), "{json}");
    // A list of series needs none.
    has.lock().expect("no panic").values = strings(30..31);
    let (_, json, _) = ask(&server, "/api/v1/series?match[]=m_s:text&start=1788048000")?;
    ensure!(json["isPartial"] != true && json["data"].to_string().contains("there"), "{json}");
    server.stop()
}
