//! `name{label="value",…}` to labels, when the store meets it for the first time.

use crate::extra_labels::ExtraLabels;
use model::{KeyDecoder, LabelError, LabelsBuilder, METRIC_NAME};
use std::borrow::Cow;

/// Decodes the keys of one request.
#[derive(Clone, Debug)]
pub struct ExpositionKeys {
    extra: ExtraLabels,
    context: Vec<u8>,
}

impl ExpositionKeys {
    /// Keys that get the extra labels, such as those in a Pushgateway's path.
    pub fn new(extra: ExtraLabels) -> ExpositionKeys {
        let context = extra.context("exposition");
        ExpositionKeys { extra, context }
    }

    pub(super) fn context(&self) -> &[u8] {
        &self.context
    }
}

impl KeyDecoder for ExpositionKeys {
    fn tags(&self, key: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError> {
        let mut cursor = Cursor::new(key)?;
        cursor.leading_name()?;
        cursor.braces(|name, value| {
            if name != METRIC_NAME {
                tags.push(name, value);
            }
            Ok(())
        })?;
        self.extra.complete(tags)
    }

    fn metric_name(&self, key: &[u8], _field: &str, name: &mut String) -> Result<(), LabelError> {
        let mut cursor = Cursor::new(key)?;
        name.push_str(cursor.leading_name()?);
        cursor.braces(|label, value| match label {
            METRIC_NAME if !name.is_empty() => Err(LabelError::Duplicate(METRIC_NAME.to_string())),
            METRIC_NAME => {
                name.push_str(value);
                Ok(())
            }
            _ => Ok(()),
        })?;
        if name.is_empty() { Err(LabelError::MissingMetricName) } else { Ok(()) }
    }
}

/// Calls `take` with each label of `{name="value",…}`.
pub(super) fn labels(
    text: &[u8],
    take: impl FnMut(&str, &str) -> Result<(), LabelError>,
) -> Result<(), LabelError> {
    Cursor::new(text)?.braces(take)
}

/// A metric's name in a key, and what tells it from others of its family: all labels, by name, but
/// `le` and `quantile`.
pub(super) fn metric_of(key: &[u8]) -> Result<(String, Vec<(String, String)>), LabelError> {
    let mut cursor = Cursor::new(key)?;
    let mut name = cursor.leading_name()?.to_string();
    let mut labels = Vec::new();
    cursor.braces(|label, value| {
        match label {
            METRIC_NAME => name.push_str(value),
            "le" | "quantile" => {}
            _ => labels.push((label.to_string(), value.to_string())),
        }
        Ok(())
    })?;
    labels.sort_unstable();
    Ok((name, labels))
}

/// Reads a key from left to right.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn new(key: &'a [u8]) -> Result<Cursor<'a>, LabelError> {
        let rest = std::str::from_utf8(key).map_err(|_| LabelError::InvalidUtf8("series"))?;
        Ok(Cursor { rest })
    }

    /// The name before the braces; empty when they come first.
    fn leading_name(&mut self) -> Result<&'a str, LabelError> {
        let (name, _) = self.rest.split_at(self.rest.find('{').unwrap_or(self.rest.len()));
        self.rest = self.rest.get(name.len()..).unwrap_or_default();
        let name = name.trim_ascii_end();
        if name.is_empty() || is_plain_name(name) {
            return Ok(name);
        }
        Err(LabelError::Refused(format!("invalid metric name {name:?}")))
    }

    /// Calls `take` with each label in braces; a quoted name alone is the metric's.
    fn braces(
        &mut self,
        mut take: impl FnMut(&str, &str) -> Result<(), LabelError>,
    ) -> Result<(), LabelError> {
        if !self.eat('{') {
            return Ok(());
        }
        while !self.eat('}') {
            let is_quoted = self.rest.starts_with('"');
            let name = if is_quoted { self.quoted()? } else { Cow::Borrowed(self.word()?) };
            if self.eat('=') {
                let value = self.quoted()?;
                if name.is_empty() {
                    return Err(LabelError::EmptyName);
                }
                take(&name, &value)?;
            } else if is_quoted {
                take(METRIC_NAME, &name)?;
            } else {
                return Err(self.expected("'='"));
            }
            if !self.eat(',') && !self.rest.starts_with('}') {
                return Err(self.expected("',' or '}'"));
            }
        }
        if self.rest.is_empty() { Ok(()) } else { Err(self.expected("nothing")) }
    }

    /// Takes `character` if it is next, and the white space around it.
    fn eat(&mut self, character: char) -> bool {
        let rest = self.rest.trim_ascii_start();
        match rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest.trim_ascii_start();
                true
            }
            None => false,
        }
    }

    /// A label name without quotes.
    fn word(&mut self) -> Result<&'a str, LabelError> {
        let is_end = |c: char| matches!(c, '=' | ',' | '}' | '{' | '"') || c.is_ascii_whitespace();
        let (word, rest) = self.rest.split_at(self.rest.find(is_end).unwrap_or(self.rest.len()));
        if !is_plain_name(word) {
            return Err(LabelError::Refused(format!("invalid label name {word:?}")));
        }
        self.rest = rest;
        Ok(word)
    }

    /// A quoted text; `\\`, `\"` and `\n` are escapes, other backslashes stand for themselves.
    fn quoted(&mut self) -> Result<Cow<'a, str>, LabelError> {
        let Some(text) = self.rest.strip_prefix('"') else {
            return Err(self.expected("'\"'"));
        };
        let Some(end) = closing_quote(text.as_bytes()) else {
            return Err(self.expected("a closing '\"'"));
        };
        let (quoted, rest) = text.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default().trim_ascii_start();
        Ok(unescape(quoted))
    }

    fn expected(&self, what: &str) -> LabelError {
        let near: String = self.rest.chars().take(20).collect();
        LabelError::Refused(format!("expected {what} in labels near {near:?}"))
    }
}

/// Where the text's closing quote is, the opening one being left out.
pub(super) fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

/// Replaces the escapes of label values and help texts.
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => plain.push('\n'),
            Some(escaped @ ('\\' | '"')) => plain.push(escaped),
            Some(other) => plain.extend(['\\', other]),
            None => plain.push('\\'),
        }
    }
    Cow::Owned(plain)
}

/// Whether a name may stand without quotes: beyond Prometheus' own characters, such as dots and
/// letters of any language are taken as other tools send them; digits may not come first.
fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '.' | '-' | '/');
    name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == ':')
        && name.chars().all(is_plain)
}
