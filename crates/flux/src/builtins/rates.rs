//! `experimental/aggregate.rate`: mean rates of counters in windows, added up in groups.

use super::{Builtin, Call, find, function, unknown};
use crate::error::Result;
use crate::value::Value;

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
    let args = [("nonNegative", Value::Boolean(true)), ("unit", unit)];
    let derived = call.pipe("derivative", tables, &args)?;
    let mean =
        find("", "mean").map(Value::Builtin).ok_or_else(|| unknown("mean", std::iter::empty()))?;
    let means = call.pipe("aggregateWindow", derived, &[("every", every), ("fn", mean)])?;
    let columns = |more: &[&str]| {
        let own = ["_start", "_stop"].iter().chain(more).map(|name| Value::text(name));
        Value::list(own.chain(groups.iter().cloned().map(Value::Text)).collect())
    };
    let in_windows = call.pipe("group", means, &[("columns", columns(&["_time"]))])?;
    let sums = call.pipe("sum", in_windows, &[])?;
    let joined = call.pipe("group", sums, &[("columns", columns(&[]))])?;
    call.pipe("sort", joined, &[("columns", Value::list(vec![Value::text("_time")]))])
}
