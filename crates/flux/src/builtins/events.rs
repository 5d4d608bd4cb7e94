//! `contrib/tomhollingworth/events`: time from each row to the next one.

use super::{Builtin, Call, function, no_column};
use crate::error::{Error, Result};
use crate::table::{Column, Table};
use crate::value::{Kind, Value};
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] =
    &[function("contrib/tomhollingworth/events", "duration", duration)];

/// `events.duration(unit: 1s, columnName: "duration", timeColumn: "_time", stopColumn: "_stop", stop:)`
fn duration(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let unit = call.duration("unit")?.map_or(1_000_000_000, |unit| unit.nanos);
    let name = call.text_or("columnName", "duration")?;
    let time_name = call.text_or("timeColumn", "_time")?;
    let stop_name = call.text_or("stopColumn", "_stop")?;
    let stop = call.time("stop")?;
    call.done()?;
    if unit == 0 {
        return Err(Error::runtime("events.duration: argument unit must not be zero"));
    }
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |mut table| {
        let times = row_times(&table, &time_name)?;
        let end = match stop {
            Some(stop) => Some(stop),
            None => last_time(&table, &stop_name)?,
        };
        let next = times.iter().skip(1).copied().chain([end]);
        let length = |(from, to): (&Option<i64>, Option<i64>)| match (from, to) {
            (Some(from), Some(to)) => Value::Integer(to.saturating_sub(*from) / unit),
            _ => Value::Null,
        };
        let cells = times.iter().zip(next).map(length).collect();
        table.set(Column::values(&name, Kind::Integer, cells));
        out.push(table)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

fn row_times(table: &Table, name: &Arc<str>) -> Result<Vec<Option<i64>>> {
    let column = table.column(name).ok_or_else(|| no_column(name))?;
    Ok((0..table.rows).map(|row| column.time(row)).collect())
}

/// The time of a column in the last row.
fn last_time(table: &Table, name: &Arc<str>) -> Result<Option<i64>> {
    let times = row_times(table, name)?;
    Ok(times.last().copied().flatten())
}
