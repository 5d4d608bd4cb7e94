//! Annotated CSV, as InfluxDB 2 writes it.
//!
//! ```text
//! #datatype,string,long,dateTime:RFC3339,double,string
//! #group,false,false,false,false,true
//! #default,_result,,,,
//! ,result,table,_time,_value,host
//! ,,0,2024-02-29T12:00:00Z,1.5,a
//! ```
//!
//! A table with other columns, types or group key than the one before begins with annotations and
//! header anew, behind an empty line. An empty line ends each result.

use crate::stream::Outcome;
use crate::table::{Column, Data, Table};
use crate::value::{Kind, Value, print_float, print_time};
use std::io::{self, Write};

/// Bytes that are collected before they are written.
const PIECE_SIZE: usize = 32 << 10;

/// How a client wants its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Whether names of columns are wanted.
    pub header: bool,
    /// What stands between cells.
    pub delimiter: char,
    /// Which of `datatype`, `group` and `default` are wanted, in that order.
    pub annotations: Vec<Annotation>,
    /// What a line of an annotation begins with.
    pub comment_prefix: String,
}

/// A line above the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotation {
    /// The types of columns.
    Datatype,
    /// Which columns are of the group key.
    Group,
    /// What an empty cell means.
    Default,
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect {
            header: true,
            delimiter: ',',
            annotations: Vec::new(),
            comment_prefix: "#".to_string(),
        }
    }
}

impl Dialect {
    /// From the `dialect` of a request in JSON.
    ///
    /// # Errors
    /// What cannot be done.
    pub fn of_json(json: &serde_json::Value) -> Result<Dialect, String> {
        let mut dialect = Dialect::default();
        if let Some(header) = json.get("header").and_then(serde_json::Value::as_bool) {
            dialect.header = header;
        }
        if let Some(text) = json.get("delimiter").and_then(serde_json::Value::as_str) {
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (None, _) => {}
                (Some(only), None) if !matches!(only, '"' | '\r' | '\n') => {
                    dialect.delimiter = only
                }
                _ => return Err(format!("invalid dialect: delimiter {text:?}")),
            }
        }
        if let Some(prefix) = json.get("commentPrefix").and_then(serde_json::Value::as_str)
            && !prefix.is_empty()
        {
            dialect.comment_prefix = prefix.chars().take(8).collect();
        }
        let named = json.get("annotations").and_then(serde_json::Value::as_array);
        for name in named.into_iter().flatten() {
            let annotation = match name.as_str() {
                Some("datatype") => Annotation::Datatype,
                Some("group") => Annotation::Group,
                Some("default") => Annotation::Default,
                _ => return Err(format!("invalid dialect: annotation {name}")),
            };
            if !dialect.annotations.contains(&annotation) {
                dialect.annotations.push(annotation);
            }
        }
        Ok(dialect)
    }

    /// Writes all results.
    ///
    /// # Errors
    /// When the client does not take it.
    pub fn write(&self, outcomes: &[Outcome], out: &mut dyn Write) -> io::Result<()> {
        let mut page = Page { dialect: self, buffer: Vec::new() };
        for outcome in outcomes {
            let mut last: Option<&Table> = None;
            let tables =
                outcome.tables.iter().filter(|table| table.rows != 0 && !table.columns.is_empty());
            for (number, table) in tables.enumerate() {
                if !last.is_some_and(|last| has_same_shape(last, table)) {
                    if last.is_some() {
                        page.buffer.extend_from_slice(b"\r\n");
                    }
                    page.head(&outcome.name, table);
                }
                last = Some(table);
                for row in 0..table.rows {
                    page.row(&outcome.name, number, table, row);
                    if PIECE_SIZE <= page.buffer.len() {
                        out.write_all(&page.buffer)?;
                        page.buffer.clear();
                    }
                }
            }
            page.buffer.extend_from_slice(b"\r\n");
        }
        out.write_all(&page.buffer)
    }
}

fn has_same_shape(one: &Table, other: &Table) -> bool {
    let is_same =
        |(a, b): (&Column, &Column)| a.name == b.name && a.kind == b.kind && a.is_key == b.is_key;
    one.columns.len() == other.columns.len() && one.columns.iter().zip(&other.columns).all(is_same)
}

struct Page<'d> {
    dialect: &'d Dialect,
    buffer: Vec<u8>,
}

impl Page<'_> {
    fn cell(&mut self, text: &str) {
        let delimiter = self.dialect.delimiter;
        let is_special = |c: char| c == delimiter || matches!(c, '"' | '\r' | '\n');
        if !text.contains(is_special) && !text.starts_with([' ', '\t']) {
            self.buffer.extend_from_slice(text.as_bytes());
            return;
        }
        self.buffer.push(b'"');
        self.buffer.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        self.buffer.push(b'"');
    }

    fn between(&mut self) {
        let mut bytes = [0; 4];
        let text = self.dialect.delimiter.encode_utf8(&mut bytes);
        self.buffer.extend_from_slice(text.as_bytes());
    }

    fn line<'c>(&mut self, first: &str, cells: impl Iterator<Item = &'c str>) {
        self.cell(first);
        for cell in cells {
            self.between();
            self.cell(cell);
        }
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// Annotations and names.
    fn head(&mut self, name: &str, table: &Table) {
        let prefix = self.dialect.comment_prefix.clone();
        let columns = &table.columns;
        for annotation in self.dialect.annotations.clone() {
            match annotation {
                Annotation::Datatype => {
                    let kinds = columns.iter().map(|column| column.kind.datatype());
                    let cells = ["string", "long"].into_iter().chain(kinds);
                    self.line(&format!("{prefix}datatype"), cells);
                }
                Annotation::Group => {
                    let flags = columns.iter().map(|c| if c.is_key { "true" } else { "false" });
                    let cells = ["false", "false"].into_iter().chain(flags);
                    self.line(&format!("{prefix}group"), cells);
                }
                Annotation::Default => {
                    let cells = [name, ""].into_iter().chain(columns.iter().map(|_| ""));
                    self.line(&format!("{prefix}default"), cells);
                }
            }
        }
        if self.dialect.header {
            let names = columns.iter().map(|column| &*column.name);
            self.line("", ["result", "table"].into_iter().chain(names));
        }
    }

    fn row(&mut self, name: &str, number: usize, table: &Table, row: usize) {
        let has_default = self.dialect.annotations.contains(&Annotation::Default);
        self.between();
        self.cell(if has_default { "" } else { name });
        self.between();
        self.buffer.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        for column in &table.columns {
            self.between();
            self.value(column, row);
        }
        self.buffer.extend_from_slice(b"\r\n");
    }

    fn value(&mut self, column: &Column, row: usize) {
        match &column.data {
            Data::Times(times) => {
                let time = times.get(row).map(|time| print_time(*time)).unwrap_or_default();
                self.buffer.extend_from_slice(time.as_bytes());
            }
            Data::Floats(values) => {
                let value = values.get(row).map(|value| print_float(*value)).unwrap_or_default();
                self.buffer.extend_from_slice(value.as_bytes());
            }
            Data::Same(Value::Text(text)) if column.kind == Kind::Text => self.cell(text),
            _ => {
                let text = column.get(row).print().unwrap_or_default();
                self.cell(&text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects() {
        let json = serde_json::json!({ "annotations": ["group", "datatype"], "header": false });
        let dialect = Dialect::of_json(&json).expect("a dialect");
        assert_eq!(dialect.annotations, [Annotation::Group, Annotation::Datatype]);
        assert!(!dialect.header);
        assert!(Dialect::of_json(&serde_json::json!({ "delimiter": "ab" })).is_err());
        assert!(Dialect::of_json(&serde_json::json!({ "annotations": ["x"] })).is_err());
    }
}
