//! Sources that answer 200 without a body, as a proxy may whose server is away: no day without samples.

use anyhow::{Result, ensure};
use e2e::Launch;
use e2e::fake_server::{FakeAnswer, fake_server};
use e2e::migration::{migrate, must};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// 2026-08-30 00:00:00 UTC in seconds.
const START: i64 = 1_788_048_000;
const LINES: &str = "application/stream+json; charset=utf-8";
const FRAMES: &str = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";
const JSON: &str = "application/json";

/// A VictoriaMetrics with a sample of today, whose first answers to an export are empty.
fn victoria(empty: usize) -> Result<String> {
    let left = Arc::new(AtomicUsize::new(empty));
    fake_server(move |line, _| {
        if line.contains("/api/v1/labels") {
            return FakeAnswer::ok(JSON, r#"{"status":"success","data":["__name__"]}"#);
        }
        if line.contains("/metrics") {
            return FakeAnswer::ok("text/plain", "vm_up 1\n");
        }
        // A query looks back; a copy also asks for what is behind its end.
        let start = line.split("start=").nth(1).and_then(|rest| rest.split('.').next());
        let is_later =
            start.and_then(|text| text.parse::<i64>().ok()).is_some_and(|at| START + 86_399 <= at);
        let is_empty = line.contains("/api/v1/export") && !is_later;
        let take = |left: usize| if is_empty { left.checked_sub(1) } else { None };
        match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
            Ok(_) => FakeAnswer::nothing(),
            Err(_) => {
                let series = format!(
                    "{{\"metric\":{{\"__name__\":\"m\"}},\"values\":[1],\"timestamps\":[{START}000]}}\n"
                );
                FakeAnswer::ok(LINES, series)
            }
        }
    })
}

/// A server with remote read that has no series; it says so by a content type, or says nothing.
fn prometheus(says_type: bool) -> Result<String> {
    fake_server(move |line, _| match (line.contains("/api/v1/read"), says_type) {
        (true, true) => FakeAnswer::ok(FRAMES, ""),
        (true, false) => FakeAnswer::nothing(),
        (false, _) => FakeAnswer { status: 404, ..FakeAnswer::ok("text/plain", "not found") },
    })
}

const TIME: [&str; 4] = ["--start", "2026-08-30", "--end", "2026-08-30T23:59:59Z"];

#[test]
fn an_empty_answer_is_asked_for_again() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let copy = |kind: &str, url: &str| {
        migrate(&server, directory.path(), &[&[kind, url], &TIME[..]].concat())
    };
    let url = victoria(2)?;
    let said = copy("victoriametrics", &url)?;
    ensure!(said.code == 0 && said.text.contains("1 sample of 1 window"), "{}", said.text);
    ensure!(said.text.matches("reading it again").count() == 2, "{}", said.text);
    for (kind, url) in
        [("victoriametrics", victoria(usize::MAX)?), ("prometheus", prometheus(false)?)]
    {
        let said = copy(kind, &url)?;
        ensure!(
            said.code == 1 && said.text.contains("an empty answer of content type"),
            "{}",
            said.text
        );
        let verify = [&["verify", kind, &url], &TIME[..]].concat();
        let said = migrate(&server, directory.path(), &verify)?;
        ensure!(said.code == 2, "{kind}: {}", said.text);
    }
    // One that has nothing says so.
    must(&server, directory.path(), &[&["prometheus", &prometheus(true)?], &TIME[..]].concat())?;
    server.stop()
}

#[test]
fn an_empty_answer_of_a_legacy_backend_is_none() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let endless = victoria(usize::MAX)?;
    for (name, kind, url, is_partial) in [
        ("lines", "kind=victoriametrics export=lines", &endless, true),
        ("blocks", "kind=victoriametrics export=blocks", &endless, true),
        ("read", "kind=prometheus", &prometheus(false)?, true),
        ("none", "kind=prometheus", &prometheus(true)?, false),
        ("good", "kind=victoriametrics export=lines", &victoria(0)?, false),
    ] {
        let legacy = format!("url={url} {kind} until={}", START + 86_400);
        let server = Launch::new(&directory.path().join(name)).flag("legacy", &legacy).start()?;
        let json = server.get(&format!("/api/v1/query?query=m&time={}", START + 60))?.json()?;
        ensure!((json["isPartial"] == true) == is_partial, "{name}: {json}");
        let warning = json["warnings"][0].as_str().unwrap_or_default();
        ensure!(!is_partial || warning.contains("an empty answer"), "{name}: {json}");
        server.stop()?;
    }
    Ok(())
}
