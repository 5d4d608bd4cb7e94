//! Short runs of the campaigns in `tests/differential`: Quipu and a real peer get the same generated cases.
//! `make test-differential` makes long runs.

use anyhow::{Result, ensure};
use e2e::launch::binary;
use e2e::programs::{python_with, run};
use std::path::Path;

/// Runs a campaign with the seed 1.
///
/// # Errors
/// When an answer differs and `docs/differences` has no row that explains it.
fn run_campaign(name: &str, count: u32) -> Result<()> {
    let python = python_with("psycopg, redis")?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("differential");
    let binary = binary()?;
    let (folder, binary) = (folder.display().to_string(), binary.display().to_string());
    let count = format!("--count={count}");
    let output = run(&python, &[&folder, name, &binary, "--seed=1", &count, "--findings-max=5"])?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "campaign {name}: {}\n{printed}\n{errors}", output.status);
    println!("{printed}");
    Ok(())
}

#[test]
fn promql_answers_as_prometheus() -> Result<()> {
    run_campaign("promql", 400)
}

#[test]
fn metricsql_answers_as_victoriametrics() -> Result<()> {
    run_campaign("metricsql", 300)
}

#[test]
fn regular_expressions_mean_what_go_means() -> Result<()> {
    run_campaign("regexp", 100)
}

#[test]
fn flux_keeps_its_identities() -> Result<()> {
    run_campaign("flux", 200)
}

#[test]
fn http_answers_as_prometheus_and_victoriametrics() -> Result<()> {
    run_campaign("http_api", 300)
}

#[test]
fn influxql_answers_as_influxdb() -> Result<()> {
    run_campaign("influxql", 150)
}

#[test]
fn redis_commands_answer_as_redis() -> Result<()> {
    run_campaign("redis_commands", 500)
}

#[test]
fn keys_survive_kills_and_reach_replicas() -> Result<()> {
    run_campaign("redis_durability", 12)
}

#[test]
fn migration_copies_everything() -> Result<()> {
    run_campaign("migration", 22)
}
