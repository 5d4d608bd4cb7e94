//! A dashboard whose window moves, beside writers who are late: it reuses what did not change, and
//! reads what it would read without a cache.

use anyhow::{Result, ensure};
use e2e::{Launch, Server, percent};
use serde_json::Value;
use std::fmt::Write;

/// 2024-02-27 12:00:00 UTC: far from the rollover of a month.
const NOON: i64 = 1_709_035_200;
const STEP: i64 = 30;
const STEPS: i64 = 121;
/// Long enough for its answer to be worth keeping, however quick the machine is.
const QUERY: &str = "sum by (zone) (quantile_over_time(0.9, m_v[10m]))";

fn write(server: &Server, times: impl Iterator<Item = i64>, hosts: i64) -> Result<()> {
    let mut lines = String::new();
    for time in times {
        for host in 0..hosts {
            let value = (host * 37 + time * 13) % 1009;
            writeln!(lines, "m,host={host},zone={} v={value}.37 {time}", host % 3)?;
        }
    }
    server.write("/write?precision=s", lines)
}

fn path(end: i64, more: &str) -> String {
    let (query, start) = (percent(QUERY), end - (STEPS - 1) * STEP);
    format!("/api/v1/query_range?query={query}&start={start}&end={end}&step={STEP}{more}")
}

/// Asks twice, and fails when the answers differ.
fn ask(server: &Server, end: i64) -> Result<Value> {
    let cached = server.get(&path(end, ""))?.data()?;
    let fresh = server.get(&path(end, "&nocache=1"))?.data()?;
    ensure!(cached == fresh, "{cached}\nis not\n{fresh}");
    Ok(cached)
}

fn outcome(server: &Server, name: &str) -> Result<f64> {
    server.metric(&format!("quipu_result_cache_queries_total{{outcome=\"{name}\"}}"))
}

#[test]
fn a_dashboard_reads_the_same_and_reuses_its_steps() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    write(&server, (NOON - 5400..=NOON).step_by(10), 120)?;
    let first = ask(&server, NOON)?;
    assert_eq!(first["result"].as_array().map(Vec::len), Some(3));
    assert_eq!((outcome(&server, "miss")?, outcome(&server, "partial")?), (1.0, 0.0));
    let reused_before = server.metric("quipu_result_cache_steps_reused_total")?;
    assert_eq!(reused_before, 0.0);

    let mut seen = first;
    for round in 1..=12 {
        let end = NOON + round * STEP;
        write(&server, (end - 20..=end).step_by(10), 120)?;
        if round % 3 == 0 {
            // Late by twenty minutes and more; also over what was written before.
            write(&server, [end - 1203, end - 1500].into_iter(), 5)?;
        }
        if round == 7 {
            server.post("/internal/force_flush", "")?;
        }
        let now = ask(&server, end)?;
        assert_ne!(now, seen, "the window moved");
        seen = now;
    }
    assert_eq!((outcome(&server, "miss")?, outcome(&server, "partial")?), (1.0, 12.0));
    let reused = server.metric("quipu_result_cache_steps_reused_total")?;
    assert!((12 * STEPS) as f64 * 0.5 < reused, "{reused} steps were reused");

    let end = NOON + 12 * STEP;
    ask(&server, end)?;
    assert_eq!(outcome(&server, "hit")?, 1.0, "nothing changed");
    let trace = server.get(&path(end, "&trace=1"))?.json()?["trace"].to_string();
    assert!(trace.contains("121 steps were taken from an earlier answer"), "{trace}");
    assert!(0.0 < server.metric("quipu_result_cache_size_bytes")?);

    let (from, to) = (end - 1800, end - 1500);
    let matching = percent("m_v{host=\"7\"}");
    let order =
        format!("/api/v1/admin/tsdb/delete_series?match[]={matching}&start={from}&end={to}");
    ensure!(server.post(&order, "")?.status == 204);
    assert_ne!(ask(&server, end)?, seen, "a deletion is seen");
    let bad = server.get(&path(end, "&nocache=perhaps"))?;
    assert!(bad.status == 400 && bad.text().contains("nocache"), "{}", bad.excerpt());
    server.stop()
}

#[test]
fn the_cache_can_be_turned_off() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("query.cache-memory", "0").start()?;
    write(&server, (NOON - 5400..=NOON).step_by(10), 120)?;
    for _ in 0..3 {
        ask(&server, NOON)?;
    }
    for name in ["hit", "partial", "miss", "unfit"] {
        assert_eq!(outcome(&server, name)?, 0.0, "{name}");
    }
    assert_eq!(server.metric("quipu_result_cache_entries")?, 0.0);
    server.stop()
}
