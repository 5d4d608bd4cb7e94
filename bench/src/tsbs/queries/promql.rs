//! The query types as the suite sends them to a server like Prometheus.

use super::{Query, percent_encode};
use crate::instant::{HOUR_NS, SECOND_NS};
use crate::tsbs::MEASUREMENT;

/// The expression.
pub(super) fn expression(query: &Query) -> String {
    let metrics = query.fields().join("|");
    let window = if query.step_ns == HOUR_NS { "1h" } else { "1m" };
    if query.hosts.is_empty() {
        return format!(
            "avg(avg_over_time({{__name__=~'{MEASUREMENT}_({metrics})'}}[{window}])) \
             by (__name__, hostname)"
        );
    }
    let hosts = query.hosts.join("|");
    format!(
        "max(max_over_time({{__name__=~'{MEASUREMENT}_({metrics})', \
         hostname=~'{hosts}'}}[{window}])) by (__name__)"
    )
}

/// Path and parameters of the request: what the peers' caches of results do is not measured.
pub(super) fn path(query: &Query, expression: &str) -> String {
    format!(
        "/api/v1/query_range?query={}&start={}&end={}&step={}&nocache=1",
        percent_encode(expression),
        query.start_ns / SECOND_NS,
        query.end_ns / SECOND_NS,
        query.step_ns / SECOND_NS
    )
}
