//! Clients of Redis as programs use them, against the real binary: redis-py, ioredis with bullmq,
//! node-redis, go-redis, jedis, Redisson, Celery, redis-cli. Their scripts are in `tests/clients`; `cargo xtask setup`
//! installs them. A client whose language is not on this machine is left out, and said.

use anyhow::{Context, Result, ensure};
use e2e::clients::{check, check_node, installed, node, script};
use e2e::programs::python_with;
use e2e::redis::door_port;
use e2e::{Launch, Server, run};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

/// Jobs that are added until the server is killed.
const JOBS_BEFORE_KILL: usize = 40;

fn start(directory: &tempfile::TempDir, durability: &str) -> Result<(Server, String)> {
    let launch = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0");
    let server = launch.flag("kv-durability", durability).start()?;
    let port = door_port(&server)?.to_string();
    Ok((server, port))
}

#[test]
fn redis_py() -> Result<()> {
    let python = python_with("redis")?;
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory, "everysec")?;
    check(python, &[&script("redis_py.py"), &port])?;
    server.stop()
}

#[test]
fn celery() -> Result<()> {
    let python = python_with("celery")?;
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory, "everysec")?;
    check(python, &[&script("celery_jobs.py"), &port])?;
    server.stop()
}

#[test]
fn ioredis_node_redis_and_bullmq() -> Result<()> {
    let Some(modules) = installed("test-node/node_modules", "node") else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory, "everysec")?;
    check_node(&modules, &[&script("node/clients.js"), &port])?;
    check_node(&modules, &[&script("node/bullmq.js"), &port, "jobs"])?;
    server.stop()
}

#[test]
fn no_job_of_bullmq_is_lost_when_the_server_is_killed() -> Result<()> {
    let Some(modules) = installed("test-node/node_modules", "node") else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory, "always")?;
    let path = script("node/bullmq.js");
    let mut filler = node(&modules, &[&path, &port, "fill", "100000"]).spawn()?;
    let said = BufReader::new(filler.stdout.take().context("piped")?);
    let mut server = Some(server);
    let mut acknowledged = BTreeSet::new();
    for line in said.lines() {
        acknowledged.insert(line?);
        if acknowledged.len() == JOBS_BEFORE_KILL {
            // Killed without a word, while jobs are on their way.
            drop(server.take());
        }
    }
    filler.kill().ok();
    filler.wait()?;
    ensure!(JOBS_BEFORE_KILL <= acknowledged.len(), "{} jobs", acknowledged.len());

    let (server, port) = start(&directory, "always")?;
    let said = check_node(&modules, &[&path, &port, "drain"])?;
    let done: Vec<&str> = said.lines().collect();
    let unique: BTreeSet<String> = done.iter().map(|line| (*line).to_owned()).collect();
    assert_eq!(unique.len(), done.len(), "a job was done twice");
    let lost: Vec<&String> = acknowledged.difference(&unique).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    server.stop()
}

#[test]
fn go_redis() -> Result<()> {
    let Some(client) = installed("test-go/quipu-test-clients", "go") else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory, "everysec")?;
    check(client, &[&port])?;
    server.stop()
}

#[test]
fn jedis() -> Result<()> {
    let Some(jars) = installed("test-java", "java") else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory, "everysec")?;
    let class_path = format!("{}/*", jars.display());
    check("java", &["-cp", &class_path, &script("java/Client.java"), &port])?;
    server.stop()
}

#[test]
fn redisson() -> Result<()> {
    let Some(jars) = installed("test-java", "java") else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory, "everysec")?;
    let class_path = format!("{}/*", jars.display());
    check("java", &["-cp", &class_path, &script("java/Redisson.java"), &port])?;
    server.stop()
}

#[test]
fn the_commands_of_the_readme() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory, "everysec")?;
    let readme = include_str!("../../README.md");
    let lines: Vec<&str> = readme.lines().filter(|line| line.starts_with("redis-cli ")).collect();
    assert!(3 <= lines.len(), "{lines:?}");
    let mut said = Vec::new();
    for line in lines {
        let line = line.replace("-p 7379", &format!("-p {port}"));
        let output = run("sh", &["-c", &line])?;
        ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        said.push(String::from_utf8(output.stdout)?.trim().to_owned());
    }
    assert_eq!(said[..2], ["OK", "hello"]);
    let now_ms: i64 = said[2].parse().context("a time in milliseconds")?;
    assert!(1_700_000_000_000 < now_ms, "{now_ms}");
    server.stop()
}
