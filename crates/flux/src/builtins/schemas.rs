//! What there is in a bucket: `influxdata/influxdb/schema`, which is also `v1`.

use super::sources::{bucket, single};
use super::{Builtin, Call, function};
use crate::error::Result;
use crate::predicate::Predicate;
use crate::scan::{Candidate, Scan};
use crate::table::{Column, Table};
use crate::value::{Kind, Value};
use influxql::Place;
use model::TimeRange;
use std::collections::BTreeSet;

const SCHEMA: &str = "influxdata/influxdb/schema";

pub(super) const FUNCTIONS: &[Builtin] = &[
    function(SCHEMA, "databases", databases),
    function(SCHEMA, "measurements", measurements),
    function(SCHEMA, "tagKeys", tag_keys),
    function(SCHEMA, "tagValues", tag_values),
    function(SCHEMA, "fieldKeys", field_keys),
    function(SCHEMA, "measurementTagKeys", tag_keys),
    function(SCHEMA, "measurementTagValues", tag_values),
    function(SCHEMA, "measurementFieldKeys", field_keys),
    function("influxdata/influxdb", "cardinality", cardinality),
    function(SCHEMA, "fieldsAsCols", super::rows::fields_as_columns),
];

/// How far back is looked, unless somebody says: 30 days.
const DEFAULT_NANOS: i64 = 30 * 86_400 * 1_000_000_000;

/// One column of strings.
fn answer(call: &Call<'_>, names: impl IntoIterator<Item = String>) -> Result<Value> {
    let values: Vec<Value> = names.into_iter().map(|name| Value::text(&name)).collect();
    let rows = values.len();
    let columns = vec![Column::values("_value", Kind::Text, values)];
    single(call, Table { columns, rows, bounds: None })
}

fn databases(call: Call<'_>) -> Result<Value> {
    for ignored in ["host", "org", "orgID", "token"] {
        call.optional(ignored);
    }
    call.done()?;
    let (mut names, mut policies, mut defaults) = (Vec::new(), Vec::new(), Vec::new());
    for database in call.evaluation.source.databases()? {
        for policy in call.evaluation.source.policies(&database)? {
            names.push(Value::text(&database));
            policies.push(Value::text(&policy.name));
            defaults.push(Value::Boolean(policy.is_default));
        }
    }
    let rows = names.len();
    let columns = vec![
        Column::values("databaseName", Kind::Text, names),
        Column::values("retentionPolicy", Kind::Text, policies),
        Column::values("default", Kind::Boolean, defaults),
    ];
    single(&call, Table { columns, rows, bounds: None })
}

/// The part of a bucket that a call asks about.
fn scan_of(call: &Call<'_>) -> Result<Scan> {
    let bucket = bucket(call)?;
    let now = call.evaluation.now();
    let start = call.time("start")?.unwrap_or(now.saturating_sub(DEFAULT_NANOS));
    let stop = call.time("stop")?.unwrap_or(now);
    let mut filters = Vec::new();
    if let Some(measurement) = call.text("measurement")? {
        let value = Value::Text(measurement);
        filters.push(Predicate::Compare { column: "_measurement".into(), op: "==", value });
    }
    if let Some(Value::Closure(closure)) = call.function("predicate", &["r"])? {
        filters.extend(Predicate::of(call.evaluation, &closure)?.conjuncts());
    }
    Ok(Scan { bucket, range: Some((start, stop.max(start))), filters })
}

fn measurements(call: Call<'_>) -> Result<Value> {
    let scan = scan_of(&call)?;
    call.done()?;
    if scan.filters.is_empty() {
        return answer(&call, call.evaluation.source.measurements(&scan.bucket)?);
    }
    let found = scan.candidates(call.evaluation)?;
    answer(&call, found.into_iter().map(|candidate| candidate.measurement.to_string()))
}

fn field_keys(call: Call<'_>) -> Result<Value> {
    let scan = scan_of(&call)?;
    call.done()?;
    let mut names = BTreeSet::new();
    for candidate in scan.candidates(call.evaluation)? {
        let has_tags = !candidate.matchers.is_empty() || !candidate.is_simple;
        if !has_tags || scan.filters.iter().all(|filter| filter.values_of("_measurement").is_some())
        {
            names.extend(candidate.fields.into_iter().map(|field| field.name));
            continue;
        }
        scan.series(call.evaluation, &mut |_, field, _| {
            names.insert(field.to_string());
            Ok(())
        })?;
        break;
    }
    answer(&call, names)
}

/// The number of series: measurement, tags and field. They may have samples in the time.
fn cardinality(call: Call<'_>) -> Result<Value> {
    let scan = scan_of(&call)?;
    call.done()?;
    let mut count = 0;
    scan.series(call.evaluation, &mut |_, _, _| {
        count += 1;
        Ok(())
    })?;
    let columns = vec![Column::values("_value", Kind::Integer, vec![Value::Integer(count)])];
    single(&call, Table { columns, rows: 1, bounds: None })
}

/// What is asked of the tags of one measurement.
type OfTags<'q> = dyn Fn(&Place<'_>, &Candidate) -> Result<Vec<String>> + 'q;

/// The names that the index knows, or that the series themselves say where it cannot tell.
fn of_tags(
    call: &Call<'_>,
    scan: &Scan,
    ask: &OfTags<'_>,
    take: &dyn Fn(&model::Labels, &mut BTreeSet<String>),
) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let (start, stop) = scan.bounds()?;
    for candidate in scan.candidates(call.evaluation)? {
        if candidate.is_simple {
            let range = TimeRange { start, end: stop };
            let place =
                Place { database: &scan.bucket, measurement: &candidate.measurement, range };
            names.extend(ask(&place, &candidate)?);
        } else {
            let mut filters = scan.filters.clone();
            let value = Value::Text(candidate.measurement.clone());
            filters.push(Predicate::Compare { column: "_measurement".into(), op: "==", value });
            let only = Scan { filters, ..scan.clone() };
            only.series(call.evaluation, &mut |measurement, _, labels| {
                if measurement == &*candidate.measurement {
                    take(labels, &mut names);
                }
                Ok(())
            })?;
        }
    }
    Ok(names)
}

fn tag_keys(call: Call<'_>) -> Result<Value> {
    let scan = scan_of(&call)?;
    call.done()?;
    let source = call.evaluation.source;
    let ask =
        |place: &Place<'_>, candidate: &Candidate| Ok(source.tag_keys(place, &candidate.matchers)?);
    let found = of_tags(&call, &scan, &ask, &|labels, names| {
        names.extend(labels.iter().map(|(name, _)| name.to_string()));
    })?;
    let own = ["_start", "_stop", "_field", "_measurement"].map(str::to_string);
    let own = own.into_iter().filter(|_| !found.is_empty() || has_series(&call, &scan));
    answer(&call, own.chain(found.clone()))
}

/// Whether there is a series without tags, at least.
fn has_series(call: &Call<'_>, scan: &Scan) -> bool {
    let mut is_there = false;
    let found = scan.series(call.evaluation, &mut |_, _, _| {
        is_there = true;
        Ok(())
    });
    found.is_ok() && is_there
}

fn tag_values(call: Call<'_>) -> Result<Value> {
    let tag = call.required_text("tag")?;
    let scan = scan_of(&call)?;
    call.done()?;
    match &*tag {
        "_measurement" | "_field" => {
            let mut names = BTreeSet::new();
            for candidate in scan.candidates(call.evaluation)? {
                match &*tag {
                    "_field" => names.extend(candidate.fields.into_iter().map(|field| field.name)),
                    _ => drop(names.insert(candidate.measurement.to_string())),
                }
            }
            return answer(&call, names);
        }
        _ => {}
    }
    let source = call.evaluation.source;
    let ask = |place: &Place<'_>, candidate: &Candidate| {
        Ok(source.tag_values(place, &tag, &candidate.matchers)?)
    };
    let found = of_tags(&call, &scan, &ask, &|labels, names| {
        names.extend(labels.get(&tag).map(str::to_string));
    })?;
    answer(&call, found.into_iter().filter(|value| !value.is_empty()))
}
