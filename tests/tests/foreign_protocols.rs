//! Clients of other protocols on the port of HTTP, clients without TLS where TLS is on, and heads that
//! are no requests: each gets an answer that it shows.

use anyhow::{Context, Result, ensure};
use e2e::tls::certificate;
use e2e::{Launch, Server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Sends bytes to a port; returns what came until the connection was closed.
fn send(port: u16, bytes: &[u8]) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.write_all(bytes)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).context("the connection stays open")?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn body(answer: &str, status: u16) -> Result<&str> {
    let (head, body) = answer.split_once("\r\n\r\n").context("a head")?;
    ensure!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    let size = format!("content-length: {}", body.len());
    ensure!(head.to_lowercase().contains(&size), "{answer}");
    Ok(body)
}

fn start(directory: &std::path::Path) -> Result<Server> {
    Launch::new(directory).flag("redis-listen", "127.0.0.1:0").start()
}

#[test]
fn each_protocol_gets_an_answer_of_its_own() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let answer = send(server.port(), b"*1\r\n$4\r\nPING\r\n")?;
    ensure!(answer.starts_with("-ERR this port speaks HTTP; Redis clients connect"), "{answer}");
    ensure!(answer.contains("--redis-listen") && answer.ends_with("\r\n"), "{answer}");

    // The beginning of a handshake; its rest is unread when the server answers.
    let hello = [b"\x16\x03\x01\x02\0\x01".as_slice(), &[7; 512]].concat();
    let answer = send(server.port(), &hello)?;
    ensure!(body(&answer, 400)?.contains("HTTP without TLS"), "{answer}");

    for line in ["cpu,host=a v=1 1709208000000000000\n", "cpu v=1\n", "a.b.c 1 1709208000\n"] {
        let answer = send(server.port(), line.as_bytes())?;
        ensure!(body(&answer, 400)?.contains("POST /write"), "{line}: {answer}");
    }
    // It lives.
    ensure!(server.get("/-/healthy")?.status == 200);
    server.stop()
}

#[test]
fn postgres_gets_an_error_after_its_question_for_tls() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let startup = b"\0\0\0\x12\0\x03\0\0user\0ann\0\0";
    let mut stream = TcpStream::connect(("127.0.0.1", server.port()))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f")?;
    let mut no = [0];
    stream.read_exact(&mut no)?;
    ensure!(&no == b"N");
    stream.write_all(startup)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let plain = send(server.port(), startup)?;
    for text in [String::from_utf8_lossy(&answer).into_owned(), plain] {
        ensure!(text.starts_with("E\0\0\0"), "{text:?}");
        ensure!(text.contains("SFATAL\0") && text.contains("C08P01\0"), "{text:?}");
        ensure!(text.contains("this port speaks HTTP"), "{text:?}");
    }
    server.stop()
}

#[test]
fn heads_that_are_refused_are_answered_with_words() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let port = server.port();
    let answer = send(port, b"GET /api/v1/query HTTP/1.1\r\nno colon\r\n\r\n")?;
    ensure!(body(&answer, 400)?.starts_with("malformed head"), "{answer}");
    // An answer stands before it.
    let two = b"GET /-/healthy HTTP/1.1\r\nhost: localhost\r\n\r\n\x01\r\n\r\n";
    let answer = send(port, two)?;
    ensure!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("HTTP/1.1 400 "), "{answer}");
    let long = format!("GET /api/v1/query?query={} HTTP/1.1\r\n\r\n", "1".repeat(70_000));
    let answer = send(port, long.as_bytes())?;
    ensure!(body(&answer, 414)?.contains("form by POST"), "{answer}");
    let large = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(300_000));
    let answer = send(port, large.as_bytes())?;
    ensure!(body(&answer, 431)?.contains("256 KiB"), "{answer}");
    // Refusals of requests that are well-formed keep their words.
    let answer = send(port, b"GET /api/v1/query HTTP/1.1\r\nconnection: close\r\n\r\n")?;
    ensure!(!answer.contains("malformed head"), "{answer}");
    server.stop()
}

#[test]
fn wrong_paths_and_methods_learn_the_right_ones() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    for (path, similar) in [
        ("/select/0/prometheus/api/v1/query?query=1", "did you mean /api/v1/query?"),
        ("/api/v1/api/v1/labels", "did you mean /api/v1/labels?"),
        ("/api/v1/query_rnage", "did you mean /api/v1/query_range?"),
    ] {
        let answer = server.get(path)?;
        ensure!(answer.status == 404 && answer.text().contains(similar), "{}", answer.excerpt());
    }
    for (method, path, allowed) in [
        ("GET", "/api/v1/write", "POST, PUT"),
        ("DELETE", "/api/v1/query", "GET, HEAD, POST"),
        ("GET", "/prometheus/metrics/job/j", "POST, PUT, DELETE"),
    ] {
        let answer = server.client().send(method, path, &[], b"")?;
        ensure!(answer.status == 405, "{method} {path}: {}", answer.excerpt());
        ensure!(answer.header("allow") == allowed, "{path}: {:?}", answer.header("allow"));
    }
    let version = server.get("/version")?.json()?;
    ensure!(version == server.get("/api/v1/status/buildinfo")?.data()?, "{version}");
    let none = server.get("/api/v1/notifiers")?.data()?;
    ensure!(none == serde_json::json!({ "notifiers": [] }), "{none}");
    server.stop()
}

#[test]
fn a_body_that_is_no_form_is_told_of() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let json = [("Content-Type", "application/json")];
    for path in ["/api/v1/query", "/api/v1/series", "/api/v1/admin/tsdb/delete_series"] {
        let answer = server.post_with(path, &json, r#"{"query":"1","match[]":"up"}"#)?;
        let text = answer.text();
        ensure!(answer.status == 400 && text.contains("x-www-form-urlencoded"), "{path}: {text}");
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let text = server.post_with(path, &form, "x=1")?.text();
        ensure!(!text.contains("x-www-form-urlencoded"), "{path}: {text}");
    }
    let answer = server.post_with("/api/v1/query?query=1", &json, "{}")?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    server.stop()
}

#[test]
fn clients_without_tls_are_told_of_it() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (cert, key) = certificate(directory.path())?;
    let launch = Launch::new(&directory.path().join("data"));
    let launch = launch.flag("tls-cert", &cert).flag("tls-key", &key);
    let server = launch.flag("redis-listen", "127.0.0.1:0").start()?;
    let answer = send(server.port(), b"GET /-/healthy HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
    ensure!(body(&answer, 400)?.contains("https://"), "{answer}");
    let redis = e2e::redis::door_port(&server)?;
    for port in [redis, server.port()] {
        let answer = send(port, b"*1\r\n$4\r\nPING\r\n")?;
        ensure!(answer.starts_with("-ERR this port speaks TLS"), "{answer}");
    }
    server.stop()
}
