//! `covariance`, `cov`, `pearsonr`, `timeWeightedAvg` and `hourSelection`.

use super::{Builtin, Call, function, no_column};
use crate::error::{Error, Result};
use crate::table::{Column, Table};
use crate::value::{Kind, Record, Value};
use jiff::tz::TimeZone;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "cov", of_two_streams),
    function("", "covariance", covariance),
    function("", "hourSelection", select_hours),
    function("", "pearsonr", of_two_streams),
    function("", "timeWeightedAvg", time_weighted_average),
];

/// Means and sums of squares of pairs so far, by Welford's method.
#[derive(Default)]
struct Moments {
    count: f64,
    mean: (f64, f64),
    squares: (f64, f64),
    products: f64,
}

impl Moments {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        let before = (x - self.mean.0, y - self.mean.1);
        self.mean.0 += before.0 / self.count;
        self.mean.1 += before.1 / self.count;
        let after = (x - self.mean.0, y - self.mean.1);
        self.squares.0 += before.0 * after.0;
        self.squares.1 += before.1 * after.1;
        self.products += before.0 * after.1;
    }

    fn covariance(&self) -> f64 {
        if self.count < 2.0 { f64::NAN } else { self.products / (self.count - 1.0) }
    }

    fn correlation(&self) -> f64 {
        let size = (self.squares.0 * self.squares.1).sqrt();
        if self.count < 2.0 { f64::NAN } else { self.products / size }
    }
}

/// Moments of two columns; rows with a null are passed over.
fn moments(call: &Call<'_>, table: &Table, names: &[Arc<str>; 2]) -> Result<Moments> {
    let [x, y] = names.each_ref().map(|name| table.column(name).ok_or_else(|| no_column(name)));
    let (x, y) = (x?, y?);
    if let Some(other) = [x, y].iter().find(|column| column.kind != Kind::Float) {
        let found = other.kind.words();
        return Err(Error::runtime(format!("covariance does not support {found}: use toFloat()")));
    }
    let mut moments = Moments::default();
    for row in 0..table.rows {
        call.evaluation.tick(row)?;
        if let (Some(x), Some(y)) = (x.number(row), y.number(row)) {
            moments.add(x, y);
        }
    }
    Ok(moments)
}

/// `covariance(columns: ["x", "y"], pearsonr: false, valueDst: "_value")`
fn covariance(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let columns = call.texts("columns")?.unwrap_or_default();
    let is_correlation = call.switch("pearsonr")?.unwrap_or(false);
    let name = call.text_or("valueDst", "_value")?;
    call.done()?;
    let columns: [Arc<str>; 2] = columns
        .try_into()
        .map_err(|_| Error::runtime("covariance: argument columns must name two columns"))?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let moments = moments(&call, &table, &columns)?;
        let value = if is_correlation { moments.correlation() } else { moments.covariance() };
        out.push(super::aggregates::one_row(&table, Column::floats(&name, vec![value])))
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// `cov(x:, y:, on:, pearsonr: false)` and `pearsonr(x:, y:, on:)`
fn of_two_streams(call: Call<'_>) -> Result<Value> {
    let (x, y, on) = (call.required("x")?, call.required("y")?, call.required("on")?);
    let is_correlation = match call.name {
        "cov" => call.switch("pearsonr")?.unwrap_or(false),
        _ => true,
    };
    call.done()?;
    let sides = Record::new(vec![("x".into(), x), ("y".into(), y)]);
    let sides = Value::Record(Arc::new(sides));
    let join = super::find("", "join").map(Value::Builtin).unwrap_or_default();
    let joined = call.apply(&join, &[("tables", sides), ("on", on)])?;
    let columns = Value::list(["_value_x", "_value_y"].map(Value::text).to_vec());
    let args = [("columns", columns), ("pearsonr", Value::Boolean(is_correlation))];
    call.pipe("covariance", joined, &args)
}

/// `timeWeightedAvg(unit:)`: the integral over the time between `_start` and `_stop`.
fn time_weighted_average(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let missing = || Error::name("timeWeightedAvg: missing required argument unit");
    let unit = call.duration("unit")?.ok_or_else(missing)?;
    call.done()?;
    let args = [("unit", Value::Duration(unit)), ("interpolate", Value::text("linear"))];
    let Value::Stream(found) = call.pipe("integral", Value::Stream(stream), &args)? else {
        return Err(Error::runtime("integral made no tables"));
    };
    let mut out = call.evaluation.collector();
    call.evaluation.each(&found, &mut |mut table| {
        let bound = |name: &str| {
            let time = table.column(name).and_then(|column| column.time(0));
            time.ok_or_else(|| no_column(name))
        };
        let length = super::neighbours::nanos_between(bound("_start")?, bound("_stop")?);
        let value = table.column("_value").ok_or_else(|| no_column("_value"))?;
        let mean = |row| value.number(row).map(|sum| sum * unit.nanos as f64 / length);
        let cells = (0..table.rows).map(|row| mean(row).map_or(Value::Null, Value::Float));
        let cells = cells.collect();
        table.set(Column::values("_value", Kind::Float, cells));
        out.push(table)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// An hour of a day.
fn hour(call: &Call<'_>, name: &'static str) -> Result<i8> {
    let missing = || Error::name(format!("hourSelection: missing required argument {name}"));
    let hour = call.integer(name)?.ok_or_else(missing)?;
    let range = || Error::runtime(format!("{name} must be between 0 and 23, found {hour}"));
    i8::try_from(hour).ok().filter(|hour| (0..24).contains(hour)).ok_or_else(range)
}

/// `hourSelection(start:, stop:, location:, timeColumn: "_time")`: both hours are included, and
/// midnight is between them if `stop` is less than `start`.
fn select_hours(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let (start, stop) = (hour(&call, "start")?, hour(&call, "stop")?);
    let zone = super::scalars::zone(&call)?.unwrap_or(TimeZone::UTC);
    let time_name = call.text_or("timeColumn", "_time")?;
    call.done()?;
    let is_selected = |time: i64| {
        let moment = jiff::Timestamp::from_nanosecond(i128::from(time)).ok();
        moment.is_some_and(|moment| {
            let hour = zone.to_datetime(moment).hour();
            match start <= stop {
                true => start <= hour && hour <= stop,
                false => start <= hour || hour <= stop,
            }
        })
    };
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let time = table.column(&time_name).ok_or_else(|| no_column(&time_name))?;
        let rows: Vec<usize> =
            (0..table.rows).filter(|row| time.time(*row).is_some_and(is_selected)).collect();
        if rows.is_empty() { Ok(()) } else { out.push(table.picked(&rows)) }
    })?;
    Ok(Value::Stream(out.finish().stream()))
}
