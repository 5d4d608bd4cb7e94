//! Long strings of line protocol: an answer as text is many times what its rows are, and no server holds it.

use anyhow::{Context, Result, ensure};
use e2e::answers::percent;
use e2e::http::{connect, head};
use e2e::{Launch, Server};
use serde_json::Value;
use std::io::Read;

/// 2020-09-13 12:26:40 UTC.
const START: i64 = 1_600_000_000;
/// Points of all hosts.
const POINTS: usize = 40_000;
const HOSTS: usize = 4;
/// Bytes of a text, each of which takes six in InfluxQL's JSON.
const TEXT_SIZE: usize = 1000;
/// What a server may take beside what it had: rows are some 300 bytes for each point, the least of all
/// answers as text is 40 MB.
const GROWTH_MAX: u64 = 32 << 20;

/// One of a few texts.
fn text(at: usize) -> String {
    format!("{at:02}{}", "<".repeat(TEXT_SIZE - 2))
}

fn start(directory: &std::path::Path) -> Result<Server> {
    let server = Launch::new(directory).start()?;
    for first in (0..POINTS).step_by(2000) {
        let line = |at: usize| {
            let (host, text, time) = (at % HOSTS, text(at % 7), START + (at / HOSTS) as i64);
            format!("m,host=h{host} s=\"{text}\" {time}000000000\n")
        };
        server.write("/write?db=x", (first..first + 2000).map(line).collect::<String>())?;
    }
    // What writing took is not asked about.
    server.restart()
}

/// An answer that nobody keeps.
struct Passed {
    head: String,
    size: u64,
    /// The last bytes.
    end: String,
}

/// Asks, and throws away what comes.
fn pass(
    server: &Server,
    method: &str,
    path: &str,
    body: &str,
    more: &[(&str, &str)],
) -> Result<Passed> {
    let mut headers = vec![("Connection", "close")];
    headers.extend_from_slice(more);
    let head = head(method, path, server.authority(), &headers, body.len());
    let mut stream = connect(server.authority())?;
    std::io::Write::write_all(&mut stream, (head + body).as_bytes())?;
    let mut passed = Passed { head: String::new(), size: 0, end: String::new() };
    let (mut buffer, mut end) = (vec![0; 1 << 16], Vec::new());
    loop {
        let size = stream.read(&mut buffer)?;
        if size == 0 {
            break;
        }
        if passed.size == 0 {
            let text = String::from_utf8_lossy(&buffer[..size]).into_owned();
            passed.head = text.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase();
        }
        passed.size += size as u64;
        end.extend_from_slice(&buffer[..size]);
        end.drain(..end.len().saturating_sub(40));
    }
    passed.end = String::from_utf8_lossy(&end).into_owned();
    ensure!(passed.head.starts_with("http/1.1 200"), "{path}: {}", passed.head);
    Ok(passed)
}

/// Asks in one form; that the answer came, and what it took.
fn check(server: &Server, path: &str, size_min: usize, more: &[(&str, &str)]) -> Result<Passed> {
    let before = server.resident_bytes("VmHWM")?;
    let passed = match path.starts_with("/api/v2/query") {
        true => {
            let flux = "from(bucket: \"x\") |> range(start: 0)";
            pass(server, "POST", path, flux, more)?
        }
        false => pass(server, "GET", path, "", more)?,
    };
    let grown = server.resident_bytes("VmHWM")?.saturating_sub(before);
    println!("{path}: {} KiB, the server took {} KiB more", passed.size >> 10, grown >> 10);
    ensure!(size_min as u64 <= passed.size, "{path}: {} of {size_min} bytes", passed.size);
    ensure!(grown < GROWTH_MAX, "{path}: {} MiB", grown >> 20);
    Ok(passed)
}

#[test]
fn answers_are_never_there_as_a_whole() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let (plain, escaped) = (POINTS * TEXT_SIZE, 6 * POINTS * TEXT_SIZE);
    let select = percent("SELECT s FROM m");
    let grouped = percent("SELECT s FROM m GROUP BY host");
    for query in [&select, &grouped] {
        let path = format!("/query?db=x&q={query}");
        let passed = check(&server, &path, escaped, &[])?;
        ensure!(passed.end.ends_with("]]}]}]}\n\r\n0\r\n\r\n"), "{}", passed.end);
        for header in
            ["x-influxdb-version: ", "x-influxdb-build: oss", "content-type: application/json"]
        {
            ensure!(passed.head.contains(header), "{}", passed.head);
        }
        check(&server, &format!("{path}&pretty=true&epoch=ms"), escaped, &[])?;
        check(&server, &format!("{path}&chunked=true"), escaped, &[])?;
        check(&server, &format!("{path}&chunked=true&chunk_size=100000000"), escaped, &[])?;
        let csv = check(&server, &path, plain, &[("Accept", "application/csv")])?;
        ensure!(csv.head.contains("content-type: text/csv"), "{}", csv.head);
        // The same texts are little when they are packed.
        let packed = check(&server, &path, 1 << 10, &[("Accept-Encoding", "gzip")])?;
        ensure!(packed.head.contains("content-encoding: gzip"), "{}", packed.head);
        ensure!((packed.size as usize) < plain / 4, "{}", packed.size);
    }
    for form in ["json", "jsonl", "csv", "pretty"] {
        let path = format!("/api/v3/query_influxql?db=x&format={form}&q={select}");
        check(&server, &path, plain, &[])?;
    }
    let flux = [("Content-Type", "application/vnd.flux")];
    check(&server, "/api/v2/query", plain, &flux)?;
    check(&server, "/api/v1/export?match[]=m_s:text&strings=only", plain, &[])?;
    server.stop()
}

fn ask(server: &Server, query: &str, more: &str) -> Result<(Value, String)> {
    let response = server.get(&format!("/query?db=x&epoch=s&q={}{more}", percent(query)))?;
    ensure!(response.status == 200, "{}", response.excerpt());
    ensure!(!response.header("x-influxdb-version").is_empty(), "{:?}", response.headers);
    let length = response.header("content-length").to_string();
    let answer = serde_json::from_str(&response.text()).with_context(|| response.excerpt())?;
    Ok((answer, length))
}

/// Short answers have a length, long ones come in pieces; both are the same otherwise, errors too.
#[test]
fn long_answers_are_as_short_ones() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("query.max-memory", "1MiB").start()?;
    let line =
        |at: usize| format!("m,host=a s=\"{}\" {}000000000\n", text(at % 7), START + at as i64);
    server.write("/write?db=x", (0..4000).map(line).collect::<String>())?;
    for (limit, has_length) in [(1, true), (50, true), (1000, false)] {
        for more in ["", "&pretty=true"] {
            let (answer, length) = ask(&server, &format!("SELECT s FROM m LIMIT {limit}"), more)?;
            ensure!(length.is_empty() != has_length, "{limit} rows: length {length:?}");
            let rows = answer.pointer("/results/0/series/0/values").and_then(Value::as_array);
            let rows = rows.context("rows")?;
            ensure!(rows.len() == limit, "{}", rows.len());
            for (at, row) in rows.iter().enumerate() {
                ensure!(row[0] == START + at as i64 && row[1] == text(at % 7), "row {at}");
            }
        }
    }
    // What fails says so in its place behind what was found.
    let queries = "SELECT s FROM m LIMIT 1000; SELECT derivative(s) FROM m; SELECT s FROM m";
    let (answer, length) = ask(&server, queries, "")?;
    ensure!(length.is_empty(), "{length}");
    let error = |at: usize| answer.pointer(&format!("/results/{at}/error")).and_then(Value::as_str);
    ensure!(error(0).is_none() && error(2) == Some("not executed"), "{:?}", error(2));
    ensure!(error(1).is_some_and(|words| words.contains("derivative")), "{:?}", error(1));
    // Rows have a bound, however they are written.
    let path = "/query?db=x&q=SELECT+s+FROM+m";
    for more in ["", "&chunked=true"] {
        let text = server.get(&format!("{path}{more}"))?.text();
        ensure!(text.contains("max-select-point limit exceeded: more than 16384 points"), "{text}");
    }
    server.stop()
}
