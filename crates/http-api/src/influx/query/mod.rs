//! `/query`: InfluxQL over the store.
//!
//! ```text
//! q ─ influxql::parse ─► statements ─┬─ readers: influxql::Evaluator over `source` ─┐
//!                                    └─ others: `changes`                           ├─► `form`: JSON, CSV
//!                                                                                   ┘
//! ```
//!
//! A statement that fails says so in its place with 200, as InfluxDB does; those behind it are not
//! executed. A text that is no query is 400.

mod changes;
mod form;
mod longs;
mod policies;
pub(super) mod source;

use crate::http::answer::Answer;
use crate::http::partial::Partial;
use crate::http::request::Request;
use crate::http::request::selection;
use app::App;
use form::Form;
use hyper::Method;
use influx_schema::records::RECORDS_PATH;
use influxql::ast::Statement;
use influxql::{Allowance, Answer as Rows, Evaluator, Limits, Parameters};
use net::failure::Failure;
use source::StoreSource;
pub use source::table_name;
use std::sync::Arc;
use std::time::Duration;
use store::SelectLimits;

use super::write::VERSION;

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
/// Bytes of its answer, which is there as a whole: more than so many points take as numbers, but texts
/// may be long.
const BRIEF_SIZE_MAX: usize = 512 << 10;

/// `GET` and `POST /query?q=...&db=...&epoch=...`
pub fn query(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    match statements_of(request, Allowance::default()) {
        Ok(statements) => {
            let bounds = Bounds::of(app, request)?;
            let (rows, partial) = answers(app, request, &statements, &bounds)?;
            partial.finish(app, Form::of(request).answer(noted(rows, &partial)))
        }
        Err(error) => Ok(Form::of(request).refused(&error)),
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
    let (rows, partial) = answers(app, request, &statements, &bounds).ok()?;
    if rows.iter().any(|rows| rows.error.is_some()) {
        // It may be no more than that the bounds are too narrow.
        return None;
    }
    let answer = Form::of(request).whole(&noted(rows, &partial), BRIEF_SIZE_MAX)?;
    partial.finish(app, answer).ok()
}

/// What the statements of a request may cost.
pub(super) struct Bounds {
    limits: SelectLimits,
    rows: Limits,
}

impl Bounds {
    /// As the flags say.
    ///
    /// # Errors
    /// For a parameter that says something else and cannot.
    pub fn of(app: &App, request: &Request) -> Result<Bounds, Failure> {
        let (bytes, _) = selection::memory_max(app);
        let rows = Limits::of_memory(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(Bounds { limits: selection::limits(app, request)?, rows })
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
        self.rows.points_max = self.rows.points_max.min(BRIEF_POINTS_MAX);
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
    parsed.map_err(|error| match text.contains("|>") {
        true => format!("error parsing query: {error} (Flux is sent to /api/v2/query)"),
        false => format!("error parsing query: {error}"),
    })
}

/// Rows, and what they lack.
fn answers(
    app: &Arc<App>,
    request: &Request,
    statements: &[Statement],
    bounds: &Bounds,
) -> Result<(Vec<Rows>, Partial), Failure> {
    let partial = match Form::of(request).has_messages() {
        true => Partial::of(app, request)?,
        false => Partial::of_mute_format(app, request)?,
    };
    let database = request.params.filled("db").unwrap_or("");
    let policy = request.params.filled("rp").unwrap_or("");
    let rows = run(app, request, ((database, policy), statements), (&partial, bounds))?;
    Ok((rows, partial))
}

/// The answers, each with what the request could not read.
fn noted(mut rows: Vec<Rows>, partial: &Partial) -> Vec<Rows> {
    let mut notes = wire::prom_json::Notes::default();
    partial.note(&mut notes);
    // Clients take statements apart, and nobody knows any more which of them asked.
    for one in &mut rows {
        one.messages.extend(notes.warnings.iter().cloned());
    }
    rows
}

/// Names of all buckets: databases, and `database/policy`.
///
/// # Errors
/// When the store cannot be asked.
pub fn buckets(app: &App, request: &Request) -> Result<Vec<String>, Failure> {
    let limits = selection::limits(app, request)?;
    let source = StoreSource { app, questions: app.store.strict().showing_all(), limits };
    flux::bucket_names(&source).map_err(|error| Failure::internal(error.to_string()))
}

/// Evaluates the statements about a database and a policy, which may be empty, up to the first that
/// fails.
///
/// # Errors
/// When the store fails, or a statement may not come this way.
pub(super) fn run(
    app: &Arc<App>,
    request: &Request,
    ((database, policy), statements): ((&str, &str), &[Statement]),
    (partial, bounds): (&Partial, &Bounds),
) -> Result<Vec<Rows>, Failure> {
    let limits = bounds.limits.clone();
    // It has the strings, and the types of fields.
    partial.note_side_file(app, RECORDS_PATH);
    // An earlier version may have lost them with the file of metadata.
    partial.note_side_file(app, "metadata");
    let source = StoreSource { app, questions: partial.noting(app).showing_all(), limits };
    let evaluator = Evaluator::new(&source, database, request.now, bounds.rows).with_policy(policy);
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

/// Whether a statement may come with this method: a link must not change anything.
fn may_come(request: &Request, statement: &Statement) -> bool {
    statement.is_read_only() || request.method == Method::POST
}
