//! Where tables come from, what narrows them down, and `yield`.

use super::{Builtin, Call, function};
use crate::error::{Error, Result};
use crate::predicate::Predicate;
use crate::scan::{Scan, filtered};
use crate::stream::{Stream, Tables};
use crate::table::{Builder, Column, Table};
use crate::value::{Kind, Value};
use influxql::{EvalError, Source};
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "from", from),
    function("", "buckets", buckets),
    function("", "range", range),
    function("", "filter", filter),
    function("", "yield", yielded),
    function("array", "from", of_rows),
];

/// The number that a bucket has in InfluxDB 2's API, the same for ever.
pub fn bucket_id(name: &str) -> String {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The number of the one organisation.
pub const ORGANISATION_ID: &str = "0000000000000001";

/// The bucket that a call names. One that maps a database of 1.x is called `database/policy`.
pub(super) fn bucket(call: &Call<'_>) -> Result<Arc<str>> {
    for ignored in ["host", "org", "orgID", "token"] {
        call.optional(ignored);
    }
    let source = call.evaluation.source;
    if let Some(id) = call.text("bucketID")? {
        let found = bucket_names(source)?.into_iter().find(|name| bucket_id(name) == *id);
        let name = found.ok_or_else(|| missing(&id))?;
        return bucket_database(source, &name);
    }
    bucket_database(source, &call.required_text("bucket")?)
}

fn missing(bucket: &str) -> Error {
    let message = format!(
        "failed to initialize execute state: could not find bucket {bucket:?}. buckets() lists those \
         that exist"
    );
    Error::not_found(message)
}

/// Names of all buckets: databases, and `database/policy` for policies that are not the default.
///
/// # Errors
/// A failed read.
pub fn bucket_names(source: &dyn Source) -> std::result::Result<Vec<String>, EvalError> {
    let mut names = Vec::new();
    for database in source.databases()? {
        let policies = source.policies(&database)?;
        let others = policies.iter().filter(|policy| !policy.is_default);
        let others: Vec<String> =
            others.map(|policy| format!("{database}/{}", policy.name)).collect();
        names.push(database);
        names.extend(others);
    }
    Ok(names)
}

/// Name under which the samples of a bucket are stored.
fn bucket_database(source: &dyn Source, bucket: &str) -> Result<Arc<str>> {
    let (database, policy) = match bucket.split_once('/') {
        Some((database, policy)) => (database, Some(policy).filter(|policy| !policy.is_empty())),
        None => (bucket, None),
    };
    if !source.has_database(database)? {
        return Err(missing(bucket));
    }
    let stored = source.policy_database(database, policy);
    stored.map(Arc::from).map_err(|_| missing(bucket))
}

fn from(call: Call<'_>) -> Result<Value> {
    // With its place the error keeps InfluxDB's words.
    let bucket = bucket(&call).map_err(|error| error.at(call.span))?;
    call.done()?;
    let scan = Scan { bucket, range: None, filters: Vec::new() };
    Ok(Value::Stream(Tables::Scan(scan).stream()))
}

/// `buckets()`: the databases.
fn buckets(call: Call<'_>) -> Result<Value> {
    for ignored in ["host", "org", "orgID", "token"] {
        call.optional(ignored);
    }
    call.done()?;
    let names = bucket_names(call.evaluation.source)?;
    let texts = |make: &dyn Fn(&str) -> Value| names.iter().map(|name| make(name)).collect();
    let rows = names.len();
    let text = |name: &str, values: Vec<Value>| Column::values(name, Kind::Text, values);
    let columns = vec![
        text("name", texts(&Value::text)),
        text("id", texts(&|name| Value::text(&bucket_id(name)))),
        Column { is_key: true, ..text("organizationID", texts(&|_| Value::text(ORGANISATION_ID))) },
        text("retentionPolicy", texts(&|_| Value::text(""))),
        Column::values("retentionPeriod", Kind::Integer, texts(&|_| Value::Integer(0))),
    ];
    let mut table = Table { columns, rows, bounds: None };
    table.set(Column::key("organizationID", Value::text(ORGANISATION_ID)));
    single(&call, table)
}

/// A stream of one table.
pub(super) fn single(call: &Call<'_>, table: Table) -> Result<Value> {
    let mut out = call.evaluation.collector();
    out.push(table)?;
    Ok(Value::Stream(out.finish().stream()))
}

fn range(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let start = call.required("start")?;
    let start = call.as_time("start", &start)?;
    let stop = call.time("stop")?.unwrap_or_else(|| call.evaluation.now());
    call.done()?;
    if stop <= start {
        return Err(Error::runtime("cannot query an empty range"));
    }
    if let Tables::Scan(scan) = &stream.tables {
        let (start, stop) = match scan.range {
            None => (start, stop),
            Some((from, to)) => (start.max(from), stop.min(to)),
        };
        let scan = Scan { range: Some((start, stop)), ..scan.clone() };
        return Ok(Value::Stream(Tables::Scan(scan).stream()));
    }
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let time = table.column("_time").ok_or_else(|| super::no_column("_time"))?;
        // A range within a range is what both have.
        let (from, to) = table.bounds.unwrap_or((i64::MIN, i64::MAX));
        let (start, stop) = (start.max(from), stop.min(to));
        let in_range =
            |row: &usize| time.time(*row).is_some_and(|time| start <= time && time < stop);
        let rows: Vec<usize> = (0..table.rows).filter(in_range).collect();
        let mut kept = table.picked(&rows);
        let bounds = [("_start", start), ("_stop", stop)];
        let added: Vec<Column> = bounds
            .iter()
            .filter(|(name, _)| table.column(name).is_none())
            .map(|(name, time)| Column::key(name, Value::Time(*time)))
            .collect();
        kept.columns.splice(0..0, added);
        for (name, time) in bounds {
            kept.set(Column::key(name, Value::Time(time)));
        }
        kept.bounds = Some((start, stop));
        // Tables without rows stay: `count()` says 0 of them.
        out.push(kept)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

fn filter(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let condition = call.required("fn")?;
    let is_kept = call.text("onEmpty")?.is_some_and(|word| &*word == "keep");
    call.done()?;
    let Value::Closure(closure) = &condition else {
        return Err(call.wrong("fn", "function", &condition));
    };
    call.check_parameters(closure, &["r"])?;
    let predicate = match &closure.function.body {
        crate::ast::Body::Expr(_) => Predicate::of(call.evaluation, closure)?,
        crate::ast::Body::Block(_) => return filter_by_block(&call, &stream, &condition),
    };
    match is_kept {
        true => filter_tables(&call, &stream, &predicate, true),
        false => filter_by(&call, &stream, predicate),
    }
}

/// Rows for which a condition holds; a scan keeps the condition and is read later.
pub(super) fn filter_by(call: &Call<'_>, stream: &Stream, predicate: Predicate) -> Result<Value> {
    let Tables::Scan(scan) = &stream.tables else {
        return filter_tables(call, stream, &predicate, false);
    };
    let mut scan = scan.clone();
    scan.filters.extend(predicate.conjuncts());
    Ok(Value::Stream(Tables::Scan(scan).stream()))
}

fn filter_tables(
    call: &Call<'_>,
    stream: &Stream,
    predicate: &Predicate,
    is_kept: bool,
) -> Result<Value> {
    let mut out = call.evaluation.collector();
    call.evaluation.each(stream, &mut |table| {
        let kept = filtered(call.evaluation, &table, &[predicate])?;
        if kept.rows == 0 && !is_kept { Ok(()) } else { out.push(kept) }
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// A condition that is more than one expression is called for each row.
fn filter_by_block(call: &Call<'_>, stream: &Stream, condition: &Value) -> Result<Value> {
    let mut out = call.evaluation.collector();
    call.evaluation.each(stream, &mut |table| {
        let mut rows = Vec::new();
        for row in 0..table.rows {
            call.evaluation.tick(row)?;
            let record = Value::Record(Arc::new(table.row(row)));
            if call.holds(condition, ("r", record))? {
                rows.push(row);
            }
        }
        if rows.is_empty() { Ok(()) } else { out.push(table.picked(&rows)) }
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

fn yielded(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let name = call.text_or("name", "_result")?;
    call.done()?;
    Ok(Value::Stream(call.evaluation.keep(name, &stream)?))
}

/// `array.from(rows: [{..}, ..])`
fn of_rows(call: Call<'_>) -> Result<Value> {
    let rows = call.input("rows")?;
    call.done()?;
    let Value::Array(items) = &rows else {
        return Err(call.wrong("rows", "array of records", &rows));
    };
    if items.is_empty() {
        return Err(Error::runtime("rows must be non-empty"));
    }
    let mut builder = Builder::default();
    for item in items.iter() {
        let Value::Record(record) = item else {
            return Err(call.wrong("rows", "array of records", item));
        };
        let table = of_record(&record.fields)?;
        builder.push(&table, 0, &|_| false).map_err(super::collision)?;
    }
    single(&call, builder.finish())
}

/// A table of one row.
pub(super) fn of_record(fields: &[(Arc<str>, Value)]) -> Result<Table> {
    let mut columns = Vec::with_capacity(fields.len());
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let Some(kind) = value.kind() else {
            let message = format!("a {} cannot be a column ({name})", value.type_words());
            return Err(Error::runtime(message));
        };
        columns.push(Column {
            name: name.clone(),
            kind,
            is_key: false,
            data: crate::table::Data::Same(value.clone()),
        });
    }
    Ok(Table { columns, rows: 1, bounds: None })
}
