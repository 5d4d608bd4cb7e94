//! Clients of PostgreSQL as programs use them, against the real binary: psycopg 3, SQLAlchemy, asyncpg,
//! node-postgres, pgx (with what Grafana sends by it), JDBC. Their scripts are in `tests/clients`.

use anyhow::Result;
use e2e::clients::{check, check_node, installed, script};
use e2e::programs::python_with;
use e2e::{Launch, Psql, Server};

/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;

fn start(directory: &tempfile::TempDir) -> Result<(Server, String)> {
    let launch = Launch::new(directory.path()).flag("postgres-listen", "127.0.0.1:0");
    let server = launch.flag("self-scrape-interval", "0").start()?;
    let port = e2e::postgres::door_port(&server)?.to_string();
    Ok((server, port))
}

fn fill(server: &Server) -> Result<()> {
    let lines = format!("up{{job=\"a\"}} 1 {NOON}\nup{{job=\"b\"}} 2 {NOON}\n");
    Psql::of(server)?.ask(&["COPY metrics FROM STDIN"], &lines).map(drop)
}

#[test]
fn psycopg_sqlalchemy_and_asyncpg() -> Result<()> {
    let python = python_with("asyncpg")?;
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory)?;
    check(python, &[&script("postgres_py.py"), &port])?;
    server.stop()
}

#[test]
fn node_postgres() -> Result<()> {
    let Some(modules) = installed("test-node/node_modules", "node") else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory)?;
    fill(&server)?;
    check_node(&modules, &[&script("node/postgres.js"), &port])?;
    server.stop()
}

#[test]
fn pgx() -> Result<()> {
    let Some(client) = installed("test-go/quipu-test-clients", "go") else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory)?;
    fill(&server)?;
    check(client, &[&port, "postgres"])?;
    server.stop()
}

#[test]
fn jdbc() -> Result<()> {
    let Some(jars) = installed("test-java", "java") else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let (server, port) = start(&directory)?;
    fill(&server)?;
    let class_path = format!("{}/*", jars.display());
    check("java", &["-cp", &class_path, &script("java/Postgres.java"), &port])?;
    server.stop()
}
