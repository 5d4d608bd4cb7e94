//! `redis-benchmark` as people run it.

use super::measure::Rate;
use super::server::Server;
use anyhow::{Context, Result, ensure};
use std::process::Command;

/// Runs it with those arguments and measures what the server needed.
///
/// # Errors
/// When it is not installed, fails, or prints no figures.
pub fn run(server: &Server, requests: u64, arguments: &[&str]) -> Result<Rate> {
    let before = server.used()?;
    let output = Command::new("redis-benchmark")
        .args(["-p", &server.port().to_string(), "-n", &requests.to_string(), "--csv"])
        .args(arguments)
        .output()
        .context("cannot run redis-benchmark: install redis-tools")?;
    let cpu_seconds = server.used()?.cpu_seconds - before.cpu_seconds;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "redis-benchmark failed: {text}");
    let rate = parse(&text).with_context(|| format!("redis-benchmark printed {text:?}"))?;
    Ok(Rate { cpu_us: cpu_seconds * 1e6 / requests as f64, ..rate })
}

/// The figures of the last test that it printed.
fn parse(text: &str) -> Option<Rate> {
    let line = text.lines().rev().find(|line| line.starts_with('"'))?;
    let fields: Vec<f64> = line
        .rsplit("\",\"")
        .map_while(|field| field.trim_matches('"').trim().parse().ok())
        .collect();
    // From the last one: max, p99, p95, p50, min, average, rate.
    let [_, p99_ms, _, p50_ms, _, _, per_second] = fields.get(..7)?.try_into().ok()?;
    Some(Rate { per_second, p50_ms, p99_ms, cpu_us: 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
            \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
            \"MSET (10 keys)\",\"82034.45\",\"0.4\",\"0.1\",\"0.391\",\"0.5\",\"0.943\",\"7.0\"\n";
        let rate = parse(text).expect("figures");
        assert_eq!((rate.per_second, rate.p50_ms, rate.p99_ms), (82034.45, 0.391, 0.943));
        assert!(parse("WARNING: Could not fetch server CONFIG\n").is_none());
    }
}
