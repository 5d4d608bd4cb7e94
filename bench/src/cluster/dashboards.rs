//! Thirty queries as the dashboards and alerts of a cluster ask them.
//!
//! `$w` is the window of rates, `$long` that of slow alerts; both grow with the span. As dashboards
//! do, a rate looks at four intervals between samples at least.

use crate::tsbs::queries::percent_encode;

/// A query.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Its name in tables.
    pub name: &'static str,
    /// The expression, with windows to be filled in.
    text: &'static str,
}

/// A span that a dashboard shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Its name in tables.
    pub name: &'static str,
    /// How long it is; 0 asks for one instant, as an alert does.
    pub seconds: i64,
    /// Distance of its points.
    step_seconds: i64,
    window_seconds: i64,
    long_window: &'static str,
}

/// The moment of the data's end, as alerts see it.
pub const NOW: View =
    View { name: "now", seconds: 0, step_seconds: 0, window_seconds: 300, long_window: "1h" };
/// A working day's dashboard.
pub const SIX_HOURS: View = View {
    name: "6 h",
    seconds: 6 * 3600,
    step_seconds: 60,
    window_seconds: 300,
    long_window: "1h",
};
/// A week's dashboard.
pub const SEVEN_DAYS: View = View {
    name: "7 d",
    seconds: 7 * 86_400,
    step_seconds: 600,
    window_seconds: 900,
    long_window: "1d",
};

impl Query {
    /// The expression of a view, over samples so many seconds apart.
    pub fn expression(&self, view: View, interval: i64) -> String {
        let window = view.window_seconds.max(4 * interval);
        self.text.replace("$w", &format!("{window}s")).replace("$long", view.long_window)
    }

    /// The path that asks for a view which ends at `end` (Unix seconds).
    pub fn path(&self, view: View, interval: i64, end: i64) -> String {
        let query = percent_encode(&self.expression(view, interval));
        if view.seconds == 0 {
            return format!("/api/v1/query?query={query}&time={end}");
        }
        let (start, step) = (end - view.seconds, view.step_seconds);
        format!("/api/v1/query_range?query={query}&start={start}&end={end}&step={step}")
    }
}

const fn query(name: &'static str, text: &'static str) -> Query {
    Query { name, text }
}

/// All of them: pods, nodes, the API server, DNS, availability.
pub const QUERIES: [Query; 30] = [
    query(
        "cpu by namespace",
        r#"sum by (namespace) (rate(container_cpu_usage_seconds_total{image!=""}[$w]))"#,
    ),
    query(
        "cpu of a namespace by pod",
        r#"sum by (pod) (rate(container_cpu_usage_seconds_total{namespace="team-02",image!=""}[$w]))"#,
    ),
    query(
        "cpu used of cpu requested",
        r#"sum by (namespace) (rate(container_cpu_usage_seconds_total{image!=""}[$w])) / sum by (namespace) (kube_pod_container_resource_requests{resource="cpu"})"#,
    ),
    query(
        "cpu by owner",
        r#"sum by (owner_kind, owner_name) (sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{namespace="team-01"}[$w])) * on (namespace, pod) group_left (owner_kind, owner_name) max by (namespace, pod, owner_kind, owner_name) (kube_pod_owner{namespace="team-01"}))"#,
    ),
    query(
        "memory by kind of owner",
        r#"sum by (owner_kind) (container_memory_working_set_bytes{container!=""} * on (namespace, pod) group_left (owner_kind) kube_pod_owner)"#,
    ),
    query(
        "memory by address of node",
        r#"topk(10, sum by (host_ip) (container_memory_rss{container!="",namespace=~"team-0[0-4]"} * on (namespace, pod) group_left (host_ip) kube_pod_info))"#,
    ),
    query(
        "memory near its limit",
        r#"max by (namespace, pod, container) (container_memory_working_set_bytes{namespace="team-00",container!=""}) / on (namespace, pod, container) max by (namespace, pod, container) (kube_pod_container_resource_limits{namespace="team-00",resource="memory"}) > 0.9"#,
    ),
    query(
        "network by namespace, both ways",
        r#"sum by (namespace) (rate(container_network_receive_bytes_total[$w])) + sum by (namespace) (rate(container_network_transmit_bytes_total[$w]))"#,
    ),
    query(
        "pods that receive most",
        r#"topk(10, sum by (namespace, pod) (rate(container_network_receive_bytes_total{namespace=~"team-(01|02|03)"}[$w])))"#,
    ),
    query(
        "throttled containers",
        r#"sum by (namespace, pod, container) (increase(container_cpu_cfs_throttled_periods_total{namespace="team-01",container!=""}[$w])) / sum by (namespace, pod, container) (increase(container_cpu_cfs_periods_total{namespace="team-01"}[$w])) > 0.25"#,
    ),
    query("pods by phase", r#"sum by (phase) (kube_pod_status_phase)"#),
    query(
        "pods that hang",
        r#"sum by (namespace, pod) (max by (namespace, pod) (kube_pod_status_phase{phase=~"Pending|Unknown|Failed"}) * on (namespace, pod) group_left (owner_kind) topk by (namespace, pod) (1, max by (namespace, pod, owner_kind) (kube_pod_owner{owner_kind!="Job"}))) > 0"#,
    ),
    query(
        "restarts",
        r#"topk(20, sum by (namespace, pod) (increase(kube_pod_container_status_restarts_total[$long])) > 0)"#,
    ),
    query(
        "replicas that lack",
        r#"(kube_deployment_spec_replicas > kube_deployment_status_replicas_available) and (changes(kube_deployment_status_replicas_updated[10m]) == 0)"#,
    ),
    query(
        "versions that run",
        r#"count by (image) (label_replace(kube_pod_container_info{namespace=~"team-0.*"}, "image", "$1", "image", ".*/(.+):.*"))"#,
    ),
    query(
        "readiness that flaps",
        r#"sum by (namespace) (changes(kube_pod_status_ready{condition="true"}[15m])) > 2"#,
    ),
    query(
        "node cpu in use",
        r#"1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[$w]))"#,
    ),
    query(
        "node cpu by mode",
        r#"sum by (mode) (rate(node_cpu_seconds_total{mode!~"idle|nice"}[$w])) / scalar(count(node_cpu_seconds_total{mode="idle"}))"#,
    ),
    query(
        "node memory in use",
        r#"1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes"#,
    ),
    query(
        "load of each cpu",
        r#"node_load5 / on (instance) group_left () count by (instance) (node_cpu_seconds_total{mode="idle"}) > 0.5"#,
    ),
    query(
        "disks that will be full",
        r#"node_filesystem_avail_bytes{fstype!~"tmpfs|ramfs"} / node_filesystem_size_bytes < 0.4 and predict_linear(node_filesystem_avail_bytes{fstype!~"tmpfs|ramfs"}[$long], 4 * 3600) < 0 and on (instance, device, mountpoint) node_filesystem_readonly == 0"#,
    ),
    query(
        "busy disks",
        r#"topk(5, rate(node_disk_io_time_seconds_total{device=~"nvme.+|sd.+"}[$w]))"#,
    ),
    query(
        "network errors",
        r#"sum by (instance) (rate(node_network_receive_errs_total{device!="lo"}[$w]) / rate(node_network_receive_packets_total[$w])) unless on (instance) (up{job="node-exporter"} == 0)"#,
    ),
    query(
        "api latency, p99 by verb",
        r#"histogram_quantile(0.99, sum by (verb, le) (rate(apiserver_request_duration_seconds_bucket{job="apiserver",verb!="WATCH"}[$w])))"#,
    ),
    query(
        "api errors by resource",
        r#"sum by (resource) (rate(apiserver_request_total{code=~"5.."}[$w])) / sum by (resource) (rate(apiserver_request_total[$w]))"#,
    ),
    query(
        "api error budget burnt",
        r#"(sum(rate(apiserver_request_duration_seconds_count{verb=~"LIST|GET"}[$long])) - sum(rate(apiserver_request_duration_seconds_bucket{verb=~"LIST|GET",le="1"}[$long])) + sum(rate(apiserver_request_total{code=~"5.."}[$long]))) / sum(rate(apiserver_request_total[$long])) > 0.001 or vector(0)"#,
    ),
    query(
        "dns latency, p95 by server",
        r#"histogram_quantile(0.95, sum by (instance, le) (rate(coredns_dns_request_duration_seconds_bucket[$w])))"#,
    ),
    query(
        "targets that are away",
        r#"absent(up{job="kube-scheduler"} == 1) or count by (job) (up == 0) or absent(up{job="apiserver"} == 1)"#,
    ),
    query(
        "availability by job",
        r#"avg by (job) (avg_over_time(up[$long])) unless avg by (job) (min_over_time(up[$long])) == 1"#,
    ),
    query(
        "busiest hour and growth",
        r#"max_over_time(sum(rate(container_cpu_usage_seconds_total{namespace="team-00"}[$w]))[1h:5m]) or label_replace(max(deriv(container_memory_rss{namespace="team-00",container!=""}[30m])), "of", "memory", "", "")"#,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn queries_have_names_of_their_own_and_no_window_is_left_open() {
        let names = QUERIES.iter().map(|query| query.name).collect::<BTreeSet<_>>();
        assert_eq!(names.len(), QUERIES.len());
        for (query, view) in QUERIES.iter().zip([NOW, SIX_HOURS, SEVEN_DAYS].into_iter().cycle()) {
            let text = query.expression(view, 60);
            assert!(!text.contains("$w") && !text.contains("$long"), "{text}");
        }
    }

    #[test]
    fn rates_look_at_four_intervals_at_least() {
        assert!(QUERIES[0].expression(SIX_HOURS, 60).contains("[300s]"));
        assert!(QUERIES[0].expression(SIX_HOURS, 300).contains("[1200s]"));
    }
}
