//! Histograms as test scripts write them.
//!
//! ```text
//! {{schema:0 count:4 sum:5 z_bucket:1 z_bucket_w:0.001 offset:-1 buckets:[1 0 2] n_buckets:[1]}}
//! {{schema:-53 count:3 sum:5 custom_values:[5 10] buckets:[1 2] counter_reset_hint:gauge}}
//! ```
//!
//! Each key is there at most once, in any order; what is left out is zero or empty. The first of
//! `buckets` has the index `offset`, each further one the next index.

use crate::native::{Bucket, Histogram, ResetHint};
use model::go_number::format_shortest;

/// Buckets, or bounds, that one list may have.
pub const LIST_MAX: usize = 1 << 16;

/// A histogram as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Noted {
    /// The histogram. It may be one that [`Histogram::validate`] refuses.
    pub histogram: Histogram,
    /// The reset hint, if one was written: an expectation without one takes any.
    pub hint: Option<ResetHint>,
}

/// Why a text is no histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no histogram: expected {expected} at {at:?}")]
pub struct NotationError {
    /// What may stand there.
    pub expected: String,
    /// The text from where it went wrong, or the start of that text.
    pub at: String,
}

/// The histogram `{{...}}` at the start of the text, and the text after it.
pub fn parse_notation(text: &str) -> Result<(Noted, &str), NotationError> {
    let mut cursor = Cursor { rest: text };
    cursor.take("{{", "{{")?;
    let mut fields = Fields::default();
    loop {
        let had_space = cursor.skip_space();
        if let Some(rest) = cursor.rest.strip_prefix("}}") {
            return Ok((fields.finish(&cursor)?, rest));
        }
        if !had_space && fields.count() != 0 {
            return Err(cursor.expected("a space or }}"));
        }
        fields.parse_one(&mut cursor)?;
    }
}

/// What is left of the text.
struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    fn expected(&self, expected: impl Into<String>) -> NotationError {
        let at = self.rest.chars().take(40).collect();
        NotationError { expected: expected.into(), at }
    }

    fn take(&mut self, token: &str, expected: &str) -> Result<(), NotationError> {
        self.rest = self.rest.strip_prefix(token).ok_or_else(|| self.expected(expected))?;
        Ok(())
    }

    /// Whether there was any.
    fn skip_space(&mut self) -> bool {
        let trimmed = self.rest.trim_start();
        let had_space = trimmed.len() < self.rest.len();
        self.rest = trimmed;
        had_space
    }

    /// All up to a space or a bracket; nothing is taken.
    fn word(&self) -> &'t str {
        let end = |c: char| c.is_whitespace() || matches!(c, ':' | '[' | ']' | '{' | '}');
        &self.rest[..self.rest.find(end).unwrap_or(self.rest.len())]
    }

    fn parse<T>(
        &mut self,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, NotationError> {
        let word = self.word();
        let value = parse(word).ok_or_else(|| self.expected(expected))?;
        self.rest = &self.rest[word.len()..];
        Ok(value)
    }

    fn number(&mut self) -> Result<f64, NotationError> {
        self.parse("a number", parse_number)
    }

    fn list(&mut self) -> Result<Vec<f64>, NotationError> {
        self.take("[", "a list like [1 2]")?;
        let mut list = Vec::new();
        loop {
            let had_space = self.skip_space();
            if !list.is_empty() {
                if let Some(rest) = self.rest.strip_prefix(']') {
                    self.rest = rest;
                    return Ok(list);
                }
                if !had_space {
                    return Err(self.expected("a space or ]"));
                }
            }
            if LIST_MAX <= list.len() {
                return Err(self.expected(format!("] after at most {LIST_MAX} numbers")));
            }
            list.push(self.number()?);
        }
    }
}

/// A number; `Inf` and `NaN` in any case.
fn parse_number(word: &str) -> Option<f64> {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    let is_word = digits.eq_ignore_ascii_case("inf") || digits.eq_ignore_ascii_case("nan");
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (is_word || is_number).then(|| word.parse().ok()).flatten()
}

/// The values of the keys.
#[derive(Default)]
struct Fields {
    schema: Option<i8>,
    count: Option<f64>,
    sum: Option<f64>,
    zero_count: Option<f64>,
    zero_threshold: Option<f64>,
    offset: Option<i32>,
    buckets: Option<Vec<f64>>,
    negative_offset: Option<i32>,
    negative_buckets: Option<Vec<f64>>,
    custom_bounds: Option<Vec<f64>>,
    hint: Option<ResetHint>,
    /// How many keys there were.
    keys: usize,
}

impl Fields {
    fn count(&self) -> usize {
        self.keys
    }

    fn parse_one(&mut self, cursor: &mut Cursor<'_>) -> Result<(), NotationError> {
        let before = Cursor { rest: cursor.rest };
        let key = cursor.word().to_ascii_lowercase();
        cursor.rest = &cursor.rest[key.len()..];
        let is_first = match key.as_str() {
            "schema" => put(&mut self.schema, value(cursor, integer)?),
            "count" => put(&mut self.count, value(cursor, Cursor::number)?),
            "sum" => put(&mut self.sum, value(cursor, Cursor::number)?),
            "z_bucket" => put(&mut self.zero_count, value(cursor, Cursor::number)?),
            "z_bucket_w" => put(&mut self.zero_threshold, value(cursor, Cursor::number)?),
            "offset" => put(&mut self.offset, value(cursor, integer)?),
            "buckets" => put(&mut self.buckets, value(cursor, Cursor::list)?),
            "n_offset" => put(&mut self.negative_offset, value(cursor, integer)?),
            "n_buckets" => put(&mut self.negative_buckets, value(cursor, Cursor::list)?),
            "custom_values" => put(&mut self.custom_bounds, value(cursor, Cursor::list)?),
            "counter_reset_hint" => put(&mut self.hint, value(cursor, hint)?),
            _ => return Err(before.expected("a key like schema, count, sum or buckets, or }}")),
        };
        self.keys += 1;
        match is_first {
            true => Ok(()),
            false => Err(before.expected(format!("each key once, not another {key}"))),
        }
    }

    fn finish(self, cursor: &Cursor<'_>) -> Result<Noted, NotationError> {
        let side = |offset: Option<i32>, counts: Option<Vec<f64>>| {
            let (offset, counts) = (offset.unwrap_or(0), counts.unwrap_or_default());
            let last = i64::from(offset) + counts.len() as i64;
            if i64::from(i32::MAX) < last {
                return Err(cursor.expected("a smaller offset"));
            }
            let indexed = counts.into_iter().zip(offset..);
            Ok(indexed.map(|(count, index)| Bucket { index, count }).collect())
        };
        let histogram = Histogram {
            schema: self.schema.unwrap_or(0),
            reset_hint: self.hint.unwrap_or_default(),
            zero_threshold: self.zero_threshold.unwrap_or(0.0),
            zero_count: self.zero_count.unwrap_or(0.0),
            count: self.count.unwrap_or(0.0),
            sum: self.sum.unwrap_or(0.0),
            positive: side(self.offset, self.buckets)?,
            negative: side(self.negative_offset, self.negative_buckets)?,
            custom_bounds: self.custom_bounds.unwrap_or_default(),
        };
        Ok(Noted { histogram, hint: self.hint })
    }
}

/// Whether there was none before.
fn put<T>(place: &mut Option<T>, value: T) -> bool {
    place.replace(value).is_none()
}

/// What stands after the colon of a key.
fn value<'t, T>(
    cursor: &mut Cursor<'t>,
    parse: impl Fn(&mut Cursor<'t>) -> Result<T, NotationError>,
) -> Result<T, NotationError> {
    cursor.take(":", "a colon after the key")?;
    parse(cursor)
}

fn integer<T: std::str::FromStr>(cursor: &mut Cursor<'_>) -> Result<T, NotationError> {
    cursor.parse("a whole number that is in range", |word| word.parse().ok())
}

fn hint(cursor: &mut Cursor<'_>) -> Result<ResetHint, NotationError> {
    cursor.parse("unknown, reset, not_reset or gauge", |word| {
        let lower = word.to_ascii_lowercase();
        HINTS.iter().find(|(name, _)| *name == lower).map(|(_, hint)| *hint)
    })
}

const HINTS: [(&str, ResetHint); 4] = [
    ("unknown", ResetHint::Unknown),
    ("reset", ResetHint::Reset),
    ("not_reset", ResetHint::NoReset),
    ("gauge", ResetHint::Gauge),
];

impl Histogram {
    /// The histogram as test scripts write it. Empty buckets are only written between others; a
    /// side whose buckets are further apart than a list may be long is only described.
    pub fn to_notation(&self) -> String {
        let mut fields = Vec::new();
        if self.schema != 0 {
            fields.push(format!("schema:{}", self.schema));
        }
        for (key, number) in [
            ("count", self.count),
            ("sum", self.sum),
            ("z_bucket", self.zero_count),
            ("z_bucket_w", self.zero_threshold),
        ] {
            if number != 0.0 {
                fields.push(format!("{key}:{}", format_shortest(number)));
            }
        }
        if self.has_custom_bounds() {
            fields.push(format!("custom_values:{}", format_list(self.custom_bounds.iter())));
        }
        if let Some((name, _)) = HINTS[1..].iter().find(|(_, hint)| *hint == self.reset_hint) {
            fields.push(format!("counter_reset_hint:{name}"));
        }
        push_side(&mut fields, "", &self.positive);
        push_side(&mut fields, "n_", &self.negative);
        format!("{{{{{}}}}}", fields.join(" "))
    }
}

fn push_side(fields: &mut Vec<String>, prefix: &str, buckets: &[Bucket]) {
    let filled = || buckets.iter().filter(|bucket| bucket.count != 0.0);
    let (Some(first), Some(last)) = (filled().next(), filled().next_back()) else { return };
    let (first, last) = (first.index, last.index);
    if first != 0 {
        fields.push(format!("{prefix}offset:{first}"));
    }
    if LIST_MAX as i64 <= i64::from(last) - i64::from(first) {
        let count = filled().count();
        fields.push(format!("{prefix}buckets:[{count} between indexes {first} and {last}]"));
        return;
    }
    let mut counts = vec![0.0; (last - first + 1) as usize];
    for bucket in filled() {
        counts[(bucket.index - first) as usize] = bucket.count;
    }
    fields.push(format!("{prefix}buckets:{}", format_list(counts.iter())));
}

fn format_list<'n>(numbers: impl Iterator<Item = &'n f64>) -> String {
    let numbers: Vec<String> = numbers.map(|number| format_shortest(*number)).collect();
    format!("[{}]", numbers.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::CUSTOM_SCHEMA;
    use crate::testing::buckets;

    #[test]
    fn all_keys() {
        let text = "{{schema:1 sum:-0.3 count:3.1 z_bucket:7.1 z_bucket_w:0.05 buckets:[5.1 10 7]  \
                    offset:-3 n_buckets:[4.1 5 ] n_offset:-5 counter_reset_hint:GAUGE}}x3 5";
        let (noted, rest) = parse_notation(text).unwrap();
        assert_eq!(rest, "x3 5");
        assert_eq!(noted.hint, Some(ResetHint::Gauge));
        let expected = Histogram {
            schema: 1,
            reset_hint: ResetHint::Gauge,
            zero_threshold: 0.05,
            zero_count: 7.1,
            count: 3.1,
            sum: -0.3,
            positive: buckets(&[(-3, 5.1), (-2, 10.0), (-1, 7.0)]),
            negative: buckets(&[(-5, 4.1), (-4, 5.0)]),
            custom_bounds: Vec::new(),
        };
        assert_eq!(noted.histogram, expected);
        let (noted, rest) =
            parse_notation("{{ schema:-53 custom_values:[-Inf 5 1e1] buckets:[NaN 1] }}").unwrap();
        assert_eq!((rest, noted.hint), ("", None));
        assert_eq!(noted.histogram.schema, CUSTOM_SCHEMA);
        assert_eq!(noted.histogram.custom_bounds, [f64::NEG_INFINITY, 5.0, 10.0]);
        assert!(noted.histogram.positive[0].count.is_nan());
        for text in ["{{}}", "{{ }}"] {
            assert_eq!(parse_notation(text).unwrap().0.histogram, Histogram::default());
        }
    }

    #[test]
    fn errors_tell_where_and_what() {
        let check = |text: &str, expected: &str| {
            assert_eq!(parse_notation(text).unwrap_err().to_string(), expected, "{text}");
        };
        check("5", "no histogram: expected {{ at \"5\"");
        check("{{sum:1", "no histogram: expected a space or }} at \"\"");
        check("{{sum:x}}", "no histogram: expected a number at \"x}}\"");
        check("{{sum 1}}", "no histogram: expected a colon after the key at \" 1}}\"");
        check(
            "{{sum:1 sum:2}}",
            "no histogram: expected each key once, not another sum at \"sum:2}}\"",
        );
        check("{{buckets:[1 2}}", "no histogram: expected a space or ] at \"}}\"");
        check("{{buckets:[]}}", "no histogram: expected a number at \"]}}\"");
        check("{{buckets:1}}", "no histogram: expected a list like [1 2] at \"1}}\"");
        check(
            "{{schema:500}}",
            "no histogram: expected a whole number that is in range at \"500}}\"",
        );
        check(
            "{{é:1}}",
            "no histogram: expected a key like schema, count, sum or buckets, or }} at \"é:1}}\"",
        );
        check(
            "{{counter_reset_hint:no}}",
            "no histogram: expected unknown, reset, not_reset or gauge at \"no}}\"",
        );
        check(
            "{{offset:2147483647 buckets:[1 2]}}",
            "no histogram: expected a smaller offset at \"}}\"",
        );
        let long = format!("{{{{buckets:[{}]}}}}", vec!["1"; LIST_MAX + 1].join(" "));
        check(&long, "no histogram: expected ] after at most 65536 numbers at \"1]}}\"");
    }

    #[test]
    fn what_is_written_reads_back() {
        for text in [
            "{{}}",
            "{{count:4 sum:5.5 z_bucket:1 z_bucket_w:0.001 offset:-1 buckets:[1 0 2] n_offset:2 n_buckets:[1]}}",
            "{{schema:-53 count:1e+06 sum:NaN custom_values:[5 10] counter_reset_hint:not_reset buckets:[1 2]}}",
            "{{schema:8 sum:-Inf counter_reset_hint:gauge buckets:[1e-05]}}",
        ] {
            assert_eq!(parse_notation(text).unwrap().0.histogram.to_notation(), text);
        }
        let spaced = parse_notation("{{buckets:[0 0 3 0]}}").unwrap().0.histogram;
        assert_eq!(spaced.to_notation(), "{{offset:2 buckets:[3]}}");
        let empty = parse_notation("{{buckets:[0 0]}}").unwrap().0.histogram;
        assert_eq!(empty.to_notation(), "{{}}");
        let ends = [i32::MIN, i32::MAX].map(|index| Bucket { index, count: 1.0 });
        let wide = Histogram { positive: ends.to_vec(), ..Histogram::default() };
        assert!(wide.to_notation().contains("[2 between indexes -2147483648 and 2147483647]"));
    }
}
