//! `prometheus.ReadRequest`: what is asked for, and how the answer may look.

use super::{MATCHERS_MAX, QUERIES_MAX};
use crate::protobuf::{Message, Value, put_bytes, put_number};
use crate::{Error, Limit};
use model::sample::NANOS_PER_MILLI;
use model::{MatchOp, Matcher, TimeRange};

/// How the answer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseType {
    /// One message with all samples.
    Samples,
    /// Frames with chunks as Prometheus stores them.
    StreamedXorChunks,
}

/// One query of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadQuery {
    /// Whose samples: every matcher must hold.
    pub matchers: Vec<Matcher>,
    /// Samples of which time, to the end of the last millisecond.
    pub range: TimeRange,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// What is asked for.
    pub queries: Vec<ReadQuery>,
    /// The first answer on the client's list that we can give.
    pub response: ResponseType,
}

impl ReadRequest {
    /// Decodes an uncompressed request.
    ///
    /// # Errors
    /// The bytes are no such message, a limit is exceeded, or the client takes no answer of ours.
    pub fn decode(bytes: &[u8]) -> Result<ReadRequest, Error> {
        let mut queries = Vec::new();
        let mut accepted = Vec::new();
        let mut message = Message::new(bytes);
        while let Some((number, field)) = message.next_field()? {
            match (number, field) {
                (1, field) if queries.len() < QUERIES_MAX => queries.push(query(field.bytes()?)?),
                (1, _) => return Err(too_many(Limit::Queries, QUERIES_MAX)),
                (2, Value::Bytes(packed)) => {
                    let mut packed = Message::new(packed);
                    while !packed.is_done() {
                        accepted.push(packed.varint()?);
                    }
                }
                (2, _) => accepted.push(field.signed()? as u64),
                _ => {}
            }
        }
        Ok(ReadRequest { queries, response: negotiate(&accepted)? })
    }
}

impl ReadQuery {
    /// A request with this query alone, uncompressed, that takes frames with chunks and whole answers.
    pub fn to_request(&self) -> Vec<u8> {
        let (mut query, mut part) = (Vec::new(), Vec::new());
        put_number(&mut query, 1, self.range.start.div_euclid(NANOS_PER_MILLI) as u64);
        put_number(&mut query, 2, self.range.end.div_euclid(NANOS_PER_MILLI) as u64);
        for matcher in &self.matchers {
            part.clear();
            put_number(&mut part, 1, matcher.op as u64);
            put_bytes(&mut part, 2, matcher.name.as_bytes());
            put_bytes(&mut part, 3, matcher.value.as_bytes());
            put_bytes(&mut query, 3, &part);
        }
        let mut request = Vec::new();
        put_bytes(&mut request, 1, &query);
        // Packed, in the order of what is liked better.
        put_bytes(&mut request, 2, &[1, 0]);
        request
    }
}

fn negotiate(accepted: &[u64]) -> Result<ResponseType, Error> {
    if accepted.is_empty() {
        return Ok(ResponseType::Samples);
    }
    let known = accepted.iter().find_map(|number| match number {
        0 => Some(ResponseType::Samples),
        1 => Some(ResponseType::StreamedXorChunks),
        _ => None,
    });
    let unknown = || "accepted_response_types: known are SAMPLES and STREAMED_XOR_CHUNKS";
    known.ok_or_else(|| Error::Invalid(unknown().to_string()))
}

fn too_many(limit: Limit, max: usize) -> Error {
    Error::LimitExceeded { limit, value: max as u64 + 1, max: max as u64 }
}

fn query(bytes: &[u8]) -> Result<ReadQuery, Error> {
    let (mut start_ms, mut end_ms) = (0i64, 0i64);
    let mut matchers = Vec::new();
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 => start_ms = field.signed()?,
            2 => end_ms = field.signed()?,
            3 if matchers.len() < MATCHERS_MAX => matchers.push(matcher(field.bytes()?)?),
            3 => return Err(too_many(Limit::Matchers, MATCHERS_MAX)),
            _ => {}
        }
    }
    let start = start_ms.saturating_mul(NANOS_PER_MILLI);
    let end = end_ms.saturating_mul(NANOS_PER_MILLI).saturating_add(NANOS_PER_MILLI - 1);
    Ok(ReadQuery { matchers, range: TimeRange::new(start, end) })
}

fn matcher(bytes: &[u8]) -> Result<Matcher, Error> {
    let (mut op, mut name, mut value) = (MatchOp::Equal, String::new(), String::new());
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 => op = match_op(field.signed()?)?,
            2 => name = utf8(field.bytes()?)?,
            3 => value = utf8(field.bytes()?)?,
            _ => {}
        }
    }
    Ok(Matcher { name, op, value })
}

/// The text of a matcher. Nothing that is stored has other bytes.
fn utf8(bytes: &[u8]) -> Result<String, Error> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_string).map_err(|_| Error::malformed("matcher", 0, "UTF-8"))
}

fn match_op(number: i64) -> Result<MatchOp, Error> {
    match number {
        0 => Ok(MatchOp::Equal),
        1 => Ok(MatchOp::NotEqual),
        2 => Ok(MatchOp::Regex),
        3 => Ok(MatchOp::NotRegex),
        other => Err(Error::Invalid(format!("matcher type {other} is not known"))),
    }
}
