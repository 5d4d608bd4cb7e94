//! Statements on their way to an InfluxDB, and its answers: pieces, each a line of JSON. An answer is
//! whole when every statement has said its last.

use super::super::backend::{Request, refusal};
use crate::commands::client::{Asked as Sent, encode};
use crate::commands::migrate::victoriametrics::{Lines, OnLine};
use anyhow::{Context as _, ensure};
use bytes::Bytes;
use hyper::Method;
use serde::Deserialize;
use serde_json::Value;
use store::Asked;
use wire::influx::columns::{ColumnsSeries, NumberOf, read_columns};

/// Rows of a piece of an answer with samples.
const ROWS_AT_ONCE: usize = 5000;
/// Rows of a piece of an answer with names.
const NAMES_AT_ONCE: usize = 1000;
/// Bytes of a piece with samples: in memory it may become twenty times that.
const LINE_SIZE_MAX: usize = 8 << 20;
/// Bytes of a piece with names, which may become fifty times that.
const NAMES_SIZE_MAX: usize = 4 << 20;
/// Statements of a request, and bytes of them.
const STATEMENTS_MAX: usize = 64;
const QUESTION_SIZE_MAX: usize = 256 << 10;
const FORM: &[(&str, &str)] = &[("content-type", "application/x-www-form-urlencoded")];

/// What one request has room for.
#[derive(Default)]
pub struct Room {
    count: usize,
    size: usize,
}

impl Room {
    /// Whether another statement fits in; the first one does.
    pub fn takes(&mut self, text: &str) -> bool {
        self.count += 1;
        self.size += text.len();
        self.count == 1 || (self.count <= STATEMENTS_MAX && self.size <= QUESTION_SIZE_MAX)
    }
}

/// How many of the first statements one request may have.
pub fn count_at_once<'s>(mut texts: impl Iterator<Item = &'s str>) -> usize {
    let mut room = Room::default();
    let over = texts.position(|text| !room.takes(text));
    over.unwrap_or(room.count)
}

/// Which statements of a request have said all that they have to say.
struct Ends(Vec<bool>);

impl Ends {
    fn new(count: usize) -> Ends {
        Ends(vec![false; count])
    }

    /// A piece of a statement's answer: which one it is of.
    fn note(&mut self, statement: u64, is_cut: bool) -> anyhow::Result<usize> {
        let at = usize::try_from(statement).ok().filter(|at| *at < self.0.len());
        let at = at.context("an answer to what was not asked")?;
        self.0[at] = !is_cut;
        Ok(at)
    }

    fn check(&self) -> anyhow::Result<()> {
        let is_whole = self.0.iter().all(|is_over| *is_over);
        ensure!(is_whole, "the answer ends before its end (\"partial\":true): a limit of its own?");
        Ok(())
    }
}

/// A request with some statements.
struct Form {
    path: String,
    body: Bytes,
}

impl Form {
    fn new(database: &str, texts: &[&str], rows: usize) -> Form {
        // Of a Quipu what it has itself, or two could ask each other for ever.
        let path = format!(
            "/query?db={}&epoch=ns&chunked=true&chunk_size={rows}&nolegacy=1",
            encode(database)
        );
        Form { path, body: Bytes::from(format!("q={}", encode(&texts.join(";")))) }
    }

    fn sent(&self) -> Sent<'_> {
        Sent { method: Method::POST, path: &self.path, headers: FORM, body: self.body.clone() }
    }
}

/// Takes the names of a statement's answer: its number, and a row's texts in the order of the columns
/// that were asked for.
pub type OnNames<'a> = dyn FnMut(usize, Row<'_>) -> anyhow::Result<()> + 'a;

/// A row of names.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    /// Of which measurement.
    pub name: &'r str,
    columns: &'r [String],
    values: &'r [Value],
}

impl<'r> Row<'r> {
    /// What stands in a column.
    fn value(&self, column: &str) -> Option<&'r Value> {
        let at = self.columns.iter().position(|one| one == column)?;
        self.values.get(at)
    }

    /// A text in a column; nothing where there is none.
    pub fn text(&self, column: &str) -> &'r str {
        self.value(column).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether a column says yes.
    pub fn is_on(&self, column: &str) -> bool {
        self.value(column).and_then(Value::as_bool).unwrap_or(false)
    }
}

#[derive(Deserialize)]
struct NamesLine {
    results: Option<Vec<NamesResult>>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct NamesResult {
    #[serde(default)]
    statement_id: u64,
    #[serde(default)]
    partial: bool,
    error: Option<String>,
    series: Option<Vec<NamesSeries>>,
}

#[derive(Deserialize)]
struct NamesSeries {
    #[serde(default)]
    name: String,
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    values: Vec<Vec<Value>>,
}

/// Reads a line of an answer with names.
fn read_names(line: &[u8], ends: &mut Ends, on_row: &mut OnNames<'_>) -> anyhow::Result<()> {
    ensure!(line.len() <= NAMES_SIZE_MAX, "a list in pieces of more than {NAMES_SIZE_MAX} bytes");
    let NamesLine { results, error } =
        serde_json::from_slice(line).context("an answer that is no JSON of InfluxQL")?;
    if let Some(words) = error {
        return Err(refusal(words));
    }
    for result in results.context("an answer without results")? {
        if let Some(words) = result.error {
            return Err(refusal(words));
        }
        let at = ends.note(result.statement_id, result.partial)?;
        for NamesSeries { name, columns, values } in result.series.iter().flatten() {
            for values in values {
                on_row(at, Row { name, columns, values })?;
            }
        }
    }
    Ok(())
}

/// Asks for names, for a question of the store or, without one, for what is known of the server.
pub fn names(
    request: &mut Request<'_>,
    (database, texts): (&str, &[&str]),
    asked: Option<&Asked<'_>>,
    on_row: &mut OnNames<'_>,
) -> anyhow::Result<()> {
    let form = Form::new(database, texts, NAMES_AT_ONCE);
    let (mut lines, mut ends) = (Lines::default(), Ends::new(texts.len()));
    let mut take = |line: &[u8]| read_names(line, &mut ends, on_row);
    send(request, &form, (asked, &mut lines), &mut take)?;
    lines.end(&mut take).context("/query")?;
    ends.check()
}

/// Asks for samples. `on_series` gets the number of a statement and a piece of a series.
pub fn samples(
    request: &mut Request<'_>,
    (database, texts): (&str, &[&str]),
    asked: &Asked<'_>,
    number_of: &mut NumberOf<'_>,
    on_series: &mut dyn FnMut(usize, ColumnsSeries) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let form = Form::new(database, texts, ROWS_AT_ONCE);
    let (mut lines, mut ends) = (Lines::default(), Ends::new(texts.len()));
    let mut take = |line: &[u8]| {
        ensure!(line.len() <= LINE_SIZE_MAX, "a piece of more than {LINE_SIZE_MAX} bytes");
        let parts = read_columns(line, number_of).map_err(|error| match error {
            wire::Error::Invalid(words) => refusal(words),
            other => other.into(),
        })?;
        for part in parts {
            let is_cut = part.is_cut || part.series.last().is_some_and(|one| one.is_cut);
            let at = ends.note(part.statement, is_cut)?;
            part.series.into_iter().try_for_each(|one| on_series(at, one))?;
        }
        Ok(())
    };
    send(request, &form, (Some(asked), &mut lines), &mut take)?;
    lines.end(&mut take).context("/query")?;
    ends.check()
}

fn send(
    request: &mut Request<'_>,
    form: &Form,
    (asked, lines): (Option<&Asked<'_>>, &mut Lines),
    take: &mut OnLine<'_>,
) -> anyhow::Result<()> {
    let mut on_bytes = |bytes: &[u8]| lines.push(bytes, take);
    match asked {
        Some(asked) => request.ask("/query", &form.sent(), asked, &mut on_bytes),
        None => request.own("/query", &form.sent(), &mut on_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_with_names_are_read_or_refused() {
        let read = |lines: &[&str]| -> anyhow::Result<Vec<String>> {
            let (mut ends, mut found) = (Ends::new(2), Vec::new());
            for line in lines {
                read_names(line.as_bytes(), &mut ends, &mut |at, row| {
                    found.push(format!("{at} {} {} {}", row.name, row.text("b"), row.is_on("c")));
                    Ok(())
                })?;
            }
            ends.check().map(|()| found)
        };
        let first = r#"{"results":[{"statement_id":0,"series":[{"name":"m","columns":["a","b","c"],"values":[["x","y",true]]}],"partial":true}]}"#;
        let second = r#"{"results":[{"statement_id":0,"series":[{"columns":["b"],"values":[["z"],[]]}]},{"statement_id":1}]}"#;
        assert_eq!(
            read(&[first, second]).expect("rows"),
            ["0 m y true", "0  z false", "0   false"]
        );
        for (bad, part) in [
            (vec![first], "ends before its end"),
            (vec![r#"{"results":[{"statement_id":0}]}"#], "ends before its end"),
            (vec![], "ends before its end"),
            (vec!["{}"], "without results"),
            (vec![r#"{"results":[{"statement_id":2}]}"#], "not asked"),
            (vec![r#"{"error":"unable to parse"}"#], "unable to parse"),
            (
                vec![r#"{"results":[{"statement_id":0,"error":"database not found: x"}]}"#],
                "not found: x",
            ),
            (vec!["<html>"], "no JSON"),
        ] {
            let error = read(&bad).expect_err(part);
            assert!(format!("{error:#}").contains(part), "{part}: {error:#}");
        }
    }

    #[test]
    fn a_request_has_so_many_statements() {
        assert_eq!(count_at_once(["a"; 100].into_iter()), STATEMENTS_MAX);
        let long = "x".repeat(QUESTION_SIZE_MAX);
        assert_eq!(count_at_once([long.as_str(), "a"].into_iter()), 1);
        assert_eq!(count_at_once(["a", long.as_str()].into_iter()), 1);
    }
}
