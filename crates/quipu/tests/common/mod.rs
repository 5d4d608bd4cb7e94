//! A server in process on a free port, and a client of a few lines that sends exactly what it is told.

#![allow(dead_code)] // each test file uses its own part

use app::config::Config;
use net::settings::Settings;
use quipu::server::Server;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use vfs::RealVfs;

/// A running server; stopped by [`Running::stop`] or with the process.
pub struct Running {
    runtime: Runtime,
    server: Option<Server>,
    pub address: SocketAddr,
    pub directory: TempDir,
}

/// An answer, taken apart.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// Starts a server on a new directory.
pub fn start(flags: &[(&str, &str)]) -> Running {
    start_on(tempfile::tempdir().expect("a directory"), flags)
}

/// Starts a server on a directory.
pub fn start_on(directory: TempDir, flags: &[(&str, &str)]) -> Running {
    let runtime = Runtime::new().expect("a runtime");
    let config = config(directory.path(), flags);
    let server = runtime.block_on(Server::start(config, Arc::new(RealVfs::new())));
    let server = server.expect("the server starts");
    Running { runtime, address: server.address(), server: Some(server), directory }
}

/// Flags for tests: a free port, own directory, nothing happening by itself.
pub fn config(directory: &Path, flags: &[(&str, &str)]) -> Config {
    let directory = directory.join("data").display().to_string();
    let mut pairs = vec![
        ("data-dir", directory.as_str()),
        ("http-listen", "127.0.0.1:0"),
        ("redis-listen", ""),
        ("postgres-listen", ""),
        ("self-scrape-interval", "0"),
        ("free-disk-min", "0"),
    ];
    pairs.retain(|(name, _)| flags.iter().all(|(given, _)| given != name));
    pairs.extend_from_slice(flags);
    Config::new(Settings::from_pairs(&pairs).expect("settings")).expect("config")
}

impl Running {
    /// Stops the server cleanly; its directory lives on.
    pub fn stop(mut self) -> TempDir {
        let server = self.server.take().expect("running");
        self.runtime.block_on(server.stop()).expect("a clean stop");
        self.directory
    }

    pub fn app(&self) -> &Arc<app::App> {
        self.server.as_ref().expect("running").app()
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("running")
    }

    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream
    }

    /// Sends one request on a connection of its own.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut stream = self.connect();
        write_request(&mut stream, method, path, headers, body);
        read_reply(&mut stream)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Reply {
        self.send("POST", path, &[], body)
    }

    /// The values of an instant query at one second, by `label`.
    pub fn query(&self, query: &str, time: u64) -> Vec<(String, String)> {
        let query = percent(query);
        let reply = self.get(&format!("/api/v1/query?query={query}&time={time}"));
        assert_eq!(reply.status, 200, "{}", reply.text());
        let json = reply.json();
        let rows = json["data"]["result"].as_array().expect("a vector");
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
        rows.iter().map(|row| (text(&row["metric"]["__name__"]), text(&row["value"][1]))).collect()
    }

    /// One line of `/metrics`.
    pub fn metric(&self, name: &str) -> f64 {
        self.metric_if_any(name).unwrap_or_else(|| panic!("no metric {name}"))
    }

    /// The same of what may not have been counted yet.
    pub fn metric_if_any(&self, name: &str) -> Option<f64> {
        let page = self.get("/metrics").text();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map(|number| number.parse().expect("a number"))
    }
}

pub fn write_request(
    stream: &mut TcpStream,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).expect("the head is sent");
    // A server that refuses early may not read all of it.
    let _ = stream.write_all(body);
}

/// Reads to the end of the connection.
pub fn read_reply(stream: &mut impl Read) -> Reply {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(size) => bytes.extend_from_slice(&piece[..size]),
        }
    }
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end else { panic!("no head: {:?}", String::from_utf8_lossy(&bytes)) };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    let mut reply = Reply { status, head, body: bytes[end + 4..].to_vec() };
    if reply.header("transfer-encoding") == Some("chunked") {
        reply.body = unchunk(&reply.body);
    }
    reply
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").expect("a chunk's size");
        let size = std::str::from_utf8(&rest[..end]).expect("hexadecimal");
        let size = usize::from_str_radix(size, 16).expect("hexadecimal");
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
}

pub fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).expect("gzip");
    plain
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}
