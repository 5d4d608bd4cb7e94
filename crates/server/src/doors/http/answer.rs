//! What a door returns: an [`Answer`], or a [`Failure`] that each family of doors words its own way.

use crate::telemetry::Limit;
use hyper::StatusCode;
use std::io::{self, Write};

/// Writes an answer piece by piece; called once, on a worker thread.
pub type StreamFn = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

/// The content of an answer.
pub enum Content {
    /// All of it.
    Bytes(Vec<u8>),
    /// All of it, part of the binary.
    Static(&'static [u8]),
    /// Written as it is made; the client sees it grow.
    Stream(StreamFn),
}

/// A complete answer.
pub struct Answer {
    /// HTTP status.
    pub status: StatusCode,
    /// `Content-Type`, empty for none.
    pub content_type: &'static str,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub content: Content,
}

/// JSON as Prometheus' API says it.
pub const JSON: &str = "application/json";
/// Plain text.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// Bytes that a door collects before it hands them on.
pub const PIECE_SIZE: usize = 32 << 10;

impl Answer {
    /// 204, without a body.
    pub fn no_content() -> Answer {
        Answer::bytes(StatusCode::NO_CONTENT, "", Vec::new())
    }

    /// A body of known bytes.
    pub fn bytes(status: StatusCode, content_type: &'static str, bytes: Vec<u8>) -> Answer {
        Answer { status, content_type, headers: Vec::new(), content: Content::Bytes(bytes) }
    }

    /// 200 with plain text.
    pub fn text(text: impl Into<String>) -> Answer {
        Answer::bytes(StatusCode::OK, TEXT, text.into().into_bytes())
    }

    /// 200 with a JSON value.
    pub fn json(value: &serde_json::Value) -> Answer {
        Answer::bytes(StatusCode::OK, JSON, value.to_string().into_bytes())
    }

    /// 200 with `{"status":"success","data":...}`, the shape of Prometheus' API.
    pub fn success(data: serde_json::Value) -> Answer {
        Answer::json(&serde_json::json!({ "status": "success", "data": data }))
    }

    /// 200 with a body that is written as it is made.
    pub fn stream(content_type: &'static str, write: StreamFn) -> Answer {
        let content = Content::Stream(write);
        Answer { status: StatusCode::OK, content_type, headers: Vec::new(), content }
    }

    /// The same with one more header.
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }
}

/// Why a request was not served.
#[derive(Clone, Debug)]
pub struct Failure {
    /// HTTP status.
    pub status: StatusCode,
    /// Prometheus' word for the kind of error.
    pub kind: &'static str,
    /// A sentence with the limit and the value in it.
    pub message: String,
    /// Seconds after which to try again.
    pub retry_after: Option<u64>,
    /// The limit that was reached, to be counted.
    pub limit: Option<Limit>,
}

impl Failure {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Failure {
        Failure { status, kind, message: message.into(), retry_after: None, limit: None }
    }

    /// 400: the request makes no sense.
    pub fn bad_data(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "bad_data", message)
    }

    /// 422: the query makes sense and cannot be evaluated.
    pub fn execution(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "execution", message)
    }

    /// 404.
    pub fn not_found(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 413 with the limit's name.
    pub fn too_large(limit: Limit, message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message).hit(limit)
    }

    /// 503 with `Retry-After`: the same request will work in a moment.
    pub fn unavailable(message: impl Into<String>) -> Failure {
        let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message);
        Failure { retry_after: Some(1), ..failure }
    }

    /// 503 for a query that took too long.
    pub fn timeout(message: impl Into<String>) -> Failure {
        let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message);
        failure.hit(Limit::QueryTimeout)
    }

    /// 500: our fault.
    pub fn internal(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// Any other status.
    pub fn other(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Failure {
        Failure::new(status, kind, message)
    }

    /// The same, counted as a limit that was reached.
    pub fn hit(mut self, limit: Limit) -> Failure {
        self.limit = Some(limit);
        self
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Failure {
        let text = error.to_string();
        match error {
            store::Error::SeriesDropped => Failure::unavailable(text),
            store::Error::Damaged { .. } | store::Error::NoRoom { .. } => {
                Failure { retry_after: Some(30), ..Failure::unavailable(text) }
            }
            store::Error::HeadFull { .. } => Failure::unavailable(text).hit(Limit::HeadSize),
            store::Error::ReadOnly { .. }
            | store::Error::Wal(wal::Error::Latched { .. } | wal::Error::Closed) => {
                Failure { retry_after: Some(30), ..Failure::unavailable(text).hit(Limit::ReadOnly) }
            }
            store::Error::Wal(wal::Error::Busy { .. }) => Failure::unavailable(text),
            store::Error::NewSeriesRefused { .. } => {
                Failure { retry_after: Some(5), ..Failure::unavailable(text) }
            }
            store::Error::LimitExceeded { limit: store::Limit::Series, .. } => {
                Failure::execution(text).hit(Limit::QuerySeries)
            }
            store::Error::LimitExceeded { .. } => Failure::execution(text).hit(Limit::Other),
            store::Error::Invalid(_) => Failure::bad_data(text),
            store::Error::DeadlineExceeded => Failure::timeout(text),
            _ => Failure::internal(text),
        }
    }
}

/// How a family of doors words its failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// `{"status":"error","errorType":...,"error":...}`
    Prometheus,
    /// `{"error":...}`
    InfluxV1,
    /// `{"code":...,"message":...}`
    InfluxV2,
    /// The sentence alone: what remote write's senders log.
    Plain,
}

impl Wording {
    /// The answer that tells of a failure.
    pub fn answer(self, failure: &Failure) -> Answer {
        let message = &failure.message;
        let (content_type, body) = match self {
            Wording::Prometheus => (
                JSON,
                serde_json::json!({
                    "status": "error", "errorType": failure.kind, "error": message,
                })
                .to_string(),
            ),
            Wording::InfluxV1 => (JSON, serde_json::json!({ "error": message }).to_string()),
            Wording::InfluxV2 => (
                JSON,
                serde_json::json!({ "code": influx_code(failure.status), "message": message })
                    .to_string(),
            ),
            Wording::Plain => (TEXT, format!("{message}\n")),
        };
        let mut answer = Answer::bytes(failure.status, content_type, body.into_bytes());
        if let Some(seconds) = failure.retry_after {
            answer = answer.with_header("retry-after", seconds.to_string());
        }
        if self == Wording::InfluxV1 {
            // Influx' clients log this one; header values hold no line ends.
            let line: String = message
                .chars()
                .map(|c| if c.is_ascii_graphic() { c } else { ' ' })
                .take(512)
                .collect();
            answer = answer.with_header("x-influxdb-error", line);
        }
        answer
    }
}

/// InfluxDB 2's words for statuses.
fn influx_code(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 422 => "invalid",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not found",
        405 => "method not allowed",
        413 => "request too large",
        415 => "unsupported media type",
        503 => "unavailable",
        _ => "internal error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wording: Wording, failure: &Failure, expected: &str) {
        let Content::Bytes(bytes) = wording.answer(failure).content else { panic!("bytes") };
        assert_eq!(String::from_utf8(bytes).expect("text"), expected);
    }

    #[test]
    fn wordings() {
        let failure = Failure::bad_data("no \"x\"");
        check(
            Wording::Prometheus,
            &failure,
            r#"{"error":"no \"x\"","errorType":"bad_data","status":"error"}"#,
        );
        check(Wording::InfluxV1, &failure, r#"{"error":"no \"x\""}"#);
        check(Wording::InfluxV2, &failure, r#"{"code":"invalid","message":"no \"x\""}"#);
        check(Wording::Plain, &failure, "no \"x\"\n");
    }

    #[test]
    fn a_store_that_cannot_write_now_is_never_a_client_error() {
        let full = Failure::from(store::Error::HeadFull { size: 2, max: 1 });
        assert_eq!((full.status.as_u16(), full.retry_after), (503, Some(1)));
        let busy = wal::Error::Busy { pending_size: 3, record_size: 2, max: 4 };
        let latched = wal::Error::Latched { reason: "a failed sync".into() };
        for error in [
            store::Error::ReadOnly { reason: "disk".into() },
            store::Error::NewSeriesRefused { count: 2, reason: "no memory".into() },
            store::Error::Wal(busy),
            store::Error::Wal(latched),
            store::Error::Wal(wal::Error::Closed),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.status.as_u16(), 503, "{}", failure.message);
            assert!(failure.retry_after.is_some(), "{}", failure.message);
        }
    }
}
