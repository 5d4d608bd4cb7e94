//! What bounds a client, over a real socket: credentials, sizes, times, numbers of connections.
//! After each refusal the next request works.

use crate::common;
use crate::common::{gzip, read_reply, start, write_request};
use std::io::{Read, Write};
use std::sync::Arc;

#[test]
fn credentials_are_asked_for_everywhere_but_at_signs_of_life() {
    let flags = [("http-user", "u"), ("http-password", "p"), ("bearer-token", "t")];
    let server = start(&flags);
    for path in ["/", "/metrics", "/api/v1/query?query=1", "/api/v1/status/flags", "/ui/style.css"]
    {
        let reply = server.get(path);
        assert_eq!(reply.status, 401, "{path}");
        assert!(reply.header("www-authenticate").is_some());
    }
    assert_eq!(server.post("/write", b"m v=1").status, 401);
    assert_eq!(server.post("/write?u=u&p=wrong", b"m v=1").status, 401);
    assert_eq!(server.get("/metrics?u=u&p=p").status, 401, "only Influx' doors read parameters");
    for path in ["/-/healthy", "/-/ready", "/ping", "/health"] {
        assert!(server.get(path).status < 300, "{path}");
    }
    for value in ["Bearer t", "Token t", "Token u:p", "Basic dTpw"] {
        let reply = server.send("GET", "/metrics", &[("authorization", value)], b"");
        assert_eq!(reply.status, 200, "{value}");
    }
    assert_eq!(server.post("/write?u=u&p=p", b"m v=1").status, 204);
    let page = server.send("GET", "/metrics", &[("authorization", "Bearer t")], b"").text();
    assert!(page.contains("quipu_http_unauthorized_total 8\n"), "{page}");
}

#[test]
fn other_sites_must_not_change_anything() {
    let server = start(&[]);
    let write = |headers: &[(&str, &str)]| server.send("POST", "/write", headers, b"m v=1").status;
    assert_eq!(write(&[("origin", "http://evil.example")]), 403);
    assert_eq!(write(&[("origin", "null")]), 403);
    assert_eq!(write(&[("sec-fetch-site", "cross-site")]), 403);
    assert_eq!(write(&[("origin", "http://localhost"), ("sec-fetch-site", "same-origin")]), 204);
    let headers = [("sec-fetch-site", "cross-site")];
    assert_eq!(server.send("POST", "/snapshot/create", &headers, b"").status, 403);
    assert_eq!(server.send("GET", "/", &headers, b"").status, 200, "a link to the page is fine");
}

#[test]
fn bodies_have_a_size() {
    let server = start(&[("max-body-size", "1MiB")]);
    let large = vec![b'x'; (1 << 20) + 1];
    let reply = server.post("/write", &large);
    assert_eq!(reply.status, 413);
    assert!(reply.text().contains("max-body-size"), "{}", reply.text());
    // Without a length the bytes are counted.
    let mut stream = server.connect();
    let head = "POST /write HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("sent");
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 1 << 16], b"\r\n"].concat();
    for _ in 0..17 {
        let _ = stream.write_all(&chunk);
    }
    let _ = stream.write_all(b"0\r\n\r\n");
    assert_eq!(read_reply(&mut stream).status, 413);
    // A bomb: small as sent, large once decompressed.
    let bomb = gzip(&vec![b'x'; 8 << 20]);
    assert!(bomb.len() < 1 << 16);
    let reply = server.send("POST", "/write", &[("content-encoding", "gzip")], &bomb);
    assert_eq!(reply.status, 413);
    assert_eq!(server.metric("quipu_limit_hits_total{limit=\"max-body-size\"}"), 3.0);
    let broken = &bomb[..bomb.len() - 10];
    assert_eq!(
        server.send("POST", "/write", &[("content-encoding", "gzip")], &broken[..100]).status,
        400
    );
    assert_eq!(server.send("POST", "/write", &[("content-encoding", "rot13")], b"").status, 415);
    assert_eq!(server.post("/write", b"m v=1").status, 204);
}

#[test]
fn slow_heads_and_slow_bodies_end() {
    let flags = [("http.header-timeout", "100ms"), ("http.body-timeout", "100ms")];
    let server = start(&flags);
    let mut stream = server.connect();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhos").expect("sent");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty(), "closed without a word");
    assert!(1.0 <= server.metric("quipu_limit_hits_total{limit=\"http.header-timeout\"}"));
    let mut stream = server.connect();
    let head = "POST /write HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 100\r\n\r\nm v=1\n";
    stream.write_all(head.as_bytes()).expect("sent");
    let reply = read_reply(&mut stream);
    assert_eq!(reply.status, 408);
    assert!(reply.text().contains("http.body-timeout"), "{}", reply.text());
    assert_eq!(server.post("/write", b"m v=1").status, 204);
}

#[test]
fn a_body_that_came_fast_must_not_stop() {
    let server = start(&[("http.body-timeout", "100ms"), ("max-bodies-size", "128MiB")]);
    let mut stream = server.connect();
    let size = 8 << 20;
    let head = format!(
        "POST /write HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        size + 1
    );
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(&vec![b'\n'; size]).expect("sent");
    // At 64 KiB a second so many bytes would take two minutes.
    let reply = read_reply(&mut stream);
    assert_eq!(reply.status, 408);
    assert!(reply.text().contains("8388608 bytes came"), "{}", reply.text());
    assert_eq!(server.post("/write", b"m v=1").status, 204);
    server.stop();
}

#[test]
fn a_client_that_goes_away_is_counted_and_forgotten() {
    let server = start(&[]);
    let mut stream = server.connect();
    let head = "POST /write HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nm v=1\n";
    stream.write_all(head.as_bytes()).expect("sent");
    drop(stream);
    while server.metric("quipu_http_clients_gone_total") == 0.0
        && server.metric_if_any("quipu_http_requests_total{path=\"/write\",code=\"400\"}").is_none()
    {
        std::thread::yield_now();
    }
    assert_eq!(server.post("/write", b"m v=1").status, 204);
}

#[test]
fn idle_connections_make_room() {
    let server = start(&[("http.max-connections", "3")]);
    let idle: Vec<_> = (0..50).map(|_| server.connect()).collect();
    assert_eq!(server.post("/write", b"m v=1").status, 204);
    assert!(1.0 <= server.metric("quipu_limit_hits_total{limit=\"http.max-connections\"}"));
    drop(idle);
}

#[test]
fn connections_are_kept_and_heads_are_bounded() {
    let server = start(&[]);
    let mut stream = server.connect();
    for _ in 0..3 {
        stream.write_all(b"GET /-/healthy HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
        let mut piece = [0; 1024];
        let size = stream.read(&mut piece).expect("an answer");
        assert!(piece[..size].starts_with(b"HTTP/1.1 200"));
    }
    let long = "x".repeat(1 << 20);
    let mut stream = server.connect();
    let _ = stream.write_all(format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes());
    let mut piece = [0; 12];
    let read = stream.read(&mut piece).unwrap_or(0);
    assert!(read == 0 || piece.starts_with(b"HTTP/1.1 4"), "{:?}", String::from_utf8_lossy(&piece));
    assert_eq!(server.get("/-/healthy").status, 200);
}

#[test]
fn a_stop_ends_idle_connections_and_a_second_server_is_refused() {
    let server = start(&[]);
    let idle = server.connect();
    let config = common::config(server.directory.path(), &[]);
    let second =
        server.block_on(quipu::server::Server::start(config, Arc::new(vfs::RealVfs::new())));
    let error = format!("{:#}", second.err().expect("the directory is in use"));
    assert!(error.contains(&std::process::id().to_string()), "{error}");
    server.stop();
    drop(idle);
}

#[test]
fn a_taken_address_is_said() {
    let server = start(&[]);
    let address = server.address.to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let config = common::config(directory.path(), &[("http-listen", address.as_str())]);
    let second =
        server.block_on(quipu::server::Server::start(config, Arc::new(vfs::RealVfs::new())));
    let error = format!("{:#}", second.err().expect("the port is in use"));
    assert!(error.contains("--http-listen") && error.contains(&address), "{error}");
}

#[test]
fn requests_are_pipelined_in_order() {
    let server = start(&[]);
    let mut stream = server.connect();
    stream.write_all(b"GET /ping?verbose=true HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
    write_request(&mut stream, "GET", "/-/healthy", &[], b"");
    let mut all = String::new();
    let _ = stream.read_to_string(&mut all);
    let (first, second) = (all.find("1.8.10"), all.find("healthy"));
    assert!(first.is_some() && first < second, "{all}");
}
