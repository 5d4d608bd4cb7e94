//! Rows to lines of line protocol: what `SELECT ... INTO` writes.

use crate::answer::Series;
use crate::source::EvalError;
use crate::value::Value;
use std::fmt::Write;

/// Bytes of lines that are written at once, about.
const LINES_SIZE: usize = 1 << 20;

/// Stores lines.
pub type LineSink<'s> = dyn FnMut(&str) -> Result<(), EvalError> + 's;

/// Makes lines of rows.
pub(crate) struct Lines<'s, 'w> {
    /// The measurement; empty for that which rows come from.
    pub measurement: String,
    /// Columns that are tags, by their place.
    pub tags: Vec<usize>,
    pub sink: &'s mut LineSink<'w>,
    text: String,
}

impl<'s, 'w> Lines<'s, 'w> {
    pub fn new(measurement: String, tags: Vec<usize>, sink: &'s mut LineSink<'w>) -> Self {
        Lines { measurement, tags, sink, text: String::new() }
    }

    /// Writes the rows of a series that have a value; says how many. The first column is the time.
    ///
    /// # Errors
    /// For names that no line can have, and what the sink says.
    pub fn write(&mut self, series: &Series) -> Result<u64, EvalError> {
        let name = if self.measurement.is_empty() { &series.name } else { &self.measurement };
        // Lines are read without blanks at their beginning: it would be another measurement.
        if name.starts_with(char::is_whitespace) {
            return Err(unwritable(name, "it begins with a blank"));
        }
        let mut start = escaped(name, ", ")?;
        if start.starts_with('#') {
            return Err(unwritable(name, "it begins like a comment"));
        }
        let mut count = 0;
        for (key, value) in series.tags.iter().filter(|(_, value)| !value.is_empty()) {
            let (key, value) = (escaped(key, ",= ")?, escaped(value, ",= ")?);
            let _ = write!(start, ",{key}={value}");
        }
        let names = series.columns.iter().map(|name| escaped(name, ",= "));
        let names = names.collect::<Result<Vec<String>, EvalError>>()?;
        for row in &series.rows {
            count += u64::from(self.row(&start, &names, row)?);
            if LINES_SIZE <= self.text.len() {
                self.flush()?;
            }
        }
        Ok(count)
    }

    /// Appends a line; whether it has a field.
    fn row(&mut self, start: &str, names: &[String], row: &[Value]) -> Result<bool, EvalError> {
        let before = self.text.len();
        self.text.push_str(start);
        let cells = || names.iter().zip(row).enumerate().skip(1);
        for (at, (name, value)) in cells() {
            if let Value::Text(value) = value
                && self.tags.contains(&at)
                && !value.is_empty()
            {
                let value = escaped(value, ",= ")?;
                let _ = write!(self.text, ",{name}={value}");
            }
        }
        let mut separator = ' ';
        for (at, (name, value)) in cells() {
            let Some(value) = field(value).filter(|_| !self.tags.contains(&at)) else { continue };
            let _ = write!(self.text, "{separator}{name}={value}");
            separator = ',';
        }
        match row.first() {
            Some(Value::Time(time)) if separator == ',' => {
                let _ = writeln!(self.text, " {time}");
                Ok(true)
            }
            _ => {
                self.text.truncate(before);
                Ok(false)
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

fn escaped(text: &str, special: &str) -> Result<String, EvalError> {
    if text.contains(['\n', '\r']) {
        return Err(unwritable(text, "it has a line break"));
    }
    if text.contains('\0') {
        return Err(unwritable(text, "it has a zero byte"));
    }
    if text.ends_with('\\') {
        return Err(unwritable(text, "it ends in a backslash"));
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if special.contains(character) {
            out.push('\\');
        }
        out.push(character);
    }
    Ok(out)
}

fn unwritable(text: &str, reason: &str) -> EvalError {
    EvalError::new(format!("{text:?} cannot be written as a line: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(series: &Series, tags: Vec<usize>) -> Result<(u64, String), EvalError> {
        let mut text = String::new();
        let mut sink = |lines: &str| {
            text.push_str(lines);
            Ok(())
        };
        let mut lines = Lines::new(String::new(), tags, &mut sink);
        let count = lines.write(series)?;
        lines.flush()?;
        Ok((count, text))
    }

    #[test]
    fn rows_are_lines() {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_string()).collect();
        let row = |time, cells: &[Value]| [&[Value::Time(time)], cells].concat();
        let mut series = Series {
            name: "disk io".to_string(),
            tags: vec![("path".to_string(), "/a b".to_string()), ("x".into(), String::new())],
            columns: texts(&["time", "f", "a=b", "host"]),
            rows: vec![
                row(1, &[Value::Float(0.5), Value::Integer(-3), Value::text("q\"\\")]),
                row(2, &[Value::Null, Value::Float(f64::INFINITY), Value::Null]),
                row(3, &[Value::Boolean(true), Value::Null, Value::Null]),
            ],
        };
        let expected = "disk\\ io,path=/a\\ b f=0.5,a\\=b=-3i,host=\"q\\\"\\\\\" 1\n\
                        disk\\ io,path=/a\\ b f=true 3\n";
        assert_eq!(lines(&series, Vec::new()), Ok((2, expected.to_string())));
        series.rows.truncate(1);
        series.rows[0][3] = Value::text("h,1");
        let expected = "disk\\ io,path=/a\\ b,host=h\\,1 f=0.5,a\\=b=-3i 1\n";
        assert_eq!(lines(&series, vec![3]), Ok((1, expected.to_string())));
        series.name = "#a".to_string();
        assert!(lines(&series, Vec::new()).is_err());
        series.name = "a\nb".to_string();
        assert!(lines(&series, Vec::new()).is_err());
    }
}
