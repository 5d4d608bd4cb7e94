//! Measurement and tags to labels, when the store meets them for the first time.

use super::long::LONG_SUFFIX;
use super::texts::{TEXT_SUFFIX, Texts};
use crate::extra_labels::ExtraLabels;
use model::{KeyDecoder, LabelError, LabelsBuilder, METRIC_NAME};
use std::fmt::Debug;
use std::sync::Arc;

/// Decodes the keys of one request.
///
/// The metric of a field is named `<measurement>_<field>`, with colons before the underscore where
/// [`FieldNames`] says so; labels are the tags, the database when
/// one is given, and the extra labels.
#[derive(Clone, Debug)]
pub struct InfluxKeys {
    extra: ExtraLabels,
    context: Vec<u8>,
    /// Where strings become numbers; without one they are left out.
    texts: Option<Arc<dyn Texts>>,
    /// Whether integers beyond float64 come with their low bits.
    keeps_longs: bool,
    escapes: Escapes,
    /// Names of fields whose measurement and field alone do not tell them apart.
    names: Option<Arc<dyn FieldNames>>,
}

/// Names of fields whose measurement and field, joined, are those of another, too.
pub trait FieldNames: Debug + Send + Sync {
    /// Colons between the measurement and the underscore before the field.
    fn colons(&self, measurement: &str, field: &str) -> u8;
}

/// How names and tag values stand in lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escapes {
    /// As clients write them: backslashes before what would end them.
    #[default]
    Backslashes,
    /// As this server writes lines for itself: `%` and two hexadecimal digits for each byte that means
    /// something in a line, so that there is a line for any name.
    Percent,
}

impl InfluxKeys {
    /// Keys that get the extra labels; the caller puts `db` among them where its users want it.
    pub fn new(extra: ExtraLabels) -> InfluxKeys {
        let context = extra.context("influx");
        let escapes = Escapes::default();
        InfluxKeys { extra, context, texts: None, keeps_longs: false, escapes, names: None }
    }

    /// The same for lines with other escapes.
    pub fn with_escapes(self, escapes: Escapes) -> InfluxKeys {
        let context = self.extra.context(match escapes {
            Escapes::Backslashes => "influx",
            Escapes::Percent => "influx by percent",
        });
        InfluxKeys { context, escapes, ..self }
    }

    /// The same for lines whose strings are numbers of a dictionary.
    pub fn with_texts(self, texts: Option<Arc<dyn Texts>>) -> InfluxKeys {
        InfluxKeys { texts, ..self }
    }

    /// Sets the metric names of fields whose measurement and field join ambiguously.
    pub fn with_names(self, names: Arc<dyn FieldNames>) -> InfluxKeys {
        InfluxKeys { names: Some(names), ..self }
    }

    /// The same for lines whose integers beyond 2^53 keep all of their bits ([`super::long`]): a row with
    /// the low bits comes before the line's own.
    pub fn with_long_integers(self) -> InfluxKeys {
        InfluxKeys { keeps_longs: true, ..self }
    }

    pub(super) fn keeps_longs(&self) -> bool {
        self.keeps_longs
    }

    pub(super) fn texts(&self) -> Option<&dyn Texts> {
        self.texts.as_deref()
    }

    pub(super) fn context(&self) -> &[u8] {
        &self.context
    }

    /// What a name or a tag's value stands for; backslashes stand before one of `special`.
    pub(super) fn unescape<'a>(
        &self,
        text: &'a [u8],
        special: &[u8],
        buffer: &'a mut String,
    ) -> Result<&'a str, LabelError> {
        match self.escapes {
            Escapes::Backslashes => unescape(text, special, buffer),
            Escapes::Percent => {
                *buffer = of_percent(text)?;
                Ok(buffer)
            }
        }
    }
}

impl KeyDecoder for InfluxKeys {
    fn tags(&self, key: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError> {
        let mut rest = tags_of(key);
        let (mut name_text, mut value_text) = (String::new(), String::new());
        while let Some(tag) = rest {
            let end = unescaped(tag, b',');
            rest = end.and_then(|end| tag.get(end + 1..));
            let pair = &tag[..end.unwrap_or(tag.len())];
            let (name, value) = split_tag(pair)?;
            let name = self.unescape(name, TAG_ESCAPES, &mut name_text)?;
            let value = self.unescape(value, TAG_ESCAPES, &mut value_text)?;
            if name == "time" || name == METRIC_NAME {
                let tag = format!("invalid tag key: input tag {name:?} is invalid");
                return Err(LabelError::Refused(tag));
            }
            tags.push(name, value);
        }
        self.extra.complete(tags).map_err(|_| refused("duplicate tags"))
    }

    fn metric_name(&self, key: &[u8], field: &str, name: &mut String) -> Result<(), LabelError> {
        let measurement = &key[..unescaped(key, b',').unwrap_or(key.len())];
        let mut text = String::new();
        let measurement = self.unescape(measurement, MEASUREMENT_ESCAPES, &mut text)?;
        name.push_str(measurement);
        if let Some(names) = &self.names {
            let plain = field.strip_suffix(TEXT_SUFFIX).or(field.strip_suffix(LONG_SUFFIX));
            let colons = names.colons(measurement, plain.unwrap_or(field));
            name.extend(std::iter::repeat_n(':', colons.into()));
        }
        name.push('_');
        name.push_str(field);
        Ok(())
    }
}

/// What may be escaped in a measurement.
pub(super) const MEASUREMENT_ESCAPES: &[u8] = b", =";
/// What may be escaped in tag names, tag values and field names.
pub(super) const TAG_ESCAPES: &[u8] = b", =";

/// The tags behind the measurement.
fn tags_of(key: &[u8]) -> Option<&[u8]> {
    unescaped(key, b',').and_then(|comma| key.get(comma + 1..))
}

fn refused(reason: &str) -> LabelError {
    LabelError::Refused(reason.to_string())
}

/// The two sides of a tag's `=`.
fn split_tag(pair: &[u8]) -> Result<(&[u8], &[u8]), LabelError> {
    let Some(equals) = unescaped(pair, b'=') else {
        return Err(refused(if pair.is_empty() { "missing tag key" } else { "missing tag value" }));
    };
    let (name, value) = (&pair[..equals], &pair[equals + 1..]);
    if name.is_empty() {
        return Err(refused("missing tag key"));
    }
    if value.is_empty() {
        return Err(refused("missing tag value"));
    }
    match unescaped(value, b'=') {
        Some(_) => Err(refused("invalid tag format")),
        None => Ok((name, value)),
    }
}

/// Where `separator` first stands without a backslash before it.
pub(super) fn unescaped(text: &[u8], separator: u8) -> Option<usize> {
    memchr::memchr_iter(separator, text).find(|&at| at == 0 || text[at - 1] != b'\\')
}

/// Takes the backslashes away before those of `escapes`; other backslashes stand for themselves.
pub(super) fn unescape<'a>(
    text: &'a [u8],
    escapes: &[u8],
    buffer: &'a mut String,
) -> Result<&'a str, LabelError> {
    let text = std::str::from_utf8(text).map_err(|_| LabelError::InvalidUtf8("tags"))?;
    if !text.contains('\\') {
        return Ok(text);
    }
    buffer.clear();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_escape = character == '\\'
            && characters
                .peek()
                .is_some_and(|next| escapes.iter().any(|e| char::from(*e) == *next));
        if !is_escape {
            buffer.push(character);
        }
    }
    Ok(buffer)
}

/// What [`Escapes::Percent`] stands for.
pub(super) fn of_percent(text: &[u8]) -> Result<String, LabelError> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk().filter(|_| *first == b'%');
        let escaped =
            digits.and_then(|[high, low]| Some(hex_digit(*high)? * 16 + hex_digit(*low)?));
        out.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(out).map_err(|_| LabelError::InvalidUtf8("tags"))
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
