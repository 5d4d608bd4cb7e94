//! Reader of InfluxQL's protocol, shared by copies and legacy backends: statements in a form, answers in
//! pieces, each a line of JSON. An answer is whole when every statement has sent its last piece.
//!
//! ```text
//! POST /query q=S0;S1 ─► {"results":[{"statement_id":0, .. "partial":true}]}   more of S0 follows
//!                        {"results":[{"statement_id":0, .. }]}                 the end of S0
//!                        {"results":[{"statement_id":1}]}                      the end of S1
//! ```

use crate::client::{Asked, encode};
use crate::json_lines::Lines;
use anyhow::{Context as _, ensure};
use bytes::Bytes;
use hyper::Method;
use serde::Deserialize;
use serde_json::Value;
use wire::influx::answer::AnswerSeries;
use wire::influx::columns::ColumnsSeries;
use wire::influx::envelope::Part;

/// Path of the protocol.
pub const PATH: &str = "/query";
/// Rows of a piece of an answer with samples.
const ROWS_AT_ONCE: usize = 5000;
/// Rows of a piece of an answer with names.
const NAMES_AT_ONCE: usize = 1000;
/// Statements of a request, and bytes of them.
const STATEMENTS_MAX: usize = 64;
const QUESTION_SIZE_MAX: usize = 256 << 10;
const FORM: &[(&str, &str)] = &[("content-type", "application/x-www-form-urlencoded")];

/// Error that a server reports in the body of an answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServerError(pub String);

/// Error: an answer ends although more of a statement was to follow.
#[derive(Debug, thiserror::Error)]
#[error("the answer ends before its end (\"partial\":true): a limit of its own, or of a proxy?")]
pub struct UnfinishedAnswer;

/// Identifier as InfluxQL reads it.
pub fn quoted(name: &str) -> String {
    let mut text = String::from("\"");
    for character in name.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// Statement that lists the retention policies of a database.
pub fn show_policies(database: &str) -> String {
    format!("SHOW RETENTION POLICIES ON {}", quoted(database))
}

/// Statement that lists the fields of a database under its default policy.
pub fn show_fields(database: &str) -> String {
    format!("SHOW FIELD KEYS ON {}", quoted(database))
}

/// Statement that lists the fields of a database under another policy: without the name, those of the
/// default policy alone are listed.
pub fn show_fields_of_policy(database: &str, policy: &str) -> String {
    format!("SHOW FIELD KEYS ON {} FROM {}./.*/", quoted(database), quoted(policy))
}

/// Words for two tables (database and policy each) that one label of databases would stand for.
pub fn shared_label(label: &str, first: (&str, &str), second: (&str, &str)) -> String {
    let words = |(database, policy): (&str, &str)| {
        format!("retention policy {policy:?} of database {database:?}")
    };
    let (first, second) = (words(first), words(second));
    format!("{first} and {second} would both be the database {label:?}")
}

/// Number and size of the statements of one request.
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

/// Number of the first statements that fit into one request.
pub fn count_at_once<'s>(mut texts: impl Iterator<Item = &'s str>) -> usize {
    let mut room = Room::default();
    let over = texts.position(|text| !room.takes(text));
    over.unwrap_or(room.count)
}

/// Request with some statements.
pub struct Form {
    path: String,
    body: Bytes,
}

impl Form {
    /// Request whose answers have samples.
    pub fn of_samples(database: &str, texts: &[&str]) -> Form {
        Form::new(database, texts, ROWS_AT_ONCE)
    }

    /// Request whose answers have names.
    pub fn of_names(database: &str, texts: &[&str]) -> Form {
        Form::new(database, texts, NAMES_AT_ONCE)
    }

    fn new(database: &str, texts: &[&str], rows: usize) -> Form {
        // Ask a Quipu for its own data only, or an error: two servers that ask each other would never end.
        let path = format!(
            "{PATH}?db={}&epoch=ns&chunked=true&chunk_size={rows}&nolegacy=1&deny_partial_response=1",
            encode(database)
        );
        Form { path, body: Bytes::from(format!("q={}", encode(&texts.join(";")))) }
    }

    /// The request for a client.
    pub fn request(&self) -> Asked<'_> {
        Asked { method: Method::POST, path: &self.path, headers: FORM, body: self.body.clone() }
    }
}

/// Records which statements of a request have sent their last piece.
struct StatementEnds(Vec<bool>);

impl StatementEnds {
    fn new(count: usize) -> StatementEnds {
        StatementEnds(vec![false; count])
    }

    /// Takes a piece of a statement's answer; returns the place of the statement.
    fn note(&mut self, statement: u64, is_cut: bool) -> anyhow::Result<usize> {
        let at = usize::try_from(statement).ok().filter(|at| *at < self.0.len());
        let at = at.context("an answer to what was not asked")?;
        self.0[at] = !is_cut;
        Ok(at)
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.0.iter().all(|is_over| *is_over), UnfinishedAnswer);
        Ok(())
    }
}

/// Takes the names of a statement's answer: its number, and a row.
pub type OnNames<'a> = dyn FnMut(usize, Row<'_>) -> anyhow::Result<()> + 'a;

/// Row of names.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    /// Measurement of the row.
    pub name: &'r str,
    columns: &'r [String],
    values: &'r [Value],
}

impl<'r> Row<'r> {
    /// Row of a table.
    pub fn new(name: &'r str, columns: &'r [String], values: &'r [Value]) -> Row<'r> {
        Row { name, columns, values }
    }

    /// Value in a column.
    pub fn value(&self, column: &str) -> Option<&'r Value> {
        let at = self.columns.iter().position(|one| one == column)?;
        self.values.get(at)
    }

    /// Text in a column; empty where there is none.
    pub fn text(&self, column: &str) -> &'r str {
        self.value(column).and_then(Value::as_str).unwrap_or_default()
    }

    /// Columns and their values.
    pub fn cells(&self) -> impl Iterator<Item = (&'r str, &'r Value)> + use<'r> {
        self.columns.iter().map(String::as_str).zip(self.values)
    }

    /// Whether a column is true.
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
fn read_names(
    line: &[u8],
    ends: &mut StatementEnds,
    on_row: &mut OnNames<'_>,
) -> anyhow::Result<()> {
    let NamesLine { results, error } =
        serde_json::from_slice(line).context("an answer that is no JSON of InfluxQL")?;
    if let Some(words) = error {
        return Err(ServerError(words).into());
    }
    for result in results.context("an answer without results")? {
        if let Some(words) = result.error {
            return Err(ServerError(words).into());
        }
        let at = ends.note(result.statement_id, result.partial)?;
        for NamesSeries { name, columns, values } in result.series.iter().flatten() {
            for values in values {
                on_row(at, Row::new(name, columns, values))?;
            }
        }
    }
    Ok(())
}

/// A part of a series, of either form in which samples are read.
pub trait SeriesPart {
    /// Whether more of the series follows.
    fn is_cut(&self) -> bool;
}

impl SeriesPart for AnswerSeries {
    fn is_cut(&self) -> bool {
        self.is_cut
    }
}

impl SeriesPart for ColumnsSeries {
    fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// Reads the parts of a line of samples.
pub type ReadParts<'a, S> = dyn FnMut(&[u8]) -> Result<Vec<Part<S>>, wire::Error> + 'a;
/// Takes the number of a statement and a part of a series.
pub type OnSeries<'a, S> = dyn FnMut(usize, S) -> anyhow::Result<()> + 'a;

/// Answer under way.
pub struct Answer {
    lines: Lines,
    ends: StatementEnds,
    /// Bytes of a piece: in memory it may become many times that.
    piece_size_max: usize,
}

impl Answer {
    /// Nothing of the answer to some statements has come.
    pub fn new(statements: usize) -> Answer {
        Answer::bounded(statements, usize::MAX)
    }

    /// The same, with a bound on the bytes of a piece.
    pub fn bounded(statements: usize, piece_size_max: usize) -> Answer {
        let ends = StatementEnds::new(statements);
        Answer { lines: Lines::default(), ends, piece_size_max }
    }

    /// Takes bytes of an answer with names.
    ///
    /// # Errors
    /// When they are no answer, report an error, or `on_row` fails.
    pub fn push_names(&mut self, bytes: &[u8], on_row: &mut OnNames<'_>) -> anyhow::Result<()> {
        let Answer { lines, ends, piece_size_max } = self;
        lines.push(bytes, &mut |line| {
            check_size(line, *piece_size_max)?;
            read_names(line, ends, on_row)
        })
    }

    /// Takes the end of an answer with names.
    ///
    /// # Errors
    /// As [`Answer::push_names`], and [`UnfinishedAnswer`].
    pub fn end_names(self, on_row: &mut OnNames<'_>) -> anyhow::Result<()> {
        let Answer { lines, mut ends, piece_size_max } = self;
        let end = lines.end(&mut |line| {
            check_size(line, piece_size_max)?;
            read_names(line, &mut ends, on_row)
        });
        end.context(PATH)?;
        ends.check().context(PATH)
    }

    /// Takes bytes of an answer with samples.
    ///
    /// # Errors
    /// When they are no answer, report an error, or `on_series` fails.
    pub fn push_samples<S: SeriesPart>(
        &mut self,
        bytes: &[u8],
        read: &mut ReadParts<'_, S>,
        on_series: &mut OnSeries<'_, S>,
    ) -> anyhow::Result<()> {
        let Answer { lines, ends, piece_size_max } = self;
        lines.push(bytes, &mut |line| {
            check_size(line, *piece_size_max)?;
            read_samples(line, ends, read, on_series)
        })
    }

    /// Takes the end of an answer with samples.
    ///
    /// # Errors
    /// As [`Answer::push_samples`], and [`UnfinishedAnswer`].
    pub fn end_samples<S: SeriesPart>(
        self,
        read: &mut ReadParts<'_, S>,
        on_series: &mut OnSeries<'_, S>,
    ) -> anyhow::Result<()> {
        let Answer { lines, mut ends, piece_size_max } = self;
        let end = lines.end(&mut |line| {
            check_size(line, piece_size_max)?;
            read_samples(line, &mut ends, read, on_series)
        });
        end.context(PATH)?;
        ends.check().context(PATH)
    }
}

fn check_size(line: &[u8], size_max: usize) -> anyhow::Result<()> {
    ensure!(line.len() <= size_max, "a piece of more than {size_max} bytes");
    Ok(())
}

fn read_samples<S: SeriesPart>(
    line: &[u8],
    ends: &mut StatementEnds,
    read: &mut ReadParts<'_, S>,
    on_series: &mut OnSeries<'_, S>,
) -> anyhow::Result<()> {
    let parts = read(line).map_err(|error| match error {
        wire::Error::Invalid(words) => anyhow::Error::new(ServerError(words)),
        other => other.into(),
    })?;
    for part in parts {
        let is_cut = part.is_cut || part.series.last().is_some_and(S::is_cut);
        let at = ends.note(part.statement, is_cut)?;
        part.series.into_iter().try_for_each(|one| on_series(at, one))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_with_names_are_read_or_refused() {
        let read = |lines: &[&str]| -> anyhow::Result<Vec<String>> {
            let (mut answer, mut found) = (Answer::new(2), Vec::new());
            let mut take = |at: usize, row: Row<'_>| {
                found.push(format!("{at} {} {} {}", row.name, row.text("b"), row.is_on("c")));
                Ok(())
            };
            for line in lines {
                answer.push_names(format!("{line}\n").as_bytes(), &mut take)?;
            }
            answer.end_names(&mut take)?;
            Ok(found)
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
    fn answers_with_samples_are_whole_or_refused() {
        let read = |lines: &[&str]| -> anyhow::Result<usize> {
            let (mut answer, mut count) = (Answer::new(1), 0);
            let mut parts = |line: &[u8]| wire::influx::answer::read_answer(line);
            let mut take = |_, series: AnswerSeries| {
                count += series.rows.len();
                Ok(())
            };
            for line in lines {
                answer.push_samples(format!("{line}\n").as_bytes(), &mut parts, &mut take)?;
            }
            answer.end_samples(&mut parts, &mut take)?;
            Ok(count)
        };
        let piece = |series: &str, result: &str| {
            format!(
                r#"{{"results":[{{"statement_id":0,"series":[{{"name":"m","columns":["time","c0"],"values":[[1,2]]{series}}}]{result}}}]}}"#
            )
        };
        let (cut, cut_series) = (piece("", ",\"partial\":true"), piece(",\"partial\":true", ""));
        let whole = piece("", "");
        assert_eq!(read(&[&cut, &cut_series, &whole]).expect("all"), 3);
        for bad in [vec![cut.as_str()], vec![&whole, &cut_series], vec![]] {
            let error = read(&bad).expect_err("more was to follow");
            assert!(error.is::<UnfinishedAnswer>(), "{error:#}");
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
