//! `interpolate.linear`: rows at regular times between the rows of a table.

use super::{Builtin, Call, function, no_column};
use crate::error::{Error, Result};
use crate::table::{Column, Table};
use crate::time::{Duration, Windows};
use crate::value::{Kind, Value};

pub(super) const FUNCTIONS: &[Builtin] = &[function("interpolate", "linear", linear)];

/// Rows that the function makes of one table.
const ROWS_MAX: usize = 1_000_000;

fn linear(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let missing = || Error::name("linear: missing required argument every");
    let every = call.duration("every")?.ok_or_else(missing)?;
    call.done()?;
    if every.months < 0 || every.nanos < 0 || every.is_zero() {
        return Err(Error::runtime("interpolate.linear: argument every must be positive"));
    }
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        check_columns(&table)?;
        let points = points(&table)?;
        let (mut times, mut values) = (Vec::new(), Vec::new());
        for pair in between(&call, &points, every)? {
            times.push(pair.0);
            values.push(pair.1);
        }
        let mut made = table.key_alone(times.len());
        made.set(Column::times("_time", times));
        made.set(Column::floats("_value", values));
        out.push(made)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

fn check_columns(table: &Table) -> Result<()> {
    let is_extra =
        |column: &&Column| !column.is_key && !matches!(&*column.name, "_time" | "_value");
    match table.columns.iter().find(is_extra) {
        None => Ok(()),
        Some(column) => Err(Error::runtime(format!(
            "interpolate.linear requires column {:?} to be in group key",
            column.name
        ))),
    }
}

/// Times and values of a table.
fn points(table: &Table) -> Result<Vec<(i64, f64)>> {
    let time = table.column("_time").ok_or_else(|| no_column("_time"))?;
    let value = table.column("_value").ok_or_else(|| no_column("_value"))?;
    if value.kind != Kind::Float {
        let found = value.kind.words();
        let message = format!("cannot interpolate {found} values; expected float values");
        return Err(Error::runtime(message));
    }
    let null = |name| Error::runtime(format!("null {name} found during linear interpolation"));
    let point = |row| {
        let time = time.time(row).ok_or_else(|| null("_time"))?;
        Ok((time, value.number(row).ok_or_else(|| null("_value"))?))
    };
    (0..table.rows).map(point).collect()
}

/// The points, and those on the lines between them at the bounds of windows.
fn between(call: &Call<'_>, points: &[(i64, f64)], every: Duration) -> Result<Vec<(i64, f64)>> {
    let windows = Windows { every, period: every, offset: Duration::default(), zone: None };
    let mut made: Vec<(i64, f64)> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let &[(from, low), (to, high)] = pair else { continue };
        let slope = (high - low) / super::neighbours::nanos_between(from, to);
        let mut at = every.after(windows.start_of(from));
        while at < to {
            call.evaluation.tick(made.len())?;
            if ROWS_MAX <= made.len() {
                let message = format!("interpolate.linear: more than {ROWS_MAX} rows of a table");
                return Err(Error::limit(message));
            }
            made.push((at, low + slope * super::neighbours::nanos_between(from, at)));
            at = every.after(at);
        }
        made.push((to, high));
    }
    call.evaluation.hold(made.len() * 16)?;
    Ok(made)
}
