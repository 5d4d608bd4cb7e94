//! InfluxDB 3's paths: `/api/v3/write_lp` and `/api/v3/query_influxql`.
//!
//! Lines become what those of the older paths become, and questions are asked as at `/query`; only
//! parameters, the forms of rows and the words of errors are those of the third generation.

use super::policies::{database_and_policy, stored_name};
use super::query::{Bounds, run};
use super::write::{BadLines, Order, write as write_lines};
use crate::http::answer::{Answer, JSON, TEXT};
use crate::http::insert;
use crate::http::partial::Partial;
use crate::http::request::Request;
use crate::http::request::unpack;
use app::App;
use app::ingest::Outcome;
use hyper::StatusCode;
use influxql::{Answer as Rows, Parameters, Series, Value};
use net::failure::Failure;
use net::telemetry::Protocol;
use serde_json::{Map, Value as Json, json};
use std::io::{self, Write};
use std::sync::Arc;
use store::Durability;
use wire::influx::{BadLine, Escapes, Precision, bad_lines};

/// Lines that an answer tells of.
const BAD_LINES_TOLD_MAX: usize = 100;

/// A parameter that is yes or no.
fn switch(request: &Request, name: &str) -> Result<Option<bool>, Failure> {
    match request.params.filled(name) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(other) => {
            Err(Failure::bad_input(format!("invalid {name}: {other:?} (use true or false)")))
        }
    }
}

fn missing(name: &str) -> Failure {
    Failure::bad_input(format!("missing query parameter '{name}'"))
}

/// `POST /api/v3/write_lp?db=..&precision=..&accept_partial=..&no_sync=..`
pub fn write(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let database = request.params.filled("db").ok_or_else(|| missing("db"))?;
    let word = request.params.filled("precision").unwrap_or("auto");
    let precision = Precision::parse(word).ok_or_else(|| {
        let units = "auto, nanosecond, microsecond, millisecond or second";
        Failure::bad_input(format!("invalid precision {word:?} (use {units})"))
    })?;
    let durability = match switch(request, "no_sync")? {
        Some(true) => Durability::Relaxed,
        _ => insert::durability(app, request)?,
    };
    let bad = match switch(request, "accept_partial")? {
        Some(false) => BadLines::RefuseAll,
        _ => BadLines::LeftOut,
    };
    let (database, policy) = database_and_policy(database);
    let database = stored_name(app, Some(database), policy)?;
    let escapes = Escapes::default();
    let order = Order { database, precision, durability, bad_lines: bad, escapes };
    let told =
        |body: &[u8], outcome: &Outcome| bad_lines(body, &outcome.errors, &outcome.rejections);
    let (outcome, lines) = write_lines(app, request, &order, told)?;
    if outcome.is_complete() {
        return Ok(insert::with_unit_warning(
            app,
            &outcome,
            Protocol::Influx,
            Answer::no_content(),
        ));
    }
    let tell = |line: &BadLine| {
        let BadLine { number, text, reason } = line;
        json!({ "original_line": text, "line_number": number, "error_message": reason })
    };
    let mut told = lines.iter().take(BAD_LINES_TOLD_MAX).map(tell);
    let body = match bad {
        BadLines::LeftOut => json!({
            "error": "partial write of line protocol occurred", "data": told.collect::<Vec<_>>(),
        }),
        BadLines::RefuseAll => json!({
            "error": "parsing failed for write_lp endpoint", "data": told.next(),
        }),
    };
    let answer = Answer::bytes(StatusCode::BAD_REQUEST, JSON, body.to_string().into_bytes());
    Ok(insert::with_unit_warning(app, &outcome, Protocol::Influx, answer))
}

/// The parameters of a query, from the address or a body of JSON.
struct Asked {
    database: String,
    text: String,
    format: String,
    parameters: Parameters,
}

fn asked(app: &App, request: &Request) -> Result<Asked, Failure> {
    let mut json = Json::Null;
    if request.has_media_type("application/json") && !request.body.is_empty() {
        let body = unpack::body(app, request)?;
        json = serde_json::from_slice(&body)
            .map_err(|error| Failure::bad_input(format!("invalid JSON: {error}")))?;
        body.give_back(app);
    }
    let find = |name: &str| {
        let in_body = json.get(name).and_then(Json::as_str);
        in_body.or(request.params.filled(name)).map(str::to_string)
    };
    let bound = match json.get("params") {
        Some(bound) if !bound.is_null() => Some(bound.to_string()),
        _ => request.params.filled("params").map(str::to_string),
    };
    let parameters = match bound {
        None => Parameters::new(),
        Some(text) => influxql::parameters(&text).map_err(Failure::bad_input)?,
    };
    Ok(Asked {
        database: find("db").unwrap_or_default(),
        text: find("q").ok_or_else(|| missing("q"))?,
        format: find("format").unwrap_or_else(|| "json".to_string()),
        parameters,
    })
}

/// `GET` and `POST /api/v3/query_influxql?db=..&q=..&format=..`
pub fn query(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let Asked { database, text, format, parameters } = asked(app, request)?;
    let form = Form::parse(&format)?;
    let statements = influxql::parse(&text, &parameters)
        .map_err(|error| Failure::bad_input(format!("error parsing query: {error}")))?;
    if statements.len() != 1 {
        return Err(Failure::bad_input("a request asks for one statement"));
    }
    let partial = Partial::of_mute_format(app, request)?;
    let bounds = Bounds::of(app, request)?;
    let (database, policy) = database_and_policy(&database);
    let named = (database, policy.unwrap_or_default());
    let answers = run(app, request, (named, &statements), (&partial, &bounds))?;
    let rows = answers.into_iter().next().unwrap_or_default();
    if let Some(error) = rows.error {
        return Err(Failure::bad_input(error));
    }
    partial.finish(app, form.answer(rows))
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    JsonLines,
    Csv,
    Pretty,
}

impl Form {
    fn parse(word: &str) -> Result<Form, Failure> {
        Ok(match word {
            "json" => Form::Json,
            "jsonl" | "json_lines" => Form::JsonLines,
            "csv" => Form::Csv,
            "pretty" => Form::Pretty,
            other => {
                let message = format!("invalid format {other:?} (use json, jsonl, csv or pretty)");
                return Err(Failure::bad_input(message));
            }
        })
    }

    fn content_type(self) -> &'static str {
        match self {
            Form::Json => JSON,
            Form::JsonLines => "application/jsonl",
            Form::Csv => "text/csv",
            Form::Pretty => TEXT,
        }
    }

    /// The answer, of which no more than a piece is there as text.
    fn answer(self, rows: Rows) -> Answer {
        let columns = columns(&rows.series);
        let widths = if self == Form::Pretty { widths(&rows.series, &columns) } else { Vec::new() };
        Answer::written(self.content_type(), move |out| {
            let all = &rows.series;
            match self {
                Form::Json => json_array(all, &columns, out),
                Form::JsonLines => {
                    objects(all, &columns).try_for_each(|object| writeln!(out, "{object}"))
                }
                Form::Csv => csv(all, &columns, out),
                Form::Pretty => pretty(all, &columns, &widths, out),
            }
        })
    }
}

/// What the first column is called: the measurement's name, or a database's.
fn first_column(series: &Series) -> &'static str {
    if is_databases(series) { "iox::database" } else { "iox::measurement" }
}

fn is_databases(series: &Series) -> bool {
    series.name == "databases" && *series.columns == ["name"]
}

/// The columns of all series: the measurement, time, tags, and whatever else there is.
fn columns(all: &[Series]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !names.iter().any(|other| other == name) {
            names.push(name.to_string());
        }
    };
    for series in all {
        add(first_column(series));
        if is_databases(series) {
            continue;
        }
        series.columns.iter().filter(|name| *name == "time").for_each(|name| add(name));
        series.tags.iter().for_each(|(name, _)| add(name));
        series.columns.iter().for_each(|name| add(name));
    }
    names
}

/// The cells of a row, in the order of the columns.
fn cells(series: &Series, row: &[Value], columns: &[String]) -> Vec<Value> {
    let find = |name: &String| {
        if *name == first_column(series) {
            return match is_databases(series) {
                true => row.first().cloned().unwrap_or_default(),
                false => Value::text(&series.name),
            };
        }
        if let Some(at) = series.columns.iter().position(|column| column == name) {
            return row.get(at).cloned().unwrap_or_default();
        }
        let tag = series.tags.iter().find(|(tag, _)| tag == name);
        tag.map_or(Value::Null, |(_, value)| Value::text(value))
    };
    columns.iter().map(find).collect()
}

/// All rows of all series.
fn rows<'a>(all: &'a [Series], columns: &'a [String]) -> impl Iterator<Item = Vec<Value>> + 'a {
    all.iter()
        .flat_map(move |series| series.rows.iter().map(move |row| cells(series, row, columns)))
}

/// RFC 3339 without the letter of the zone.
fn time_text(time: i64) -> String {
    let mut text = String::new();
    influxql::format_time(time, None, &mut text);
    text.trim_end_matches('Z').to_string()
}

/// A cell as text; nothing for nothing.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Text(text) => text.to_string(),
        Value::Time(time) => time_text(*time),
        Value::Integer(value) => value.to_string(),
        Value::Boolean(value) => value.to_string(),
        // As the numbers of JSON: a float keeps its point.
        Value::Float(value) => json!(value).to_string(),
    }
}

fn objects<'a>(all: &'a [Series], columns: &'a [String]) -> impl Iterator<Item = String> + 'a {
    rows(all, columns).map(move |cells| {
        let mut object = Map::new();
        for (name, cell) in columns.iter().zip(cells) {
            let value = match &cell {
                Value::Null => continue,
                Value::Integer(value) => json!(value),
                Value::Float(value) => json!(value),
                Value::Boolean(value) => json!(value),
                other => json!(text_of(other)),
            };
            object.insert(name.clone(), value);
        }
        Json::Object(object).to_string()
    })
}

fn json_array(all: &[Series], columns: &[String], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"[")?;
    for (idx, object) in objects(all, columns).enumerate() {
        write!(out, "{}{object}", if idx == 0 { "" } else { "," })?;
    }
    out.write_all(b"]")
}

fn csv(all: &[Series], columns: &[String], out: &mut dyn Write) -> io::Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    csv_line(columns.iter().cloned(), out)?;
    rows(all, columns).try_for_each(|cells| csv_line(cells.iter().map(text_of), out))
}

fn csv_line(cells: impl Iterator<Item = String>, out: &mut dyn Write) -> io::Result<()> {
    for (idx, text) in cells.enumerate() {
        let separator = if idx == 0 { "" } else { "," };
        match text.contains([',', '"', '\r', '\n']) {
            true => write!(out, "{separator}\"{}\"", text.replace('"', "\"\""))?,
            false => write!(out, "{separator}{text}")?,
        }
    }
    out.write_all(b"\n")
}

/// Characters of the longest cell of each column, its name among them.
fn widths(all: &[Series], columns: &[String]) -> Vec<usize> {
    let width = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = columns.iter().map(|name| width(name)).collect();
    for cells in rows(all, columns) {
        for (widest, cell) in widths.iter_mut().zip(&cells) {
            *widest = width(&text_of(cell)).max(*widest);
        }
    }
    widths
}

/// A table in a frame.
fn pretty(
    all: &[Series],
    columns: &[String],
    widths: &[usize],
    out: &mut dyn Write,
) -> io::Result<()> {
    frame(widths, out)?;
    framed(columns.iter().cloned(), widths, out)?;
    frame(widths, out)?;
    rows(all, columns).try_for_each(|cells| framed(cells.iter().map(text_of), widths, out))?;
    match all.iter().all(|series| series.rows.is_empty()) {
        true => Ok(()),
        false => frame(widths, out),
    }
}

fn frame(widths: &[usize], out: &mut dyn Write) -> io::Result<()> {
    widths.iter().try_for_each(|width| write!(out, "+{}", "-".repeat(width + 2)))?;
    out.write_all(b"+\n")
}

fn framed(
    cells: impl Iterator<Item = String>,
    widths: &[usize],
    out: &mut dyn Write,
) -> io::Result<()> {
    cells.zip(widths).try_for_each(|(cell, width)| write!(out, "| {cell:<width$} "))?;
    out.write_all(b"|\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::answer::Content;

    fn sample() -> Vec<Series> {
        vec![Series {
            name: "cpu".to_string(),
            tags: vec![("host".to_string(), "a,b".to_string())],
            columns: ["time", "v"].map(str::to_string).into(),
            rows: vec![
                vec![Value::Time(1_500_000_000), Value::Float(2.0)],
                vec![Value::Time(2_000_000_000), Value::Null],
            ],
        }]
    }

    fn text(form: Form, all: Vec<Series>) -> String {
        let Content::Bytes(bytes) = form.answer(Rows::of(all)).content else { panic!("bytes") };
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn forms() {
        assert_eq!(columns(&sample()), ["iox::measurement", "time", "host", "v"]);
        assert_eq!(
            text(Form::Csv, sample()),
            "iox::measurement,time,host,v\ncpu,1970-01-01T00:00:01.5,\"a,b\",2.0\n\
             cpu,1970-01-01T00:00:02,\"a,b\",\n"
        );
        let first =
            r#"{"host":"a,b","iox::measurement":"cpu","time":"1970-01-01T00:00:01.5","v":2.0}"#;
        let second = r#"{"host":"a,b","iox::measurement":"cpu","time":"1970-01-01T00:00:02"}"#;
        assert_eq!(text(Form::Json, sample()), format!("[{first},{second}]"));
        assert_eq!(text(Form::JsonLines, sample()), format!("{first}\n{second}\n"));
        assert_eq!(
            text(Form::Pretty, sample()),
            "+------------------+-----------------------+------+-----+\n\
             | iox::measurement | time                  | host | v   |\n\
             +------------------+-----------------------+------+-----+\n\
             | cpu              | 1970-01-01T00:00:01.5 | a,b  | 2.0 |\n\
             | cpu              | 1970-01-01T00:00:02   | a,b  |     |\n\
             +------------------+-----------------------+------+-----+\n"
        );
    }

    #[test]
    fn forms_without_rows() {
        assert_eq!(text(Form::Json, Vec::new()), "[]");
        assert_eq!(text(Form::JsonLines, Vec::new()), "");
        assert_eq!(text(Form::Csv, Vec::new()), "");
        assert_eq!(text(Form::Pretty, Vec::new()), "+\n|\n+\n");
    }

    #[test]
    fn long_texts_are_streamed() {
        for form in [Form::Json, Form::JsonLines, Form::Csv, Form::Pretty] {
            let mut all = sample();
            let row = vec![Value::Time(0), Value::text(&"x".repeat(1 << 10))];
            all[0].rows = vec![row; 100];
            let Content::Stream(write) = form.answer(Rows::of(all)).content else {
                panic!("a stream: {form:?}")
            };
            let mut out = Vec::new();
            write(&mut out).expect("memory takes every byte");
            assert!(100 << 10 < out.len(), "{form:?}");
        }
    }
}
