//! Functions of several streams, and those that take a value out of one.

use super::{Builtin, Call, collision, function};
use crate::error::{Error, Result};
use crate::table::{Column, Data, Grouped, Key, Table};
use crate::value::{Record, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "union", union),
    function("", "join", join),
    function("", "findRecord", find_record),
    function("", "findColumn", find_column),
    function("", "tableFind", table_find),
    function("", "getRecord", get_record),
    function("", "getColumn", get_column),
];

fn union(call: Call<'_>) -> Result<Value> {
    let streams = call.input("tables")?;
    call.done()?;
    let Value::Array(streams) = &streams else {
        return Err(call.wrong("tables", "array of streams", &streams));
    };
    let mut grouped = Grouped::default();
    let mut out = call.evaluation.collector();
    for stream in streams.iter() {
        let Value::Stream(stream) = stream else {
            return Err(call.wrong("tables", "array of streams", stream));
        };
        call.evaluation.each(stream, &mut |table| {
            out.reserve(table.size())?;
            let builder = grouped.builder(table.key(), table.bounds);
            let is_key = |name: &str| table.column(name).is_some_and(|column| column.is_key);
            for row in 0..table.rows {
                call.evaluation.tick(row)?;
                builder.push(&table, row, &is_key).map_err(collision)?;
            }
            Ok(())
        })?;
    }
    for table in grouped.finish() {
        out.push(table)?;
    }
    Ok(Value::Stream(out.finish().stream()))
}

/// One side of a join.
struct Side {
    name: Arc<str>,
    tables: Arc<Vec<Table>>,
    _charge: Arc<crate::stream::Charge>,
}

/// `join(tables: {a: .., b: ..}, on: [..])`: rows that agree in those columns.
fn join(call: Call<'_>) -> Result<Value> {
    let tables = call.required("tables")?;
    let missing = || Error::name("join: missing required argument on");
    let on = call.texts("on")?.ok_or_else(missing)?;
    let method = call.text_or("method", "inner")?;
    call.done()?;
    if &*method != "inner" {
        return Err(Error::runtime(format!(
            "join: method {method:?} is not supported here, only inner"
        )));
    }
    let Value::Record(record) = &tables else {
        return Err(call.wrong("tables", "record of two streams", &tables));
    };
    let mut sides = Vec::new();
    for (name, value) in &record.fields {
        let Value::Stream(stream) = value else {
            return Err(call.wrong("tables", "record of two streams", value));
        };
        let (tables, charge) = call.evaluation.ready(stream)?;
        sides.push(Side { name: name.clone(), tables, _charge: charge });
    }
    // InfluxDB reads the sides in the order of their names.
    sides.sort_by(|a: &Side, b: &Side| a.name.cmp(&b.name));
    let [left, right] = sides.as_slice() else {
        return Err(Error::runtime("join: argument tables must have two streams"));
    };
    joined(&call, left, right, &on)
}

/// The values of those columns in a row; nothing where one is null or not there.
fn key_of(table: &Table, row: usize, on: &[Arc<str>]) -> Option<Key> {
    let cells = on.iter().map(|name| {
        let value = table.column(name)?.get(row);
        (!value.is_null()).then(|| (name.clone(), value))
    });
    cells.collect::<Option<Vec<_>>>().map(Key)
}

fn joined(call: &Call<'_>, left: &Side, right: &Side, on: &[Arc<str>]) -> Result<Value> {
    let mut of_key: BTreeMap<Key, Vec<(usize, usize)>> = BTreeMap::new();
    let mut out = call.evaluation.collector();
    for (at, table) in right.tables.iter().enumerate() {
        out.reserve(table.rows * 128)?;
        for row in 0..table.rows {
            call.evaluation.tick(row)?;
            if let Some(key) = key_of(table, row, on) {
                of_key.entry(key).or_default().push((at, row));
            }
        }
    }
    let is_on = |name: &str| on.iter().any(|column| &**column == name);
    let mut grouped = Grouped::default();
    for table in left.tables.iter() {
        for row in 0..table.rows {
            call.evaluation.tick(row)?;
            let Some(key) = key_of(table, row, on) else { continue };
            for (at, other_row) in of_key.get(&key).into_iter().flatten() {
                let other = &right.tables[*at];
                let has_both = |name: &str| {
                    !is_on(name) && table.column(name).is_some() && other.column(name).is_some()
                };
                let cell = |side: &Side, column: &Column, row: usize| Column {
                    name: match has_both(&column.name) {
                        true => format!("{}_{}", column.name, side.name).into(),
                        false => column.name.clone(),
                    },
                    data: Data::Same(column.get(row)),
                    ..column.clone()
                };
                let mut columns: Vec<Column> =
                    table.columns.iter().map(|column| cell(left, column, row)).collect();
                let more = other.columns.iter().filter(|column| !is_on(&column.name));
                columns.extend(more.map(|column| cell(right, column, *other_row)));
                let one = Table { columns, rows: 1, bounds: table.bounds };
                out.reserve(one.columns.len() * 24)?;
                let is_key = |name: &str| one.column(name).is_some_and(|column| column.is_key);
                let builder = grouped.builder(one.key(), one.bounds);
                builder.push(&one, 0, &is_key).map_err(collision)?;
            }
        }
    }
    for table in grouped.finish() {
        out.push(table)?;
    }
    Ok(Value::Stream(out.finish().stream()))
}

/// The first table whose group key passes.
fn found(call: &Call<'_>) -> Result<Option<Table>> {
    let stream = call.tables()?;
    let missing = || Error::name(format!("{}: missing required argument fn", call.name));
    let test = call.function("fn", &["key"])?.ok_or_else(missing)?;
    let (tables, _charge) = call.evaluation.ready(&stream)?;
    for table in tables.iter() {
        let key = Value::Record(Arc::new(Record::row(table.key().0.clone())));
        if call.holds(&test, ("key", key))? {
            return Ok(Some(table.clone()));
        }
    }
    Ok(None)
}

fn row_of(table: &Table, idx: Option<usize>) -> Value {
    let idx = idx.unwrap_or(0);
    let record = if idx < table.rows { table.row(idx) } else { Record::row(Vec::new()) };
    Value::Record(Arc::new(record))
}

fn cells_of(call: &Call<'_>, table: &Table, name: &str) -> Result<Value> {
    let Some(column) = table.column(name) else { return Ok(Value::list(Vec::new())) };
    call.evaluation.hold(table.rows * size_of::<Value>())?;
    Ok(Value::list((0..table.rows).map(|row| column.get(row)).collect()))
}

fn find_record(call: Call<'_>) -> Result<Value> {
    let table = found(&call)?.unwrap_or_default();
    let idx = call.count("idx")?;
    call.done()?;
    Ok(row_of(&table, idx))
}

fn find_column(call: Call<'_>) -> Result<Value> {
    let table = found(&call)?.unwrap_or_default();
    let name = call.text_or("column", "_value")?;
    call.done()?;
    cells_of(&call, &table, &name)
}

fn table_find(call: Call<'_>) -> Result<Value> {
    let table = found(&call)?.ok_or_else(|| Error::runtime("tableFind: no table matches"))?;
    call.done()?;
    super::sources::single(&call, table)
}

/// The one table of `tableFind`.
fn the_table(call: &Call<'_>) -> Result<Table> {
    let Value::Stream(stream) = call.input("table")? else {
        return Err(Error::runtime("expected a table"));
    };
    let (tables, _charge) = call.evaluation.ready(&stream)?;
    Ok(tables.first().cloned().unwrap_or_default())
}

fn get_record(call: Call<'_>) -> Result<Value> {
    let table = the_table(&call)?;
    let idx = call.count("idx")?;
    call.done()?;
    Ok(row_of(&table, idx))
}

fn get_column(call: Call<'_>) -> Result<Value> {
    let table = the_table(&call)?;
    let name = call.text_or("column", "_value")?;
    call.done()?;
    cells_of(&call, &table, &name)
}
