//! The form of an answer: JSON, as one body or one for each series, or CSV; sent as it is written, as texts
//! of rows are shared and may be long.

use super::super::write::VERSION;
use super::is_on;
use crate::http::answer::{Answer, JSON, whole};
use crate::http::request::Request;
use hyper::StatusCode;
use influxql::{Answer as Rows, Epoch, Writer, csv_cell};
use serde_json::json;
use std::io::{self, Write};

const CSV: &str = "text/csv";
/// Rows of a piece of a chunked answer, unless the client says another number.
const CHUNK_ROWS: usize = 10_000;
/// Spaces of a level of a pretty answer.
const INDENT: usize = 4;

/// How a request wants its answer.
pub(super) struct Form {
    writer: Writer,
    kind: Kind,
}

enum Kind {
    Json,
    /// A body for each series, and for so many rows of one.
    Chunks(usize),
    Csv,
}

impl Form {
    /// What the request says.
    pub fn of(request: &Request) -> Form {
        let epoch = request.params.filled("epoch").map_or(Epoch::Text, Epoch::parse);
        let indent = if is_on(request, "pretty") { INDENT } else { 0 };
        let accept = request.headers.get("accept").and_then(|value| value.to_str().ok());
        let kind = match accept.unwrap_or_default().to_ascii_lowercase().as_str() {
            accept if is_csv(accept) => Kind::Csv,
            _ if is_on(request, "chunked") => {
                let size = request.params.get("chunk_size").and_then(|text| text.parse().ok());
                Kind::Chunks(size.filter(|size| *size != 0).unwrap_or(CHUNK_ROWS))
            }
            _ => Kind::Json,
        };
        Form { writer: Writer { epoch, indent }, kind }
    }

    /// The answer to a request that is none, with 400.
    pub fn refused(&self, error: &str) -> Answer {
        let body = match self.kind {
            Kind::Csv => format!("error\n{}\n", csv_cell(error)),
            Kind::Json | Kind::Chunks(_) => format!("{}\n", json!({ "error": error })),
        };
        let header = error.chars().map(|c| if c.is_control() { ' ' } else { c });
        let header: String = header.take(256).collect();
        Answer::bytes(StatusCode::BAD_REQUEST, self.content_type(), body.into_bytes())
            .with_header("x-influxdb-version", VERSION)
            .with_header("x-influxdb-error", header)
    }

    /// The answer, of which no more than a piece is there as text.
    pub fn answer(self, rows: Vec<Rows>) -> Answer {
        let content_type = self.content_type();
        headed(Answer::written(content_type, move |out| self.write(&rows, out)))
    }

    /// The answer for who may not wait until the client has taken it; none if it is more than so many
    /// bytes.
    pub fn whole(&self, rows: &[Rows], size_max: usize) -> Option<Answer> {
        let bytes = whole(size_max, |out| self.write(rows, out))?;
        Some(headed(Answer::bytes(StatusCode::OK, self.content_type(), bytes)))
    }

    fn content_type(&self) -> &'static str {
        match self.kind {
            Kind::Csv => CSV,
            Kind::Json | Kind::Chunks(_) => JSON,
        }
    }

    /// Whether the form has a place for messages.
    pub fn has_messages(&self) -> bool {
        !matches!(self.kind, Kind::Csv)
    }

    fn write(&self, rows: &[Rows], out: &mut dyn Write) -> io::Result<()> {
        match self.kind {
            Kind::Json => self.writer.body(rows, out),
            Kind::Chunks(rows_max) => self.writer.chunks(rows, rows_max, out),
            Kind::Csv => self.writer.csv(rows, out),
        }
    }
}

/// Whether an `Accept` header asks for CSV; the answer is `text/csv` for either name, as InfluxDB's.
fn is_csv(accept: &str) -> bool {
    ["application/csv", "text/csv"].iter().any(|kind| accept.starts_with(kind))
}

/// With the headers that clients look for.
fn headed(answer: Answer) -> Answer {
    answer.with_header("x-influxdb-version", VERSION).with_header("x-influxdb-build", "OSS")
}
