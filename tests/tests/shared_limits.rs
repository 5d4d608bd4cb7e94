//! Limits that clients share: whoever waits, sleeps or sends little gives up what others need, and
//! texts count against the memory of a query and of the store.

use anyhow::{Context, Result, ensure};
use e2e::answers::percent;
use e2e::http::{connect, head};
use e2e::{Launch, Response, Server, poll};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: u64 = 1_709_208_000;
/// Bytes of memory that the servers of these tests may use.
const MEMORY: &str = "512MiB";
/// Bytes that no test may take: the limit, and the buffers that requests in flight have besides.
const RESIDENT_MAX: u64 = 768 << 20;
const PATIENCE: Duration = Duration::from_secs(30);
/// A request that is not held up by others is answered within this time, on a busy machine too.
const PROMPT: Duration = Duration::from_secs(9);

fn start(flags: &[(&str, &str)]) -> Result<(tempfile::TempDir, Server)> {
    let directory = tempfile::tempdir()?;
    let mut launch = Launch::new(directory.path()).flag("memory-limit", MEMORY);
    for (name, value) in flags {
        launch = launch.flag(name, value);
    }
    let server = launch.start()?;
    Ok((directory, server))
}

fn gzip(text: &str) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes())?;
    Ok(encoder.finish()?)
}

fn is_small(server: &Server, after: &str) -> Result<()> {
    let resident = server.resident_bytes("VmHWM")?;
    println!("after {after}: {} MiB at most", resident >> 20);
    ensure!(resident < RESIDENT_MAX, "after {after}: {} MiB", resident >> 20);
    Ok(())
}

fn query(server: &Server, text: &str) -> Result<Response> {
    let body = format!("query={}&time={NOON}", percent(text));
    let form = [("content-type", "application/x-www-form-urlencoded")];
    server.post_with("/api/v1/query", &form, body)
}

fn range_of(server: &Server, text: &str) -> Result<Response> {
    let body = format!("dialect=metricsql&query={}&time={NOON}", percent(text));
    let form = [("content-type", "application/x-www-form-urlencoded")];
    server.post_with("/api/v1/query", &form, body)
}

/// Begins requests whose bodies never come whole.
fn begin_bodies(server: &Server, count: usize, size: usize, sent: &[u8]) -> Result<Vec<TcpStream>> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = connect(server.authority())?;
        client.write_all(head("POST", "/write", server.authority(), &[], size).as_bytes())?;
        client.write_all(sent)?;
        clients.push(client);
    }
    Ok(clients)
}

#[test]
fn bodies_that_do_not_go_on_leave_their_memory_to_others() -> Result<()> {
    let (_directory, server) = start(&[("max-body-size", "8MiB"), ("max-bodies-size", "8MiB")])?;
    // A body of one byte takes a page, not a large piece.
    let small = begin_bodies(&server, 500, 1000, b"m")?;
    let began = Instant::now();
    server.write("/write", format!("a v=1 {NOON}000000000"))?;
    ensure!(began.elapsed() < PROMPT, "a small body waited {:?}", began.elapsed());
    drop(small);
    let half = vec![b'x'; 4 << 20];
    let large = begin_bodies(&server, 2, 5 << 20, &half)?;
    let shares = || -> Result<bool> {
        let began = Instant::now();
        server.write("/write", format!("b v=1 {NOON}000000000\n").repeat(100_000))?;
        Ok(began.elapsed() < PROMPT)
    };
    ensure!(shares()?, "bodies that stopped held up others");
    drop(large);
    Ok(())
}

#[test]
fn exports_that_nobody_reads_hold_up_no_query() -> Result<()> {
    let (_directory, server) = start(&[("query.max-concurrency", "4")])?;
    let lines: String = (0..200_000)
        .map(|n| format!("m,host=a{} v={n} {}000000000\n", n % 1000, NOON - 1000 + n / 200))
        .collect();
    server.write("/write", lines)?;
    let mut readers = Vec::new();
    for _ in 0..8 {
        let mut client = connect(server.authority())?;
        let path = "/api/v1/export?match[]=m_v&max_rows_per_line=10";
        client.write_all(head("GET", path, server.authority(), &[], 0).as_bytes())?;
        readers.push(client);
    }
    poll("the exports wait for their clients", PATIENCE, || {
        Ok((server.metric("quipu_queries_running")? == 0.0
            && server.metric("quipu_queries_waiting")? == 0.0)
            .then_some(()))
    })?;
    let began = Instant::now();
    let found = query(&server, "count(m_v)")?;
    ensure!(found.status == 200, "{}", found.excerpt());
    ensure!(began.elapsed() < PROMPT, "a query waited {:?}", began.elapsed());
    // Whoever reads on gets all of it.
    let mut reader = readers.pop().context("a reader")?;
    let mut rest = Vec::new();
    reader.set_read_timeout(Some(Duration::from_secs(5)))?;
    while !rest.ends_with(b"\r\n0\r\n\r\n") {
        let mut piece = [0; 64 << 10];
        let size = reader.read(&mut piece)?;
        ensure!(size != 0, "the answer broke off after {} bytes", rest.len());
        rest.extend_from_slice(&piece[..size]);
    }
    let text = String::from_utf8_lossy(&rest);
    ensure!(text.matches("\"timestamps\"").count() == 20_000, "20 lines of each series");
    Ok(())
}

#[test]
fn help_texts_have_a_bound_in_bytes() -> Result<()> {
    let (_directory, server) = start(&[])?;
    for round in 0..3 {
        let help = "x".repeat(4000);
        let lines: String = (0..16_000)
            .map(|n| format!("# HELP m{round}_{n} {help}\n# TYPE m{round}_{n} gauge\n"))
            .collect();
        let headers = [("content-encoding", "gzip")];
        let answer = server.post_with("/api/v1/import/prometheus", &headers, gzip(&lines)?)?;
        ensure!(answer.status == 204, "{}", answer.excerpt());
    }
    let found = server.get("/api/v1/metadata")?.data()?;
    let count = found.as_object().context("an object")?.len();
    ensure!((20_000..40_000).contains(&count), "{count} metrics fit into 128 MiB");
    let page = server.get("/api/v1/metadata?limit=300")?.data()?;
    ensure!(page.as_object().context("an object")?.len() == 300);
    let one = server.get("/api/v1/metadata?metric=m0_7")?.data()?;
    ensure!(one["m0_7"][0]["help"].as_str().map(str::len) == Some(4000), "{one}");
    is_small(&server, "48,000 help texts")
}

#[test]
fn names_that_the_store_refuses_are_not_remembered() -> Result<()> {
    let (_directory, server) = start(&[])?;
    let name = "x".repeat(60_000);
    for round in 0..2 {
        let lines: String =
            (0..2000).map(|n| format!("m f{round}_{n}_{name}=1 {NOON}000000000\n")).collect();
        let headers = [("content-encoding", "gzip")];
        let answer = server.post_with("/write?db=d", &headers, gzip(&lines)?)?;
        ensure!(answer.status == 400, "{}", answer.excerpt());
    }
    server.write("/write?db=d", format!("m good=1 {NOON}000000000"))?;
    let shown = server.get("/query?db=d&q=SHOW%20FIELD%20KEYS")?.text();
    ensure!(shown.contains("good") && !shown.contains("xxx"), "{} bytes", shown.len());
    is_small(&server, "4,000 names of 60,000 bytes")?;
    let server = server.restart()?;
    is_small(&server, "the restart")
}

#[test]
fn labels_that_a_query_makes_count_against_its_memory() -> Result<()> {
    let (_directory, server) = start(&[])?;
    let lines: String =
        (0..20_000).map(|n| format!("big,host=h{n} v=1 {NOON}000000000\n")).collect();
    server.write("/write?db=d", lines)?;
    let doubled = format!(
        "{}big_v{{host=\"h1\"}}{}",
        "label_join(".repeat(40),
        ",\"host\",\"\",\"host\",\"host\")".repeat(40)
    );
    let replaced = format!(
        "{}big_v{{host=\"h1\"}}{}",
        "label_replace(".repeat(40),
        ",\"host\",\"$1$1\",\"host\",\"(.*)\")".repeat(40)
    );
    let value = "x".repeat(60_000);
    let set = format!("count(label_set(big_v,\"x\",\"{value}\"))");
    for (name, answer) in [
        ("label_join", query(&server, &doubled)?),
        ("label_replace", query(&server, &replaced)?),
        ("label_set", range_of(&server, &set)?),
    ] {
        let text = answer.text();
        ensure!(answer.status == 422, "{name}: {}", answer.excerpt());
        ensure!(text.contains("MiB, the limit is"), "{name}: {}", answer.excerpt());
        is_small(&server, name)?;
    }
    let alias = "a".repeat(500_000);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let body = format!("db=d&q=SELECT%20v%20AS%20%22{alias}%22%20FROM%20big%20GROUP%20BY%20host");
    let mut client = connect(server.authority())?;
    let head = head("POST", "/query", server.authority(), &form, body.len());
    client.write_all(head.as_bytes())?;
    client.write_all(body.as_bytes())?;
    let mut piece = vec![0; 8 << 20];
    client.read_exact(&mut piece)?;
    is_small(&server, "an alias of 500,000 bytes in 20,000 series")
}

#[test]
fn parsing_has_a_gate() -> Result<()> {
    let (_directory, server) = start(&[])?;
    let matchers: Vec<String> = (0..30_000).map(|n| format!("l{n}=\"v\"")).collect();
    let text = format!("query={}", percent(&format!("m{{{}}}", matchers.join(","))));
    std::thread::scope(|scope| {
        let parse = || {
            let form = [("content-type", "application/x-www-form-urlencoded")];
            server.post_with("/api/v1/parse_query", &form, &text).map(|answer| answer.status)
        };
        let clients: Vec<_> = (0..24).map(|_| scope.spawn(parse)).collect();
        let statuses: Result<Vec<u16>> =
            clients.into_iter().map(|client| client.join().expect("a thread")).collect();
        ensure!(statuses?.iter().all(|status| *status == 200), "each is answered in its turn");
        is_small(&server, "24 large expressions")
    })
}
