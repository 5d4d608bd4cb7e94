//! Samples as lines of CSV, in columns that the request chooses, as VictoriaMetrics does it.
//!
//! ```text
//! __name__                 the metric's name, or any other label
//! __value__                the value
//! __timestamp__[:FORMAT]   unix_s, unix_ms (the default), unix_us, unix_ns, rfc3339
//! ```

use crate::http::request::selection::invalid;
use cli::calendar::rfc3339;
use model::sample::{NANOS_PER_MILLI, NANOS_PER_SECOND};
use model::{Labels, Timestamp};
use net::failure::Failure;
use std::io::Write;
use wire::prom_json::number::push_exposition_value;

/// Columns of one line.
const COLUMNS_MAX: usize = 1000;

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeFormat {
    /// A whole number of units of so many nanoseconds.
    Unix(i64),
    Rfc3339,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Column {
    Label(String),
    Value,
    Time(TimeFormat),
}

/// The columns of a line.
#[derive(Clone, Debug)]
pub struct Columns(Vec<Column>);

impl Columns {
    /// Reads a list of columns, separated by commas.
    ///
    /// # Errors
    /// 400 for an empty list, an empty column, or a time's format that is not known.
    pub fn parse(text: &str) -> Result<Columns, Failure> {
        let columns: Result<Vec<Column>, Failure> = text.split(',').map(column).collect();
        let columns = columns?;
        if COLUMNS_MAX < columns.len() {
            let count = columns.len();
            return Err(invalid("format", &format!("{count} columns, the limit is {COLUMNS_MAX}")));
        }
        Ok(Columns(columns))
    }

    /// Appends a line for each sample.
    pub fn push_series(
        &self,
        out: &mut Vec<u8>,
        labels: &Labels,
        timestamps: &[Timestamp],
        values: &[f64],
    ) {
        for (timestamp, value) in timestamps.iter().zip(values) {
            for (idx, column) in self.0.iter().enumerate() {
                if 0 < idx {
                    out.push(b',');
                }
                match column {
                    Column::Label(name) => push_text(out, labels.get(name).unwrap_or("")),
                    Column::Value => push_exposition_value(out, *value),
                    Column::Time(format) => push_time(out, *format, *timestamp),
                }
            }
            out.push(b'\n');
        }
    }
}

fn column(text: &str) -> Result<Column, Failure> {
    match text.trim() {
        "" => Err(invalid("format", &"a column has no name; use __name__, label, __value__")),
        "__value__" => Ok(Column::Value),
        "__timestamp__" => Ok(Column::Time(TimeFormat::Unix(NANOS_PER_MILLI))),
        other => match other.strip_prefix("__timestamp__:") {
            Some(format) => time_format(format).map(Column::Time),
            None => Ok(Column::Label(other.to_string())),
        },
    }
}

fn time_format(text: &str) -> Result<TimeFormat, Failure> {
    match text {
        "unix_s" => Ok(TimeFormat::Unix(NANOS_PER_SECOND)),
        "unix_ms" => Ok(TimeFormat::Unix(NANOS_PER_MILLI)),
        "unix_us" => Ok(TimeFormat::Unix(1_000)),
        "unix_ns" => Ok(TimeFormat::Unix(1)),
        "rfc3339" => Ok(TimeFormat::Rfc3339),
        other => {
            let known = "use unix_s, unix_ms, unix_us, unix_ns or rfc3339";
            Err(invalid("format", &format!("no times in {other:?}; {known}")))
        }
    }
}

fn push_time(out: &mut Vec<u8>, format: TimeFormat, timestamp: Timestamp) {
    let written = match format {
        TimeFormat::Unix(unit) => write!(out, "{}", timestamp.div_euclid(unit)),
        TimeFormat::Rfc3339 => write!(out, "{}", rfc3339(timestamp)),
    };
    written.expect("memory takes every byte");
}

/// As RFC 4180 has it: in quotes when it must be, quotes doubled.
fn push_text(out: &mut Vec<u8>, text: &str) {
    if !text.contains([',', '"', '\n', '\r']) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, expected: &str) {
        let labels = Labels::from_pairs(&[("__name__", "m"), ("a", "x,\"y\""), ("b", "2")]);
        let mut out = Vec::new();
        let times = [1_709_208_000_123_456_789, 1_709_208_001_000_000_000];
        let columns = Columns::parse(format).expect(format);
        columns.push_series(&mut out, &labels, &times, &[1.5, f64::NAN]);
        assert_eq!(String::from_utf8(out).expect("text"), expected, "{format}");
    }

    #[test]
    fn columns() {
        check("__name__,b, __value__", "m,2,1.5\nm,2,NaN\n");
        check("a,nothing,b", "\"x,\"\"y\"\"\",,2\n\"x,\"\"y\"\"\",,2\n");
        check("__timestamp__", "1709208000123\n1709208001000\n");
        check("__timestamp__:unix_s", "1709208000\n1709208001\n");
        check("__timestamp__:unix_us", "1709208000123456\n1709208001000000\n");
        check("__timestamp__:unix_ns", "1709208000123456789\n1709208001000000000\n");
        let text = "2024-02-29T12:00:00.123456789Z\n2024-02-29T12:00:01Z\n";
        check("__timestamp__:rfc3339", text);
        for bad in ["", "a,,b", "__timestamp__:", "__timestamp__:iso"] {
            let failure = Columns::parse(bad).expect_err(bad);
            assert!(failure.message.contains("\"format\""), "{}", failure.message);
        }
        assert!(Columns::parse(&"a,".repeat(COLUMNS_MAX + 1)).is_err());
    }
}
