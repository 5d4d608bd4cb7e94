//! Rows to JSON and CSV, byte for byte as InfluxDB writes them.

use crate::time::format_time;
use crate::value::Value;
use jiff::tz::TimeZone;
use std::fmt::Write;

/// Rows with one name and one set of tags.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The measurement; empty for lists that have no name.
    pub name: String,
    /// The tags that rows are grouped by, by name.
    pub tags: Vec<(String, String)>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

/// What a statement answers.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The rows.
    pub series: Vec<Series>,
    /// Warnings.
    pub messages: Vec<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// Where times are told.
    pub zone: Option<TimeZone>,
}

impl Answer {
    /// These series.
    pub fn of(series: Vec<Series>) -> Answer {
        Answer { series, ..Answer::default() }
    }

    /// That error.
    pub fn failed(error: impl Into<String>) -> Answer {
        Answer { error: Some(error.into()), ..Answer::default() }
    }
}

/// How times are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Epoch {
    /// As RFC 3339.
    #[default]
    Text,
    /// As whole units of so many nanoseconds.
    Units(i64),
}

impl Epoch {
    /// What the parameter `epoch` says.
    pub fn parse(word: &str) -> Epoch {
        Epoch::Units(match word {
            "us" | "u" | "µ" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" => return Epoch::Text,
            // `ns`, and whatever else somebody thinks of.
            _ => 1,
        })
    }
}

/// Bytes of a cell of an answer, about: a time has twice as many.
const CELL_SIZE: usize = 12;
/// Bytes that a body has room for from the beginning.
const BODY_SIZE_MIN: usize = 256;
const BODY_SIZE_FIRST_MAX: usize = 1 << 20;

/// Writes answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writer {
    /// How times are written.
    pub epoch: Epoch,
    /// Spaces of one level; none writes all on one line.
    pub indent: usize,
}

/// What of an answer is written, of a longer one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Piece {
    /// Whether the last series goes on in the next piece.
    pub is_series_cut: bool,
    /// Whether more of the statement's answer follows.
    pub is_cut: bool,
}

impl Writer {
    /// One answer as a whole body: `{"results":[...]}` and a newline.
    pub fn body(&self, answers: &[Answer]) -> String {
        let mut json = Json::new(self.indent);
        let series = answers.iter().flat_map(|answer| &answer.series);
        let size = series.map(|one| one.rows.len() * (1 + one.columns.len()) * CELL_SIZE);
        json.out.reserve(size.sum::<usize>().clamp(BODY_SIZE_MIN, BODY_SIZE_FIRST_MAX));
        json.open('{');
        json.key("results");
        json.open('[');
        for (idx, answer) in answers.iter().enumerate() {
            json.item();
            self.answer(&mut json, idx, answer, Piece::default());
        }
        json.close(']');
        json.close('}');
        json.out.push('\n');
        json.out
    }

    /// A piece of one statement's answer as a body of its own.
    pub fn piece(&self, idx: usize, answer: &Answer, piece: Piece) -> String {
        let mut json = Json::new(self.indent);
        json.open('{');
        json.key("results");
        json.open('[');
        json.item();
        self.answer(&mut json, idx, answer, piece);
        json.close(']');
        json.close('}');
        json.out.push('\n');
        json.out
    }

    fn answer(&self, json: &mut Json, idx: usize, answer: &Answer, piece: Piece) {
        json.open('{');
        json.key("statement_id");
        let _ = write!(json.out, "{idx}");
        if !answer.series.is_empty() {
            json.key("series");
            json.open('[');
            for (at, series) in answer.series.iter().enumerate() {
                json.item();
                let is_cut = piece.is_series_cut && at + 1 == answer.series.len();
                self.series(json, series, answer.zone.as_ref(), is_cut);
            }
            json.close(']');
        }
        if !answer.messages.is_empty() {
            json.key("messages");
            json.open('[');
            for message in &answer.messages {
                json.item();
                json.open('{');
                json.key("level");
                json.string("warning");
                json.key("text");
                json.string(message);
                json.close('}');
            }
            json.close(']');
        }
        if piece.is_cut {
            json.key("partial");
            json.out.push_str("true");
        }
        if let Some(error) = &answer.error {
            json.key("error");
            json.string(error);
        }
        json.close('}');
    }

    fn series(&self, json: &mut Json, series: &Series, zone: Option<&TimeZone>, is_cut: bool) {
        json.open('{');
        if !series.name.is_empty() {
            json.key("name");
            json.string(&series.name);
        }
        if !series.tags.is_empty() {
            json.key("tags");
            json.open('{');
            for (name, value) in &series.tags {
                json.key(name);
                json.string(value);
            }
            json.close('}');
        }
        json.key("columns");
        json.open('[');
        for column in &series.columns {
            json.item();
            json.string(column);
        }
        json.close(']');
        if !series.rows.is_empty() {
            json.key("values");
            json.open('[');
            for row in &series.rows {
                json.item();
                json.open('[');
                for value in row {
                    json.item();
                    self.value(json, value, zone);
                }
                json.close(']');
            }
            json.close(']');
        }
        if is_cut {
            json.key("partial");
            json.out.push_str("true");
        }
        json.close('}');
    }

    fn value(&self, json: &mut Json, value: &Value, zone: Option<&TimeZone>) {
        match value {
            Value::Null => json.out.push_str("null"),
            Value::Float(value) => push_float(&mut json.out, *value),
            Value::Integer(value) => json.out.push_str(itoa::Buffer::new().format(*value)),
            Value::Boolean(value) => json.out.push_str(if *value { "true" } else { "false" }),
            Value::Text(text) => json.string(text),
            Value::Time(nanos) => match self.epoch {
                Epoch::Units(unit) => {
                    json.out.push_str(itoa::Buffer::new().format(nanos / unit));
                }
                Epoch::Text => {
                    json.out.push('"');
                    format_time(*nanos, zone, &mut json.out);
                    json.out.push('"');
                }
            },
        }
    }

    /// All answers as CSV, one table after the other.
    pub fn csv(&self, answers: &[Answer]) -> String {
        let mut out = String::new();
        let mut columns: Option<Vec<String>> = None;
        let mut last = None;
        for (statement, answer) in answers.iter().enumerate() {
            if let Some(error) = &answer.error {
                out.push_str("error\n");
                push_csv(&mut out, error);
                out.push('\n');
                columns = None;
            }
            // Each statement has a table of its own.
            for series in &answer.series {
                let is_new = last.replace(statement) != Some(statement);
                if is_new || columns.as_ref() != Some(&series.columns) {
                    if columns.is_some() {
                        out.push('\n');
                    }
                    out.push_str("name,tags");
                    for column in &series.columns {
                        out.push(',');
                        push_csv(&mut out, column);
                    }
                    out.push('\n');
                    columns = Some(series.columns.clone());
                }
                self.csv_rows(&mut out, series);
            }
        }
        out
    }

    fn csv_rows(&self, out: &mut String, series: &Series) {
        let escape = |text: &str| text.replace(',', "\\,").replace(' ', "\\ ").replace('=', "\\=");
        let tags: Vec<String> = series
            .tags
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{}={}", escape(name), escape(value)))
            .collect();
        let tags = tags.join(",");
        for row in &series.rows {
            push_csv(out, &series.name);
            out.push(',');
            push_csv(out, &tags);
            for value in row {
                out.push(',');
                match value {
                    Value::Null => {}
                    Value::Float(value) => push_float(out, *value),
                    Value::Integer(value) => out.push_str(itoa::Buffer::new().format(*value)),
                    Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
                    Value::Text(text) => push_csv(out, text),
                    Value::Time(nanos) => {
                        let unit = if let Epoch::Units(unit) = self.epoch { unit } else { 1 };
                        out.push_str(itoa::Buffer::new().format(nanos / unit));
                    }
                }
            }
            out.push('\n');
        }
    }
}

fn push_csv(out: &mut String, text: &str) {
    let needs_quotes = text.contains([',', '"', '\n', '\r']) || text.starts_with(' ');
    match needs_quotes {
        true => {
            let _ = write!(out, "\"{}\"", text.replace('"', "\"\""));
        }
        false => out.push_str(text),
    }
}

/// Sizes of numbers whose shortest text is digits around a point.
const PLAIN_SIZES: std::ops::Range<f64> = 1e-4..1e15;

/// As Go's encoder: the shortest digits, an exponent only for very large and very small ones.
fn push_float(out: &mut String, value: f64) {
    let size = value.abs();
    if !value.is_finite() {
        out.push_str("null");
    } else if PLAIN_SIZES.contains(&size) {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value);
        out.push_str(text.strip_suffix(".0").unwrap_or(text));
    } else if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                let _ = write!(out, "{digits}e+{exponent}");
            }
            _ => out.push_str(&text),
        }
    } else {
        let _ = write!(out, "{value}");
    }
}

/// JSON, on one line or indented.
struct Json {
    out: String,
    indent: usize,
    depth: usize,
    is_first: bool,
}

impl Json {
    fn new(indent: usize) -> Json {
        Json { out: String::new(), indent, depth: 0, is_first: true }
    }

    fn line(&mut self) {
        if self.indent != 0 {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', self.indent * self.depth));
        }
    }

    fn open(&mut self, bracket: char) {
        self.out.push(bracket);
        self.depth += 1;
        self.is_first = true;
    }

    fn close(&mut self, bracket: char) {
        self.depth -= 1;
        if !self.is_first {
            self.line();
        }
        self.out.push(bracket);
        self.is_first = false;
    }

    fn item(&mut self) {
        if !self.is_first {
            self.out.push(',');
        }
        self.line();
        self.is_first = false;
    }

    fn key(&mut self, name: &str) {
        self.item();
        self.string(name);
        self.out.push_str(if self.indent == 0 { ":" } else { ": " });
    }

    /// A string as Go writes it: with what HTML might mistake written as numbers.
    fn string(&mut self, text: &str) {
        self.out.push('"');
        let mut rest = text;
        // What stands between is nearly all, and copied as a whole.
        while let Some(at) = rest.find(needs_escape) {
            let (plain, tail) = rest.split_at(at);
            self.out.push_str(plain);
            let mut characters = tail.chars();
            let Some(character) = characters.next() else { break };
            rest = characters.as_str();
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                _ => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(character));
                }
            }
        }
        self.out.push_str(rest);
        self.out.push('"');
    }
}

/// Whether a character is written otherwise in a string.
fn needs_escape(character: char) -> bool {
    matches!(character, '"' | '\\' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_go() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-100.0, "-100"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e-4, "0.0001"),
            (0.000_012_5, "0.0000125"),
            (1e-6, "0.000001"),
            (9.5e-7, "9.5e-7"),
            (123_456_789.25, "123456789.25"),
            (1e15, "1000000000000000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-2.5e300, "-2.5e+300"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "null"),
            (f64::NAN, "null"),
        ] {
            let mut out = String::new();
            push_float(&mut out, value);
            assert_eq!(out, text, "{value:e}");
        }
    }

    #[test]
    fn strings_are_those_of_go() {
        let mut json = Json::new(0);
        json.string("a\"b\\<\u{2028}\u{1}\n\tä>");
        assert_eq!(json.out, "\"a\\\"b\\\\\\u003c\\u2028\\u0001\\n\\tä\\u003e\"");
    }
}
