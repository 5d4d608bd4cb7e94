//! The query types in InfluxQL: the measurement `cpu`, a field a metric, `hostname` a tag.

use super::{Query, percent_encode};
use crate::instant::{HOUR_NS, format_rfc3339};
use crate::tsbs::MEASUREMENT;

/// The statement.
pub(super) fn statement(query: &Query) -> String {
    let function = if query.hosts.is_empty() { "mean" } else { "max" };
    let columns = query.fields().iter().map(|field| format!("{function}({field})"));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let hosts = query.hosts.iter().map(|host| format!("hostname = '{host}'"));
    let hosts = hosts.collect::<Vec<_>>().join(" or ");
    let hosts = if hosts.is_empty() { hosts } else { format!("({hosts}) and ") };
    let (start, end) = (format_rfc3339(query.start_ns), format_rfc3339(query.end_ns));
    let bucket = if query.step_ns == HOUR_NS { "time(1h)" } else { "time(1m)" };
    let groups = if query.hosts.is_empty() { ", hostname" } else { "" };
    format!(
        "SELECT {columns} FROM {MEASUREMENT} \
         WHERE {hosts}time >= '{start}' and time < '{end}' GROUP BY {bucket}{groups}"
    )
}

/// Path and parameters of the request.
pub(super) fn path(statement: &str) -> String {
    format!("/query?db=benchmark&q={}", percent_encode(statement))
}
