//! `/api/v1/query_exemplars`: the exemplars of all series that an expression selects.

use crate::http::answer::PIECE_SIZE;
use crate::http::answer::{Answer, JSON};
use crate::http::partial::Partial;
use crate::http::request::Request;
use crate::http::request::selection;
use app::App;
use model::sample::NANOS_PER_MILLI;
use model::{Matcher, TimeRange};
use net::failure::Failure;
use promql::Dialect;
use std::io::{self, Write};
use std::sync::Arc;
use store::ExemplarSeries;
use wire::prom_json::{List, Notes};

/// Selectors of one expression.
const SELECTORS_MAX: usize = 1000;

/// `/api/v1/query_exemplars?query=...&start=...&end=...`
pub fn query(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let range = time_range(request)?;
    let sets = selectors(app, request)?;
    if SELECTORS_MAX < sets.len() {
        let count = sets.len();
        let message = format!("{count} selectors in the expression, the limit is {SELECTORS_MAX}");
        return Err(Failure::bad_input(message));
    }
    let limits = selection::limits(app, request)?;
    let partial = Partial::of(app, request)?;
    let mut found = match sets.is_empty() {
        true => Vec::new(),
        false => partial.noting(app).exemplars(&sets, range, &limits)?,
    };
    let mut notes = Notes::default();
    partial.note(&mut notes);
    if let Some(limit) = selection::limit(request)?.filter(|limit| *limit < found.len()) {
        found.truncate(limit);
        notes.warnings.push("results truncated due to limit".to_string());
    }
    let answer =
        Answer::stream(JSON, Box::new(move |out: &mut dyn Write| write(out, &found, &notes)));
    partial.finish(app, answer)
}

/// `start` and `end` with Prometheus' words for a range that is none.
fn time_range(request: &Request) -> Result<TimeRange, Failure> {
    let start = selection::time(request, "start")?.unwrap_or(i64::MIN);
    let end = selection::time(request, "end")?.unwrap_or(i64::MAX);
    if end < start {
        return Err(Failure::bad_input("end timestamp must not be before start timestamp"));
    }
    Ok(TimeRange::new(start, end))
}

fn selectors(app: &App, request: &Request) -> Result<Vec<Vec<Matcher>>, Failure> {
    let text = request.params.get("query").unwrap_or("");
    let options = promql::Options { experimental_functions: app.config.query.has_experimental };
    let sets = match selection::dialect(app, request)? {
        Dialect::PromQl => promql::parse_with(text, &options).map(|expr| promql::selectors(&expr)),
        Dialect::MetricsQl => promql::metricsql::parse(text).map(promql::metricsql_selectors),
    };
    sets.map_err(|error| selection::invalid("query", &error))
}

fn write(out: &mut dyn Write, found: &[ExemplarSeries], notes: &Notes) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(2 * PIECE_SIZE);
    let mut list = List::begin(&mut buffer);
    for ExemplarSeries { labels, exemplars } in found {
        let mut series = list.exemplars(&mut buffer, labels);
        for exemplar in exemplars {
            let millis = exemplar.timestamp.div_euclid(NANOS_PER_MILLI);
            series.push(&mut buffer, &exemplar.labels, exemplar.value, millis);
            if PIECE_SIZE <= buffer.len() {
                out.write_all(&buffer)?;
                buffer.clear();
            }
        }
        series.end(&mut buffer);
    }
    list.end(&mut buffer, notes);
    out.write_all(&buffer)
}
