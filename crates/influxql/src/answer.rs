//! Rows to JSON and CSV, byte for byte as InfluxDB writes them.
//!
//! ```text
//! rows ─► text ─ a piece at a time ─► whoever sends it
//! ```
//!
//! Texts of rows are shared, and may be long: an answer as text may be many times what its rows are. So
//! it is never there as a whole.

use crate::time::format_time;
use crate::value::Value;
use jiff::tz::TimeZone;
use std::fmt::Write;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Rows with one name and one set of tags.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The measurement; empty for lists that have no name.
    pub name: String,
    /// The tags that rows are grouped by, by name.
    pub tags: Vec<(String, String)>,
    /// The names of the columns; all series of a statement share them.
    pub columns: Arc<[String]>,
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
/// Bytes that are collected before they are written: no more of an answer is there as text.
const PIECE_SIZE: usize = 32 << 10;

/// Writes answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writer {
    /// How times are written.
    pub epoch: Epoch,
    /// Spaces of one level; none writes all on one line.
    pub indent: usize,
}

/// What of an answer is written.
#[derive(Clone, Copy)]
enum Part<'a> {
    /// All of it.
    Whole,
    /// Only what stands beside its series, of which there are none.
    NoSeries,
    /// Some rows of one series.
    Rows {
        series: &'a Series,
        rows: &'a [Vec<Value>],
        /// Whether the series goes on in the next piece.
        is_series_cut: bool,
        /// Whether more of the statement's answer follows.
        is_cut: bool,
    },
}

impl Writer {
    /// All answers as one body: `{"results":[...]}` and a newline.
    ///
    /// # Errors
    /// What `out` says.
    pub fn body(&self, answers: &[Answer], out: &mut dyn io::Write) -> io::Result<()> {
        let mut json = Json::new(self.indent, out);
        let series = answers.iter().flat_map(|answer| &answer.series);
        let size = series.map(|one| one.rows.len() * (1 + one.columns.len()) * CELL_SIZE);
        json.out.reserve(size.sum::<usize>().clamp(BODY_SIZE_MIN, PIECE_SIZE));
        json.open('{');
        if answers.is_empty() {
            // InfluxDB's answer to a text without statements.
            json.close('}');
            return json.end();
        }
        json.key("results");
        json.open('[');
        for (idx, answer) in answers.iter().enumerate() {
            json.item();
            self.answer(&mut json, idx, answer, Part::Whole)?;
        }
        json.close(']');
        json.close('}');
        json.end()
    }

    /// A body for each series, and for so many rows of one.
    ///
    /// # Errors
    /// What `out` says.
    pub fn chunks(
        &self,
        answers: &[Answer],
        rows_max: usize,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        for (idx, answer) in answers.iter().enumerate() {
            if answer.series.is_empty() {
                self.chunk(idx, answer, Part::NoSeries, out)?;
            }
            for (at, series) in answer.series.iter().enumerate() {
                let mut left = series.rows.as_slice();
                loop {
                    let (rows, rest) = left.split_at(rows_max.max(1).min(left.len()));
                    let is_series_cut = !rest.is_empty();
                    let is_cut = is_series_cut || at + 1 < answer.series.len();
                    let part = Part::Rows { series, rows, is_series_cut, is_cut };
                    self.chunk(idx, answer, part, out)?;
                    left = rest;
                    if !is_series_cut {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// A part of one statement's answer as a body of its own.
    fn chunk(
        &self,
        idx: usize,
        answer: &Answer,
        part: Part<'_>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let mut json = Json::new(self.indent, out);
        json.open('{');
        json.key("results");
        json.open('[');
        json.item();
        self.answer(&mut json, idx, answer, part)?;
        json.close(']');
        json.close('}');
        json.end()
    }

    fn answer(
        &self,
        json: &mut Json<'_>,
        idx: usize,
        answer: &Answer,
        part: Part<'_>,
    ) -> io::Result<()> {
        json.open('{');
        json.key("statement_id");
        let _ = write!(json.out, "{idx}");
        let zone = answer.zone.as_ref();
        let mut is_cut = false;
        match part {
            Part::Whole if !answer.series.is_empty() => {
                json.key("series");
                json.open('[');
                for series in &answer.series {
                    json.item();
                    self.series(json, series, &series.rows, zone)?;
                    json.close('}');
                }
                json.close(']');
            }
            Part::Whole | Part::NoSeries => {}
            Part::Rows { series, rows, is_series_cut, is_cut: is_answer_cut } => {
                is_cut = is_answer_cut;
                json.key("series");
                json.open('[');
                json.item();
                self.series(json, series, rows, zone)?;
                if is_series_cut {
                    json.key("partial");
                    json.out.push_str("true");
                }
                json.close('}');
                json.close(']');
            }
        }
        json.messages(&answer.messages);
        if is_cut {
            json.key("partial");
            json.out.push_str("true");
        }
        if let Some(error) = &answer.error {
            json.key("error");
            json.string(error);
        }
        json.close('}');
        Ok(())
    }

    /// A series with these rows, but for its last bracket.
    fn series(
        &self,
        json: &mut Json<'_>,
        series: &Series,
        rows: &[Vec<Value>],
        zone: Option<&TimeZone>,
    ) -> io::Result<()> {
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
        for column in &*series.columns {
            json.item();
            json.string(column);
        }
        json.close(']');
        if !rows.is_empty() {
            json.key("values");
            json.open('[');
            for row in rows {
                json.item();
                json.open('[');
                for value in row {
                    json.item();
                    self.value(json, value, zone)?;
                }
                json.close(']');
                json.spill()?;
            }
            json.close(']');
        }
        json.spill()
    }

    fn value(&self, json: &mut Json<'_>, value: &Value, zone: Option<&TimeZone>) -> io::Result<()> {
        match value {
            Value::Null => json.out.push_str("null"),
            Value::Float(value) => push_float(&mut json.out, *value),
            Value::Integer(value) => json.out.push_str(itoa::Buffer::new().format(*value)),
            Value::Boolean(value) => json.out.push_str(if *value { "true" } else { "false" }),
            Value::Text(text) => {
                json.string(text);
                // A row may have thousands of them.
                json.spill()?;
            }
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
        Ok(())
    }

    /// All answers as CSV, one table after the other.
    ///
    /// # Errors
    /// What `sink` says.
    pub fn csv(&self, answers: &[Answer], sink: &mut dyn io::Write) -> io::Result<()> {
        let mut out = Text { out: String::new(), sink };
        let mut columns: Option<&[String]> = None;
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
                if is_new || columns != Some(&series.columns) {
                    if columns.is_some() {
                        out.push('\n');
                    }
                    out.push_str("name,tags");
                    for column in &*series.columns {
                        out.push(',');
                        push_csv(&mut out, column);
                    }
                    out.push('\n');
                    columns = Some(&series.columns);
                }
                self.csv_rows(&mut out, series)?;
            }
        }
        out.end()
    }

    fn csv_rows(&self, out: &mut Text<'_>, series: &Series) -> io::Result<()> {
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
                    // CSV has no exponents.
                    Value::Float(value) if value.is_finite() && !is_plain(*value) => {
                        let _ = write!(out.out, "{value}");
                    }
                    Value::Float(value) => push_float(out, *value),
                    Value::Integer(value) => out.push_str(itoa::Buffer::new().format(*value)),
                    Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
                    Value::Text(text) => {
                        push_csv(out, text);
                        out.spill()?;
                    }
                    Value::Time(nanos) => {
                        let unit = if let Epoch::Units(unit) = self.epoch { unit } else { 1 };
                        out.push_str(itoa::Buffer::new().format(nanos / unit));
                    }
                }
            }
            out.push('\n');
            out.spill()?;
        }
        Ok(())
    }
}

/// A text that is written while it grows.
struct Text<'o> {
    out: String,
    sink: &'o mut dyn io::Write,
}

impl Deref for Text<'_> {
    type Target = String;

    fn deref(&self) -> &String {
        &self.out
    }
}

impl DerefMut for Text<'_> {
    fn deref_mut(&mut self) -> &mut String {
        &mut self.out
    }
}

impl Text<'_> {
    /// Writes what there is once it is a piece.
    fn spill(&mut self) -> io::Result<()> {
        if self.out.len() < PIECE_SIZE {
            return Ok(());
        }
        self.sink.write_all(self.out.as_bytes())?;
        self.out.clear();
        Ok(())
    }

    /// Writes what is left.
    fn end(self) -> io::Result<()> {
        self.sink.write_all(self.out.as_bytes())
    }
}

/// Text as a cell of CSV, in quotes where it needs them.
pub fn csv_cell(text: &str) -> String {
    let mut out = String::new();
    push_csv(&mut out, text);
    out
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

fn is_plain(value: f64) -> bool {
    PLAIN_SIZES.contains(&value.abs())
}

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
struct Json<'o> {
    out: Text<'o>,
    indent: usize,
    depth: usize,
    is_first: bool,
}

impl<'o> Json<'o> {
    fn new(indent: usize, sink: &'o mut dyn io::Write) -> Json<'o> {
        Json { out: Text { out: String::new(), sink }, indent, depth: 0, is_first: true }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.out.spill()
    }

    /// A newline, and all that is left.
    fn end(mut self) -> io::Result<()> {
        self.out.push('\n');
        self.out.end()
    }

    fn messages(&mut self, messages: &[String]) {
        if messages.is_empty() {
            return;
        }
        self.key("messages");
        self.open('[');
        for message in messages {
            self.item();
            self.open('{');
            self.key("level");
            self.string("warning");
            self.key("text");
            self.string(message);
            self.close('}');
        }
        self.close(']');
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
        let mut nowhere = io::sink();
        let mut json = Json::new(0, &mut nowhere);
        json.string("a\"b\\<\u{2028}\u{1}\n\tä>");
        assert_eq!(*json.out, "\"a\\\"b\\\\\\u003c\\u2028\\u0001\\n\\tä\\u003e\"");
    }

    /// Takes what is written, and knows how much came at once.
    #[derive(Default)]
    struct Pieces {
        text: Vec<u8>,
        longest: usize,
        count: usize,
    }

    impl io::Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.text.extend_from_slice(bytes);
            self.longest = self.longest.max(bytes.len());
            self.count += 1;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Two series of rows with a long text, of which there is one.
    fn long_texts(rows: usize, texts: usize) -> Vec<Answer> {
        let text: Arc<str> = "<tör>\n".repeat(150).into();
        let row = |at: usize| {
            let mut row = vec![Value::Time(at as i64)];
            row.extend((0..texts).map(|_| Value::Text(text.clone())));
            row
        };
        let series = |host: &str| Series {
            name: "m".to_string(),
            tags: vec![("host".to_string(), host.to_string())],
            columns: (0..=texts).map(|at| format!("c{at}")).collect(),
            rows: (0..rows).map(row).collect(),
        };
        let answer = Answer { messages: vec!["careful".to_string()], ..Answer::default() };
        vec![Answer { series: vec![series("a"), series("b")], ..answer }, Answer::failed("no")]
    }

    #[test]
    fn long_texts_are_never_there_as_a_whole() {
        // Many rows, and a few of many columns.
        for answers in [long_texts(1000, 1), long_texts(2, 1000)] {
            for writer in [Writer::default(), Writer { epoch: Epoch::Units(1), indent: 4 }] {
                let mut written: Vec<Pieces> = Vec::new();
                let mut to = |write: &dyn Fn(&mut Pieces) -> io::Result<()>| {
                    let mut pieces = Pieces::default();
                    write(&mut pieces).expect("memory takes every byte");
                    written.push(pieces);
                };
                to(&|out| writer.body(&answers, out));
                to(&|out| writer.csv(&answers, out));
                to(&|out| writer.chunks(&answers, usize::MAX, out));
                for pieces in written {
                    assert!(2_000_000 < pieces.text.len(), "{}", pieces.text.len());
                    assert!(pieces.longest < 2 * PIECE_SIZE, "{}", pieces.longest);
                    assert!(PIECE_SIZE / 2 < pieces.text.len() / pieces.count, "pieces are large");
                }
            }
        }
    }

    #[test]
    fn pieces_are_the_whole() {
        let answers = long_texts(100, 2);
        let mut pieces = Pieces::default();
        Writer::default().body(&answers, &mut pieces).expect("memory takes every byte");
        let body: serde_json::Value = serde_json::from_slice(&pieces.text).expect("JSON");
        let rows = |host: usize| body.pointer(&format!("/results/0/series/{host}/values"));
        for values in [rows(0), rows(1)] {
            let values = values.and_then(|values| values.as_array()).expect("rows");
            assert_eq!(values.len(), 100);
            assert!(values.iter().all(|row| row[1] == row[2] && row[2] == "<tör>\n".repeat(150)));
        }
        assert_eq!(body.pointer("/results/1/error"), Some(&"no".into()));
        let mut pieces = Pieces::default();
        Writer::default().chunks(&answers, 60, &mut pieces).expect("memory takes every byte");
        let text = String::from_utf8(pieces.text).expect("UTF-8");
        let chunks: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let told = |chunk: &serde_json::Value| {
            let of = |path: &str| chunk.pointer(path).cloned().unwrap_or_default();
            let values = of("/results/0/series/0/values");
            let count = values.as_array().map_or(0, |values| values.len());
            let series_partial = of("/results/0/series/0/partial") == true;
            (count, series_partial, of("/results/0/partial") == true)
        };
        let told: Vec<(usize, bool, bool)> = chunks.iter().map(told).collect();
        let expected = [
            (60, true, true),
            (40, false, true),
            (60, true, true),
            (40, false, false),
            (0, false, false),
        ];
        assert_eq!(told, expected);
        assert!(chunks.iter().take(4).all(|one| one.pointer("/results/0/messages").is_some()));
    }

    #[test]
    fn who_takes_nothing_more_ends_it() {
        struct Gone;
        impl io::Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let answers = long_texts(1000, 1);
        let writer = Writer::default();
        assert!(writer.body(&answers, &mut Gone).is_err());
        assert!(writer.csv(&answers, &mut Gone).is_err());
        assert!(writer.chunks(&answers, 10, &mut Gone).is_err());
    }
}
