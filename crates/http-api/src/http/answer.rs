//! What a door over HTTP returns: an [`Answer`], or a [`Failure`], which gets a status here and is
//! worded as each family of doors does.

use hyper::StatusCode;
use net::failure::{Failure, Kind};
use std::io::{self, Write};

/// Bytes of an answer that is made whole before it is sent, at most: so it has a length, and is packed
/// only if that is worth it. What is longer is sent as it is written.
const WHOLE_SIZE_MAX: usize = 32 << 10;

/// Writes an answer piece by piece; called once, on a worker thread.
pub type StreamFn = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

/// Header that is decided when the head is sent.
pub type LateHeader = Box<dyn Fn() -> Option<(&'static str, &'static str)> + Send>;

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
    /// One that is decided when the head of a stream is sent.
    pub late_header: Option<LateHeader>,
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
        let content = Content::Bytes(bytes);
        Answer { status, content_type, headers: Vec::new(), late_header: None, content }
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
        let (status, content) = (StatusCode::OK, Content::Stream(write));
        Answer { status, content_type, headers: Vec::new(), late_header: None, content }
    }

    /// 200 with what `write` writes: whole if that is short, else as it is made. It is called twice then.
    pub fn written(
        content_type: &'static str,
        write: impl Fn(&mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Answer {
        match whole(WHOLE_SIZE_MAX, &write) {
            Some(bytes) => Answer::bytes(StatusCode::OK, content_type, bytes),
            None => Answer::stream(content_type, Box::new(write)),
        }
    }

    /// The same with one more header.
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }
}

/// What `write` writes, unless it is more than so many bytes.
pub fn whole(size_max: usize, write: impl Fn(&mut dyn Write) -> io::Result<()>) -> Option<Vec<u8>> {
    let mut short = Short { bytes: Vec::new(), size_max };
    write(&mut short).ok().map(|()| short.bytes)
}

/// Takes so many bytes and no more.
struct Short {
    bytes: Vec<u8>,
    size_max: usize,
}

impl Write for Short {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.size_max - self.bytes.len() < bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The status that says a kind of failure.
pub fn status_of(kind: Kind) -> StatusCode {
    match kind {
        Kind::BadInput => StatusCode::BAD_REQUEST,
        Kind::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
        Kind::UnknownEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::TooSlow => StatusCode::REQUEST_TIMEOUT,
        Kind::Unanswerable | Kind::Limit => StatusCode::UNPROCESSABLE_ENTITY,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::Unauthorized => StatusCode::UNAUTHORIZED,
        Kind::Forbidden => StatusCode::FORBIDDEN,
        Kind::Busy | Kind::ReadOnly | Kind::Damaged | Kind::Stopping | Kind::Timeout => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Kind::Canceled => {
            StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or(StatusCode::BAD_REQUEST)
        }
        Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// What a client that went away would be told, were it there: nginx' word for it.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Prometheus' word for a kind of failure, its `errorType`, or ours where it has none.
fn error_type(kind: Kind) -> &'static str {
    match kind {
        Kind::BadInput | Kind::WrongMethod | Kind::UnknownEncoding => "bad_data",
        Kind::TooLarge => "too_large",
        Kind::TooSlow | Kind::Timeout => "timeout",
        Kind::Unanswerable | Kind::Limit => "execution",
        Kind::NotFound => "not_found",
        Kind::Unauthorized => "unauthorized",
        Kind::Forbidden => "forbidden",
        Kind::Busy | Kind::ReadOnly | Kind::Damaged | Kind::Stopping => "unavailable",
        Kind::Canceled => "canceled",
        Kind::Internal => "internal",
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
    /// `{"error":...,"data":null}`
    InfluxV3,
    /// The sentence alone: what remote write's senders log.
    Plain,
}

impl Wording {
    /// The answer that tells of a failure.
    pub fn answer(self, failure: &Failure) -> Answer {
        let (message, status) = (failure.to_string(), status_of(failure.kind));
        let (content_type, body) = match self {
            Wording::Prometheus => (
                JSON,
                serde_json::json!({
                    "status": "error", "errorType": error_type(failure.kind), "error": message,
                })
                .to_string(),
            ),
            Wording::InfluxV1 => (JSON, serde_json::json!({ "error": message }).to_string()),
            Wording::InfluxV2 => (
                JSON,
                serde_json::json!({ "code": influx_code(status), "message": message }).to_string(),
            ),
            Wording::InfluxV3 => {
                (JSON, serde_json::json!({ "error": message, "data": null }).to_string())
            }
            Wording::Plain => (TEXT, format!("{message}\n")),
        };
        let mut answer = Answer::bytes(status, content_type, body.into_bytes());
        if let Some(time) = failure.retry_after {
            answer = answer.with_header("retry-after", time.as_secs().to_string());
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
        let failure = Failure::bad_input("no \"x\"");
        check(
            Wording::Prometheus,
            &failure,
            r#"{"error":"no \"x\"","errorType":"bad_data","status":"error"}"#,
        );
        check(Wording::InfluxV1, &failure, r#"{"error":"no \"x\""}"#);
        check(Wording::InfluxV2, &failure, r#"{"code":"invalid","message":"no \"x\""}"#);
        check(Wording::InfluxV3, &failure, r#"{"data":null,"error":"no \"x\""}"#);
        check(Wording::Plain, &failure, "no \"x\"\n");
    }

    #[test]
    fn what_passes_is_503_with_its_time() {
        let answer = Wording::Plain.answer(&Failure::busy("x").again_after(RETRY));
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers, [("retry-after", "7".to_string())]);
        let answer = Wording::Plain.answer(&Failure::new(Kind::Damaged, "x"));
        assert_eq!((answer.status.as_u16(), answer.headers.len()), (503, 0));
        assert_eq!(status_of(Kind::Canceled).as_u16(), 499);
    }

    /// The size of a whole answer, or of one that is streamed.
    fn size_of(size: usize) -> (bool, usize) {
        let written = Answer::written(TEXT, move |out| {
            (0..size)
                .step_by(1000)
                .try_for_each(|at| out.write_all(&vec![b'x'; (size - at).min(1000)]))
        });
        match written.content {
            Content::Bytes(bytes) => (true, bytes.len()),
            Content::Static(_) => panic!("written"),
            Content::Stream(write) => {
                let mut bytes = Vec::new();
                write(&mut bytes).expect("memory takes every byte");
                (false, bytes.len())
            }
        }
    }

    #[test]
    fn what_is_long_is_sent_as_it_is_written() {
        for size in [0, 1, WHOLE_SIZE_MAX - 1, WHOLE_SIZE_MAX] {
            assert_eq!(size_of(size), (true, size));
        }
        for size in [WHOLE_SIZE_MAX + 1, 1 << 20] {
            assert_eq!(size_of(size), (false, size));
        }
    }

    const RETRY: std::time::Duration = std::time::Duration::from_secs(7);
}
