//! Functions of a row and those before it: `derivative`, `difference`, `cumulativeSum` and their
//! kin.

use super::{Builtin, Call, function, no_column};
use crate::error::{Error, Result};
use crate::table::{Column, Data, Grouped, Table};
use crate::time::{Duration, Windows};
use crate::value::{Kind, Value};
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "derivative", derivative),
    function("", "difference", difference),
    function("", "increase", increase),
    function("", "cumulativeSum", cumulative_sum),
    function("", "movingAverage", moving_average),
    function("", "exponentialMovingAverage", exponential_moving_average),
    function("", "elapsed", elapsed),
    function("", "timeShift", time_shift),
    function("", "truncateTimeColumn", truncate_times),
];

/// What becomes of the cells of a column, given the times of its rows.
type OfCells<'f> = dyn FnMut(&Column, &[i64]) -> Result<(Kind, Vec<Value>)> + 'f;

/// Some columns anew; the first `dropped` rows are left out.
fn columns_anew(
    call: &Call<'_>,
    stream: &crate::stream::Stream,
    names: &[Arc<str>],
    (time_name, dropped): (&str, usize),
    make: &mut OfCells<'_>,
) -> Result<Value> {
    let mut out = call.evaluation.collector();
    call.evaluation.each(stream, &mut |table| {
        let times: Vec<i64> = match table.column(time_name) {
            Some(time) => (0..table.rows).map(|row| time.time(row).unwrap_or_default()).collect(),
            None if time_name.is_empty() => vec![0; table.rows],
            None => return Err(no_column(time_name)),
        };
        let mut made = table.clone();
        for name in names {
            let column = table.column(name).ok_or_else(|| no_column(name))?;
            if !column.kind.is_number() {
                let message =
                    format!("{}: unsupported column type {}", call.name, column.kind.words());
                return Err(Error::runtime(message));
            }
            let (kind, cells) = make(column, &times)?;
            made.set(Column::values(name, kind, cells));
        }
        let rows: Vec<usize> = (dropped.min(made.rows)..made.rows).collect();
        if rows.is_empty() { Ok(()) } else { out.push(made.picked(&rows)) }
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// Nanoseconds from one time to another. Times themselves are beyond the whole numbers of a float.
pub(super) fn nanos_between(from: i64, to: i64) -> f64 {
    (i128::from(to) - i128::from(from)) as f64
}

fn out_of_order(call: &Call<'_>) -> Error {
    Error::runtime(format!("{} found out-of-order times in time column", call.name))
}

/// The rows whose times are later than all before.
///
/// # Errors
/// When one is earlier.
pub(super) fn rising_rows(table: &Table, time: &Column) -> Result<Vec<usize>> {
    let mut rows = Vec::with_capacity(table.rows);
    let mut last = None;
    for row in 0..table.rows {
        let at = time.time(row);
        match at.cmp(&last) {
            std::cmp::Ordering::Less => {
                return Err(Error::runtime("found out-of-order times in time column"));
            }
            std::cmp::Ordering::Equal if row != 0 => {}
            _ => rows.push(row),
        }
        last = at;
    }
    Ok(rows)
}

fn value_columns(call: &Call<'_>) -> Result<Vec<Arc<str>>> {
    Ok(call.texts("columns")?.unwrap_or_else(|| vec!["_value".into()]))
}

fn derivative(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let unit = call.duration("unit")?.unwrap_or(Duration::of_nanos(1_000_000_000));
    let never_negative = call.switch("nonNegative")?.unwrap_or(false);
    let begins_at_zero = call.switch("initialZero")?.unwrap_or(false);
    let columns = value_columns(&call)?;
    let time = call.text_or("timeColumn", "_time")?;
    call.done()?;
    if unit.nanos <= 0 || unit.months != 0 {
        return Err(Error::runtime("derivative: unit must be positive, without months"));
    }
    columns_anew(&call, &stream, &columns, (&time, 1), &mut |column, times| {
        if times.windows(2).any(|pair| pair[1] < pair[0]) {
            return Err(out_of_order(&call));
        }
        let mut cells = vec![Value::Null; times.len()];
        let mut last: Option<(i64, Value)> = None;
        for (row, at) in times.iter().enumerate() {
            let value = column.get(row);
            if value.is_null() {
                continue;
            }
            if let Some((before, old)) = &last
                && before < at
            {
                let more = distance(old, &value);
                let elapsed = nanos_between(*before, *at) / unit.nanos as f64;
                cells[row] = match more < 0.0 && never_negative {
                    true if begins_at_zero => Value::Float(0.0),
                    true => Value::Null,
                    false => Value::Float(more / elapsed),
                };
            }
            last = Some((*at, value));
        }
        Ok((Kind::Float, cells))
    })
}

/// Returns `new - old` as a float. Integers are subtracted exactly, also beyond 2^53.
fn distance(old: &Value, new: &Value) -> f64 {
    match (old, new) {
        (Value::Integer(old), Value::Integer(new)) => (i128::from(*new) - i128::from(*old)) as f64,
        (Value::Unsigned(old), Value::Unsigned(new)) => {
            (i128::from(*new) - i128::from(*old)) as f64
        }
        _ => new.as_f64().unwrap_or(f64::NAN) - old.as_f64().unwrap_or(f64::NAN),
    }
}

/// What one value is more than the one before.
fn change(old: &Value, new: &Value) -> Value {
    match (old, new) {
        (Value::Integer(old), Value::Integer(new)) => Value::Integer(new.wrapping_sub(*old)),
        (Value::Unsigned(old), Value::Unsigned(new)) => {
            Value::Integer(new.wrapping_sub(*old) as i64)
        }
        (Value::Float(old), Value::Float(new)) => Value::Float(new - old),
        _ => Value::Null,
    }
}

fn zero_of(kind: Kind) -> Value {
    match kind {
        Kind::Integer => Value::Integer(0),
        Kind::Unsigned => Value::Unsigned(0),
        _ => Value::Float(0.0),
    }
}

/// What is made of negative differences.
#[derive(Clone, Copy, PartialEq)]
enum Negative {
    Kept,
    Null,
    /// The counter began again: all of the value is new, unless that is negative, too.
    FromZero,
}

/// What stands in the first row.
#[derive(Clone, Copy, PartialEq)]
enum First {
    Null,
    Zero,
}

fn differences(
    column: &Column,
    rows: usize,
    negative: Negative,
    first: First,
) -> (Kind, Vec<Value>) {
    let kind = if column.kind == Kind::Unsigned { Kind::Integer } else { column.kind };
    let mut last = Value::Null;
    let mut cells = Vec::with_capacity(rows);
    for row in 0..rows {
        let value = column.get(row);
        if value.is_null() {
            cells.push(Value::Null);
            continue;
        }
        let is_less = !last.is_null() && value.order(&last).is_lt();
        cells.push(match negative {
            _ if last.is_null() && first == First::Zero => zero_of(kind),
            _ if last.is_null() => Value::Null,
            Negative::Null if is_less => Value::Null,
            Negative::FromZero if is_less => match value.order(&zero_of(column.kind)).is_lt() {
                true => Value::Null,
                false => change(&zero_of(column.kind), &value),
            },
            _ => change(&last, &value),
        });
        last = value;
    }
    (kind, cells)
}

fn difference(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let never_negative = call.switch("nonNegative")?.unwrap_or(false);
    let begins_at_zero = call.switch("initialZero")?.unwrap_or(false);
    let keeps_first = call.switch("keepFirst")?.unwrap_or(false);
    let columns = value_columns(&call)?;
    call.done()?;
    let negative = match (never_negative, begins_at_zero) {
        (false, _) => Negative::Kept,
        (true, false) => Negative::Null,
        (true, true) => Negative::FromZero,
    };
    let dropped = usize::from(!keeps_first);
    let first = if keeps_first && begins_at_zero { First::Zero } else { First::Null };
    columns_anew(&call, &stream, &columns, ("", dropped), &mut |column, times| {
        Ok(differences(column, times.len(), negative, first))
    })
}

/// Each value and all before it.
fn sums(kind: Kind, cells: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut sum = zero_of(kind);
    cells
        .map(|cell| {
            sum = match (&sum, cell) {
                (Value::Integer(a), Value::Integer(b)) => Value::Integer(a.wrapping_add(b)),
                (Value::Unsigned(a), Value::Unsigned(b)) => Value::Unsigned(a.wrapping_add(b)),
                (Value::Float(a), Value::Float(b)) => Value::Float(a + b),
                (sum, _) => sum.clone(),
            };
            sum.clone()
        })
        .collect()
}

fn increase(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let columns = value_columns(&call)?;
    call.done()?;
    columns_anew(&call, &stream, &columns, ("", 0), &mut |column, times| {
        let (kind, cells) = differences(column, times.len(), Negative::FromZero, First::Zero);
        Ok((kind, sums(kind, cells.into_iter())))
    })
}

fn cumulative_sum(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let columns = value_columns(&call)?;
    call.done()?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |mut table| {
        for name in &columns {
            let column = table.column(name).ok_or_else(|| no_column(name))?;
            if !column.kind.is_number() {
                return Err(Error::runtime(format!(
                    "unsupported column type {}",
                    column.kind.words()
                )));
            }
            let cells = sums(column.kind, (0..table.rows).map(|row| column.get(row)));
            let made = Column::values(name, column.kind, cells);
            table.set(made);
        }
        out.push(table)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// The number of rows that an average is of.
fn rows_of_average(call: &Call<'_>) -> Result<usize> {
    let missing = || Error::name(format!("{}: missing required argument n", call.name));
    let count = call.count("n")?.ok_or_else(missing)?;
    match count {
        0 => Err(Error::runtime(format!("{}: n must be greater than 0", call.name))),
        count => Ok(count),
    }
}

fn mean_of(column: &Column, rows: std::ops::Range<usize>) -> Value {
    let found = rows.filter_map(|row| column.number(row));
    let (count, sum) = found.fold((0_u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    if count == 0 { Value::Null } else { Value::Float(sum / count as f64) }
}

/// An average of each row and some before it, from the first row on that has as many, or from the last one.
fn averages(
    call: &Call<'_>,
    of: fn(&Call<'_>, &Column, Averaged) -> Result<Vec<Value>>,
) -> Result<Value> {
    let stream = call.tables()?;
    let count = rows_of_average(call)?;
    call.done()?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let column = table.column("_value").ok_or_else(|| no_column("_value"))?;
        let first = count.min(table.rows).saturating_sub(1);
        let cells = of(call, column, Averaged { count, first, rows: table.rows })?;
        let rows: Vec<usize> = (first..table.rows).collect();
        let mut made = table.picked(&rows);
        made.set(Column::values("_value", Kind::Float, cells));
        out.push(made)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// What averages are made of.
#[derive(Clone, Copy)]
struct Averaged {
    /// Rows of one.
    count: usize,
    /// The first row that has one.
    first: usize,
    /// Rows of the table.
    rows: usize,
}

fn moving_average(call: Call<'_>) -> Result<Value> {
    averages(&call, |call, column, Averaged { count, first, rows }| {
        let mean = |row: usize| {
            call.evaluation.tick(row)?;
            // A window slides; sums that grow and shrink would lose digits.
            Ok(mean_of(column, (row + 1).saturating_sub(count)..row + 1))
        };
        (first..rows).map(mean).collect()
    })
}

fn exponential_moving_average(call: Call<'_>) -> Result<Value> {
    averages(&call, |_, column, Averaged { count, first, rows }| {
        let weight = 2.0 / (count as f64 + 1.0);
        let mut last = mean_of(column, 0..first + 1);
        let mut cells = vec![last.clone()];
        for row in first + 1..rows {
            last = match (column.number(row), last.as_f64()) {
                (Some(value), Some(old)) => Value::Float(value * weight + old * (1.0 - weight)),
                (Some(value), None) => Value::Float(value),
                (None, _) => last,
            };
            cells.push(last.clone());
        }
        // Of no rows there is none.
        cells.truncate(rows - first);
        Ok(cells)
    })
}

fn elapsed(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let unit = call.duration("unit")?.map_or(1_000_000_000, |unit| unit.nanos).max(1);
    let time_name = call.text_or("timeColumn", "_time")?;
    let name = call.text_or("columnName", "elapsed")?;
    call.done()?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let time = table.column(&time_name).ok_or_else(|| no_column(&time_name))?;
        let rows: Vec<usize> = (1..table.rows).collect();
        let cells = rows.iter().map(|row| match (time.time(row - 1), time.time(*row)) {
            (Some(before), Some(at)) => Value::Integer(at.wrapping_sub(before) / unit),
            _ => Value::Null,
        });
        let cells: Vec<Value> = cells.collect();
        let mut made = table.picked(&rows);
        made.set(Column::values(&name, Kind::Integer, cells));
        if made.rows == 0 { Ok(()) } else { out.push(made) }
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// Times of some columns changed, and the tables grouped by what became of their keys.
fn times_anew(
    call: &Call<'_>,
    stream: &crate::stream::Stream,
    names: &[Arc<str>],
    make: &dyn Fn(i64) -> i64,
) -> Result<Value> {
    let mut grouped = Grouped::default();
    let mut out = call.evaluation.collector();
    call.evaluation.each(stream, &mut |mut table: Table| {
        for column in table.columns.iter_mut().filter(|column| names.contains(&column.name)) {
            let changed = |value: &Value| match value {
                Value::Time(time) => Value::Time(make(*time)),
                other => other.clone(),
            };
            column.data = match &column.data {
                Data::Same(value) => Data::Same(changed(value)),
                Data::Times(times) => {
                    Data::Times(Arc::new(times.iter().map(|time| make(*time)).collect()))
                }
                Data::Values(values) => {
                    Data::Values(Arc::new(values.iter().map(changed).collect()))
                }
                Data::Floats(values) => Data::Floats(values.clone()),
            };
        }
        table.bounds = table.bounds.map(|(start, stop)| (make(start), make(stop)));
        out.reserve(table.size())?;
        let builder = grouped.builder(table.key(), table.bounds);
        let is_key = |name: &str| table.column(name).is_some_and(|column| column.is_key);
        for row in 0..table.rows {
            builder.push(&table, row, &is_key).map_err(super::collision)?;
        }
        Ok(())
    })?;
    for table in grouped.finish() {
        out.push(table)?;
    }
    Ok(Value::Stream(out.finish().stream()))
}

fn time_shift(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let missing = || Error::name("timeShift: missing required argument duration");
    let distance = call.duration("duration")?.ok_or_else(missing)?;
    let names = call.texts("columns")?;
    let names = names.unwrap_or_else(|| ["_start", "_stop", "_time"].map(Arc::from).to_vec());
    call.done()?;
    times_anew(&call, &stream, &names, &|time| distance.after(time))
}

fn truncate_times(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let missing = || Error::name("truncateTimeColumn: missing required argument unit");
    let unit = call.duration("unit")?.ok_or_else(missing)?;
    let name = call.text_or("timeColumn", "_time")?;
    call.done()?;
    let windows = Windows { every: unit, period: unit, offset: Duration::default(), zone: None };
    let bounds_stay = |time: i64| windows.start_of(time);
    times_anew(&call, &stream, &[name], &bounds_stay)
}
