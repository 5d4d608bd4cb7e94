//! InfluxDB's doors in: line protocol, 1.x and 2.x.
//!
//! A request without an error is 204. Bad lines are told in InfluxDB's words with 400, after the
//! good ones were stored; clients that drop the batch then lose only what was bad.

use super::policies::{database_and_policy, name_of_policy, stored_name};
use super::query::table_name;
use crate::http::answer::{Answer, JSON};
use crate::http::insert::{durability, extra_labels, with_unit_warning};
use crate::http::request::Request;
use crate::http::request::unpack;
use app::App;
use app::block_strings::BlockStrings;
use app::ingest::Outcome;
use hyper::StatusCode;
use net::failure::Failure;
use net::telemetry::Protocol;
use serde_json::json;
use std::sync::Arc;
use store::Durability;
use wire::Start;
use wire::influx::{
    Escapes, InfluxKeys, Options, Precision, decode, error_text, has_valid_row, kinds_by_shape,
};

/// What clients that ask for a version are told: 1.8 is the last that all of them know.
pub(super) const VERSION: &str = "1.8.10";

/// `POST /write?db=...&precision=...`
pub fn write_v1(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let policy = request.params.filled("rp");
    let order = Order::of(app, request, (request.params.filled("db"), policy))?;
    let (outcome, text) = write(app, request, &order, told)?;
    let answer = |answer: Answer| {
        let answer = answer.with_header("x-influxdb-version", VERSION);
        with_unit_warning(app, &outcome, Protocol::Influx, answer)
    };
    if outcome.is_complete() {
        return Ok(answer(Answer::no_content()));
    }
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(256).collect();
    let body = json!({ "error": text }).to_string().into_bytes();
    let refused = Answer::bytes(StatusCode::BAD_REQUEST, JSON, body);
    Ok(answer(refused.with_header("x-influxdb-error", line)))
}

/// `POST /api/v2/write?bucket=...&precision=...`
pub fn write_v2(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let bucket = request.params.filled("bucket").or(request.params.filled("db"));
    let (database, policy) = bucket.map(database_and_policy).unzip();
    let order = Order::of(app, request, (database, policy.flatten()))?;
    let (outcome, text) = write(app, request, &order, told)?;
    if outcome.is_complete() {
        return Ok(with_unit_warning(app, &outcome, Protocol::Influx, Answer::no_content()));
    }
    let first_error = outcome.errors.kept().first().map(|error| error.position);
    let first_rejection = outcome.rejections.first().map(|row| row.position);
    let line = first_error.into_iter().chain(first_rejection).min();
    let body = json!({ "code": "invalid", "message": text, "line": line });
    let answer = Answer::bytes(StatusCode::BAD_REQUEST, JSON, body.to_string().into_bytes());
    Ok(with_unit_warning(app, &outcome, Protocol::Influx, answer))
}

/// What is done when some lines are bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadLines {
    /// The others are stored.
    LeftOut,
    /// None is stored.
    RefuseAll,
}

/// How the lines of a request are stored.
pub(super) struct Order {
    /// Name under which the samples of the database and the policy are.
    pub database: Option<String>,
    pub precision: Precision,
    pub durability: Durability,
    pub bad_lines: BadLines,
    pub escapes: Escapes,
}

impl Order {
    /// As the parameters of the first two generations say it.
    pub fn of(
        app: &App,
        request: &Request,
        (database, policy): (Option<&str>, Option<&str>),
    ) -> Result<Order, Failure> {
        let precision = match request.params.filled("precision") {
            None => app.config.insert.default_precision,
            Some(word) => Precision::parse(word).ok_or_else(|| {
                let units = "n, u, ms, s, m, h or auto";
                Failure::bad_input(format!("invalid precision {word:?} (use {units})"))
            })?,
        };
        let durability = durability(app, request)?;
        let database = stored_name(app, database, policy)?;
        let (bad_lines, escapes) = (BadLines::LeftOut, Escapes::default());
        Ok(Order { database, precision, durability, bad_lines, escapes })
    }
}

/// What was refused, in the words of InfluxDB 1.x.
fn told(body: &[u8], outcome: &Outcome) -> String {
    let Outcome { errors, rejections, rejected, samples, .. } = outcome;
    match outcome.is_complete() {
        true => String::new(),
        false => error_text(body, errors, rejections, *rejected, *samples),
    }
}

/// Stores the lines of a request; also returns what `told` says of what was refused.
pub(super) fn write<T>(
    app: &App,
    request: &Request,
    order: &Order,
    told: impl FnOnce(&[u8], &Outcome) -> T,
) -> Result<(Outcome, T), Failure> {
    let body = unpack::body(app, request)?;
    let outcome = store_lines(app, request, order, &body)?;
    outcome.finish(app, Protocol::Influx, request.body.len())?;
    let words = told(&body, &outcome);
    body.give_back(app);
    Ok((outcome, words))
}

/// Stores lines that a statement made, with names escaped by `%`, under the name of a database and a
/// policy; a line that is refused is a failure.
pub(super) fn write_made(
    app: &App,
    request: &Request,
    database: Option<String>,
    lines: &str,
) -> Result<(), Failure> {
    let (precision, durability) = (Precision::Nanosecond, durability(app, request)?);
    let (bad_lines, escapes) = (BadLines::RefuseAll, Escapes::Percent);
    let order = Order { database, precision, durability, bad_lines, escapes };
    let outcome = store_lines(app, request, &order, lines.as_bytes())?;
    outcome.finish(app, Protocol::Influx, lines.len())?;
    match outcome.is_complete() {
        true => Ok(()),
        false => Err(Failure::bad_input(told(lines.as_bytes(), &outcome))),
    }
}

/// Fails where an extra label says another database than the request, or the samples of a policy: fields
/// would be noted in one database and samples stored in another.
fn check_extra_database(
    app: &App,
    database: Option<&str>,
    labelled: Option<&str>,
) -> Result<(), Failure> {
    let Some(labelled) = labelled.filter(|labelled| database != Some(*labelled)) else {
        return Ok(());
    };
    if let Some(database) = database {
        let label = &app.config.insert.database_label;
        return Err(Failure::bad_input(format!(
            "extra_label {label}={labelled} contradicts the database {database} of the request: say one \
             of them"
        )));
    }
    match app.policies.owner(labelled) {
        Some((owner, policy)) => Err(Failure::bad_input(name_of_policy(labelled, &owner, &policy))),
        None => Ok(()),
    }
}

fn store_lines(
    app: &App,
    request: &Request,
    order: &Order,
    body: &[u8],
) -> Result<Outcome, Failure> {
    let Order { precision, durability, bad_lines, escapes, .. } = *order;
    let database = order.database.as_deref();
    let label = &app.config.insert.database_label;
    let first = match database {
        Some(name) if !label.is_empty() => vec![(label.clone(), name.to_string())],
        _ => Vec::new(),
    };
    let extra = extra_labels(request, first)?.moving_aside(label);
    let labelled = extra.iter().find(|(name, _)| *name == label.as_str());
    let labelled = labelled.map(|(_, value)| value.to_string());
    check_extra_database(app, database, labelled.as_deref())?;
    let table = table_name(app, labelled.as_deref().or(database).unwrap_or(""));
    let keys = InfluxKeys::new(extra).with_escapes(escapes);
    let keys = keys.with_names(app.measurements.names_of(table));
    let strings = BlockStrings::new(&app.texts);
    let keys = keys.with_texts(strings.for_decoder()).with_long_integers();
    let options = Options { precision, now: request.now };
    let hasher = app.store.hasher();
    let mut outcome = Outcome::default();
    if bad_lines == BadLines::RefuseAll {
        let mut next = Some(Start::default());
        while let Some(start) = next {
            let decoded = decode(body, start, &options, &hasher, &keys)?;
            next = decoded.rest;
            outcome.errors.append(decoded.errors);
        }
    }
    // Nothing more is read of what is refused.
    let mut next = outcome.errors.is_empty().then(Start::default);
    while let Some(start) = next {
        let mut decoded = decode(body, start, &options, &hasher, &keys)?;
        next = decoded.rest;
        let batch = &decoded.batch;
        let kinds = kinds_by_shape(body, batch).into_iter();
        let (places, lines): (Vec<_>, Vec<_>) =
            kinds.map(|(place, line)| (place, line.with_escapes(escapes))).unzip();
        let has_valid_row = |kind: usize| has_valid_row(batch, places[kind]);
        let learned = app.measurements.learn(table, lines, &has_valid_row);
        let learned = learned.map_err(Failure::of_write)?;
        strings.settle(app, &mut decoded, &mut outcome)?;
        outcome.append(app, decoded, durability)?;
        app.measurements.confirm(table, &learned).map_err(Failure::of_write)?;
    }
    Ok(outcome)
}
