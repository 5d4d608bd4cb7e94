//! Lines of both formats to rows.

use super::created::{Created, CreatedLines};
use super::keys::{ExpositionKeys, closing_quote, unescape};
use super::scan::{Fault, key_end, millis, seconds, split_word, value};
use super::{HELP_SIZE_MAX, KEY_SIZE_MAX, METADATA_MAX, exemplars};
use crate::Error;
use crate::decoded::{Decoded, Growing, ROWS_PER_BATCH, Start, check_body_size};
use crate::narrow::body_offset;
use model::limits::{BATCH_EXEMPLARS_MAX, BATCH_ROWS_MAX, LINE_SIZE_MAX};
use model::{ExemplarRow, KeyHasher, Metadata, MetricKind, Row, Shape, Timestamp};
use std::borrow::Cow;
use std::collections::HashMap;

/// Which of the two formats a body is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `text/plain; version=0.0.4`: milliseconds.
    #[default]
    Text,
    /// `application/openmetrics-text`: seconds, `# UNIT`, `# EOF`, exemplars.
    OpenMetrics,
}

impl Format {
    /// The format that a `Content-Type` names.
    pub fn of_content_type(content_type: &str) -> Format {
        let media_type = content_type.split(';').next().unwrap_or("").trim();
        match media_type.eq_ignore_ascii_case("application/openmetrics-text") {
            true => Format::OpenMetrics,
            false => Format::Text,
        }
    }
}

/// What a request says besides its body.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The format.
    pub format: Format,
    /// The time of samples that have none.
    pub now: Timestamp,
    /// What `_created` lines of OpenMetrics become.
    pub created: Created,
}

/// Decodes lines from `start` on, until the body or the batch is full ([`Decoded::rest`]).
///
/// # Errors
/// Only when the body is larger than [`model::limits::BODY_SIZE_MAX`]; bad lines are in
/// [`Decoded::errors`].
pub fn decode<'a>(
    body: &'a [u8],
    start: Start,
    options: &Options,
    hasher: &KeyHasher,
    keys: &'a ExpositionKeys,
) -> Result<Decoded<'a>, Error> {
    check_body_size(body)?;
    let fields: Vec<Box<str>> = vec!["".into()];
    let shape_hash = hasher.shape(keys.context(), &fields);
    let mut grown = Growing::default();
    grown.shapes.push(Shape { fields, hash: shape_hash });
    let families = HashMap::new();
    let created = CreatedLines::new(options, body.get(..start.offset).unwrap_or_default());
    let mut lines = Lines { body, options, hasher, shape_hash, grown, families, created };
    let rest = lines.decode(start);
    let decoded = lines.grown.finish(Cow::Borrowed(body), keys, rest);
    Ok(Decoded { context: keys.context(), ..decoded })
}

/// The state between lines.
struct Lines<'a, 'h> {
    body: &'a [u8],
    options: &'h Options,
    hasher: &'h KeyHasher,
    shape_hash: u64,
    grown: Growing,
    /// Where each family's metadata are.
    families: HashMap<String, usize>,
    created: CreatedLines,
}

/// A sample's line, taken apart.
pub(super) struct Parts<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: f64,
    pub(super) timestamp: Timestamp,
    /// What stands behind the `#` of an exemplar.
    exemplar: Option<&'a [u8]>,
}

impl Lines<'_, '_> {
    fn decode(&mut self, start: Start) -> Option<Start> {
        let body = self.body;
        let (mut at, mut line) = (start.offset, start.line);
        while at < body.len() {
            let rest = body.get(at..).unwrap_or_default();
            let end = at + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            if self.is_full(body.get(at..end).unwrap_or_default()) {
                self.created.end_metric(&mut self.grown);
                return Some(Start { offset: at, line });
            }
            let is_last = self.line(at, end, line);
            at = end + 1;
            line = line.saturating_add(1);
            if is_last {
                self.refuse_rest(at, line);
                break;
            }
        }
        self.created.end_metric(&mut self.grown);
        None
    }

    /// Whether the batch ends before this line: not between samples and their `_created` line.
    fn is_full(&self, next: &[u8]) -> bool {
        let rows = self.grown.rows.len();
        let is_full = ROWS_PER_BATCH <= rows || BATCH_EXEMPLARS_MAX <= self.grown.exemplars.len();
        is_full && (BATCH_ROWS_MAX <= rows || !self.created.has_begun(next))
    }

    /// Decodes the line between two bytes of the body; true when it is `# EOF`.
    fn line(&mut self, start: usize, end: usize, line: u32) -> bool {
        let text = self.body.get(start..end).unwrap_or_default();
        let trimmed = text.trim_ascii_start();
        let start = end - trimmed.len();
        let text = trimmed.trim_ascii_end();
        match text.first() {
            None => return false,
            Some(b'#') => {
                let is_eof = text == b"# EOF" && self.options.format == Format::OpenMetrics;
                self.comment(text);
                return is_eof;
            }
            Some(_) => {}
        }
        self.grown.counts.lines += 1;
        match sample(text, self.options) {
            Ok(parts) if self.created.takes(parts.key, parts.value, &mut self.grown) => {}
            Ok(parts) => self.row(start, line, &parts),
            Err(fault) => self.grown.errors.push(line, || {
                let start = text.get(..text.len().min(100)).unwrap_or_default();
                format!("cannot parse {:?}: {fault}", String::from_utf8_lossy(start))
            }),
        }
        false
    }

    fn row(&mut self, start: usize, line: u32, parts: &Parts<'_>) {
        let values_start = body_offset(self.grown.values.len());
        self.grown.values.push(parts.value);
        let row = Row {
            hash: self.hasher.hash(parts.key, self.shape_hash),
            timestamp: parts.timestamp,
            key_offset: body_offset(start),
            key_size: body_offset(parts.key.len()),
            shape: 0,
            values_start,
            position: line,
        };
        self.grown.rows.push(row);
        if let Some(text) = parts.exemplar {
            self.exemplar(row, text);
        }
    }

    /// Reads the exemplar of a row; a bad one is told, its sample is kept.
    #[cold]
    fn exemplar(&mut self, row: Row, text: &[u8]) {
        match exemplars::read(text, row.timestamp) {
            Ok(exemplar) => {
                let row = Row { timestamp: exemplar.timestamp, ..row };
                self.grown.exemplars.push(ExemplarRow { row, exemplar, may_be_first: false });
            }
            Err(reason) => {
                self.grown.counts.exemplars += 1;
                let told = || format!("the sample is stored, its exemplar is not: {reason}");
                self.grown.errors.push(row.position, told);
            }
        }
    }

    /// `# EOF` is the end; what follows but white space is one error.
    fn refuse_rest(&mut self, at: usize, line: u32) {
        if !self.body.get(at..).unwrap_or_default().trim_ascii().is_empty() {
            self.grown.errors.push(line, || Fault::BehindEof.to_string());
        }
    }

    /// Takes `# HELP`, `# TYPE` and `# UNIT`; other comments are nothing.
    fn comment(&mut self, text: &[u8]) {
        let Some((keyword, metric, rest)) = comment(text) else { return };
        if keyword == "TYPE" {
            self.created.begin_family(&metric, MetricKind::parse(rest), &mut self.grown);
        }
        let Some(metadata) = self.family(&metric) else { return };
        match keyword {
            "TYPE" => metadata.kind = MetricKind::parse(rest),
            "UNIT" => metadata.unit = shorten(rest),
            _ => metadata.help = shorten(&unescape(rest)),
        }
    }

    /// The metadata of a family, new or known; `None` when there are too many.
    fn family(&mut self, metric: &str) -> Option<&mut Metadata> {
        let idx = match self.families.get(metric) {
            Some(&idx) => idx,
            None if METADATA_MAX <= self.grown.metadata.len() => return None,
            None => {
                let idx = self.grown.metadata.len();
                self.families.insert(metric.to_string(), idx);
                let metric = metric.to_string();
                self.grown.metadata.push(Metadata { metric, ..Metadata::default() });
                idx
            }
        };
        self.grown.metadata.get_mut(idx)
    }
}

/// Splits `# HELP name rest`, or `TYPE` or `UNIT`; other comments are nothing.
pub(super) fn comment(text: &[u8]) -> Option<(&str, Cow<'_, str>, &str)> {
    let text = std::str::from_utf8(text).ok()?.strip_prefix('#')?.trim_ascii_start();
    let (keyword, rest) = text.split_once([' ', '\t'])?;
    if !matches!(keyword, "HELP" | "TYPE" | "UNIT") {
        return None;
    }
    let (metric, rest) = family_name(rest.trim_ascii_start())?;
    Some((keyword, metric, rest))
}

/// Splits `name rest` or `"name" rest`.
fn family_name(text: &str) -> Option<(Cow<'_, str>, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let end = closing_quote(quoted.as_bytes())?;
        let name = unescape(quoted.get(..end)?);
        return Some((name, quoted.get(end + 1..)?.trim_ascii_start()));
    }
    let (name, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (!name.is_empty()).then_some((Cow::Borrowed(name), rest.trim_ascii_start()))
}

fn shorten(text: &str) -> String {
    let end = (0..=HELP_SIZE_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default().to_string()
}

/// Takes a sample's line apart, without white space at its ends.
pub(super) fn sample<'a>(text: &'a [u8], options: &Options) -> Result<Parts<'a>, Fault> {
    if LINE_SIZE_MAX < text.len() {
        return Err(Fault::LineTooLong(text.len()));
    }
    let key_end = key_end(text)?;
    let key = text.get(..key_end).unwrap_or_default();
    if KEY_SIZE_MAX < key.len() {
        return Err(Fault::KeyTooLong(key.len()));
    }
    let rest = text.get(key_end..).unwrap_or_default().trim_ascii_start();
    let (value_text, rest) = split_word(rest);
    if value_text.is_empty() {
        return Err(Fault::MissingValue);
    }
    let value = value(value_text).ok_or(Fault::InvalidValue)?;
    let (time_text, rest) = match rest.first() {
        None | Some(b'#') => (&b""[..], rest),
        Some(_) => split_word(rest),
    };
    let timestamp = match (time_text, options.format) {
        (b"", _) => options.now,
        (text, Format::Text) => millis(text)?,
        (text, Format::OpenMetrics) => seconds(text)?,
    };
    let exemplar = rest.strip_prefix(b"#");
    if !rest.is_empty() && exemplar.is_none() {
        return Err(Fault::Trailing);
    }
    Ok(Parts { key, value, timestamp, exemplar })
}
