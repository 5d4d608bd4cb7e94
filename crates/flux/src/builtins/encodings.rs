//! Tables and values from and to other formats: `csv.from` and `json.encode`.

use super::{Builtin, Call, function};
use crate::error::{Error, Result};
use crate::table::{Column, Data, Table};
use crate::time::{Duration, parse_time};
use crate::value::{Kind, Record, Value, print_time};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("csv", "from", from_csv),
    function("json", "encode", encode_json),
    function("experimental/json", "parse", parse_json),
];

/// Bytes of memory of a parsed number, about, before it is a value.
const JSON_VALUE_SIZE: usize = 40;

/// Columns before those of a table: annotation, result and table.
const LEADING_COLUMNS: usize = 3;

fn invalid(reason: impl std::fmt::Display) -> Error {
    Error::runtime(format!("failed to read csv: {reason}"))
}

/// `csv.from(csv: "..", mode: "annotations")`
fn from_csv(call: Call<'_>) -> Result<Value> {
    if call.optional("file").is_some() || call.optional("url").is_some() {
        return Err(Error::runtime(
            "csv.from: files and URLs are not read here: pass the text as csv, or write the \
             data to /api/v2/write",
        ));
    }
    let text = call.required_text("csv")?;
    let mode = call.text_or("mode", "annotations")?;
    call.done()?;
    call.evaluation.look_through(text.len())?;
    let lines = lines_of(&text)?;
    let tables = match &*mode {
        "annotations" => annotated(&lines)?,
        "raw" => vec![raw(&lines)?],
        other => {
            let message = format!("invalid mode {other:?}: use annotations or raw");
            return Err(Error::runtime(message));
        }
    };
    let mut out = call.evaluation.collector();
    for table in tables {
        out.push(table)?;
    }
    Ok(Value::Stream(out.finish().stream()))
}

/// The cells of a line.
type Line<'t> = Vec<Cow<'t, str>>;

/// Lines that are not empty. A cell in quotes may have commas, line breaks and doubled quotes.
fn lines_of(text: &str) -> Result<Vec<Line<'_>>> {
    let (mut lines, mut line): (Vec<Line<'_>>, Line<'_>) = (Vec::new(), Vec::new());
    let mut rest = text;
    while !rest.is_empty() {
        let (cell, behind) = match rest.strip_prefix('"') {
            Some(inner) => quoted_cell(inner)?,
            None => {
                let end = rest.find([',', '\n']).unwrap_or(rest.len());
                let cell = &rest[..end];
                let is_last = !rest[end..].starts_with(',');
                let cell = if is_last { cell.strip_suffix('\r').unwrap_or(cell) } else { cell };
                (Cow::Borrowed(cell), &rest[end..])
            }
        };
        line.push(cell);
        if let Some(behind) = behind.strip_prefix(',') {
            rest = behind;
            if rest.is_empty() {
                line.push(Cow::Borrowed(""));
            }
            continue;
        }
        let ended = std::mem::take(&mut line);
        if ended.len() != 1 || !ended[0].is_empty() {
            lines.push(ended);
        }
        let behind = behind.strip_prefix('\r').unwrap_or(behind);
        rest = match behind.strip_prefix('\n') {
            Some(behind) => behind,
            None if behind.is_empty() => "",
            None => return Err(invalid("text behind a closing quote")),
        };
    }
    if !line.is_empty() {
        lines.push(line);
    }
    Ok(lines)
}

fn quoted_cell(text: &str) -> Result<(Cow<'_, str>, &str)> {
    let (mut cell, mut rest) = (String::new(), text);
    loop {
        let (inside, behind) =
            rest.split_once('"').ok_or_else(|| invalid("a quote is not closed"))?;
        cell.push_str(inside);
        match behind.strip_prefix('"') {
            Some(behind) => {
                cell.push('"');
                rest = behind;
            }
            None => return Ok((Cow::Owned(cell), behind)),
        }
    }
}

/// A table of strings; the first line has its names.
fn raw(lines: &[Line<'_>]) -> Result<Table> {
    let Some((names, lines)) = lines.split_first() else { return Ok(Table::default()) };
    if lines.iter().any(|line| line.len() != names.len()) {
        return Err(invalid("wrong number of fields"));
    }
    let text = |cell: &str| if cell.is_empty() { Value::Null } else { Value::text(cell) };
    let column = |(at, name): (usize, &Cow<'_, str>)| {
        let cells = lines.iter().map(|line| text(&line[at])).collect();
        Column::values(name, Kind::Text, cells)
    };
    let columns = names.iter().enumerate().map(column).collect();
    Ok(Table { columns, rows: lines.len(), bounds: None })
}

/// Annotations and names of a block.
struct Head<'t> {
    kinds: Vec<Kind>,
    is_key: Vec<bool>,
    defaults: Vec<Value>,
    table: &'t str,
    names: &'t [Cow<'t, str>],
}

fn annotated(lines: &[Line<'_>]) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    let mut rest = lines;
    while !rest.is_empty() {
        let (head, behind) = head_of(rest)?;
        let width = head.names.len() + LEADING_COLUMNS;
        let count = behind.iter().take_while(|line| line[0].is_empty()).count();
        let (rows, behind) = behind.split_at(count);
        if rows.iter().any(|row| row.len() != width) {
            return Err(invalid("wrong number of fields"));
        }
        if rows.is_empty() {
            tables.push(table_of(&head, &[])?);
        }
        // An empty cell is the table of the row before.
        let is_same = |a: &Line<'_>, b: &Line<'_>| {
            b[2].is_empty() || number_of(a, &head) == number_of(b, &head)
        };
        for rows in rows.chunk_by(is_same) {
            tables.push(table_of(&head, rows)?);
        }
        rest = behind;
    }
    Ok(tables)
}

/// The number of the table of a row.
fn number_of<'l>(line: &'l Line<'_>, head: &'l Head<'_>) -> &'l str {
    if line[2].is_empty() { head.table } else { &line[2] }
}

fn head_of<'t>(lines: &'t [Line<'t>]) -> Result<(Head<'t>, &'t [Line<'t>])> {
    let count = lines.iter().take_while(|line| line[0].starts_with('#')).count();
    let (annotations, behind) = lines.split_at(count);
    let find = |name: &str| {
        let found = annotations.iter().find(|line| line[0].strip_prefix('#') == Some(name));
        found.ok_or_else(|| invalid(format!("missing expected annotation {name}")))
    };
    let (kinds, groups, defaults) = (find("datatype")?, find("group")?, find("default")?);
    let Some((names, behind)) = behind.split_first() else {
        return Err(invalid("missing expected header row"));
    };
    let width = names.len();
    if width < LEADING_COLUMNS || [kinds, groups, defaults].iter().any(|line| line.len() != width) {
        return Err(invalid("wrong number of fields"));
    }
    let cells = |line: &'t Line<'t>| &line[LEADING_COLUMNS..];
    let kinds: Result<Vec<Kind>> = cells(kinds).iter().map(|kind| kind_of(kind)).collect();
    let kinds = kinds?;
    let of_default = |(cell, kind): (&Cow<'_, str>, &Kind)| value_of(cell, *kind, &Value::Null);
    let defaults_of = cells(defaults).iter().zip(&kinds).map(of_default);
    let head = Head {
        is_key: cells(groups).iter().map(|cell| cell == "true").collect(),
        defaults: defaults_of.collect::<Result<Vec<Value>>>()?,
        table: &defaults[2],
        names: cells(names),
        kinds,
    };
    Ok((head, behind))
}

fn kind_of(datatype: &str) -> Result<Kind> {
    Ok(match datatype {
        "boolean" => Kind::Boolean,
        "long" => Kind::Integer,
        "unsignedLong" => Kind::Unsigned,
        "double" => Kind::Float,
        "string" => Kind::Text,
        "duration" => Kind::Duration,
        datatype if datatype == "dateTime" || datatype.starts_with("dateTime:RFC3339") => {
            Kind::Time
        }
        other => return Err(invalid(format!("unsupported datatype {other:?}"))),
    })
}

/// A cell as a value; an empty one is the default.
fn value_of(cell: &str, kind: Kind, default: &Value) -> Result<Value> {
    if cell.is_empty() {
        return Ok(default.clone());
    }
    let made = match kind {
        Kind::Boolean => match cell {
            "true" => Some(Value::Boolean(true)),
            "false" => Some(Value::Boolean(false)),
            _ => None,
        },
        Kind::Integer => cell.parse().ok().map(Value::Integer),
        Kind::Unsigned => cell.parse().ok().map(Value::Unsigned),
        Kind::Float => cell.parse().ok().map(Value::Float),
        Kind::Text => Some(Value::text(cell)),
        Kind::Time => parse_time(cell).map(Value::Time),
        Kind::Duration => Duration::parse(cell).map(Value::Duration),
    };
    made.ok_or_else(|| invalid(format!("{cell:?} is no {}", kind.datatype())))
}

fn table_of(head: &Head<'_>, rows: &[Line<'_>]) -> Result<Table> {
    let mut columns = Vec::with_capacity(head.names.len());
    for (at, name) in head.names.iter().enumerate() {
        let (kind, default) = (head.kinds[at], &head.defaults[at]);
        let cell = |row: &Line<'_>| value_of(&row[at + LEADING_COLUMNS], kind, default);
        let data = match head.is_key[at] {
            true => Data::Same(rows.first().map_or(Ok(default.clone()), cell)?),
            false => {
                let cells: Result<Vec<Value>> = rows.iter().map(cell).collect();
                Data::Values(Arc::new(cells?))
            }
        };
        columns.push(Column { name: (&**name).into(), kind, is_key: head.is_key[at], data });
    }
    Ok(Table { columns, rows: rows.len(), bounds: None })
}

/// `experimental/json.parse(data: bytes(v: ..))`; numbers are floats.
fn parse_json(call: Call<'_>) -> Result<Value> {
    let text = call.required_text("data")?;
    call.done()?;
    call.evaluation.hold(text.len().saturating_mul(JSON_VALUE_SIZE))?;
    let parsed: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| Error::runtime(format!("json.parse: invalid JSON: {error}")))?;
    value_of_json(&call, parsed)
}

fn value_of_json(call: &Call<'_>, json: serde_json::Value) -> Result<Value> {
    let value = match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Boolean(value),
        serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        serde_json::Value::String(text) => Value::Text(text.into()),
        serde_json::Value::Array(items) => {
            let items = items.into_iter().map(|item| value_of_json(call, item));
            Value::list(items.collect::<Result<_>>()?)
        }
        serde_json::Value::Object(fields) => {
            let field = |(name, field): (String, serde_json::Value)| {
                Ok((name.into(), value_of_json(call, field)?))
            };
            let fields = fields.into_iter().map(field);
            Value::Record(Arc::new(Record::new(fields.collect::<Result<_>>()?)))
        }
    };
    call.evaluation.hold(value.size())?;
    Ok(value)
}

/// `json.encode(v: ..)`: the text of the JSON, which is bytes in InfluxDB. `string()` is one there
/// and here.
fn encode_json(call: Call<'_>) -> Result<Value> {
    let value = call.required("v")?;
    call.done()?;
    let mut out = String::new();
    push_json(&call, &mut out, &value)?;
    Ok(Value::text(&out))
}

fn push_json(call: &Call<'_>, out: &mut String, value: &Value) -> Result<()> {
    crate::value::check_size(out.len())?;
    match value {
        Value::Null => out.push_str("null"),
        Value::Boolean(_) | Value::Integer(_) | Value::Unsigned(_) => {
            out.push_str(&value.print()?);
        }
        Value::Float(number) if !number.is_finite() => {
            let message = format!("json: unsupported value: {}", value.print()?);
            return Err(Error::runtime(message));
        }
        Value::Float(number) => out.push_str(&json_number(*number)),
        Value::Time(time) => push_json_text(out, &print_time(*time)),
        Value::Text(_) | Value::Duration(_) | Value::Regex(_) => {
            push_json_text(out, &value.print()?);
        }
        Value::Array(items) => {
            out.push('[');
            for (idx, item) in items.iter().enumerate() {
                call.evaluation.tick(idx)?;
                out.push_str(if idx == 0 { "" } else { "," });
                push_json(call, out, item)?;
            }
            out.push(']');
        }
        Value::Record(record) => {
            let mut fields: Vec<&(Arc<str>, Value)> = record.fields.iter().collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            out.push('{');
            for (idx, (name, field)) in fields.into_iter().enumerate() {
                out.push_str(if idx == 0 { "" } else { "," });
                push_json_text(out, name);
                out.push(':');
                push_json(call, out, field)?;
            }
            out.push('}');
        }
        other => {
            let message = format!("cannot encode a {} value", other.type_words());
            return Err(Error::runtime(message));
        }
    }
    Ok(())
}

/// A number as Go writes it: with an exponent when it is very small or large.
fn json_number(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return crate::value::print_float(number);
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

/// A string as Go writes it: with escapes for what HTML and JavaScript could take for their own.
fn push_json_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
