//! Limits on series and on memory, against the real binary: new series are refused with a reason, a
//! counter and a log line; known ones go on; memory stays below its limit.

use anyhow::{Result, ensure};
use e2e::{Launch, Server, poll};
use rng::Random;
use std::fmt::Write as _;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// A line for each of these pods, without timestamps.
fn pods(range: std::ops::Range<u32>) -> String {
    range.map(|pod| format!("cpu,pod=p{pod},zone=z usage=1\n")).collect()
}

fn start(directory: &tempfile::TempDir, flags: &[(&str, &str)]) -> Result<Server> {
    let launch = Launch::new(directory.path()).flag("self-scrape-interval", "0");
    flags.iter().fold(launch, |launch, (name, value)| launch.flag(name, value)).start()
}

#[test]
fn a_limit_refuses_new_series_and_names_the_label_that_makes_them() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let rules = "{zone=\"other\"} hourly=3; each-metric daily=1000";
    let server = start(&directory, &[("max-active-series", "20"), ("series-limits", rules)])?;
    server.write("/write", pods(0..20))?;
    let refused = server.post("/write", pods(10..30))?;
    let text = refused.text();
    ensure!(refused.status == 400, "{}", refused.excerpt());
    for part in ["p20,zone=z", "20 active series, the limit is 20 (max-active-series)"] {
        ensure!(text.contains(part), "{part:?} is not in {text}");
    }
    server.write("/write", pods(0..20))?;
    ensure!(server.export("cpu_usage")?.0.len() == 20);
    ensure!(server.metric("quipu_store_series_active")? == 20.0);
    ensure!(server.metric("quipu_store_series_refused_total")? == 10.0);
    poll("a log line", PATIENCE, || {
        let log = server.log();
        ensure!(log.contains("\"pod\" has most values, about 10"), "{log}");
        Ok(())
    })?;
    server.stop()
}

#[test]
fn a_rule_counts_what_matches() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("series-limits", "{zone=~\"o.*\"} hourly=3")])?;
    server.write("/write", pods(0..10))?;
    let others = pods(0..5).replace("zone=z", "zone=other");
    let refused = server.post("/write", others)?;
    let part = "3 new series in this hour, the limit is 3 (series-limits: {zone=~\\\"o.*\\\"})";
    ensure!(refused.status == 400 && refused.text().contains(part), "{}", refused.excerpt());
    ensure!(server.export("cpu_usage")?.0.len() == 13);
    server.stop()
}

#[test]
fn memory_stays_below_its_limit_whatever_comes() -> Result<()> {
    const LIMIT: f64 = 128.0 * 1024.0 * 1024.0;
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("memory-limit", "128MiB")])?;
    server.write("/write", pods(0..10))?;
    let mut random = Random::seeded(1);
    let (mut refused_at, mut peak) = (None, 0f64);
    for round in 0..200 {
        let mut lines = String::new();
        for _ in 0..20_000 {
            let (a, b, c) = (random.next(), random.next(), random.next());
            writeln!(lines, "r,a={a:x},b={b:x},c={c:x} v=1")?;
        }
        // The head may be full for a moment: a round ends once its lines were taken, or not.
        let answer = poll("room in the head", PATIENCE, || {
            let answer = server.post("/write", lines.clone())?;
            ensure!(answer.status != 503 || !answer.text().contains("(head-size)"));
            Ok(answer)
        })?;
        let used = server.metric("quipu_memory_used_bytes")?;
        ensure!(used < LIMIT, "{used} bytes after round {round}");
        peak = used.max(peak);
        match answer.status {
            200 | 204 => {}
            // Memory that is short passes, so the sender keeps what it has: never 400.
            503 if answer.text().contains("(memory-limit)") => {
                ensure!(!answer.header("retry-after").is_empty(), "{}", answer.excerpt());
                refused_at = Some(round);
                break;
            }
            _ => anyhow::bail!("{}", answer.excerpt()),
        }
    }
    println!("refused from round {refused_at:?} on, {:.0} MiB", peak / 1024.0 / 1024.0);
    ensure!(refused_at.is_some(), "nothing was ever refused");
    server.write("/write", pods(0..10))?;
    ensure!(server.export("cpu_usage")?.0.len() == 10);
    server.stop()
}

#[test]
fn what_a_burst_needed_goes_back_to_the_system() -> Result<()> {
    const SERIES: u32 = 200_000;
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    server.write("/write", pods(0..SERIES))?;
    ensure!(server.post("/internal/force_flush", "")?.status == 200);
    let list = || -> Result<()> {
        let answer = server.get("/api/v1/series?match[]=cpu_usage")?;
        ensure!(answer.status == 200 && 50 * SERIES as usize <= answer.body.len());
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads = [0; 4].map(|_| scope.spawn(list));
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let burst = server.resident_bytes("RssAnon")?;
    poll("memory given back", PATIENCE, || {
        let used = server.resident_bytes("RssAnon")?;
        ensure!(used + (20 << 20) < burst, "{used} bytes, after the burst {burst}");
        Ok(())
    })?;
    server.stop()
}
