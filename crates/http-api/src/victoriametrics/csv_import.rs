//! `POST /api/v1/import/csv`: lines of CSV, of which the request says what each column is, as
//! VictoriaMetrics reads them.
//!
//! ```text
//! format = column:metric:NAME | column:label:NAME | column:time:FORMAT , ..    columns from 1
//! FORMAT = unix_s | unix_ms | unix_ns | rfc3339 | custom:LAYOUT of Go
//! ```
//!
//! Each metric column of a line is a sample. An empty value is none, an empty label is left out, and
//! columns that the format does not name are passed over. A first line whose values and times are all no
//! such is the header. Lines become JSON lines on their way.

use super::go_layout::GoLayout;
use crate::http::answer::Answer;
use crate::http::insert;
use crate::http::insert::{durability, extra_labels};
use crate::http::request::Request;
use crate::http::request::selection::invalid;
use crate::http::request::unpack;
use app::App;
use app::ingest::Outcome;
use model::sample::{NANOS_PER_MILLI, NANOS_PER_SECOND};
use model::{Labels, LabelsBuilder, METRIC_NAME, Timestamp};
use net::failure::Failure;
use net::telemetry::Protocol;
use std::borrow::Cow;
use std::sync::Arc;
use store::Durability;
use wire::Start;
use wire::json_lines::{self, JsonKeys, LineWriter, Times};

/// Columns that a format may name.
const COLUMNS_MAX: usize = 1000;
/// The highest column.
const COLUMN_MAX: usize = 100_000;
/// Bytes of JSON lines that are stored at once.
const LINES_SIZE: usize = 4 << 20;

/// Meaning of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Column {
    Metric(String),
    Label(String),
    Time(TimeFormat),
}

/// Form of the times in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TimeFormat {
    /// A whole number of units of so many nanoseconds.
    Unix(i64),
    Rfc3339,
    Custom(GoLayout),
}

/// The columns that a request names, by their places from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CsvFormat(Vec<(usize, Column)>);

/// `POST /api/v1/import/csv?format=...`
pub fn import(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let durability = durability(app, request)?;
    let format = CsvFormat::parse(request.params.get("format").unwrap_or(""))
        .map_err(|reason| invalid("format", &reason))?;
    let keys = JsonKeys::new(extra_labels(request, Vec::new())?);
    let body = unpack::body(app, request)?;
    // Readers of exports skip times that are no whole milliseconds.
    let now = request.now - request.now.rem_euclid(NANOS_PER_MILLI);
    let mut pending = Pending { app, keys, durability, lines: Vec::new(), positions: Vec::new() };
    let mut outcome = Outcome::default();
    let mut may_be_header = true;
    for (idx, line) in body.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let position = u32::try_from(idx + 1).unwrap_or(u32::MAX);
        if line.is_empty() || std::mem::take(&mut may_be_header) && format.is_header(line) {
            continue;
        }
        outcome.counts.lines += 1;
        match format.samples(line, now) {
            Ok(samples) => samples.iter().for_each(|sample| pending.push(sample, position)),
            Err(reason) => outcome.errors.push(position, || format!("cannot parse CSV: {reason}")),
        }
        if LINES_SIZE <= pending.lines.len() {
            pending.store(&mut outcome)?;
        }
    }
    pending.store(&mut outcome)?;
    body.give_back(app);
    outcome.finish(app, Protocol::Csv, request.body.len())?;
    let answer = insert::told(&outcome).unwrap_or_else(Answer::no_content);
    Ok(insert::with_unit_warning(app, &outcome, Protocol::Csv, answer))
}

/// A sample of a line.
type CsvSample = (Labels, f64, Timestamp);

/// JSON lines that are to be stored.
struct Pending<'a> {
    app: &'a App,
    keys: JsonKeys,
    durability: Durability,
    lines: Vec<u8>,
    /// Number of the line of CSV for each line.
    positions: Vec<u32>,
}

impl Pending<'_> {
    fn push(&mut self, (labels, value, timestamp): &CsvSample, position: u32) {
        let (times, values) = ([*timestamp], [*value]);
        LineWriter::default().push_series(&mut self.lines, labels, Times::plain(&times), &values);
        self.positions.push(position);
    }

    fn store(&mut self, outcome: &mut Outcome) -> Result<(), Failure> {
        let hasher = self.app.store.hasher();
        let mut part = Outcome::default();
        let mut next = Some(Start::default()).filter(|_| !self.lines.is_empty());
        while let Some(start) = next {
            let decoded = json_lines::decode(&self.lines, start, &hasher, &self.keys)?;
            next = decoded.rest;
            part.append(self.app, decoded, self.durability)?;
        }
        part.rename_positions(|line| {
            self.positions.get(line as usize - 1).copied().unwrap_or(line)
        });
        part.counts.lines = 0;
        outcome.add(part);
        self.lines.clear();
        self.positions.clear();
        Ok(())
    }
}

impl CsvFormat {
    /// Reads a format.
    fn parse(text: &str) -> Result<CsvFormat, String> {
        let mut columns = Vec::new();
        for (idx, entry) in split_entries(text).into_iter().enumerate() {
            let number = idx + 1;
            let mut pieces = entry.splitn(3, ':');
            let (Some(place), Some(kind), Some(rest)) =
                (pieces.next(), pieces.next(), pieces.next())
            else {
                return Err(format!(
                    "entry #{number} must have the form <column>:<type>:<extension>, got {entry:?}"
                ));
            };
            let place: usize = place
                .trim()
                .parse()
                .ok()
                .filter(|place| (1..=COLUMN_MAX).contains(place))
                .ok_or_else(|| format!("entry #{number} {entry:?}: columns count from 1"))?;
            let named = |what| match rest.is_empty() {
                true => Err(format!("entry #{number} {entry:?}: {what} has no name")),
                false => Ok(rest.to_string()),
            };
            let column = match kind {
                "metric" => Column::Metric(named("a metric")?),
                "label" => Column::Label(named("a label")?),
                "time" => Column::Time(
                    TimeFormat::parse(rest).map_err(|why| format!("entry #{number}: {why}"))?,
                ),
                _ => {
                    return Err(format!(
                        "unknown type {kind:?} of a column; use time, metric or label"
                    ));
                }
            };
            columns.push((place - 1, column));
        }
        let times = columns.iter().filter(|(_, column)| matches!(column, Column::Time(_))).count();
        if 1 < times {
            return Err("more than one time column".to_string());
        }
        let count =
            columns.iter().filter(|(_, column)| matches!(column, Column::Metric(_))).count();
        if count == 0 {
            return Err(format!("no metric column in {text:?}"));
        }
        let is_name = |(_, column): &(usize, Column)| matches!(column, Column::Label(name) if name == METRIC_NAME);
        if 1 < count && columns.iter().any(is_name) {
            return Err(format!(
                "the label {METRIC_NAME} would give the samples of {count} metric columns one name"
            ));
        }
        if COLUMNS_MAX < columns.len() {
            return Err(format!("{} columns, the limit is {COLUMNS_MAX}", columns.len()));
        }
        Ok(CsvFormat(columns))
    }

    /// Whether a line names the columns: where values and times are expected it has other texts.
    fn is_header(&self, line: &[u8]) -> bool {
        let Ok(line) = std::str::from_utf8(line) else { return false };
        let Ok(fields) = split_line(line) else { return false };
        self.0.iter().all(|(place, column)| match (column, fields.get(*place)) {
            (Column::Label(_), Some(_)) => true,
            (_, None) => false,
            (Column::Metric(_), Some(name)) => !name.is_empty() && number(name).is_none(),
            (Column::Time(format), Some(name)) => {
                !name.is_empty() && number(name).is_none() && format.read(name).is_none()
            }
        })
    }

    /// The samples of a line.
    fn samples(&self, line: &[u8], now: Timestamp) -> Result<Vec<CsvSample>, String> {
        let line = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_string())?;
        let fields = split_line(line)?;
        let mut labels = LabelsBuilder::new();
        let (mut values, mut timestamp) = (Vec::new(), now);
        for (place, column) in &self.0 {
            let Some(field) = fields.get(*place) else {
                return Err(format!("{} columns, column {} expected", fields.len(), place + 1));
            };
            match column {
                Column::Label(_) | Column::Metric(_) if field.is_empty() => {}
                Column::Label(name) => labels.set(name, field),
                Column::Metric(name) => {
                    let value = number(field).ok_or_else(|| format!("no number {field:?}"))?;
                    values.push((name, value));
                }
                Column::Time(format) => {
                    let parsed = format.read(field);
                    timestamp = parsed.ok_or_else(|| format!("no time {field:?}"))?;
                }
            }
        }
        // A column of names takes precedence over the name that the format gives.
        let has_name = labels.get(METRIC_NAME).is_some();
        let sample = |(name, value): (&String, f64)| {
            if !has_name {
                labels.set(METRIC_NAME, name);
            }
            (labels.clone().finish(), value, timestamp)
        };
        Ok(values.into_iter().map(sample).collect())
    }
}

/// Splits a format at commas that begin an entry: layouts may have commas, too.
fn split_entries(text: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let place = piece.split(':').next().unwrap_or("");
        let is_layout = entries.last().is_some_and(|last| last.contains(":time:custom:"));
        let is_entry = piece.contains(':') && place.trim().parse::<usize>().is_ok();
        match entries.last_mut().filter(|_| is_layout && !is_entry) {
            Some(last) => *last = format!("{last},{piece}"),
            None => entries.push(piece.to_string()),
        }
    }
    entries
}

impl TimeFormat {
    fn parse(text: &str) -> Result<TimeFormat, String> {
        match text {
            "unix_s" => Ok(TimeFormat::Unix(NANOS_PER_SECOND)),
            "unix_ms" => Ok(TimeFormat::Unix(NANOS_PER_MILLI)),
            "unix_ns" => Ok(TimeFormat::Unix(1)),
            "rfc3339" => Ok(TimeFormat::Rfc3339),
            other => match other.strip_prefix("custom:") {
                Some(layout) => Ok(TimeFormat::Custom(GoLayout::parse(layout)?)),
                None => Err(format!(
                    "unknown time format {other:?}; use unix_s, unix_ms, unix_ns, rfc3339 or custom:<layout>"
                )),
            },
        }
    }

    fn read(&self, text: &str) -> Option<Timestamp> {
        match self {
            TimeFormat::Unix(unit) => text.parse::<i64>().ok()?.checked_mul(*unit),
            TimeFormat::Rfc3339 => {
                let moment: jiff::Timestamp = text.parse().ok()?;
                i64::try_from(moment.as_nanosecond()).ok()
            }
            TimeFormat::Custom(layout) => layout.read(text),
        }
    }
}

/// A number as Go writes it.
fn number(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['+', '-']);
    let is_word = ["inf", "infinity", "nan"].iter().any(|word| digits.eq_ignore_ascii_case(word));
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|_| is_word || is_plain)
}

/// The fields of a line; one in quotes may have commas, and quotes twice.
fn split_line(line: &str) -> Result<Vec<Cow<'_, str>>, String> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let Some(quoted) = rest.strip_prefix('"') else {
            let end = rest.find(',').unwrap_or(rest.len());
            fields.push(Cow::Borrowed(&rest[..end]));
            match rest.get(end + 1..) {
                Some(tail) => rest = tail,
                None => return Ok(fields),
            }
            continue;
        };
        let (mut field, mut tail) = (String::new(), quoted);
        loop {
            let (inside, after) = tail.split_once('"').ok_or("a quote is not closed")?;
            field.push_str(inside);
            tail = after;
            match tail.strip_prefix('"') {
                Some(after) => {
                    field.push('"');
                    tail = after;
                }
                None => break,
            }
        }
        fields.push(Cow::Owned(field));
        match tail.strip_prefix(',') {
            Some(after) => rest = after,
            None if tail.is_empty() => return Ok(fields),
            None => return Err("text behind a closing quote".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refusals of VictoriaMetrics.
    #[test]
    fn formats() {
        for (text, is_format) in [
            ("1:metric:a", true),
            ("1:label:x,2:metric:a,3:time:unix_s", true),
            ("1:metric:a,2:metric:b,3:label:c", true),
            ("1:metric:a,2:time:rfc3339", true),
            ("1:metric:a,2:time:custom:2006-01-02 15:04:05", true),
            ("2:time:custom:Mon, 02 Jan 2006 15:04:05 MST,1:metric:a", true),
            ("", false),
            ("1:metric", false),
            ("0:metric:a", false),
            ("x:metric:a", false),
            ("1:time:unix_s", false),
            ("1:foo:b", false),
            ("1:label:", false),
            ("1:metric:", false),
            ("1:metric:a,1:time:bad", false),
            ("1:metric:a,2:time:unix_s,3:time:unix_s", false),
            ("1:metric:a,2:label:__name__", true),
            // VictoriaMetrics gives both metrics the same name.
            ("1:metric:a,2:label:__name__,3:metric:b", false),
        ] {
            assert_eq!(CsvFormat::parse(text).is_ok(), is_format, "{text}");
        }
    }

    #[test]
    fn headers() {
        for (format, line, is_header) in [
            ("1:label:a,2:metric:m,3:time:unix_s", "a,m,time", true),
            ("1:label:a,2:metric:m,3:time:unix_s", "7,\"m,n\",time,more", true),
            ("1:label:a,2:metric:m,3:time:unix_s", "a,m,1709208000", false),
            ("1:label:a,2:metric:m,3:time:unix_s", "a,1,time", false),
            ("1:label:a,2:metric:m,3:time:unix_s", "a,,time", false),
            ("1:label:a,2:metric:m,3:time:unix_s", "a,m", false),
            ("1:metric:m,2:time:rfc3339", "m,2024-02-29T12:00:00Z", false),
            ("1:metric:m,2:metric:n", "m,n", true),
            ("1:metric:m,2:metric:n", "m,2", false),
            ("1:metric:m", "inf", false),
            ("1:metric:m", "\"m", false),
        ] {
            let columns = CsvFormat::parse(format).expect("a format");
            assert_eq!(columns.is_header(line.as_bytes()), is_header, "{line} as {format}");
        }
    }

    /// Answers of VictoriaMetrics to the same lines.
    #[test]
    fn lines() {
        let format = CsvFormat::parse("1:label:a,2:metric:m,3:time:unix_s").expect("a format");
        let sample = |a: &str, value: f64| {
            let pairs = [("__name__", "m"), ("a", a)];
            let pairs = if a.is_empty() { &pairs[..1] } else { &pairs[..] };
            vec![(Labels::from_pairs(pairs), value, 7 * NANOS_PER_SECOND)]
        };
        for (line, expected) in [
            ("x,5,7", Some(sample("x", 5.0))),
            ("y,,7", Some(Vec::new())),
            (",7,7", Some(sample("", 7.0))),
            ("\"q\"\"z\",8,7", Some(sample("q\"z", 8.0))),
            ("\"w,1\",9,7", Some(sample("w,1", 9.0))),
            ("zz,inf,7", Some(sample("zz", f64::INFINITY))),
            ("e,1e3,7,extra", Some(sample("e", 1000.0))),
            ("bad,x,7", None),
            ("z,1", None),
            ("z,1,7.5x", None),
            ("\"z,1,7", None),
            ("\"z\"a,1,7", None),
        ] {
            assert_eq!(format.samples(line.as_bytes(), 0).ok(), expected, "{line}");
        }
        let format = CsvFormat::parse("1:label:__name__,2:metric:m").expect("a format");
        for (line, expected) in [("x,1", "x"), (",1", "m")] {
            let found = format.samples(line.as_bytes(), 0).expect(line);
            assert_eq!(found[0].0.metric_name(), expected, "{line}");
        }
        let format = CsvFormat::parse("2:metric:b,1:metric:a").expect("a format");
        let found = format.samples(b"1,2", 5).expect("a line");
        let values: Vec<_> = found.iter().map(|(l, v, t)| (l.metric_name(), *v, *t)).collect();
        assert_eq!(values, [("b", 2.0, 5), ("a", 1.0, 5)]);
    }

    #[test]
    fn times() {
        for (format, text, expected) in [
            ("unix_s", "1709207500", Some(1_709_207_500_000_000_000)),
            ("unix_ms", "1709207500123", Some(1_709_207_500_123_000_000)),
            ("unix_ns", "1709207500123456789", Some(1_709_207_500_123_456_789)),
            ("unix_s", "x", None),
            ("rfc3339", "2024-02-29T11:51:40Z", Some(1_709_207_500_000_000_000)),
            ("rfc3339", "2024-02-29T12:51:40.5+01:00", Some(1_709_207_500_500_000_000)),
            ("custom:2006-01-02 15:04:05", "2024-02-29 11:51:40", Some(1_709_207_500_000_000_000)),
        ] {
            let parsed = TimeFormat::parse(format).expect(format);
            assert_eq!(parsed.read(text), expected, "{format} {text}");
        }
    }
}
