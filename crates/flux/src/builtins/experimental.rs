//! `experimental`, and its packages `json`, `prometheus` and `query`.

use super::grouping::regrouped;
use super::sources::of_record;
use super::{Builtin, Call, collision, function, no_column};
use crate::error::{Error, Result};
use crate::stream::{Stream, Tables};
use crate::table::{Column, Grouped, Table};
use crate::value::{Kind, Record, Value};
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("experimental", "alignTime", align_time),
    function("experimental", "group", group),
    function("experimental", "objectKeys", object_keys),
    function("experimental", "set", set),
    function("experimental", "unpivot", unpivot),
    function("experimental/prometheus", "histogramQuantile", histogram_quantile),
    function("experimental/query", "filterFields", filter_fields),
    function("experimental/query", "filterMeasurement", filter_measurement),
    function("experimental/query", "fromRange", from_range),
    function("experimental/query", "inBucket", in_bucket),
];

/// `experimental.group(mode: "extend", columns:)` adds columns to the group key.
fn group(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let mode = call.required_text("mode")?;
    let columns = call.texts("columns")?.unwrap_or_default();
    call.done()?;
    if &*mode != "extend" {
        return Err(Error::runtime(format!("invalid mode {mode:?}: use extend")));
    }
    let tables = changed_and_regrouped(&call, &stream, &mut |table| {
        for name in &columns {
            let column = table.columns.iter_mut().find(|column| column.name == *name);
            column.ok_or_else(|| no_column(name))?.is_key = true;
        }
        Ok(())
    })?;
    Ok(Value::Stream(tables.stream()))
}

/// Changes each table and groups the rows of all by the key columns that their table has then.
fn changed_and_regrouped(
    call: &Call<'_>,
    stream: &Stream,
    change: &mut dyn FnMut(&mut Table) -> Result<()>,
) -> Result<Tables> {
    let mut grouped = Grouped::default();
    let mut out = call.evaluation.collector();
    call.evaluation.each(stream, &mut |mut table| {
        change(&mut table)?;
        out.reserve(table.size())?;
        let keys = key_names(&table);
        super::grouping::add(call, &mut grouped, &table, &|name| {
            keys.iter().any(|key| &**key == name)
        })
    })?;
    for table in grouped.finish() {
        out.push(table)?;
    }
    Ok(out.finish())
}

pub(super) fn key_names(table: &Table) -> Vec<Arc<str>> {
    let keys = table.columns.iter().filter(|column| column.is_key);
    keys.map(|column| column.name.clone()).collect()
}

fn given_record(call: &Call<'_>) -> Result<Arc<Record>> {
    match call.required("o")? {
        Value::Record(record) => Ok(record),
        other => Err(call.wrong("o", "record", &other)),
    }
}

/// `experimental.objectKeys(o:)`
fn object_keys(call: Call<'_>) -> Result<Value> {
    let record = given_record(&call)?;
    call.done()?;
    let names = record.fields.iter().map(|(name, _)| Value::Text(name.clone()));
    Ok(Value::list(names.collect()))
}

/// `experimental.set(o:)` gives columns one value in all rows.
fn set(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let columns = of_record(&given_record(&call)?.fields)?.columns;
    call.done()?;
    let tables = changed_and_regrouped(&call, &stream, &mut |table| {
        for column in &columns {
            let is_key = table.column(&column.name).is_some_and(|other| other.is_key);
            table.set(Column { is_key, ..column.clone() });
        }
        Ok(())
    })?;
    Ok(Value::Stream(tables.stream()))
}

/// `experimental.alignTime(alignTo:)` moves each table so that its first row is at that time.
fn align_time(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let start = call.time("alignTo")?.unwrap_or(0);
    call.done()?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |mut table| {
        let time = table.column("_time").ok_or_else(|| no_column("_time"))?;
        let null = || Error::runtime("got a null timestamp");
        let times: Option<Vec<i64>> = (0..table.rows).map(|row| time.time(row)).collect();
        let times = times.ok_or_else(null)?;
        let first = times.first().copied().unwrap_or(0);
        let moved = |time: &i64| time.saturating_sub(first).saturating_add(start);
        let moved = times.iter().map(moved).collect();
        table.set(Column::times("_time", moved));
        out.push(table)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// `experimental.unpivot(otherColumns: ["_time"])`: a row for each value of the columns that are
/// neither of the group key nor named.
fn unpivot(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let others = call.texts("otherColumns")?.unwrap_or_else(|| vec!["_time".into()]);
    call.done()?;
    let mut grouped = Grouped::default();
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        out.reserve(table.size())?;
        let is_other = |column: &&Column| column.is_key || others.contains(&column.name);
        let fixed: Vec<Column> = table.columns.iter().filter(is_other).cloned().collect();
        for column in table.columns.iter().filter(|column| !is_other(column)) {
            let mut columns = fixed.clone();
            columns.push(Column::key("_field", Value::Text(column.name.clone())));
            columns.push(Column { name: "_value".into(), ..column.clone() });
            let one = Table { columns, rows: table.rows, bounds: table.bounds };
            let keys = key_names(&one);
            let is_key = |name: &str| keys.iter().any(|key| &**key == name);
            let builder = grouped.builder(one.key(), one.bounds);
            for row in (0..one.rows).filter(|row| !column.get(*row).is_null()) {
                call.evaluation.tick(row)?;
                builder.push(&one, row, &is_key).map_err(collision)?;
            }
        }
        Ok(())
    })?;
    for table in grouped.finish().filter(|table| table.rows != 0) {
        out.push(table)?;
    }
    Ok(Value::Stream(out.finish().stream()))
}

/// `prometheus.histogramQuantile(quantile:, metricVersion: 2, onNonmonotonic: "error")`
///
/// The bounds are the tag `le` of version 2, and the names of the fields of version 1.
fn histogram_quantile(call: Call<'_>) -> Result<Value> {
    let mut stream = call.tables()?;
    let quantile = call.required("quantile")?;
    let version = call.integer("metricVersion")?.unwrap_or(2);
    let policy = call.text_or("onNonmonotonic", "error")?;
    call.done()?;
    let bound = match version {
        1 => "_field",
        2 => "le",
        other => {
            let message = format!("invalid metricVersion {other}: use 1 or 2");
            return Err(Error::runtime(message));
        }
    };
    if version == 1 {
        stream = buckets_of_version_1(&call, &stream)?;
    }
    let floats = with_float_bounds(&call, &stream, bound)?;
    let args = [("quantile", quantile.clone()), ("onNonmonotonic", Value::Text(policy))];
    let Value::Stream(found) = call.pipe("histogramQuantile", floats, &args)? else {
        return Err(Error::runtime("histogramQuantile made no tables"));
    };
    let is_key = |name: &str| !matches!(name, "le" | "_value" | "_time");
    let grouped = Value::Stream(regrouped(&call, &found, &is_key)?.stream());
    let name = Value::text("quantile");
    let value = Value::text(&quantile.print()?);
    let Value::Stream(named) = call.pipe("set", grouped, &[("key", name), ("value", value)])?
    else {
        return Err(Error::runtime("set made no tables"));
    };
    let is_key = |name: &str| !matches!(name, "le" | "_value" | "_time");
    Ok(Value::Stream(regrouped(&call, &named, &is_key)?.stream()))
}

/// Bucket series of metrics version 1, without the series of the sum and the count.
fn buckets_of_version_1(call: &Call<'_>, stream: &Stream) -> Result<Arc<Stream>> {
    let mut out = call.evaluation.collector();
    call.evaluation.each(stream, &mut |table| {
        let field = table.column("_field").map(|column| column.get(0));
        let is_bucket =
            !matches!(&field, Some(Value::Text(name)) if matches!(&**name, "sum" | "count"));
        if is_bucket { out.push(table) } else { Ok(()) }
    })?;
    Ok(out.finish().stream())
}

/// Rows of one time and the same other columns in one table, with float bounds in `le`.
fn with_float_bounds(call: &Call<'_>, stream: &Stream, bound: &str) -> Result<Value> {
    let mut floats = call.evaluation.collector();
    call.evaluation.each(stream, &mut |mut table| {
        let column = table.column(bound).ok_or_else(|| no_column(bound))?;
        let mut cells = Vec::with_capacity(table.rows);
        for row in 0..table.rows {
            call.evaluation.tick(row)?;
            cells.push(super::scalars::converted("float", &column.get(row))?);
        }
        table.columns.retain(|column| &*column.name != bound);
        table.set(Column::values("le", Kind::Float, cells));
        floats.push(table)
    })?;
    let floats = floats.finish().stream();
    let is_key = |name: &str| !matches!(name, "le" | "_value");
    Ok(Value::Stream(regrouped(call, &floats, &is_key)?.stream()))
}

/// `query.fromRange(bucket:, start:, stop: now())`
fn from_range(call: Call<'_>) -> Result<Value> {
    let bucket = call.required("bucket")?;
    let start = call.required("start")?;
    let stop = call.optional("stop");
    call.done()?;
    ranged(&call, bucket, start, stop)
}

fn ranged(call: &Call<'_>, bucket: Value, start: Value, stop: Option<Value>) -> Result<Value> {
    let from = super::find("", "from").map(Value::Builtin).unwrap_or_default();
    let source = call.apply(&from, &[("bucket", bucket)])?;
    let stop = stop.unwrap_or(Value::Time(call.evaluation.now()));
    call.pipe("range", source, &[("start", start), ("stop", stop)])
}

/// Narrows a stream to rows whose column has one of the values.
fn narrowed(call: &Call<'_>, stream: Value, column: &str, values: &[Arc<str>]) -> Result<Value> {
    let Value::Stream(stream) = stream else {
        return Err(call.wrong("table", "stream of tables", &stream));
    };
    let is_one = |value: &Arc<str>| crate::predicate::Predicate::Compare {
        column: column.into(),
        op: "==",
        value: Value::Text(value.clone()),
    };
    let predicate = crate::predicate::Predicate::Or(values.iter().map(is_one).collect());
    super::sources::filter_by(call, &stream, predicate)
}

/// `query.filterMeasurement(measurement:)`
fn filter_measurement(call: Call<'_>) -> Result<Value> {
    let stream = call.input("table")?;
    let measurement = call.required_text("measurement")?;
    call.done()?;
    narrowed(&call, stream, "_measurement", &[measurement])
}

/// `query.filterFields(fields: [])`
fn filter_fields(call: Call<'_>) -> Result<Value> {
    let stream = call.input("table")?;
    let fields = call.texts("fields")?.unwrap_or_default();
    call.done()?;
    match fields.is_empty() {
        true => Ok(stream),
        false => narrowed(&call, stream, "_field", &fields),
    }
}

/// `query.inBucket(bucket:, measurement:, start:, stop:, fields: [], predicate: (r) => true)`
fn in_bucket(call: Call<'_>) -> Result<Value> {
    let bucket = call.required("bucket")?;
    let (start, stop) = (call.required("start")?, call.optional("stop"));
    let measurement = call.required_text("measurement")?;
    let fields = call.texts("fields")?.unwrap_or_default();
    let predicate = call.function("predicate", &["r"])?;
    call.done()?;
    let source = ranged(&call, bucket, start, stop)?;
    let mut found = narrowed(&call, source, "_measurement", &[measurement])?;
    if let Some(predicate) = predicate {
        found = call.pipe("filter", found, &[("fn", predicate)])?;
    }
    match fields.is_empty() {
        true => Ok(found),
        false => narrowed(&call, found, "_field", &fields),
    }
}
