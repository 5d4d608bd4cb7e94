//! `/query`: InfluxQL over the store.
//!
//! ```text
//! q ─ influxql::parse ─► statements ─┬─ readers: influxql::Evaluator over `source` ─┐
//!                                    └─ others: `changes`                           ├─► JSON, CSV
//!                                                                                   ┘
//! ```
//!
//! A statement that fails says so in its place with 200, as InfluxDB does; those behind it are not
//! executed. A text that is no query is 400.

mod changes;
mod longs;
pub(super) mod source;

use crate::app::App;
use crate::doors::http::answer::{Answer, JSON};
use crate::doors::http::partial::Partial;
use crate::doors::http::request::Request;
use crate::doors::http::selection;
use crate::failure::Failure;
use hyper::{Method, StatusCode};
use influxql::ast::Statement;
use influxql::{
    Allowance, Answer as Rows, Epoch, Evaluator, Limits, Parameters, Piece, Source as _, Writer,
};
use serde_json::json;
use source::StoreSource;
pub use source::{NAMELESS_DATABASE, table_name};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use store::SelectLimits;

use super::write::VERSION;

/// Rows of a piece of a chunked answer, unless the client says another number.
const CHUNK_ROWS: usize = 10_000;
/// Bytes of memory that a point of an answer takes, about.
const POINT_SIZE: u64 = 64;
/// Spaces of a level of a pretty answer.
const INDENT: usize = 4;

/// What the selections of a request may cost all together, in samples read, to be answered without a
/// worker thread: half a millisecond, as of PromQL (decision 7).
const BRIEF_COST_MAX: u64 = 250_000;
/// Bytes of a text that may be little work.
const BRIEF_TEXT_MAX: usize = 2048;
/// Bytes of memory of regular expressions that are compiled where a request arrives: some four of
/// everyday. Those that are larger take milliseconds.
const BRIEF_REGEXES_SIZE_MAX: usize = 64 << 10;
/// When to give up what looked like little work and was not.
const BRIEF_TIME_MAX: Duration = Duration::from_millis(5);
/// Points in memory of what is little work; a row of an answer counts as three or more.
const BRIEF_POINTS_MAX: usize = 16 << 10;

/// `GET` and `POST /query?q=...&db=...&epoch=...`
pub fn query(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    match statements_of(request, Allowance::default()) {
        Ok(statements) => {
            let bounds = Bounds::of(app, request)?;
            answer(app, request, answers(app, request, &statements, &bounds)?)
        }
        Err(error) => Ok(refused(&error)),
    }
}

/// As [`query`] when it is little work. Lists of what there is never are: the index has no bounds for
/// them.
pub fn query_brief(app: &Arc<App>, request: &Request) -> Option<Answer> {
    let is_long = BRIEF_TEXT_MAX < text(request).len();
    if is_long || is_on(request, "chunked") || request.params.filled("params").is_some() {
        return None;
    }
    let statements = statements_of(request, Allowance::of(BRIEF_REGEXES_SIZE_MAX)).ok()?;
    let bounds = Bounds::of(app, request).ok()?.brief(request, &statements)?;
    let found = answers(app, request, &statements, &bounds).ok()?;
    match found.0.iter().any(|rows| rows.error.is_some()) {
        // It may be no more than that the bounds are too narrow.
        true => None,
        false => answer(app, request, found).ok(),
    }
}

/// What the statements of a request may cost.
pub(super) struct Bounds {
    limits: SelectLimits,
    points_max: usize,
}

impl Bounds {
    /// As the flags say.
    ///
    /// # Errors
    /// For a parameter that says something else and cannot.
    pub fn of(app: &App, request: &Request) -> Result<Bounds, Failure> {
        let (bytes, _) = selection::memory_max(app);
        let points_max = usize::try_from(bytes / POINT_SIZE).unwrap_or(usize::MAX);
        Ok(Bounds { limits: selection::limits(app, request)?, points_max })
    }

    /// Those of what is answered where it arrives; none for what is no such statement.
    fn brief(mut self, request: &Request, statements: &[Statement]) -> Option<Bounds> {
        let reads = |statement: &Statement| match statement {
            Statement::Select(select) if select.target.is_none() => Some(select.variable_count()),
            _ => None,
        };
        let selections: usize = statements.iter().map(reads).sum::<Option<usize>>()?;
        self.limits.cost_max = BRIEF_COST_MAX / selections.max(1) as u64;
        let until = request.started + BRIEF_TIME_MAX;
        self.limits.deadline = Some(self.limits.deadline.map_or(until, |at| at.min(until)));
        self.points_max = self.points_max.min(BRIEF_POINTS_MAX);
        Some(self)
    }
}

fn text(request: &Request) -> &str {
    request.params.get("q").unwrap_or("").trim()
}

/// What the request says.
///
/// # Errors
/// In the words of the answer.
fn statements_of(request: &Request, regexes: Allowance) -> Result<Vec<Statement>, String> {
    let text = text(request);
    if text.is_empty() {
        return Err("missing required parameter \"q\"".to_string());
    }
    let parameters = match request.params.filled("params") {
        None => Parameters::new(),
        Some(text) => influxql::parameters(text)?,
    };
    let parsed = influxql::parse_within(text, &parameters, regexes);
    parsed.map_err(|error| format!("error parsing query: {error}"))
}

/// Rows, and what they lack.
fn answers(
    app: &Arc<App>,
    request: &Request,
    statements: &[Statement],
    bounds: &Bounds,
) -> Result<(Vec<Rows>, Partial), Failure> {
    let partial = Partial::of(app, request)?;
    let database = request.params.filled("db").unwrap_or("");
    let rows = run(app, request, (database, statements), (&partial, bounds))?;
    Ok((rows, partial))
}

fn answer(
    app: &Arc<App>,
    request: &Request,
    (mut rows, partial): (Vec<Rows>, Partial),
) -> Result<Answer, Failure> {
    let mut notes = wire::prom_json::Notes::default();
    partial.note(&mut notes);
    // Clients take statements apart, and nobody knows any more which of them asked.
    for one in &mut rows {
        one.messages.extend(notes.warnings.iter().cloned());
    }
    partial.finish(app, written(request, rows))
}

/// The names of all databases.
///
/// # Errors
/// When the store cannot be asked.
pub fn databases(app: &App, request: &Request) -> Result<Vec<String>, Failure> {
    let limits = selection::limits(app, request)?;
    let source = StoreSource { app, questions: app.store.strict().showing_all(), limits };
    source.databases().map_err(|error| Failure::internal(error.to_string()))
}

/// A text that is no query.
fn refused(error: &str) -> Answer {
    let body = format!("{}\n", json!({ "error": error })).into_bytes();
    let header: String = error.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let header: String = header.chars().take(256).collect();
    Answer::bytes(StatusCode::BAD_REQUEST, JSON, body)
        .with_header("x-influxdb-version", VERSION)
        .with_header("x-influxdb-error", header)
}

/// Evaluates the statements, up to the first that fails.
///
/// # Errors
/// When the store fails, or a statement may not come this way.
pub(super) fn run(
    app: &Arc<App>,
    request: &Request,
    (database, statements): (&str, &[Statement]),
    (partial, bounds): (&Partial, &Bounds),
) -> Result<Vec<Rows>, Failure> {
    let limits = bounds.limits.clone();
    let source = StoreSource { app, questions: partial.noting(app).showing_all(), limits };
    let limits = Limits { points_max: bounds.points_max };
    let evaluator = Evaluator::new(&source, database, request.now, limits);
    let mut answers = Vec::new();
    let mut has_failed = false;
    for statement in statements {
        if has_failed {
            answers.push(Rows::failed("not executed"));
            continue;
        }
        let answer = match evaluator.run(statement) {
            Some(answer) => answer,
            None => {
                let changes = changes::Changes { source: &source, evaluator: &evaluator, database };
                changes.run(request, statement)?
            }
        };
        has_failed = answer.error.is_some();
        answers.push(answer);
    }
    Ok(answers)
}

/// Whether a parameter says yes.
fn is_on(request: &Request, name: &str) -> bool {
    matches!(request.params.get(name), Some("true" | "1" | "t" | "T" | "TRUE" | "True"))
}

fn written(request: &Request, rows: Vec<Rows>) -> Answer {
    let epoch = request.params.filled("epoch").map_or(Epoch::Text, Epoch::parse);
    let indent = if is_on(request, "pretty") { INDENT } else { 0 };
    let writer = Writer { epoch, indent };
    let accept = request.headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or("");
    let answer = if accept.starts_with("application/csv") || accept.starts_with("text/csv") {
        let kind = if accept.starts_with("text") { "text/csv" } else { "application/csv" };
        Answer::bytes(StatusCode::OK, kind, writer.csv(&rows).into_bytes())
    } else if is_on(request, "chunked") {
        let size = request.params.get("chunk_size").and_then(|text| text.parse().ok());
        let size = size.filter(|size| *size != 0).unwrap_or(CHUNK_ROWS);
        Answer::stream(JSON, Box::new(move |out: &mut dyn Write| chunked(writer, rows, size, out)))
    } else {
        Answer::bytes(StatusCode::OK, JSON, writer.body(&rows).into_bytes())
    };
    answer.with_header("x-influxdb-version", VERSION).with_header("x-influxdb-build", "OSS")
}

/// A body for each series, or for so many rows of one.
fn chunked(
    writer: Writer,
    answers: Vec<Rows>,
    size: usize,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    for (idx, answer) in answers.into_iter().enumerate() {
        let Rows { series, messages, error, zone } = answer;
        let count = series.len();
        let rest = Rows { series: Vec::new(), messages, error, zone };
        if count == 0 {
            out.write_all(writer.piece(idx, &rest, Piece::default()).as_bytes())?;
        }
        for (at, mut series) in series.into_iter().enumerate() {
            let rows = std::mem::take(&mut series.rows);
            let mut left = rows.into_iter().peekable();
            loop {
                series.rows = left.by_ref().take(size).collect();
                let is_series_cut = left.peek().is_some();
                let is_cut = is_series_cut || at + 1 < count;
                let piece = Rows { series: vec![series.clone()], ..rest.clone() };
                let body = writer.piece(idx, &piece, Piece { is_series_cut, is_cut });
                out.write_all(body.as_bytes())?;
                if !is_series_cut {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Whether a statement may come with this method: what destroys anything may not come as a link.
fn may_come(request: &Request, statement: &Statement) -> bool {
    statement.is_read_only()
        || matches!(
            statement,
            Statement::CreateDatabase { .. }
                | Statement::CreateRetentionPolicy { .. }
                | Statement::AlterRetentionPolicy { .. }
        )
        || request.method == Method::POST
}
