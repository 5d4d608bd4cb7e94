//! Escaping of names outside `[a-zA-Z_:][a-zA-Z0-9_:]*` for readers that cannot parse quoted names.
//!
//! The reader chooses a scheme by `escaping=` in its `Accept` header. Without one, names are escaped
//! with underscores, as Prometheus 3 does: a scraper that meets a quoted name and does not know it
//! drops the whole scrape.

use super::decode::Format;
use super::encode::{is_label_name, is_metric_name};
use model::{Labels, LabelsBuilder, METRIC_NAME};
use std::borrow::Cow;
use std::fmt::Write;

/// Escaping scheme of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameEscaping {
    /// Names stand in quotes.
    Quotes,
    /// Each other character is an underscore.
    #[default]
    Underscores,
    /// A dot is `_dot_`, an underscore two of them, and so is each other character.
    Dots,
    /// `U__` and the code point of each other character between underscores.
    Values,
}

impl NameEscaping {
    /// The scheme with this name in headers.
    pub fn parse(name: &str) -> Option<NameEscaping> {
        match name {
            "allow-utf-8" => Some(NameEscaping::Quotes),
            "underscores" => Some(NameEscaping::Underscores),
            "dots" => Some(NameEscaping::Dots),
            "values" => Some(NameEscaping::Values),
            _ => None,
        }
    }

    /// Escapes a name that needs quotes; others stay as they are.
    pub fn escape<'n>(self, name: &'n str, is_plain: fn(&str) -> bool) -> Cow<'n, str> {
        if self == NameEscaping::Quotes || name.is_empty() || is_plain(name) {
            return Cow::Borrowed(name);
        }
        let mut escaped = String::with_capacity(name.len() + 8);
        if self == NameEscaping::Values {
            escaped.push_str("U__");
        }
        for (offset, character) in name.char_indices() {
            // Inside of a name digits are plain, too.
            let mut one = [b'_', 0, 0, 0, 0];
            let len = 1 + character.encode_utf8(&mut one[1..]).len();
            let inside = std::str::from_utf8(&one[..len]).unwrap_or_default();
            let text = if offset == 0 { &inside[1..] } else { inside };
            let is_plain = is_plain(text);
            match (self, character) {
                (NameEscaping::Dots | NameEscaping::Values, '_') => escaped.push_str("__"),
                (NameEscaping::Dots, '.') => escaped.push_str("_dot_"),
                _ if is_plain => escaped.push(character),
                (NameEscaping::Dots, _) => escaped.push_str("__"),
                (NameEscaping::Values, _) => {
                    let _ = write!(escaped, "_{:x}_", u32::from(character));
                }
                _ => escaped.push('_'),
            }
        }
        Cow::Owned(escaped)
    }

    /// The labels with escaped names. Of names that become equal the second one gets an underscore:
    /// a label twice would make the reader drop everything.
    pub fn escape_labels<'l>(self, labels: &'l Labels) -> Cow<'l, Labels> {
        let is_plain = |(name, value): (&str, &str)| match name {
            METRIC_NAME => is_metric_name(value),
            _ => is_label_name(name),
        };
        if self == NameEscaping::Quotes || labels.iter().all(is_plain) {
            return Cow::Borrowed(labels);
        }
        let mut builder = LabelsBuilder::new();
        for (name, value) in labels.iter() {
            if name == METRIC_NAME {
                builder.push(METRIC_NAME, &self.escape(value, is_metric_name));
                continue;
            }
            let mut escaped = self.escape(name, is_label_name).into_owned();
            let is_taken = |builder: &LabelsBuilder, escaped: &str| {
                builder.get(escaped).is_some() || (escaped != name && labels.get(escaped).is_some())
            };
            while is_taken(&builder, &escaped) {
                escaped.push('_');
            }
            builder.push(&escaped, value);
        }
        Cow::Owned(builder.finish())
    }
}

/// A text format and the escaping of names in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextFormat {
    /// Lines of samples.
    pub format: Format,
    /// Version of the text format or of OpenMetrics.
    version: &'static str,
    /// Names.
    pub escaping: NameEscaping,
}

impl TextFormat {
    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        use NameEscaping::{Dots, Quotes, Underscores, Values};
        macro_rules! with_escaping {
            ($head:literal) => {
                match self.escaping {
                    Quotes => concat!($head, "; charset=utf-8; escaping=allow-utf-8"),
                    Underscores => concat!($head, "; charset=utf-8; escaping=underscores"),
                    Dots => concat!($head, "; charset=utf-8; escaping=dots"),
                    Values => concat!($head, "; charset=utf-8; escaping=values"),
                }
            };
        }
        match (self.format, self.version) {
            (Format::Text, "1.0.0") => with_escaping!("text/plain; version=1.0.0"),
            (Format::Text, _) => with_escaping!("text/plain; version=0.0.4"),
            (Format::OpenMetrics, "1.0.0") => {
                with_escaping!("application/openmetrics-text; version=1.0.0")
            }
            (Format::OpenMetrics, _) => {
                with_escaping!("application/openmetrics-text; version=0.0.1")
            }
        }
    }
}

/// Chooses format and escaping by an `Accept` header, as Prometheus does. `formats` are those that
/// can be written; the text format is always one.
pub fn negotiate(accept: &str, formats: &[Format]) -> TextFormat {
    let mut ranges: Vec<MediaRange<'_>> = accept.split(',').filter_map(media_range).collect();
    ranges.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    let mut chosen =
        TextFormat { format: Format::Text, version: "0.0.4", escaping: NameEscaping::default() };
    for range in ranges {
        chosen.escaping = range.escaping.unwrap_or(chosen.escaping);
        let is = |name: &str| range.name.eq_ignore_ascii_case(name);
        let (format, version) = match range.version {
            "" | "0.0.4" if is("text/plain") => (Format::Text, "0.0.4"),
            "1.0.0" if is("text/plain") => (Format::Text, "1.0.0"),
            "1.0.0" if is("application/openmetrics-text") => (Format::OpenMetrics, "1.0.0"),
            "" | "0.0.1" if is("application/openmetrics-text") => (Format::OpenMetrics, "0.0.1"),
            _ => continue,
        };
        if format == Format::Text || formats.contains(&format) {
            return TextFormat { format, version, ..chosen };
        }
    }
    chosen
}

/// One entry of an `Accept` header.
struct MediaRange<'a> {
    name: &'a str,
    version: &'a str,
    escaping: Option<NameEscaping>,
    quality: f64,
}

fn media_range(text: &str) -> Option<MediaRange<'_>> {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let mut range = MediaRange { name, version: "", escaping: None, quality: 1.0 };
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "q" => range.quality = value.parse().unwrap_or(1.0),
            "version" => range.version = value,
            "escaping" => range.escaping = NameEscaping::parse(value),
            _ => {}
        }
    }
    Some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of `EscapeName` of Prometheus' library.
    #[test]
    fn names_are_escaped_as_prometheus_does() {
        for (name, underscores, dots, values) in [
            ("up", "up", "up", "up"),
            ("no:escape_needed", "no:escape_needed", "no:escape_needed", "no:escape_needed"),
            (
                "mysystem.prod.west.cpu",
                "mysystem_prod_west_cpu",
                "mysystem_dot_prod_dot_west_dot_cpu",
                "U__mysystem_2e_prod_2e_west_2e_cpu",
            ),
            ("a.b_c", "a_b_c", "a_dot_b__c", "U__a_2e_b__c"),
            ("1a", "_a", "__a", "U___31_a"),
            ("mysystem prod", "mysystem_prod", "mysystem__prod", "U__mysystem_20_prod"),
            ("label with 😱", "label_with__", "label__with____", "U__label_20_with_20__1f631_"),
            ("花火", "__", "____", "U___82b1__706b_"),
            ("", "", "", ""),
        ] {
            for (scheme, expected) in [
                (NameEscaping::Quotes, name),
                (NameEscaping::Underscores, underscores),
                (NameEscaping::Dots, dots),
                (NameEscaping::Values, values),
            ] {
                assert_eq!(scheme.escape(name, is_metric_name), expected, "{name} {scheme:?}");
            }
        }
    }

    #[test]
    fn accept_headers_choose_format_and_escaping() {
        let old = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
                   version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let new = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                   application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;\
                   escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        let text = |version: &str, escaping: &str| {
            format!("text/plain; version={version}; charset=utf-8; escaping={escaping}")
        };
        let both = [Format::Text, Format::OpenMetrics];
        for (accept, of_text, of_both) in [
            ("", text("0.0.4", "underscores"), None),
            ("*/*", text("0.0.4", "underscores"), None),
            (
                old,
                text("0.0.4", "underscores"),
                Some(
                    "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
                ),
            ),
            (
                new,
                text("1.0.0", "allow-utf-8"),
                Some(
                    "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8",
                ),
            ),
            ("text/plain;version=0.0.4", text("0.0.4", "underscores"), None),
            ("text/plain;version=0.0.4;escaping=values", text("0.0.4", "values"), None),
            ("Text/Plain; Version=0.0.4; Escaping=dots", text("0.0.4", "dots"), None),
            ("text/plain;version=0.0.4;escaping=nonsense", text("0.0.4", "underscores"), None),
            ("text/plain;q=0.1,text/plain;version=1.0.0;q=0.9", text("1.0.0", "underscores"), None),
            ("text/html;escaping=values", text("0.0.4", "values"), None),
            ("text/plain;version=7", text("0.0.4", "underscores"), None),
        ] {
            assert_eq!(negotiate(accept, &[Format::Text]).content_type(), of_text, "{accept}");
            let of_both = of_both.unwrap_or(&of_text);
            assert_eq!(negotiate(accept, &both).content_type(), of_both, "{accept}");
        }
    }

    #[test]
    fn labels_stay_different() {
        let labels = Labels::from_pairs(&[
            ("__name__", "a.b"),
            ("c.d", "1"),
            ("c-d", "2"),
            ("c_d", "3"),
            ("e:f", "4"),
        ]);
        let escaped = NameEscaping::Underscores.escape_labels(&labels).into_owned();
        let expected = Labels::from_pairs(&[
            ("__name__", "a_b"),
            ("c_d_", "2"),
            ("c_d__", "1"),
            ("c_d", "3"),
            ("e_f", "4"),
        ]);
        assert_eq!(escaped, expected);
        assert_eq!(*NameEscaping::Quotes.escape_labels(&labels), labels);
    }
}
