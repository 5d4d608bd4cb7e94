//! Text to tree.

use crate::path::{HotPath, Pass};
use ::promql::parse;
use std::hint::black_box;

/// Expressions as dashboards have them, from short to long.
const TEXTS: [&str; 6] = [
    "up",
    "rate(http_requests_total{job=\"api\"}[5m])",
    "sum by (instance) (rate(node_cpu_seconds_total{mode!=\"idle\"}[5m])) * 100",
    "max(max_over_time({__name__=~\"cpu_(usage_user|usage_system)\",hostname=~\"host_1|host_2\"}[1m])) by (__name__)",
    "histogram_quantile(0.99, sum by (le, job) (rate(request_duration_seconds_bucket[5m])))",
    "(1 - node_memory_MemAvailable_bytes / on (instance) group_left node_memory_MemTotal_bytes) > 0.9 and on (instance) up == 1",
];
/// Rounds of a pass over all of them.
const ROUNDS: usize = 20;

/// The paths of this file.
pub const PATHS: &[HotPath] = &[HotPath {
    name: "parse-query",
    unit: "expression",
    about: "parse and check an expression of PromQL, six kinds in turn",
    prepare: parse_query,
}];

fn parse_query() -> Pass {
    Pass::new(ROUNDS * TEXTS.len(), || {
        for text in TEXTS.iter().cycle().take(ROUNDS * TEXTS.len()) {
            black_box(parse(black_box(text)).expect("a good expression"));
        }
    })
}
