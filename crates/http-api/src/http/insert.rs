//! What doors in over HTTP share: the parameters that say how samples are to be stored, and plain
//! answers about what was refused.

use super::answer::{Answer, TEXT};
use super::request::Request;
use app::App;
use app::ingest::Outcome;
use hyper::StatusCode;
use hyper::header::HeaderName;
use model::sample::NANOS_PER_MILLI;
use net::failure::Failure;
use net::logging::Pace;
use net::telemetry::Protocol;
use store::Durability;
use wire::ExtraLabels;

/// Header by which a request asks for the other durability.
const DURABILITY_HEADER: HeaderName = HeaderName::from_static("x-quipu-durability");
/// Header that says what is odd about samples that were stored.
const WARNING_HEADER: &str = "x-quipu-warning";

/// An answer with a warning if all samples of the request are in 1970: the unit of its timestamps is
/// another one, most likely. The log has it, too, once a minute.
pub fn with_unit_warning(
    app: &App,
    outcome: &Outcome,
    protocol: Protocol,
    answer: Answer,
) -> Answer {
    static PACE: Pace = Pace::new();
    if !outcome.is_all_in_1970() {
        return answer;
    }
    let text = format!("all samples of the request are in 1970; {}", unit_advice(protocol));
    if PACE.is_due((app.vfs.now() / NANOS_PER_MILLI) as u64) {
        tracing::warn!("{}: {text}", protocol.as_str());
    }
    answer.with_header(WARNING_HEADER, text)
}

/// How to give timestamps the right unit.
pub fn unit_advice(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Influx => {
            "line protocol has nanoseconds: send precision=s, ms or us, or start the server with \
             --influx.default-precision=auto"
        }
        Protocol::InfluxTcp | Protocol::InfluxUdp => {
            "line protocol has nanoseconds: start the server with --influx.default-precision=auto"
        }
        Protocol::Exposition => "timestamps are milliseconds, in OpenMetrics seconds",
        Protocol::Csv => "the format says the unit: time:unix_s, unix_ms or unix_ns",
        _ => "timestamps are milliseconds",
    }
}

/// 400 with the lines that were refused, if some were.
pub fn told(outcome: &Outcome) -> Option<Answer> {
    if outcome.is_complete() {
        return None;
    }
    let text = outcome.report("line") + "\n";
    Some(Answer::bytes(StatusCode::BAD_REQUEST, TEXT, text.into_bytes()))
}

/// How durable the request wants its samples to be when it is answered.
///
/// # Errors
/// A word that is neither.
pub fn durability(app: &App, request: &Request) -> Result<Durability, Failure> {
    let header = Some(request.header(DURABILITY_HEADER)).filter(|text| !text.is_empty());
    match request.params.filled("durability").or(header) {
        None => Ok(app.config.insert.durability),
        Some("synced") => Ok(Durability::Synced),
        Some("relaxed") => Ok(Durability::Relaxed),
        Some(other) => {
            Err(Failure::bad_input(format!("durability {other:?} is neither synced nor relaxed")))
        }
    }
}

/// The labels of `?extra_label=name=value`, behind `first`.
///
/// # Errors
/// A label without `=`, or one that [`ExtraLabels`] refuses.
pub fn extra_labels(
    request: &Request,
    mut first: Vec<(String, String)>,
) -> Result<ExtraLabels, Failure> {
    for text in request.params.all("extra_label") {
        let Some((name, value)) = text.split_once('=') else {
            let message = format!("extra_label {text:?} is not of the form name=value");
            return Err(Failure::bad_input(message));
        };
        first.push((name.to_string(), value.to_string()));
    }
    Ok(ExtraLabels::new(&first)?)
}
