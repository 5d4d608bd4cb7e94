//! InfluxQL against a real InfluxDB: the same lines in both, queries from a seed, answers compared.
//!
//! `INFLUXQL_QUERIES=20000 SEED=7 make test-influxql` asks more.

#![allow(clippy::disallowed_methods, reason = "it owns its files and threads")]

mod compare;
mod dashboards;
mod generator;
mod lines;
mod nested;
mod statements;

use anyhow::{Context, Result, ensure};
use compare::{is_same, of_csv};
use e2e::answers::percent;
use e2e::{Client, Launch, Program};
use generator::{Form, Queries, Question};
use lines::{Line, lines};
use random::Random;
use serde_json::Value;
use std::path::Path;

/// Queries, unless the environment says otherwise.
const QUERIES: usize = 400;
/// Queries between two statements that delete something.
const BETWEEN_DELETIONS: usize = 40;
/// Differences that are printed.
const SHOWN_MAX: usize = 40;
/// What InfluxDB writes behind half an answer that has a number which JSON has not.
const UNSAYABLE: &str = "error calling MarshalJSON";
/// What is asked when something was deleted.
const AFTER_DELETION: &[&str] = &[
    "SHOW MEASUREMENTS",
    "SHOW SERIES",
    "SELECT * FROM /./",
    "SELECT count(*), last(*) FROM /./ GROUP BY *",
];

fn start_influx(directory: &Path) -> Result<(Program, Client)> {
    let (program, authority) = e2e::influx::start_influx(directory)?;
    let mut client = Client::new(&authority);
    for name in ["quipu", "x"] {
        client.post(&format!("/query?q=CREATE%20DATABASE%20{name}"), &[], b"")?;
    }
    Ok((program, client))
}

fn ask(client: &mut Client, database: &str, question: &Question) -> Result<Value> {
    let mut path = format!("/query?db={database}&q={}{}", percent(&question.text), question.more);
    if let Some(parameters) = &question.parameters {
        path += &format!("&params={}", percent(parameters));
    }
    let headers: &[(&str, &str)] = match question.form {
        Form::Csv => &[("Accept", "application/csv")],
        _ => &[],
    };
    let response = client.send("GET", &path, headers, &[])?;
    let text = response.text();
    if text.contains(UNSAYABLE) {
        return Ok(Value::Null);
    }
    match question.form {
        Form::Csv => Ok(of_csv(&text)),
        Form::Chunked => {
            let pieces = text.lines().map(serde_json::from_str::<Value>);
            let pieces: std::result::Result<Vec<Value>, _> = pieces.collect();
            pieces.map(Value::Array).with_context(|| response.excerpt())
        }
        _ => serde_json::from_str(&text).with_context(|| response.excerpt()),
    }
}

/// What InfluxDB cannot tell, or tells under the number of another statement, or, in CSV, not at all.
fn is_left_out(theirs: &Value) -> bool {
    let text = theirs.to_string();
    text.contains("not executed") || text == "[]" || theirs.is_null()
}

/// Both, and what differed.
struct Pair {
    influx: Client,
    quipu: Client,
    differences: Vec<String>,
}

impl Pair {
    fn compare(&mut self, database: &str, question: &Question) -> Result<()> {
        let theirs = ask(&mut self.influx, database, question);
        let theirs = theirs.with_context(|| question.text.clone())?;
        let ours = ask(&mut self.quipu, database, question);
        let ours = ours.with_context(|| question.text.clone())?;
        if !is_same(&theirs, &ours) && !is_left_out(&theirs) {
            let Question { text, more, parameters, .. } = question;
            let parameters = parameters.as_deref().unwrap_or("");
            self.differences.push(format!(
                "{text} {more} {parameters}\n  InfluxDB {theirs}\n  Quipu    {ours}"
            ));
        }
        Ok(())
    }

    /// The same statement in a database of its own, in both, and what is there then: InfluxDB forgets
    /// too much of what was written again after it was dropped.
    fn change_alone(&mut self, database: &str, statement: &str, lines: &str) -> Result<()> {
        self.change(database, &format!("CREATE DATABASE {database}"))?;
        self.write(database, lines)?;
        self.change(database, statement)?;
        for query in AFTER_DELETION {
            let before = self.differences.len();
            self.compare(database, &Question::plain(query))?;
            if let Some(text) = self.differences.get_mut(before) {
                *text = format!("after {statement}: {text}");
            }
        }
        self.change(database, &format!("DROP DATABASE {database}"))
    }

    fn change(&mut self, database: &str, statement: &str) -> Result<()> {
        let path = format!("/query?db={database}&q={}", percent(statement));
        let theirs = self.influx.post(&path, &[], b"")?.text();
        let ours = self.quipu.post(&path, &[], b"")?.text();
        if theirs != ours {
            let text = format!("{statement}\n  InfluxDB {theirs}\n  Quipu    {ours}");
            self.differences.push(text);
        }
        Ok(())
    }

    fn write(&mut self, database: &str, lines: &str) -> Result<()> {
        for client in [&mut self.influx, &mut self.quipu] {
            let path = format!("/write?db={database}");
            let written = client.post(&path, &[], lines.as_bytes())?;
            ensure!(written.status == 204, "{}", written.excerpt());
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let seed = random::seed().unwrap_or(1);
    let count = std::env::var("INFLUXQL_QUERIES").ok().and_then(|text| text.parse().ok());
    let count = count.unwrap_or(QUERIES);
    println!("SEED={seed}, {count} queries");
    let directory = tempfile::tempdir()?;
    let (_influx, influx) = start_influx(directory.path())?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let mut pair = Pair { influx, quipu: server.client(), differences: Vec::new() };
    let lines = lines(&mut Random(seed));
    let text = |of: &[&Line]| of.iter().map(|line| line.text()).collect::<String>();
    let all = text(&lines.iter().collect::<Vec<_>>());
    pair.write("x", &all)?;
    // Of databases that were just made InfluxDB misses a week now and then.
    let short: Vec<&Line> = lines.iter().filter(|line| line.measurement != "long").collect();
    let short = text(&short);
    let mut queries = Queries { random: Random(seed.wrapping_add(0x5eed)) };
    for number in 1..=count {
        let question = queries.question();
        pair.compare("x", &question)?;
        if number % BETWEEN_DELETIONS == 0 {
            let statement = queries.change();
            pair.change_alone(&format!("deleted{number}"), &statement, &short)?;
        }
    }
    let differences = pair.differences;
    let shown = differences.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n");
    ensure!(differences.is_empty(), "SEED={seed}: {} differ:\n{shown}", differences.len());
    println!("{count} queries, 0 differ");
    Ok(())
}
