//! How long, or for how many rows, something has been so: `stateCount` and `stateDuration`.

use super::{Builtin, Call, function, no_column};
use crate::error::{Error, Result};
use crate::table::{Column, Table};
use crate::value::{Kind, Value};
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] =
    &[function("", "stateCount", state_count), function("", "stateDuration", state_duration)];

/// What a row is in a state that it is not in.
const NOT_SO: Value = Value::Integer(-1);

/// Whether each row is in the state.
fn states(call: &Call<'_>, table: &Table, test: &Value) -> Result<Vec<bool>> {
    let mut found = Vec::with_capacity(table.rows);
    for row in 0..table.rows {
        call.evaluation.tick(row)?;
        let record = Value::Record(Arc::new(table.row(row)));
        found.push(call.holds(test, ("r", record))?);
    }
    Ok(found)
}

fn test_of(call: &Call<'_>) -> Result<Value> {
    let missing = || Error::name(format!("{}: missing required argument fn", call.name));
    call.function("fn", &["r"])?.ok_or_else(missing)
}

/// How many rows in a row are in the state.
fn state_count(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let test = test_of(&call)?;
    let to = call.text_or("column", "stateCount")?;
    call.done()?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |mut table| {
        let mut count = 0;
        let cells = states(&call, &table, &test)?.into_iter().map(|is_so| {
            count = if is_so { count + 1 } else { 0 };
            if is_so { Value::Integer(count) } else { NOT_SO }
        });
        let cells = cells.collect();
        table.set(Column::values(&to, Kind::Integer, cells));
        out.push(table)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// The time since the first row of those in a row that are in the state.
fn state_duration(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let test = test_of(&call)?;
    let to = call.text_or("column", "stateDuration")?;
    let time_name = call.text_or("timeColumn", "_time")?;
    let unit = call.duration("unit")?.map_or(1_000_000_000, |unit| unit.nanos).max(1);
    call.done()?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |mut table| {
        let time = table.column(&time_name).ok_or_else(|| no_column(&time_name))?;
        let mut since = None;
        let mut cells = Vec::with_capacity(table.rows);
        for (row, is_so) in states(&call, &table, &test)?.into_iter().enumerate() {
            let at = time.time(row).ok_or_else(|| Error::runtime("got a null timestamp"))?;
            if row != 0 && time.time(row - 1).is_some_and(|before| at < before) {
                return Err(Error::runtime("got an out-of-order timestamp"));
            }
            since = is_so.then(|| since.unwrap_or(at));
            let so_long = |since: i64| Value::Integer(at.wrapping_sub(since) / unit);
            cells.push(since.map_or(NOT_SO, so_long));
        }
        table.set(Column::values(&to, Kind::Integer, cells));
        out.push(table)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}
