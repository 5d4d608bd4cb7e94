//! A request as doors see it: parameters decoded, body whole, clock read once.

pub mod body;
pub mod form_body;
pub mod label_filters;
pub mod parameters;
pub mod request_target;
pub mod selection;
pub mod unpack;

use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use model::{Matcher, Timestamp};
use net::failure::Failure;
use net::telemetry::Limit;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Parameters of a form: each takes some fifty bytes of memory besides its text, which may be one
/// byte and is all that the share of the memory for bodies covers.
pub const FORM_PARAMETERS_MAX: usize = 64 << 10;

/// The decoded parameters of a query string, then those of a form, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    pairs: Vec<(String, String)>,
    /// Number of pairs of the query string; the others are of a form.
    url_count: usize,
    /// Pairs that Go's parser refuses, with the words of the first one.
    malformed: Vec<usize>,
    fault: Option<String>,
}

impl Params {
    /// Decodes `a=1&b=%20+`; a piece without `=` is a name with an empty value. Where it comes from,
    /// in the head of a request, there is no room for very many.
    pub fn parse(text: &str) -> Params {
        let mut params = Params::default();
        params.push_all(text.as_bytes());
        params.url_count = params.pairs.len();
        params
    }

    /// Decodes more, as a form's body holds them.
    ///
    /// # Errors
    /// [`net::failure::Kind::TooLarge`] for more than [`FORM_PARAMETERS_MAX`].
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let count = 1 + bytes.iter().filter(|byte| **byte == b'&').count();
        if FORM_PARAMETERS_MAX < count {
            let message = format!("form of {count} parameters, the limit is {FORM_PARAMETERS_MAX}");
            return Err(Failure::too_large(Limit::BodySize, message));
        }
        self.push_all(bytes);
        Ok(())
    }

    fn push_all(&mut self, bytes: &[u8]) {
        for piece in bytes.split(|byte| *byte == b'&').filter(|piece| !piece.is_empty()) {
            let equals = piece.iter().position(|byte| *byte == b'=').unwrap_or(piece.len());
            let value = piece.get(equals + 1..).unwrap_or_default();
            if let Some(fault) = fault_of(piece) {
                self.malformed.push(self.pairs.len());
                self.fault.get_or_insert(fault);
            }
            self.pairs.push((decode_form(&piece[..equals]), decode_form(value)));
        }
    }

    /// Adds a parameter of a form in parts.
    pub(super) fn push_part(&mut self, name: &str, value: &str) {
        self.pairs.push((name.to_string(), value.to_string()));
    }

    /// Adds a parameter that stands for the path of the request, before all others.
    pub(super) fn push_first(&mut self, name: &str, value: &str) {
        self.pairs.insert(0, (name.to_string(), value.to_string()));
        self.url_count += 1;
        self.malformed.iter_mut().for_each(|idx| *idx += 1);
    }

    /// The reason why some text is no parameter, in the words of Go's parser.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Names of malformed parameters.
    pub(super) fn malformed_names(&self) -> impl Iterator<Item = &str> {
        self.malformed.iter().map(|idx| self.pairs[*idx].0.as_str())
    }

    /// Removes what is no parameter.
    pub(super) fn drop_malformed(&mut self) {
        for idx in std::mem::take(&mut self.malformed).into_iter().rev() {
            self.pairs.remove(idx);
            self.url_count -= usize::from(idx < self.url_count);
        }
    }

    /// The first value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The first value of `name`, unless it is empty.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Every value of `name`: those of the query string, and those of a form.
    pub fn by_source<'a>(&'a self, name: &'a str) -> [impl Iterator<Item = &'a str>; 2] {
        let (url, form) = self.pairs.split_at(self.url_count);
        [url, form].map(|pairs| {
            pairs.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
        })
    }

    /// Every value of `name`.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The reason why Go's parser takes no parameter from a piece, if it does not.
fn fault_of(piece: &[u8]) -> Option<String> {
    if !piece.iter().any(|byte| matches!(byte, b'%' | b';')) {
        return None;
    }
    if piece.contains(&b';') {
        return Some("invalid semicolon separator in query".to_string());
    }
    let is_malformed = |at: &usize| {
        let pair = (piece.get(at + 1), piece.get(at + 2));
        let is_pair = matches!(pair, (Some(high), Some(low)) if hex_pair(*high, *low).is_some());
        piece[*at] == b'%' && !is_pair
    };
    let at = (0..piece.len()).find(is_malformed)?;
    let text = String::from_utf8_lossy(&piece[at..piece.len().min(at + 3)]).into_owned();
    Some(format!("invalid URL escape {text:?}"))
}

fn decode_form(bytes: &[u8]) -> String {
    if !bytes.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    decode(bytes, b' ')
}

/// Replaces `%41` by `A`; what is no such triple stays; bytes that are no UTF-8 are replaced.
pub fn decode_percent(bytes: &[u8]) -> Cow<'_, str> {
    if !bytes.contains(&b'%') {
        return String::from_utf8_lossy(bytes);
    }
    Cow::Owned(decode(bytes, b'+'))
}

/// Replaces triples, and each `+` by what it stands for.
fn decode(bytes: &[u8], plus: u8) -> String {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    // What stands between is most of a query's text, and copied as a whole.
    while let Some(special) = rest.iter().position(|byte| matches!(byte, b'%' | b'+')) {
        let (plain, tail) = rest.split_at(special);
        decoded.extend_from_slice(plain);
        let (byte, len) = match tail {
            [b'%', high, low, ..] => hex_pair(*high, *low).map_or((b'%', 1), |byte| (byte, 3)),
            [b'%', ..] => (b'%', 1),
            _ => (plus, 1),
        };
        decoded.push(byte);
        rest = &tail[len..];
    }
    decoded.extend_from_slice(rest);
    match String::from_utf8(decoded) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    Some(hex_digit(high)? * 16 + hex_digit(low)?)
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Filters of a request, each a conjunction; none of them: all series.
pub type LabelFilters = Arc<[Vec<Matcher>]>;

/// One request, its body received.
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: Method,
    /// What the route's pattern captured, percent-decoding not yet undone.
    pub captured: String,
    /// Query string and form.
    pub params: Params,
    /// Label filters that confine the request.
    pub filters: LabelFilters,
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

    /// Whether the body has this media type. Case and parameters do not count.
    pub fn has_media_type(&self, name: &str) -> bool {
        media_type(self.header(CONTENT_TYPE)).eq_ignore_ascii_case(name)
    }
}

/// A `Content-Type` without its parameters.
pub(super) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or("").trim()
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
        let params = Params::parse("a=&a=1&b=2&b=");
        assert_eq!((params.filled("a"), params.filled("b")), (None, Some("2")));
    }

    #[test]
    fn forms_have_a_number_of_parameters() {
        let mut params = Params::default();
        let most = vec![b'&'; FORM_PARAMETERS_MAX - 1];
        assert!(params.append(&most).is_ok() && params.append(b"a=1").is_ok());
        let failure = params.append(&[most, b"&".to_vec()].concat()).expect_err("one too many");
        assert!(failure.message.contains("65537 parameters"), "{failure}");
    }

    #[test]
    fn a_plus_is_a_space_in_forms_alone() {
        for (text, in_form, in_path) in [
            ("a+b%2B%20%2b", "a b+ +", "a+b+ +"),
            ("%+1", "% 1", "%+1"),
            ("%4%41%4", "%4A%4", "%4A%4"),
            ("%%41", "%A", "%A"),
            ("", "", ""),
        ] {
            assert_eq!(decode_form(text.as_bytes()), in_form);
            assert_eq!(decode_percent(text.as_bytes()), in_path);
        }
    }

    #[test]
    fn bytes_that_are_no_text_do_not_panic() {
        assert_eq!(decode_percent(b"%ff%"), "\u{fffd}%");
        assert_eq!(decode_percent("ä".as_bytes()), "ä");
        assert_eq!(decode_form(b"\xff+%FF%c3%A4"), "\u{fffd} \u{fffd}ä");
    }
}
