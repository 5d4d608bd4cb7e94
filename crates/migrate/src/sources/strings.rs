//! Strings of a Quipu: its export says them as texts, which its remote read does not.

pub use super::victoriametrics::{EXPORT_PATH, LINES_TYPE, Lines};
use crate::source::{Given, Sink};
use bytes::Bytes;
use cli::calendar::rfc3339;
use http_client::client::{Asked, Client, encode};
use hyper::Method;
use model::TimeRange;
use wire::json_lines::{StringLine, has_strings};

/// Hands on the strings of a time whose series these selectors choose; none of a server that has no strings.
///
/// # Errors
/// When the server does not answer, or `sink` fails.
pub fn read(
    client: &mut Client,
    selectors: &[String],
    range: &TimeRange,
    sink: &mut Sink<'_>,
) -> anyhow::Result<()> {
    let (start, end) = (encode(&rfc3339(range.start)), encode(&rfc3339(range.end)));
    let mut path = format!(
        "{EXPORT_PATH}?nolegacy=1&deny_partial_response=1&strings=only&start={start}&end={end}"
    );
    selectors.iter().for_each(|one| path.push_str(&format!("&match[]={}", encode(one))));
    let asked = Asked { method: Method::GET, path: &path, headers: &[], body: Bytes::new() };
    // One that does not know strings answers with numbers, which have come.
    let mut hand_on = |line: &[u8]| match has_strings(line) {
        true => sink(Given::Strings(StringLine::read(line)?)),
        false => Ok(()),
    };
    let mut lines = Lines::default();
    let reply = client.ask(&asked, &mut |bytes| lines.push(bytes, &mut hand_on))?;
    let empty = reply.check_empty(EXPORT_PATH, LINES_TYPE);
    reply.check(EXPORT_PATH)?;
    empty?;
    lines.end(&mut hand_on)
}
