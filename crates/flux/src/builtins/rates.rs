//! `experimental/aggregate.rate`: mean rates of counters in windows, added up in groups.

use super::{Builtin, Call, find, function};
use crate::error::{Error, Result};
use crate::value::Value;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[function("experimental/aggregate", "rate", rate)];

/// `rate(every:, groupColumns: [], unit: 1s)`
///
/// InfluxDB derives, takes the mean of each window of each table, and adds the means of a window up
/// over the tables of a group.
fn rate(call: Call<'_>) -> Result<Value> {
    let tables = Value::Stream(call.tables()?);
    let every = call.required("every")?;
    let unit = call
        .optional("unit")
        .unwrap_or(Value::Duration(crate::time::Duration::of_nanos(1_000_000_000)));
    let groups = call.texts("groupColumns")?.unwrap_or_default();
    call.done()?;
    let derived = pipe(
        &call,
        "derivative",
        tables,
        &[("nonNegative", Value::Boolean(true)), ("unit", unit)],
    )?;
    let mean = find("", "mean").map(Value::Builtin).ok_or_else(|| unknown("mean"))?;
    let means = pipe(&call, "aggregateWindow", derived, &[("every", every), ("fn", mean)])?;
    let columns = |more: &[&str]| {
        let own = ["_start", "_stop"].iter().chain(more).map(|name| Value::text(name));
        Value::list(own.chain(groups.iter().cloned().map(Value::Text)).collect())
    };
    let in_windows = pipe(&call, "group", means, &[("columns", columns(&["_time"]))])?;
    let sums = pipe(&call, "sum", in_windows, &[])?;
    let joined = pipe(&call, "group", sums, &[("columns", columns(&[]))])?;
    pipe(&call, "sort", joined, &[("columns", Value::list(vec![Value::text("_time")]))])
}

fn unknown(name: &str) -> Error {
    Error::name(format!("undefined identifier {name:?}"))
}

/// Pipes a value into a function of everyday.
fn pipe(call: &Call<'_>, name: &str, input: Value, args: &[(&str, Value)]) -> Result<Value> {
    let function = find("", name).map(Value::Builtin).ok_or_else(|| unknown(name))?;
    let args: Vec<(Arc<str>, Value)> =
        args.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
    call.evaluation.apply(&function, args, Some(input), call.span)
}
