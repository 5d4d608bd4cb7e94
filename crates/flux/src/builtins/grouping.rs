//! `group`, and functions that change which columns there are.

use super::{Builtin, Call, collision, function};
use crate::error::{Error, Result};
use crate::stream::{Charge, Stream, Tables};
use crate::table::{Column, Data, Grouped, Key, Table};
use crate::value::Value;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "group", group),
    function("", "keep", keep),
    function("", "drop", keep),
    function("", "rename", rename),
    function("", "duplicate", duplicate),
    function("", "set", set),
    function("", "keys", keys),
    function("", "columns", columns),
];

/// Rows of all tables, grouped anew: `is_key` says which columns are of the group key.
pub(super) fn regrouped(
    call: &Call<'_>,
    stream: &Stream,
    is_key: &dyn Fn(&str) -> bool,
) -> Result<Tables> {
    let mut grouped = Grouped::default();
    let mut out = call.evaluation.collector();
    call.evaluation.each(stream, &mut |table| {
        out.reserve(table.size())?;
        add(call, &mut grouped, &table, is_key)
    })?;
    for table in grouped.finish() {
        out.push(table)?;
    }
    Ok(out.finish())
}

/// Adds the rows of a table to their groups.
pub(super) fn add(
    call: &Call<'_>,
    grouped: &mut Grouped,
    table: &Table,
    is_key: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let keys: Vec<&Column> = table.columns.iter().filter(|column| is_key(&column.name)).collect();
    let key_of = |row: usize| {
        let mut key: Vec<(Arc<str>, Value)> =
            keys.iter().map(|column| (column.name.clone(), column.get(row))).collect();
        key.sort_by(|a, b| a.0.cmp(&b.0));
        Key(key)
    };
    if keys.iter().all(|column| matches!(column.data, Data::Same(_))) {
        let builder = grouped.builder(key_of(0), table.bounds);
        for row in 0..table.rows {
            call.evaluation.tick(row)?;
            builder.push(table, row, is_key).map_err(collision)?;
        }
        return Ok(());
    }
    for row in 0..table.rows {
        call.evaluation.tick(row)?;
        let builder = grouped.builder(key_of(row), table.bounds);
        builder.push(table, row, is_key).map_err(collision)?;
    }
    Ok(())
}

/// Tables by those columns, and their memory.
pub(super) fn by(
    call: &Call<'_>,
    stream: &Stream,
    columns: &[Arc<str>],
) -> Result<(Arc<Vec<Table>>, Arc<Charge>)> {
    let found = regrouped(call, stream, &|name| columns.iter().any(|column| &**column == name))?;
    call.evaluation.ready(&Stream { tables: found, is_yielded: false })
}

fn group(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let columns = call.texts("columns")?.unwrap_or_default();
    let mode = call.text_or("mode", "by")?;
    call.done()?;
    let is_except = match &*mode {
        "by" => false,
        "except" => true,
        other => return Err(Error::runtime(format!("invalid mode {other:?}: use by or except"))),
    };
    let is_key = |name: &str| {
        let is_listed = columns.iter().any(|column| &**column == name);
        is_except != is_listed
    };
    Ok(Value::Stream(regrouped(&call, &stream, &is_key)?.stream()))
}

/// Whether a column is one of those that a call names.
type IsNamed<'c> = dyn Fn(&str) -> Result<bool> + 'c;

/// The columns that a call names, in a list or by a function.
fn named<'c>(call: &'c Call<'_>) -> Result<Box<IsNamed<'c>>> {
    if let Some(columns) = call.texts("columns")? {
        return Ok(Box::new(move |name| Ok(columns.iter().any(|column| &**column == name))));
    }
    let missing = || Error::name(format!("{}: missing required argument columns", call.name));
    let test = call.function("fn", &["column"])?.ok_or_else(missing)?;
    Ok(Box::new(move |name| call.holds(&test, ("column", Value::text(name)))))
}

fn keep(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let is_named = named(&call)?;
    call.done()?;
    let keeps = call.name == "keep";
    let mut grouped = Grouped::default();
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let mut columns = Vec::new();
        for column in &table.columns {
            if is_named(&column.name)? == keeps {
                columns.push(column.clone());
            }
        }
        let kept = Table { columns, rows: table.rows, bounds: table.bounds };
        out.reserve(kept.size())?;
        let keys: Vec<Arc<str>> = kept
            .columns
            .iter()
            .filter(|column| column.is_key)
            .map(|column| column.name.clone())
            .collect();
        add(&call, &mut grouped, &kept, &|name| keys.iter().any(|key| &**key == name))
    })?;
    for table in grouped.finish().filter(|table| !table.columns.is_empty()) {
        out.push(table)?;
    }
    Ok(Value::Stream(out.finish().stream()))
}

fn rename(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let names = call.optional("columns");
    let by_function = call.function("fn", &["column"])?;
    call.done()?;
    let new_name = |name: &str| -> Result<Option<Arc<str>>> {
        let found = match (&names, &by_function) {
            (Some(Value::Record(record)), _) => record.get(name).cloned(),
            (None, Some(test)) => Some(call.apply(test, &[("column", Value::text(name))])?),
            _ => return Err(Error::name("rename: missing required argument columns")),
        };
        match found {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(call.wrong("columns", "record of strings", &other)),
        }
    };
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |mut table| {
        for column in &mut table.columns {
            if let Some(name) = new_name(&column.name)? {
                column.name = name;
            }
        }
        let has_twice =
            table.columns.iter().enumerate().any(|(at, column)| {
                table.columns[..at].iter().any(|other| other.name == column.name)
            });
        if has_twice {
            return Err(Error::runtime("two columns would have the same name"));
        }
        out.push(table)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

fn duplicate(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let (from, to) = (call.required_text("column")?, call.required_text("as")?);
    call.done()?;
    let mut grouped = Grouped::default();
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |mut table| {
        let missing = || Error::runtime(format!("duplicate: column {from:?} doesn't exist"));
        let column = table.column(&from).ok_or_else(missing)?;
        // A column of the group key stays one only as the copy of another.
        let is_key = column.is_key && table.column(&to).is_some_and(|column| column.is_key);
        table.set(Column { name: to.clone(), is_key, ..column.clone() });
        out.reserve(table.size())?;
        let keys: Vec<Arc<str>> = table.key().0.into_iter().map(|(name, _)| name).collect();
        add(&call, &mut grouped, &table, &|name| keys.iter().any(|key| &**key == name))
    })?;
    for table in grouped.finish() {
        out.push(table)?;
    }
    Ok(Value::Stream(out.finish().stream()))
}

fn set(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let (key, value) = (call.required_text("key")?, call.required_text("value")?);
    call.done()?;
    let mut grouped = Grouped::default();
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |mut table| {
        let is_key = table.column(&key).is_some_and(|column| column.is_key);
        let column = Column { is_key, ..Column::key(&key, Value::Text(value.clone())) };
        table.set(column);
        out.reserve(table.size())?;
        let keys: Vec<Arc<str>> = table.key().0.into_iter().map(|(name, _)| name).collect();
        add(&call, &mut grouped, &table, &|name| keys.iter().any(|key| &**key == name))
    })?;
    for table in grouped.finish() {
        out.push(table)?;
    }
    Ok(Value::Stream(out.finish().stream()))
}

/// The names of the group key's columns, or of all, of each table.
fn list_names(call: &Call<'_>, of: &dyn Fn(&Column) -> bool) -> Result<Value> {
    let stream = call.tables()?;
    let to = call.text_or("column", "_value")?;
    call.done()?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let names = table.columns.iter().filter(|column| of(column));
        let names: Vec<Value> = names.map(|column| Value::Text(column.name.clone())).collect();
        let mut made = table.key_alone(names.len());
        made.set(Column::values(&to, crate::value::Kind::Text, names));
        out.push(made)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

fn keys(call: Call<'_>) -> Result<Value> {
    list_names(&call, &|column| column.is_key)
}

fn columns(call: Call<'_>) -> Result<Value> {
    list_names(&call, &|_| true)
}
