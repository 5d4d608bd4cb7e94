//! Functions over rows: `map`, `reduce`, `pivot`, `fill`, conversions of a column.

use super::sources::of_record;
use super::{Builtin, Call, collision, function, no_column};
use crate::error::{Error, Result};
use crate::stream::Stream;
use crate::table::{Builder, Column, Data, Grouped, Table};
use crate::value::{Kind, Value, check_size};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "map", map),
    function("", "reduce", reduce),
    function("", "pivot", pivot),
    function("", "fill", fill),
    function("", "toFloat", convert),
    function("", "toInt", convert),
    function("", "toUInt", convert),
    function("", "toString", convert),
    function("", "toBool", convert),
    function("", "toTime", convert),
];

/// Columns that a pivot makes.
const COLUMNS_MAX: usize = 10_000;

/// Each row as a record through a function, and what it returns as a row.
fn map(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let missing = || Error::name("map: missing required argument fn");
    let function = call.function("fn", &["r"])?.ok_or_else(missing)?;
    call.optional("mergeKey");
    call.done()?;
    let mut grouped = Grouped::default();
    let mut out = call.evaluation.collector();
    let begin = call.evaluation.held();
    call.evaluation.each(&stream, &mut |table| {
        let keys: Vec<Arc<str>> = table.key().0.into_iter().map(|(name, _)| name).collect();
        let is_key = |name: &str| keys.iter().any(|key| &**key == name);
        let before = call.evaluation.held();
        call.evaluation.hold(table.size())?;
        let mut grown = 0;
        for row in 0..table.rows {
            call.evaluation.tick(row)?;
            let mark = call.evaluation.held();
            let record = Value::Record(Arc::new(table.row(row)));
            let Value::Record(made) = call.apply(&function, &[("r", record)])? else {
                return Err(Error::runtime("map: fn must return a record"));
            };
            let mut one = of_record(&made.fields)?;
            for column in &mut one.columns {
                column.is_key = is_key(&column.name);
            }
            let builder = grouped.builder(one.key(), table.bounds);
            let size = builder.push(&one, 0, &is_key).map_err(collision)?;
            // What the row was made of is gone, what the table has grown by stays.
            call.evaluation.release(mark);
            call.evaluation.hold(size)?;
            grown += size;
        }
        call.evaluation.release(before);
        call.evaluation.hold(grown)
    })?;
    call.evaluation.release(begin);
    for table in grouped.finish() {
        out.push(table)?;
    }
    Ok(Value::Stream(out.finish().stream()))
}

/// Rows into one record, beginning with `identity`.
fn reduce(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let missing = || Error::name("reduce: missing required argument fn");
    let function = call.function("fn", &["r", "accumulator"])?.ok_or_else(missing)?;
    let identity = call.required("identity")?;
    call.done()?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let mut sum = identity.clone();
        let mark = call.evaluation.held();
        for row in 0..table.rows {
            call.evaluation.tick(row)?;
            let record = Value::Record(Arc::new(table.row(row)));
            call.evaluation.hold(record.size())?;
            sum = call.apply(&function, &[("r", record), ("accumulator", sum)])?;
            call.evaluation.settle(mark, &sum);
        }
        let Value::Record(record) = &sum else {
            return Err(Error::runtime("reduce: fn and identity must be records"));
        };
        let mut made = table.key_alone(1);
        for column in of_record(&record.fields)?.columns {
            made.set(column);
        }
        out.push(made)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// `schema.fieldsAsCols()`
pub(super) fn fields_as_columns(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    call.done()?;
    let pivot = Pivot {
        rows: vec!["_time".into()],
        columns: vec!["_field".into()],
        value: "_value".into(),
    };
    pivot.run(&call, &stream)
}

fn pivot(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let missing = |name: &str| Error::name(format!("pivot: missing required argument {name}"));
    let pivot = Pivot {
        rows: call.texts("rowKey")?.ok_or_else(|| missing("rowKey"))?,
        columns: call.texts("columnKey")?.ok_or_else(|| missing("columnKey"))?,
        value: call.required_text("valueColumn")?,
    };
    call.done()?;
    pivot.run(&call, &stream)
}

/// Which columns of a table become what.
struct Pivot {
    rows: Vec<Arc<str>>,
    columns: Vec<Arc<str>>,
    value: Arc<str>,
}

/// What becomes of the tables of one group.
#[derive(Default)]
struct Pivoted {
    /// Group key and row key, without the values.
    fixed: Builder,
    /// By the row key.
    rows: BTreeMap<crate::table::Key, usize>,
    /// Cells by row, and the type, of each new column, in the order in which they came.
    columns: Vec<(Arc<str>, Kind, BTreeMap<usize, Value>)>,
}

impl Pivot {
    fn run(&self, call: &Call<'_>, stream: &Stream) -> Result<Value> {
        let mut groups: BTreeMap<crate::table::Key, Pivoted> = BTreeMap::new();
        let mut out = call.evaluation.collector();
        call.evaluation.each(stream, &mut |table| {
            out.reserve(table.size() * 4)?;
            let is_gone =
                |name: &str| name == &*self.value || self.columns.iter().any(|c| &**c == name);
            let mut key = table.key();
            key.0.retain(|(name, _)| !is_gone(name));
            let group = groups.entry(key).or_default();
            group.fixed.bounds = table.bounds;
            let columns: Vec<Column> = table
                .columns
                .iter()
                .filter(|column| !is_gone(&column.name))
                .filter(|column| column.is_key || self.rows.contains(&column.name))
                .cloned()
                .collect();
            let fixed = Table { columns, rows: table.rows, bounds: table.bounds };
            self.add(call, group, &table, &fixed)
        })?;
        for (_, group) in groups {
            let Pivoted { fixed, columns, .. } = group;
            let mut table = fixed.finish();
            let rows = table.rows;
            for (name, kind, mut cells) in columns {
                out.reserve(rows * size_of::<Value>())?;
                let values = (0..rows).map(|row| cells.remove(&row).unwrap_or_default()).collect();
                table.set(Column::values(&name, kind, values));
            }
            // Rows stay in the order in which they came, as InfluxDB's do.
            out.push(table)?;
        }
        Ok(Value::Stream(out.finish().stream()))
    }

    fn add(
        &self,
        call: &Call<'_>,
        group: &mut Pivoted,
        table: &Table,
        fixed: &Table,
    ) -> Result<()> {
        let value = table.column(&self.value).ok_or_else(|| no_column(&self.value))?;
        for name in self.rows.iter().chain(&self.columns) {
            table.column(name).ok_or_else(|| no_column(name))?;
        }
        let cells = |names: &[Arc<str>], row: usize| -> Vec<(Arc<str>, Value)> {
            let found =
                names.iter().filter_map(|name| Some((name.clone(), table.column(name)?.get(row))));
            found.collect()
        };
        for row in 0..table.rows {
            call.evaluation.tick(row)?;
            let key = crate::table::Key(cells(&self.rows, row));
            let next = group.fixed.rows;
            let at = *group.rows.entry(key).or_insert(next);
            if at == next {
                let is_key = |name: &str| fixed.column(name).is_some_and(|column| column.is_key);
                group.fixed.push(fixed, row, &is_key).map_err(collision)?;
            }
            let mut names = Vec::new();
            for (_, cell) in cells(&self.columns, row) {
                names.push(cell.print()?);
            }
            check_size(names.iter().map(|name| name.len() + 1).sum())?;
            let name: Arc<str> = names.join("_").into();
            let found = group.columns.iter().position(|(other, _, _)| *other == name);
            let column = found.unwrap_or(group.columns.len());
            if column == group.columns.len() {
                if COLUMNS_MAX <= column {
                    let message = format!("pivot: more than {COLUMNS_MAX} columns");
                    return Err(Error::limit(message));
                }
                call.evaluation.hold(name.len())?;
                group.columns.push((name.clone(), value.kind, BTreeMap::new()));
            }
            let (_, kind, cells) = &mut group.columns[column];
            if *kind != value.kind {
                return Err(collision((*kind, value.kind)));
            }
            cells.insert(at, value.get(row));
        }
        Ok(())
    }
}

fn fill(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let name = call.text_or("column", "_value")?;
    let value = call.optional("value");
    let uses_previous = call.switch("usePrevious")?.unwrap_or(false);
    call.done()?;
    if value.is_none() && !uses_previous {
        return Err(Error::name("fill: missing required argument value or usePrevious"));
    }
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |mut table| {
        let Some(column) = table.column(&name) else {
            return Err(no_column(&name));
        };
        let mut last = value.clone().unwrap_or_default();
        if let Some(kind) = last.kind()
            && kind != column.kind
        {
            let (wanted, found) = (column.kind.words(), kind.words());
            return Err(Error::runtime(format!("fill: expected {wanted} but found {found}")));
        }
        let mut cells = Vec::with_capacity(table.rows);
        for row in 0..table.rows {
            let cell = column.get(row);
            if cell.is_null() {
                cells.push(last.clone());
            } else {
                if uses_previous {
                    last = cell.clone();
                }
                cells.push(cell);
            }
        }
        let filled = match column.is_key {
            true => Column::key(&name, cells.first().cloned().unwrap_or_default()),
            false => Column::values(&name, column.kind, cells),
        };
        table.set(filled);
        out.push(table)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// `toFloat()` and its kin: `_value` as another type.
fn convert(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    call.done()?;
    let (name, kind) = match call.name {
        "toFloat" => ("float", Kind::Float),
        "toInt" => ("int", Kind::Integer),
        "toUInt" => ("uint", Kind::Unsigned),
        "toString" => ("string", Kind::Text),
        "toBool" => ("bool", Kind::Boolean),
        _ => ("time", Kind::Time),
    };
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |mut table| {
        let column = table.column("_value").ok_or_else(|| no_column("_value"))?;
        let mut cells = Vec::with_capacity(table.rows);
        for row in 0..table.rows {
            call.evaluation.tick(row)?;
            cells.push(super::scalars::converted(name, &column.get(row))?);
        }
        let data = match column.is_key {
            true => Data::Same(cells.into_iter().next().unwrap_or_default()),
            false => Data::Values(Arc::new(cells)),
        };
        let made = Column { kind, data, ..column.clone() };
        table.set(made);
        out.push(table)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}
