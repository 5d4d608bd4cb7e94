//! Which series each kind of object has.

use super::Scale;
use super::labels::Base;
use super::objects::{Kind, containers_of, workload_of};
use super::signal::Nature;
use super::signal::Nature::{
    Born, Bucket, Constant, Counter, Draining, Gauge, Phase, Ready, Replicas, Restarts, Sum, Up,
};

const GIB: f64 = (1u64 << 30) as f64;
const PAGE: f64 = 4096.0;
/// Processors of a node.
const CPUS: u64 = 4;

/// One series of an object.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The metric.
    pub name: &'static str,
    /// Labels that its exporter gives it.
    pub base: Base,
    /// Which of the pod's containers it is about.
    pub container: u64,
    /// Its own labels.
    pub extra: Vec<(&'static str, String)>,
    /// Its values.
    pub nature: Nature,
}

impl Spec {
    /// Whether there are samples while the object is away: that it is away.
    pub fn outlives_outages(&self) -> bool {
        self.nature == Up
    }
}

/// The series of each kind.
pub struct Catalog {
    api_server: Vec<Spec>,
    core_dns: Vec<Spec>,
    node: Vec<Spec>,
    workload: Vec<Spec>,
    /// Of pods with one container, and with two.
    pods: [Vec<Spec>; 2],
}

impl Catalog {
    /// The series of a cluster of that size.
    pub fn new(scale: &Scale) -> Catalog {
        Catalog {
            api_server: api_server(10 + (scale.nodes / 20).min(20)),
            core_dns: core_dns(),
            node: node(),
            workload: workload(),
            pods: [pod(1), pod(2)],
        }
    }

    /// The series of an object.
    pub fn specs(&self, kind: Kind, idx: u64, scale: &Scale) -> &[Spec] {
        match kind {
            Kind::ApiServer => &self.api_server,
            Kind::CoreDns => &self.core_dns,
            Kind::Node => &self.node,
            Kind::Workload => &self.workload,
            Kind::Pod => &self.pods[containers_of(workload_of(idx), scale) as usize - 1],
        }
    }
}

/// Collects the series of one kind.
#[derive(Default)]
struct List {
    specs: Vec<Spec>,
    container: u64,
}

impl List {
    fn add(
        &mut self,
        base: Base,
        name: &'static str,
        nature: Nature,
        extra: &[(&'static str, &str)],
    ) {
        let extra = extra.iter().map(|(name, value)| (*name, value.to_string())).collect();
        self.specs.push(Spec { name, base, container: self.container, extra, nature });
    }
}

fn counter(per_second: f64) -> Nature {
    Counter { per_second, quantum: 1.0 }
}

fn gauge(level: f64, quantum: f64) -> Nature {
    Gauge { level, swing: 0.5, quantum }
}

fn pod(containers: u64) -> Vec<Spec> {
    let mut list = List::default();
    list.add(Base::StatePodInfo, "kube_pod_info", Constant(1.0), &[]);
    list.add(Base::StatePodOwner, "kube_pod_owner", Constant(1.0), &[]);
    list.add(Base::StatePod, "kube_pod_start_time", Born, &[]);
    for (n, phase) in ["Pending", "Running", "Succeeded", "Failed", "Unknown"].iter().enumerate() {
        let phase = [("phase", *phase)];
        list.add(Base::StatePod, "kube_pod_status_phase", Phase(n as u64), &phase);
    }
    for (condition, nature) in
        [("true", Ready(true)), ("false", Ready(false)), ("unknown", Constant(0.0))]
    {
        list.add(Base::StatePod, "kube_pod_status_ready", nature, &[("condition", condition)]);
    }
    let networks = [
        ("container_network_receive_bytes_total", 20_000.0),
        ("container_network_transmit_bytes_total", 15_000.0),
        ("container_network_receive_packets_total", 40.0),
        ("container_network_transmit_packets_total", 35.0),
        ("container_network_receive_packets_dropped_total", 0.001),
        ("container_network_transmit_packets_dropped_total", 0.0),
    ];
    for (name, per_second) in networks {
        list.add(Base::ContainerPod, name, counter(per_second), &[("interface", "eth0")]);
    }
    for container in 0..containers {
        list.container = container;
        put_container(&mut list);
    }
    list.specs
}

fn put_container(list: &mut List) {
    list.add(Base::StateContainerInfo, "kube_pod_container_info", Constant(1.0), &[]);
    list.add(Base::StateContainer, "kube_pod_container_status_restarts_total", Restarts, &[]);
    list.add(Base::StateContainer, "kube_pod_container_status_ready", Ready(true), &[]);
    let (cpu, memory) =
        ([("resource", "cpu"), ("unit", "core")], [("resource", "memory"), ("unit", "byte")]);
    let own = Base::StateContainerResource;
    list.add(own, "kube_pod_container_resource_requests", Constant(0.25), &cpu);
    list.add(own, "kube_pod_container_resource_requests", Constant(0.25 * GIB), &memory);
    list.add(own, "kube_pod_container_resource_limits", Constant(1.0), &cpu);
    list.add(own, "kube_pod_container_resource_limits", Constant(GIB), &memory);
    let cpu_seconds = Counter { per_second: 0.05, quantum: 1e-6 };
    let total = [("cpu", "total")];
    list.add(Base::Container, "container_cpu_usage_seconds_total", cpu_seconds, &total);
    list.add(Base::Container, "container_cpu_cfs_periods_total", counter(8.0), &[]);
    list.add(Base::Container, "container_cpu_cfs_throttled_periods_total", counter(0.5), &[]);
    for (name, level) in [
        ("container_memory_working_set_bytes", 0.5),
        ("container_memory_usage_bytes", 0.6),
        ("container_memory_rss", 0.4),
        ("container_memory_cache", 0.1),
    ] {
        list.add(Base::Container, name, gauge(level * GIB, PAGE), &[]);
    }
    let disk = [("device", "/dev/nvme0n1")];
    for name in ["container_fs_reads_bytes_total", "container_fs_writes_bytes_total"] {
        let bytes = Counter { per_second: 3000.0, quantum: PAGE };
        list.add(Base::Container, name, bytes, &disk);
    }
    list.add(Base::Container, "container_last_seen", Born, &[]);
}

fn workload() -> Vec<Spec> {
    let mut list = List::default();
    let own = Base::StateWorkload;
    list.add(own, "kube_deployment_spec_replicas", Constant(super::objects::REPLICAS as f64), &[]);
    list.add(own, "kube_deployment_status_replicas_available", Replicas, &[]);
    list.add(own, "kube_deployment_status_replicas_updated", Replicas, &[]);
    list.add(own, "kube_deployment_status_observed_generation", gauge(30.0, 1.0), &[]);
    list.add(own, "kube_deployment_created", Born, &[]);
    list.specs
}

fn node() -> Vec<Spec> {
    let mut list = List::default();
    list.add(Base::NodeExporter, "up", Up, &[]);
    list.add(Base::Kubelet, "up", Up, &[]);
    put_node_state(&mut list);
    let own = Base::NodeExporter;
    for cpu in 0..CPUS {
        let cpu = cpu.to_string();
        for (mode, per_second) in [
            ("idle", 0.6),
            ("user", 0.15),
            ("system", 0.06),
            ("iowait", 0.02),
            ("nice", 0.001),
            ("irq", 0.0),
            ("softirq", 0.01),
            ("steal", 0.002),
        ] {
            // Kept in hundredths of a second by the kernel.
            let nature = Counter { per_second, quantum: 0.01 };
            list.add(own, "node_cpu_seconds_total", nature, &[("cpu", &cpu), ("mode", mode)]);
        }
    }
    list.add(own, "node_memory_MemTotal_bytes", Constant(64.0 * GIB), &[]);
    for (name, level) in [
        ("node_memory_MemFree_bytes", 10.0),
        ("node_memory_MemAvailable_bytes", 25.0),
        ("node_memory_Buffers_bytes", 1.0),
        ("node_memory_Cached_bytes", 16.0),
        ("node_memory_Slab_bytes", 2.0),
    ] {
        list.add(own, name, gauge(level * GIB, PAGE), &[]);
    }
    for name in ["node_load1", "node_load5", "node_load15"] {
        list.add(own, name, gauge(2.0, 0.01), &[]);
    }
    for (name, per_second) in [
        ("node_context_switches_total", 9000.0),
        ("node_intr_total", 5000.0),
        ("node_forks_total", 3.0),
        ("node_vmstat_pgmajfault", 0.5),
    ] {
        list.add(own, name, counter(per_second), &[]);
    }
    list.add(own, "node_boot_time_seconds", Born, &[]);
    put_disks(&mut list);
    put_networks(&mut list);
    list.specs
}

fn put_node_state(list: &mut List) {
    let own = Base::StateNode;
    list.add(own, "kube_node_info", Constant(1.0), &[("kernel_version", "6.8.0-45-generic")]);
    for condition in ["Ready", "MemoryPressure", "DiskPressure"] {
        for status in ["true", "false", "unknown"] {
            let value =
                f64::from((condition == "Ready") == (status == "true") && status != "unknown");
            let extra = [("condition", condition), ("status", status)];
            list.add(own, "kube_node_status_condition", Constant(value), &extra);
        }
    }
    for name in ["kube_node_status_allocatable", "kube_node_status_capacity"] {
        for (resource, value) in [("cpu", CPUS as f64), ("memory", 62.0 * GIB), ("pods", 110.0)] {
            list.add(own, name, Constant(value), &[("resource", resource)]);
        }
    }
}

fn put_disks(list: &mut List) {
    let own = Base::NodeExporter;
    for (device, fstype, mountpoint, size) in [
        ("/dev/nvme0n1p1", "ext4", "/", 100.0),
        ("/dev/nvme1n1", "xfs", "/var/lib/containerd", 500.0),
        ("tmpfs", "tmpfs", "/run", 6.0),
    ] {
        let extra = [("device", device), ("fstype", fstype), ("mountpoint", mountpoint)];
        list.add(own, "node_filesystem_size_bytes", Constant(size * GIB), &extra);
        list.add(own, "node_filesystem_avail_bytes", Draining { size: size * GIB }, &extra);
        list.add(own, "node_filesystem_files", Constant(6_553_600.0), &extra);
        list.add(own, "node_filesystem_files_free", gauge(3e6, 1.0), &extra);
        list.add(own, "node_filesystem_readonly", Constant(0.0), &extra);
    }
    for device in ["nvme0n1", "nvme1n1"] {
        let device = [("device", device)];
        for (name, per_second, quantum) in [
            ("node_disk_read_bytes_total", 200_000.0, 512.0),
            ("node_disk_written_bytes_total", 900_000.0, 512.0),
            ("node_disk_reads_completed_total", 10.0, 1.0),
            ("node_disk_writes_completed_total", 60.0, 1.0),
            ("node_disk_io_time_seconds_total", 0.1, 0.001),
        ] {
            list.add(own, name, Counter { per_second, quantum }, &device);
        }
    }
}

fn put_networks(list: &mut List) {
    for device in ["eth0", "cilium_host", "lo"] {
        let device = [("device", device)];
        for (name, per_second) in [
            ("node_network_receive_bytes_total", 400_000.0),
            ("node_network_transmit_bytes_total", 350_000.0),
            ("node_network_receive_packets_total", 500.0),
            ("node_network_transmit_packets_total", 450.0),
            ("node_network_receive_errs_total", 0.002),
            ("node_network_transmit_errs_total", 0.0),
            ("node_network_receive_drop_total", 0.01),
            ("node_network_transmit_drop_total", 0.0),
        ] {
            list.add(Base::NodeExporter, name, counter(per_second), &device);
        }
    }
}

/// Names, kinds and bounds of a histogram's series.
struct Histogram<'a> {
    base: Base,
    bucket: &'static str,
    sum: &'static str,
    count: &'static str,
    /// Tells histograms of an object apart.
    id: u64,
    per_second: f64,
    bounds: &'a [&'a str],
    extra: &'a [(&'static str, &'a str)],
}

fn put_histogram(list: &mut List, histogram: &Histogram<'_>) {
    let Histogram { base, id, per_second, extra, .. } = *histogram;
    for bound in histogram.bounds.iter().chain(&["+Inf"]) {
        let upper = bound.parse().unwrap_or(f64::INFINITY);
        let nature = Bucket { histogram: id, upper, per_second };
        list.add(base, histogram.bucket, nature, &[extra, &[("le", bound)]].concat());
    }
    list.add(base, histogram.sum, Sum { histogram: id, per_second }, extra);
    let all = Bucket { histogram: id, upper: f64::INFINITY, per_second };
    list.add(base, histogram.count, all, extra);
}

fn api_server(resources: u64) -> Vec<Spec> {
    const RESOURCES: [&str; 10] = [
        "pods",
        "nodes",
        "endpoints",
        "secrets",
        "configmaps",
        "services",
        "leases",
        "events",
        "deployments",
        "jobs",
    ];
    const BOUNDS: [&str; 20] = [
        "0.005", "0.025", "0.05", "0.1", "0.2", "0.4", "0.6", "0.8", "1", "1.25", "1.5", "2", "3",
        "4", "5", "6", "8", "10", "15", "20",
    ];
    let own = Base::ApiServer;
    let mut list = List::default();
    list.add(own, "up", Up, &[]);
    for (n, kind) in ["mutating", "readOnly"].iter().enumerate() {
        let level = gauge(10.0 * (n + 1) as f64, 1.0);
        list.add(own, "apiserver_current_inflight_requests", level, &[("request_kind", kind)]);
    }
    list.add(own, "process_resident_memory_bytes", gauge(2.0 * GIB, PAGE), &[]);
    let cpu = Counter { per_second: 0.4, quantum: 0.01 };
    list.add(own, "process_cpu_seconds_total", cpu, &[]);
    for idx in 0..resources {
        let resource = match RESOURCES.get(idx as usize) {
            Some(name) => name.to_string(),
            None => format!("customthings{idx}"),
        };
        for (n, verb) in (0..).zip(["GET", "LIST", "WATCH", "POST", "PUT", "PATCH"]) {
            let extra = [("resource", resource.as_str()), ("scope", "namespace"), ("verb", verb)];
            let per_second = 4.0 / (n + 1) as f64;
            put_histogram(
                &mut list,
                &Histogram {
                    base: own,
                    bucket: "apiserver_request_duration_seconds_bucket",
                    sum: "apiserver_request_duration_seconds_sum",
                    count: "apiserver_request_duration_seconds_count",
                    id: idx * 6 + n,
                    per_second,
                    bounds: &BOUNDS,
                    extra: &extra,
                },
            );
            for (code, share) in [("200", 0.95), ("404", 0.02), ("503", 0.003)] {
                let extra = [&extra[..], &[("code", code)]].concat();
                list.add(own, "apiserver_request_total", counter(per_second * share), &extra);
            }
        }
    }
    list.specs
}

fn core_dns() -> Vec<Spec> {
    const BOUNDS: [&str; 14] = [
        "0.00025", "0.0005", "0.001", "0.002", "0.004", "0.008", "0.016", "0.032", "0.064",
        "0.128", "0.256", "0.512", "1.024", "2.048",
    ];
    let own = Base::CoreDns;
    let mut list = List::default();
    list.add(own, "up", Up, &[]);
    for (n, zone) in ["cluster.local.", "."].iter().enumerate() {
        let extra = [("server", "dns://:53"), ("zone", zone)];
        put_histogram(
            &mut list,
            &Histogram {
                base: own,
                bucket: "coredns_dns_request_duration_seconds_bucket",
                sum: "coredns_dns_request_duration_seconds_sum",
                count: "coredns_dns_request_duration_seconds_count",
                id: n as u64,
                per_second: 30.0,
                bounds: &BOUNDS,
                extra: &extra,
            },
        );
        for (kind, per_second) in [("A", 20.0), ("AAAA", 18.0), ("SRV", 0.5)] {
            let extra = [&extra[..], &[("proto", "udp"), ("type", kind)]].concat();
            list.add(own, "coredns_dns_requests_total", counter(per_second), &extra);
        }
        for (rcode, per_second) in [("NOERROR", 25.0), ("NXDOMAIN", 12.0), ("SERVFAIL", 0.01)] {
            let extra = [&extra[..], &[("rcode", rcode)]].concat();
            list.add(own, "coredns_dns_responses_total", counter(per_second), &extra);
        }
    }
    for kind in ["success", "denial"] {
        let extra = [("server", "dns://:53"), ("type", kind)];
        list.add(own, "coredns_cache_hits_total", counter(20.0), &extra);
        list.add(own, "coredns_cache_entries", gauge(3000.0, 1.0), &extra);
    }
    list.add(own, "coredns_cache_misses_total", counter(6.0), &[("server", "dns://:53")]);
    list.specs
}
