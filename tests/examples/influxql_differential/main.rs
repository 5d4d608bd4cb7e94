//! InfluxQL against a real InfluxDB: the same lines in both, queries from a seed, answers compared.
//!
//! `INFLUXQL_QUERIES=20000 SEED=7 make test-influxql` asks more.

#![allow(clippy::disallowed_methods, reason = "it owns its files and threads")]

mod generator;

use anyhow::{Context, Result, ensure};
use e2e::answers::percent;
use e2e::{Client, Launch, Program};
use generator::{Queries, lines};
use random::Random;
use serde_json::Value;
use std::path::Path;

/// Queries, unless the environment says otherwise.
const QUERIES: usize = 400;
/// Differences that are printed.
const SHOWN_MAX: usize = 10;
/// Sums may be added up in another order.
const TOLERANCE: f64 = 1e-12;

fn start_influx(directory: &Path) -> Result<(Program, Client)> {
    let (program, authority) = e2e::influx::start_influx(directory)?;
    let mut client = Client::new(&authority);
    client.post("/query?q=CREATE%20DATABASE%20x", &[], b"")?;
    Ok((program, client))
}

fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => match (x.as_f64(), y.as_f64()) {
            // Whole numbers stay whole.
            _ if x.is_f64() != y.is_f64() => x.as_f64() == y.as_f64(),
            (Some(x), Some(y)) => {
                let size = x.abs().max(y.abs()).max(1.0);
                (x - y).abs() <= TOLERANCE * size
            }
            _ => false,
        },
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| is_same(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            let same = |(name, x)| y.get(name).is_some_and(|y| is_same(x, y));
            x.len() == y.len() && x.iter().all(same)
        }
        (a, b) => a == b,
    }
}

fn ask(client: &mut Client, query: &str) -> Result<Value> {
    let response = client.get(&format!("/query?db=x&q={}", percent(query)))?;
    serde_json::from_str(&response.text()).with_context(|| response.excerpt())
}

fn main() -> Result<()> {
    let seed = random::seed().unwrap_or(1);
    let count = std::env::var("INFLUXQL_QUERIES").ok().and_then(|text| text.parse().ok());
    let count = count.unwrap_or(QUERIES);
    println!("SEED={seed}, {count} queries");
    let directory = tempfile::tempdir()?;
    let (_influx, mut influx) = start_influx(directory.path())?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let lines: String = lines(&mut Random(seed)).iter().map(|line| line.text()).collect();
    server.write("/write?db=x", &lines)?;
    let written = influx.post("/write?db=x", &[], lines.as_bytes())?;
    ensure!(written.status == 204, "{}", written.excerpt());

    let mut quipu = server.client();
    let mut queries = Queries { random: Random(seed.wrapping_add(0x5eed)) };
    let mut differences = Vec::new();
    for _ in 0..count {
        let query = queries.next();
        let theirs = ask(&mut influx, &query).with_context(|| query.clone())?;
        let ours = ask(&mut quipu, &query).with_context(|| query.clone())?;
        if !is_same(&theirs, &ours) {
            differences.push(format!("{query}\n  InfluxDB {theirs}\n  Quipu    {ours}"));
        }
    }
    let shown = differences.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n");
    ensure!(differences.is_empty(), "SEED={seed}: {} differ:\n{shown}", differences.len());
    Ok(())
}
