//! Drops of InfluxQL that are killed while they run: afterwards they are done, or were not begun.

use anyhow::{Context, Result, ensure};
use e2e::{Launch, Server, percent};
use serde_json::{Value, json};
use std::path::Path;
use std::thread::spawn;

/// Months from 2010 on with points: each is a partition.
const MONTHS: i64 = 90;

fn ask(server: &Server, query: &str) -> Result<Value> {
    let response = server.post(&format!("/query?epoch=s&db=x&q={}", percent(query)), "")?;
    let answer: Value =
        serde_json::from_str(&response.text()).with_context(|| response.excerpt())?;
    ensure!(answer["results"][0].get("error").is_none(), "{query}: {answer}");
    Ok(answer["results"][0].clone())
}

fn must_be(server: &Server, query: &str, expected: &Value) -> Result<()> {
    let answer = ask(server, query)?;
    let rows = answer["series"][0]["values"].as_array().map(|rows| json!(rows));
    ensure!(rows.unwrap_or(json!([])) == *expected, "{query}: {answer}");
    Ok(())
}

/// Without the database that the server's own metrics are stored in.
fn launch(directory: &Path) -> Launch {
    Launch::new(directory).flag("self-scrape-interval", "0")
}

/// A server with a point of each month in two policies of a database, and in another database.
fn start(directory: &Path) -> Result<Server> {
    let server = launch(directory).flag("max-partitions-per-request", "1000").start()?;
    let lines: String = (0..MONTHS)
        .map(|month| format!("m,a=b v={month} {}\n", 1_262_304_000 + month * 2_630_000))
        .collect();
    server.write("/write?precision=s&db=x", &lines)?;
    ask(&server, "CREATE RETENTION POLICY rp ON x DURATION INF REPLICATION 1")?;
    server.write("/write?precision=s&db=x&rp=rp", &lines)?;
    server.write("/write?precision=s&db=other", &lines)?;
    Ok(server)
}

/// Kills a server while it executes a statement, if it is not faster. Returns whether it was.
fn kill_in(server: Server, directory: &Path, query: &str) -> Result<bool> {
    let path = format!("/query?db=x&q={}", percent(query));
    let mut client = server.client();
    let asking =
        spawn(move || client.post(&path, &[], b"").is_ok_and(|answer| answer.status == 200));
    let is_under_way = || directory.join("deletion").exists();
    while !is_under_way() && !asking.is_finished() {
        std::thread::yield_now();
    }
    server.kill()?;
    Ok(asking.join().unwrap_or(false))
}

/// Kills `query` and checks what is there after the next start: all, or `left`.
fn check(query: &str, left: &[(&str, Value)]) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let was_answered = kill_in(server, directory.path(), query)?;
    let server = launch(directory.path()).start()?;
    ensure!(!directory.path().join("deletion").exists());
    let count = json!([[0, MONTHS]]);
    must_be(&server, "SELECT count(v) FROM other..m", &count)?;
    let is_not_begun = must_be(&server, "SELECT count(v) FROM x.rp.m", &count).is_ok();
    if is_not_begun && !was_answered {
        return must_be(&server, "SELECT count(v) FROM x.autogen.m", &count);
    }
    for (query, expected) in left {
        must_be(&server, query, expected)?;
    }
    server.stop()
}

#[test]
fn a_killed_drop_of_a_database_leaves_no_half_of_it() -> Result<()> {
    // Statements that read the database answer that there is none.
    check(
        "DROP DATABASE x",
        &[("SHOW DATABASES", json!([["other"], ["quipu"]])), ("SHOW MEASUREMENTS", json!([]))],
    )
}

#[test]
fn a_killed_drop_of_a_policy_leaves_no_half_of_it() -> Result<()> {
    check(
        "DROP RETENTION POLICY rp ON x",
        &[
            ("SHOW RETENTION POLICIES ON x", json!([["autogen", "0s", "168h0m0s", 1, true]])),
            ("SHOW DATABASES", json!([["other"], ["quipu"], ["x"]])),
            ("SELECT count(v) FROM x.autogen.m", json!([[0, MONTHS]])),
        ],
    )
}

#[test]
fn a_killed_drop_of_a_measurement_leaves_no_half_of_it() -> Result<()> {
    check(
        "DROP MEASUREMENT m",
        &[
            ("SHOW MEASUREMENTS", json!([])),
            ("SHOW FIELD KEYS", json!([])),
            ("SELECT count(v) FROM x.autogen.m", json!([])),
        ],
    )
}

#[test]
fn a_killed_deletion_leaves_no_half_of_it() -> Result<()> {
    check(
        "DELETE FROM m WHERE a = 'b'",
        &[
            ("SELECT count(v) FROM x.autogen.m", json!([])),
            ("SELECT count(v) FROM x.rp.m", json!([])),
        ],
    )
}
