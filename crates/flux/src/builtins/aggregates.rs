//! Functions that make one row of a table: `mean`, `sum`, `count` and their kin.

use super::{Builtin, Call, function, no_column};
use crate::error::{Error, Result};
use crate::table::{Column, Data, Table};
use crate::value::{Kind, Value, is_less};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "count", aggregate),
    function("", "sum", aggregate),
    function("", "mean", aggregate),
    function("", "spread", aggregate),
    function("", "stddev", aggregate),
    function("", "median", aggregate),
    function("", "quantile", aggregate),
    function("", "mode", mode),
    function("", "skew", aggregate),
    function("", "integral", integral),
];

/// What is made of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fold {
    Count,
    Sum,
    Mean,
    Spread,
    Stddev { is_population: bool },
    Quantile { q: f64, method: Method },
    Skew,
}

/// What lies between two values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    /// `estimate_tdigest`: each value stands for the half of a row before it and behind it. That is
    /// what the digest says of a table that it does not have to compress.
    Digest,
    /// `exact_mean`: the ranks of the least and the greatest are 0 and 1.
    Mean,
}

impl Fold {
    /// The one of a function that needs no more arguments.
    pub(super) fn of(name: &str) -> Option<Fold> {
        Some(match name {
            "count" => Fold::Count,
            "sum" => Fold::Sum,
            "mean" => Fold::Mean,
            "spread" => Fold::Spread,
            "stddev" => Fold::Stddev { is_population: false },
            "median" => Fold::Quantile { q: 0.5, method: Method::Digest },
            "skew" => Fold::Skew,
            _ => return None,
        })
    }

    /// The type of what it makes.
    pub(super) fn kind(self, name: &str, kind: Kind) -> Result<Kind> {
        let is_fine = self == Fold::Count || kind.is_number();
        if !is_fine {
            let message = format!("unsupported input type for {name} aggregate: {}", kind.words());
            return Err(Error::runtime(message));
        }
        Ok(match self {
            Fold::Count => Kind::Integer,
            Fold::Sum | Fold::Spread => kind,
            _ => Kind::Float,
        })
    }

    /// What it makes of those rows.
    pub(super) fn run(self, column: &Column, rows: &[usize]) -> Value {
        let numbers = || rows.iter().filter_map(|row| column.number(*row));
        match self {
            Fold::Count => Value::Integer(i64::try_from(rows.len()).unwrap_or(i64::MAX)),
            Fold::Sum => sum(column, rows),
            Fold::Mean => {
                let (count, sum) =
                    numbers().fold((0_u64, 0.0), |(n, sum), value| (n + 1, sum + value));
                of_count(count, sum / count as f64)
            }
            Fold::Spread => spread(column, rows),
            Fold::Stddev { is_population } => {
                let (count, _, squares) = moments(numbers());
                let divisor = if is_population { count } else { count.saturating_sub(1) };
                of_count(count, (squares / divisor as f64).sqrt())
            }
            Fold::Quantile { q, method } => {
                let mut sorted: Vec<f64> = numbers().collect();
                sorted.sort_by(f64::total_cmp);
                quantile(&sorted, q, method).map_or(Value::Null, Value::Float)
            }
            Fold::Skew => {
                let (count, mean, squares) = moments(numbers());
                let cubes: f64 = numbers().map(|value| (value - mean).powi(3)).sum();
                let count_float = count as f64;
                of_count(count, cubes / count_float / (squares / count_float).powf(1.5))
            }
        }
    }
}

fn of_count(count: u64, value: f64) -> Value {
    if count == 0 { Value::Null } else { Value::Float(value) }
}

/// How many, their mean, and the sum of squares of their distances from it (Welford).
fn moments(values: impl Iterator<Item = f64>) -> (u64, f64, f64) {
    values.fold((0, 0.0, 0.0), |(count, mean, squares), value| {
        let count = count + 1;
        let distance = value - mean;
        let mean = mean + distance / count as f64;
        (count, mean, squares + distance * (value - mean))
    })
}

/// Between the two nearest values.
fn quantile(sorted: &[f64], q: f64, method: Method) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let q = q.clamp(0.0, 1.0);
    let rank = match method {
        Method::Digest => (q * sorted.len() as f64 - 0.5).clamp(0.0, last as f64),
        Method::Mean => q * last as f64,
    };
    let below = (rank.floor() as usize).min(last);
    let above = (rank.ceil() as usize).min(last);
    let part = rank - rank.floor();
    let (low, high) = (sorted[below], sorted[above]);
    Some(if below == above { low } else { low * (1.0 - part) + high * part })
}

fn sum(column: &Column, rows: &[usize]) -> Value {
    let values = rows.iter().map(|row| column.get(*row)).filter(|value| !value.is_null());
    if let Data::Floats(_) = column.data {
        let mut found = rows.iter().filter_map(|row| column.number(*row)).peekable();
        let is_empty = found.peek().is_none();
        return if is_empty { Value::Null } else { Value::Float(found.sum()) };
    }
    values
        .reduce(|sum, value| match (sum, value) {
            (Value::Integer(a), Value::Integer(b)) => Value::Integer(a.wrapping_add(b)),
            (Value::Unsigned(a), Value::Unsigned(b)) => Value::Unsigned(a.wrapping_add(b)),
            (Value::Float(a), Value::Float(b)) => Value::Float(a + b),
            (sum, _) => sum,
        })
        .unwrap_or_default()
}

fn spread(column: &Column, rows: &[usize]) -> Value {
    let values = || rows.iter().map(|row| column.get(*row)).filter(|value| !value.is_null());
    let low = values().reduce(|low, value| if is_less(&value, &low) { value } else { low });
    let high = values().reduce(|high, value| if is_less(&high, &value) { value } else { high });
    match (low, high) {
        (Some(Value::Integer(low)), Some(Value::Integer(high))) => {
            Value::Integer(high.wrapping_sub(low))
        }
        (Some(Value::Unsigned(low)), Some(Value::Unsigned(high))) => Value::Unsigned(high - low),
        (Some(Value::Float(low)), Some(Value::Float(high))) => Value::Float(high - low),
        _ => Value::Null,
    }
}

/// The values that come most often, sorted; null if all come as often.
fn most_often(column: &Column, rows: usize) -> Vec<Value> {
    let mut values: Vec<Value> =
        (0..rows).map(|row| column.get(row)).filter(|value| !value.is_null()).collect();
    values.sort_by(Value::order);
    let runs: Vec<&[Value]> =
        values.chunk_by(|one, other| one.order(other) == Ordering::Equal).collect();
    let most = runs.iter().map(|run| run.len()).max().unwrap_or(0);
    let best: Vec<Value> =
        runs.iter().filter(|run| run.len() == most).map(|run| run[0].clone()).collect();
    if best.len() == runs.len() { vec![Value::Null] } else { best }
}

/// The rows of `mode()`, as `_value` whatever the column; none of a table without rows.
fn mode(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let name = call.text_or("column", "_value")?;
    call.done()?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let (kind, values) = match table.column(&name) {
            None => (Kind::Text, vec![Value::text("")]),
            Some(column) if column.is_key => (column.kind, vec![column.get(0)]),
            Some(column) if table.rows == 0 => (column.kind, Vec::new()),
            Some(column) => (column.kind, most_often(column, table.rows)),
        };
        let mut made = table.key_alone(values.len());
        made.set(Column::values("_value", kind, values));
        out.push(made)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// The fold that a call asks for, and the column.
fn asked(call: &Call<'_>, method: Method) -> Result<(Fold, Arc<str>)> {
    let column = call.text_or("column", "_value")?;
    let fold = match call.name {
        "quantile" => {
            let q = call
                .float("q")?
                .ok_or_else(|| Error::name("quantile: missing required argument q"))?;
            if !(0.0..=1.0).contains(&q) {
                return Err(Error::runtime("quantile must be between 0 and 1"));
            }
            Fold::Quantile { q, method }
        }
        "median" => Fold::Quantile { q: 0.5, method },
        "stddev" => {
            let mode = call.text("mode")?;
            Fold::Stddev { is_population: mode.is_some_and(|mode| &*mode == "population") }
        }
        name => Fold::of(name).ok_or_else(|| Error::runtime("no aggregate"))?,
    };
    call.optional("compression");
    Ok((fold, column))
}

fn aggregate(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let is_quantile = matches!(call.name, "quantile" | "median");
    let word = if is_quantile { call.text_or("method", "estimate_tdigest")? } else { "".into() };
    let method = match &*word {
        "" | "estimate_tdigest" | "exact_selector" => Method::Digest,
        "exact_mean" => Method::Mean,
        other => return Err(Error::runtime(format!("unknown quantile method {other:?}"))),
    };
    let (fold, name) = asked(&call, method)?;
    call.done()?;
    if let (Fold::Quantile { q, .. }, "exact_selector") = (fold, &*word) {
        return super::selectors::select_quantile(&call, &stream, &name, q);
    }
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let column = table.column(&name).ok_or_else(|| no_column(&name))?;
        let kind = fold.kind(call.name, column.kind)?;
        let rows: Vec<usize> = (0..table.rows).collect();
        out.push(one_row(&table, Column::values(&name, kind, vec![fold.run(column, &rows)])))
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// The group key and one more column, of one row.
pub(super) fn one_row(table: &Table, column: Column) -> Table {
    let mut found = table.key_alone(1);
    found.set(column);
    found
}

/// The area under the values, in units of time.
fn integral(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let unit = call.duration("unit")?.map_or(1_000_000_000, |unit| unit.nanos).max(1);
    let name = call.text_or("column", "_value")?;
    let time_name = call.text_or("timeColumn", "_time")?;
    let interpolate = call.text_or("interpolate", "")?;
    call.done()?;
    if !matches!(&*interpolate, "" | "linear") {
        return Err(Error::runtime(format!("integral: unknown interpolation {interpolate:?}")));
    }
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let column = table.column(&name).ok_or_else(|| no_column(&name))?;
        if !column.kind.is_number() {
            let words = column.kind.words();
            return Err(Error::runtime(format!("cannot perform integral over {words}")));
        }
        let time = table.column(&time_name).ok_or_else(|| no_column(&time_name))?;
        let rows = super::neighbours::rising_rows(&table, time)?;
        let points: Vec<(i64, f64)> =
            rows.iter().filter_map(|row| Some((time.time(*row)?, column.number(*row)?))).collect();
        let edge = |name: &str| table.column(name).and_then(|column| column.time(0));
        let bounds = match &*interpolate {
            "linear" => edge("_start").zip(edge("_stop")).or(table.bounds),
            _ => None,
        };
        let area = Value::Float(area(&points, bounds) / unit as f64);
        out.push(one_row(&table, Column::values(&name, Kind::Float, vec![area])))
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// The area under lines between points, which go on to the bounds if there are some.
fn area(points: &[(i64, f64)], bounds: Option<(i64, i64)>) -> f64 {
    let width = super::neighbours::nanos_between;
    let between = |pair: &[(i64, f64)]| (pair[0].1 + pair[1].1) / 2.0 * width(pair[0].0, pair[1].0);
    let inner: f64 = points.windows(2).map(between).sum();
    let (Some((start, stop)), [first, .., last]) = (bounds, points) else {
        return match (bounds, points) {
            (Some((start, stop)), [only]) => only.1 * width(start, stop),
            _ => inner,
        };
    };
    let slope = |a: (i64, f64), b: (i64, f64)| (b.1 - a.1) / width(a.0, b.0);
    let before = width(start, first.0).max(0.0);
    let behind = width(last.0, stop);
    let low = first.1 - slope(*first, points[1]) * before;
    let high = last.1 + slope(points[points.len() - 2], *last) * behind;
    inner + (low + first.1) / 2.0 * before + (high + last.1) / 2.0 * behind
}
