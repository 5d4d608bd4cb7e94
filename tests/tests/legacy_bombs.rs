//! Legacy backends whose answers are small on the wire and vast in memory: what may be is counted before
//! it is there.

use anyhow::{Context, Result, ensure};
use e2e::{Launch, Server};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::spawn;

/// Bytes of memory that the server may take at most; each bomb would take more.
const PEAK_MAX: f64 = 1e9;
/// Bytes of a message when it is unpacked.
const UNPACKED: usize = 128 << 20;
/// Bytes of a list.
const LIST: usize = 64 << 20;

fn varint(out: &mut Vec<u8>, mut number: usize) {
    while 0x80 <= number {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    varint(&mut out, bytes.len());
    out.extend_from_slice(bytes);
    out
}

/// A message packed by snappy: `head`, then the two bytes of `pattern` again and again.
fn packed(head: &[u8], pattern: [u8; 2], size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    varint(&mut out, head.len() + size);
    let literal = [head, &pattern].concat();
    out.push(61 << 2);
    out.extend_from_slice(&(literal.len() as u16 - 1).to_le_bytes());
    out.extend_from_slice(&literal);
    // Copies of 64 bytes from two bytes before.
    let mut rest = size - 2;
    while 0 < rest {
        let copied = rest.min(64);
        out.extend_from_slice(&[(copied as u8 - 1) << 2 | 2, 2, 0]);
        rest -= copied;
    }
    out
}

/// One series without labels after the other, 2 bytes each.
fn empty_series() -> Vec<u8> {
    let mut head = vec![0x0a];
    varint(&mut head, UNPACKED);
    packed(&head, [0x0a, 0], UNPACKED)
}

/// A series of which each sample has 2 bytes.
fn empty_samples() -> Vec<u8> {
    let label = field(1, &[field(1, b"__name__"), field(2, b"m")].concat());
    let mut series = vec![0x0a];
    varint(&mut series, label.len() + UNPACKED);
    series.extend_from_slice(&label);
    let mut head = vec![0x0a];
    varint(&mut head, series.len() + UNPACKED);
    packed(&[head, series].concat(), [0x12, 0], UNPACKED)
}

fn list(entry: &str) -> Vec<u8> {
    let entries = entry.repeat(LIST / entry.len());
    format!("{{\"status\":\"success\",\"data\":[{}]}}", entries.trim_end_matches(',')).into_bytes()
}

/// Answers every request with the same bytes.
fn backend(body: Vec<u8>) -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let body = Arc::new(body);
    spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let body = body.clone();
            spawn(move || answer(stream, &body));
        }
    });
    Ok(port)
}

fn answer(mut stream: TcpStream, body: &[u8]) -> Option<()> {
    let mut asked = [0; 4096];
    let _ = stream.read(&mut asked).ok()?;
    let head =
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()
}

/// What the server answers to a path, and the most memory that it had.
fn ask(kind: &str, body: Vec<u8>, path: &str) -> Result<(String, f64)> {
    let directory = tempfile::tempdir()?;
    let port = backend(body)?;
    let legacy =
        format!("url=http://127.0.0.1:{port} kind={kind} until=2026-08-31T00:00:00Z timeout=20s");
    let server: Server = Launch::new(directory.path()).flag("legacy", &legacy).start()?;
    let answered = server.get(path)?.text();
    let metrics = server.get("/metrics")?.text();
    let name = "process_resident_memory_peak_bytes ";
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)).context("no peak")?;
    Ok((answered, line.trim().parse()?))
}

#[test]
fn what_is_vast_in_memory_is_counted_before_it_is_there() -> Result<()> {
    let query = "/api/v1/query?query=m&time=1788048060";
    let series = "/api/v1/series?match[]=m&start=1788048000&end=1788048060";
    let names = "/api/v1/labels?start=1788048000&end=1788048060";
    for (what, kind, body, path, said) in [
        ("samples", "prometheus", empty_samples(), query, "legacy-max-samples"),
        // They are all one series, and none that matches.
        ("series", "prometheus", empty_series(), query, "success"),
        ("maps", "victoriametrics", list("{\"a\":\"\"},"), series, "query.max-series"),
        ("texts", "victoriametrics", list("\"\","), names, "query.max-series"),
    ] {
        let (answered, peak) = ask(kind, body, path).context(what)?;
        ensure!(answered.contains(said), "{what}: {answered}");
        ensure!(peak < PEAK_MAX, "{what}: {peak} bytes of memory");
    }
    Ok(())
}
