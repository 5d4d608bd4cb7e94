//! A request as doors see it: parameters decoded, body whole, clock read once.

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName};
use model::Timestamp;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The decoded parameters of a query string, then those of a form, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    pairs: Vec<(String, String)>,
}

impl Params {
    /// Decodes `a=1&b=%20+`; a piece without `=` is a name with an empty value.
    pub fn parse(text: &str) -> Params {
        let mut params = Params::default();
        params.append(text.as_bytes());
        params
    }

    /// Decodes more, as a form's body holds them.
    pub fn append(&mut self, bytes: &[u8]) {
        for piece in bytes.split(|byte| *byte == b'&').filter(|piece| !piece.is_empty()) {
            let equals = piece.iter().position(|byte| *byte == b'=').unwrap_or(piece.len());
            let value = piece.get(equals + 1..).unwrap_or_default();
            self.pairs.push((decode_form(&piece[..equals]), decode_form(value)));
        }
    }

    /// The first value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The first value of `name` that is not empty.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.all(name).find(|value| !value.is_empty())
    }

    /// Every value of `name`.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn decode_form(bytes: &[u8]) -> String {
    let spaced: Vec<u8> = bytes.iter().map(|b| if *b == b'+' { b' ' } else { *b }).collect();
    decode_percent(&spaced).into_owned()
}

/// Replaces `%41` by `A`; what is no such triple stays; bytes that are no UTF-8 are replaced.
pub fn decode_percent(bytes: &[u8]) -> Cow<'_, str> {
    if !bytes.contains(&b'%') {
        return String::from_utf8_lossy(bytes);
    }
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..2).filter(|_| *first == b'%').and_then(hex_pair);
        decoded.push(digits.unwrap_or(*first));
        rest = if digits.is_some() { &tail[2..] } else { tail };
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

fn hex_pair(digits: &[u8]) -> Option<u8> {
    let high = char::from(digits[0]).to_digit(16)?;
    let low = char::from(digits[1]).to_digit(16)?;
    Some((high * 16 + low) as u8)
}

/// One request, its body received.
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: Method,
    /// What the route's pattern captured, percent-decoding not yet undone.
    pub captured: String,
    /// Query string and form.
    pub params: Params,
    /// All headers.
    pub headers: HeaderMap,
    /// The body as sent; empty when it was a form.
    pub body: Vec<u8>,
    /// Wall clock when the head arrived.
    pub now: Timestamp,
    /// Monotonic clock when the head arrived.
    pub started: Instant,
    /// Who sent it, if it came over a socket.
    pub peer: Option<SocketAddr>,
    /// Set once the client is gone, or somebody kills the query.
    pub cancelled: Arc<AtomicBool>,
}

impl Request {
    /// A header's text, empty when absent or not ASCII.
    pub fn header(&self, name: HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params() {
        let params = Params::parse("query=a%2Bb+c&match[]=x&match%5B%5D=y&empty&=v&&bad=%zz%4");
        assert_eq!(params.get("query"), Some("a+b c"));
        assert_eq!(params.all("match[]").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(params.get("empty"), Some(""));
        assert_eq!(params.filled("empty"), None);
        assert_eq!(params.get("bad"), Some("%zz%4"));
        assert_eq!(params.get("missing"), None);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_panic() {
        assert_eq!(decode_percent(b"%ff%"), "\u{fffd}%");
        assert_eq!(decode_percent("ä".as_bytes()), "ä");
    }
}
