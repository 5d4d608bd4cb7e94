//! Prometheus remote write 1.0 and 2.0.
//!
//! The version is in the content type's `proto`; without it, 1.0 is meant.
//! What cannot be kept is never dropped in silence:
//!
//! ```text
//!                     1.0                              2.0
//! bad series/sample   400 after storing the rest       400 after storing the rest
//! bad histogram       400 after storing the rest       400 after storing the rest
//! exemplar out of     counted, a warning once a minute 400 after storing the rest
//!   order
//! exemplar otherwise  counted, a warning once a minute counted, not in written, the same warning
//!   refused
//! ```
//!
//! These are Prometheus' own answers. In 1.0 an exemplar is no error: a sender that got 400 would
//! count all samples of the request as failed, though they were stored; in 2.0 it is told what was
//! written. Senders do not send 400 again, so nothing loops.

use crate::http::answer::{Answer, TEXT};
use crate::http::insert::{durability, extra_labels, with_unit_warning};
use crate::http::request::Request;
use crate::http::request::unpack;
use app::App;
use app::ingest::Outcome;
use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use net::failure::{Failure, Kind};
use net::logging::Pace;
use net::telemetry::Protocol;
use std::sync::Arc;
use wire::remote_write::{RemoteWriteKeys, v1, v2};

/// Refused exemplars that an answer repeats.
const EXEMPLARS_SHOWN_MAX: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// `POST /api/v1/write`
pub fn write(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let version = version(request.header(CONTENT_TYPE))?;
    check_encoding(request.header(CONTENT_ENCODING))?;
    let durability = durability(app, request)?;
    let keys = RemoteWriteKeys::new(extra_labels(request, Vec::new())?);
    let body = unpack::remote_write_body(app, request)?;
    let hasher = app.store.hasher();
    let decoded = match version {
        Version::V1 => v1::decode(&body, &hasher, &keys)?,
        Version::V2 => v2::decode(&body, &hasher, &keys)?,
    };
    let mut outcome = Outcome::default();
    let appended = outcome.append(app, decoded, durability);
    body.give_back(app);
    appended?;
    let protocol = match version {
        Version::V1 => Protocol::RemoteWriteV1,
        Version::V2 => Protocol::RemoteWriteV2,
    };
    let finished = outcome.finish(app, protocol, request.body.len());
    warn_of_exemplars(app, &outcome);
    finished?;
    let answer = match refusal(&outcome, version) {
        None => Answer::no_content(),
        Some(text) => Answer::bytes(StatusCode::BAD_REQUEST, TEXT, text.into_bytes()),
    };
    let answer = with_unit_warning(app, &outcome, protocol, answer);
    Ok(match version {
        Version::V1 => answer,
        Version::V2 => answer
            .with_header("x-prometheus-remote-write-samples-written", outcome.samples.to_string())
            .with_header(
                "x-prometheus-remote-write-histograms-written",
                outcome.histograms.to_string(),
            )
            .with_header(
                "x-prometheus-remote-write-exemplars-written",
                outcome.exemplars.written.to_string(),
            ),
    })
}

/// What the sender must hear, if anything was refused.
fn refusal(outcome: &Outcome, version: Version) -> Option<String> {
    let mut parts = Vec::new();
    if !outcome.is_complete() {
        parts.push(outcome.report("series"));
    }
    if version == Version::V2 && 0 < outcome.exemplars.out_of_order {
        parts.push(exemplars_report(outcome));
    }
    (!parts.is_empty()).then(|| parts.join("\n") + "\n")
}

fn version(content_type: &str) -> Result<Version, Failure> {
    let unknown = || {
        let remedy = format!("send application/x-protobuf;proto={} or {}", v1::PROTO, v2::PROTO);
        let message = format!("content type {content_type:?} is not known");
        Failure::new(Kind::UnknownEncoding, message).advised(remedy)
    };
    let mut parts = content_type.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or("");
    if !media_type.is_empty() && !media_type.eq_ignore_ascii_case("application/x-protobuf") {
        return Err(unknown());
    }
    let mut parameters = parts.filter_map(|part| part.split_once('='));
    let proto = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("proto"));
    match proto.map(|(_, value)| value.trim().trim_matches('"')) {
        None => Ok(Version::V1),
        Some(proto) if proto == v1::PROTO => Ok(Version::V1),
        Some(proto) if proto == v2::PROTO => Ok(Version::V2),
        Some(_) => Err(unknown()),
    }
}

fn check_encoding(encoding: &str) -> Result<(), Failure> {
    match encoding.trim().to_ascii_lowercase().as_str() {
        "" | "snappy" | "zstd" => Ok(()),
        other => {
            let message = format!("content encoding {other:?} is not known");
            Err(Failure::new(Kind::UnknownEncoding, message).advised("send snappy or zstd"))
        }
    }
}

fn exemplars_report(outcome: &Outcome) -> String {
    let (written, refused) = (outcome.exemplars.written, outcome.exemplars_refused());
    let mut text = format!("{written} exemplars stored, {refused} refused:");
    for rejection in outcome.exemplars.rejections.iter().take(EXEMPLARS_SHOWN_MAX) {
        text.push_str(&format!("\nseries {}: {}", rejection.position, rejection.reason));
    }
    text
}

/// One line in the log per minute, whatever the number of requests.
fn warn_of_exemplars(app: &App, outcome: &Outcome) {
    static PACE: Pace = Pace::new();
    let count = outcome.exemplars_refused();
    if count == 0 {
        return;
    }
    let now = (app.vfs.now() / model::sample::NANOS_PER_MILLI) as u64;
    if PACE.is_due(now) {
        let first = outcome.exemplars.rejections.first();
        let reason = first.map_or("labels or timestamp are no good", |first| &first.reason);
        tracing::warn!(
            "{count} exemplars of a remote write request were refused: {reason}; \
             see quipu_insert_lossy_total{{kind=\"exemplar_refused\"}}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(version("").ok(), Some(Version::V1));
        assert_eq!(version("application/x-protobuf").ok(), Some(Version::V1));
        let v1 = "application/x-protobuf;proto=prometheus.WriteRequest";
        assert_eq!(version(v1).ok(), Some(Version::V1));
        let v2 = "application/x-protobuf; proto=io.prometheus.write.v2.Request";
        assert_eq!(version(v2).ok(), Some(Version::V2));
        for bad in ["application/json", "application/x-protobuf;proto=io.prometheus.write.v3"] {
            assert_eq!(version(bad).expect_err(bad).kind, Kind::UnknownEncoding);
        }
        assert_eq!(check_encoding("gzip").expect_err("gzip").kind, Kind::UnknownEncoding);
    }
}
