//! Rows to lines of line protocol: what `SELECT ... INTO` writes.
//!
//! Names and tag values may be any text, though there are some that no line of a client can have: one
//! that ends in a backslash, or has a line break. So each byte of theirs that is anything but a letter,
//! a digit or one of [`PLAIN`] is `%` and two hexadecimal digits, which whoever stores the lines must
//! know.

use crate::answer::Series;
use crate::source::EvalError;
use crate::value::Value;
use std::fmt::Write;

/// Bytes of lines that are written at once, about.
const LINES_SIZE: usize = 1 << 20;

/// Stores lines.
pub type LineSink<'s> = dyn FnMut(&str) -> Result<(), EvalError> + 's;

/// Signs that mean nothing in a line.
const PLAIN: &[u8] = b"_-./:";

/// A column that is a tag: its place and the tag's name.
pub(crate) type TagColumn = (usize, String);

/// Makes lines of rows.
pub(crate) struct Lines<'s, 'w> {
    /// The measurement; empty for that which rows come from.
    pub measurement: String,
    /// Columns that are tags, each of another name.
    tags: Vec<TagColumn>,
    /// The places of all of them, of those that are there twice, too.
    brought: Vec<usize>,
    pub sink: &'s mut LineSink<'w>,
    text: String,
}

impl<'s, 'w> Lines<'s, 'w> {
    pub fn new(measurement: String, mut tags: Vec<TagColumn>, sink: &'s mut LineSink<'w>) -> Self {
        let brought = tags.iter().map(|(at, _)| *at).collect();
        // Whoever asks for a tag twice gets two columns of it.
        tags.sort_by(|(a_at, a), (b_at, b)| (a, a_at).cmp(&(b, b_at)));
        tags.dedup_by(|(_, a), (_, b)| a == b);
        Lines { measurement, tags, brought, sink, text: String::new() }
    }

    fn is_tag(&self, name: &str) -> bool {
        self.tags.iter().any(|(_, other)| other == name)
    }

    /// Writes the rows of a series that have a value; says how many. The first column is the time.
    ///
    /// # Errors
    /// For names that nothing can have, and what the sink says.
    pub fn write(&mut self, series: &Series) -> Result<u64, EvalError> {
        let name = if self.measurement.is_empty() { &series.name } else { &self.measurement };
        let mut start = name_of(name)?;
        // What rows are grouped by may be among their columns, too.
        let tags = series.tags.iter().filter(|(name, _)| !self.is_tag(name));
        for (key, value) in tags.filter(|(_, value)| !value.is_empty()) {
            let _ = write!(start, ",{}={}", name_of(key)?, escaped(value));
        }
        let names = series.columns.iter().map(|name| name_of(name));
        let names = names.collect::<Result<Vec<String>, EvalError>>()?;
        let mut count = 0;
        for row in &series.rows {
            count += u64::from(self.row(&start, &names, row));
            if LINES_SIZE <= self.text.len() {
                self.flush()?;
            }
        }
        Ok(count)
    }

    /// Appends a line; whether it has a field.
    fn row(&mut self, start: &str, names: &[String], row: &[Value]) -> bool {
        let before = self.text.len();
        self.text.push_str(start);
        for (at, name) in &self.tags {
            if let Some(Value::Text(value)) = row.get(*at)
                && !value.is_empty()
            {
                let _ = write!(self.text, ",{}={}", escaped(name), escaped(value));
            }
        }
        let mut separator = ' ';
        for (at, (name, value)) in names.iter().zip(row).enumerate().skip(1) {
            let is_tag = self.brought.contains(&at);
            let Some(value) = field(value).filter(|_| !is_tag) else { continue };
            let _ = write!(self.text, "{separator}{name}={value}");
            separator = ',';
        }
        match row.first() {
            Some(Value::Time(time)) if separator == ',' => {
                let _ = writeln!(self.text, " {time}");
                true
            }
            _ => {
                self.text.truncate(before);
                false
            }
        }
    }

    /// Hands the last lines over.
    ///
    /// # Errors
    /// What the sink says.
    pub fn flush(&mut self) -> Result<(), EvalError> {
        if !self.text.is_empty() {
            (self.sink)(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }
}

/// A value as line protocol writes it; none of what no line can say.
fn field(value: &Value) -> Option<String> {
    match value {
        Value::Float(value) => value.is_finite().then(|| value.to_string()),
        Value::Integer(value) => Some(format!("{value}i")),
        Value::Boolean(value) => Some(value.to_string()),
        Value::Text(text) => {
            Some(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
        }
        Value::Null | Value::Time(_) => None,
    }
}

/// A name as it stands in a line.
fn name_of(text: &str) -> Result<String, EvalError> {
    // Nothing is noted of names with such a byte: what they are would be forgotten.
    if text.contains('\0') {
        return Err(EvalError::new(format!("{text:?} cannot be written: it has a zero byte")));
    }
    Ok(escaped(text))
}

/// A text with `%` and two digits for each byte that may mean something in a line.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let byte = u8::try_from(u32::from(character)).unwrap_or(u8::MAX);
        match byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) || !character.is_ascii() {
            true => out.push(character),
            false => drop(write!(out, "%{byte:02x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(series: &Series, tags: &[(usize, &str)]) -> Result<(u64, String), EvalError> {
        let mut text = String::new();
        let mut sink = |lines: &str| {
            text.push_str(lines);
            Ok(())
        };
        let tags = tags.iter().map(|(at, name)| (*at, (*name).to_string())).collect();
        let mut lines = Lines::new(String::new(), tags, &mut sink);
        let count = lines.write(series)?;
        lines.flush()?;
        Ok((count, text))
    }

    fn series() -> Series {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_string()).collect();
        let row = |time, cells: &[Value]| [&[Value::Time(time)], cells].concat();
        Series {
            name: "disk io".to_string(),
            tags: vec![("path".to_string(), "/a b".to_string()), ("x".into(), String::new())],
            columns: texts(&["time", "f", "a=b", "host"]),
            rows: vec![
                row(1, &[Value::Float(0.5), Value::Integer(-3), Value::text("q\"\\")]),
                row(2, &[Value::Null, Value::Float(f64::INFINITY), Value::Null]),
                row(3, &[Value::Boolean(true), Value::Null, Value::Null]),
            ],
        }
    }

    #[test]
    fn rows_are_lines() {
        let mut series = series();
        let expected = "disk%20io,path=/a%20b f=0.5,a%3db=-3i,host=\"q\\\"\\\\\" 1\n\
                        disk%20io,path=/a%20b f=true 3\n";
        assert_eq!(lines(&series, &[]), Ok((2, expected.to_string())));
        series.rows.truncate(1);
        series.rows[0][3] = Value::text("h,1");
        let expected = "disk%20io,path=/a%20b,host=h%2c1 f=0.5,a%3db=-3i 1\n";
        assert_eq!(lines(&series, &[(3, "host")]), Ok((1, expected.to_string())));
    }

    #[test]
    fn a_tag_that_rows_are_grouped_by_and_bring_along_is_written_once() {
        let mut series = series();
        series.tags = vec![("host".to_string(), "a".to_string())];
        series.columns = ["time", "top", "host", "host_1"].map(str::to_string).into();
        let host = || Value::text("a");
        series.rows = vec![vec![Value::Time(1), Value::Integer(7), host(), host()]];
        let expected = "disk%20io,host=a top=7i 1\n".to_string();
        assert_eq!(lines(&series, &[(2, "host"), (3, "host")]), Ok((1, expected)));
    }

    #[test]
    fn names_may_be_any_but_those_with_a_zero_byte() {
        let mut series = series();
        series.rows.truncate(1);
        let columns = |second: &str| ["time", second, "a=b", "host"].map(str::to_string).into();
        for (name, written) in [
            (" blank", "%20blank"),
            ("\ttab\t", "%09tab%09"),
            ("#a", "%23a"),
            ("a\r\nb", "a%0d%0ab"),
            ("back\\", "back%5c"),
            ("100%", "100%25"),
            ("\u{e4}\u{20ac}", "\u{e4}\u{20ac}"),
        ] {
            series.name = name.to_string();
            series.tags = vec![("t".to_string(), name.to_string())];
            series.columns = columns(name);
            let (_, text) = lines(&series, &[]).expect("a name");
            assert!(text.starts_with(&format!("{written},t={written} {written}=0.5,")), "{text}");
        }
        let zero = "a\0b".to_string();
        let has_zero = Err(EvalError::new("\"a\\0b\" cannot be written: it has a zero byte"));
        assert_eq!(lines(&Series { name: zero.clone(), ..series.clone() }, &[]), has_zero);
        let tags = vec![(zero.clone(), "x".to_string())];
        assert_eq!(lines(&Series { tags, ..series.clone() }, &[]), has_zero);
        series.columns = columns(&zero);
        assert_eq!(lines(&series, &[]), has_zero);
    }
}
