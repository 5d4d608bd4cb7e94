//! The labels of each object's series, the way its exporter and the scraper write them.

use super::Scale;
use super::catalog::Spec;
use super::objects::{Kind, Owner, REPLICAS, namespace_of, node_of, owner_of, workload_of};
use crate::random::mix_pair;
use crate::workload::LabelSet;
use rng::below;
use std::fmt::Write;

/// Which labels a series has beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Of kube-state-metrics about a pod.
    StatePod,
    /// Of the same: where the pod runs.
    StatePodInfo,
    /// Of the same: whose pod it is.
    StatePodOwner,
    /// Of the same about a container.
    StateContainer,
    /// Of the same: what it runs.
    StateContainerInfo,
    /// Of the same: what it asks for.
    StateContainerResource,
    /// Of the same about a workload.
    StateWorkload,
    /// Of the same about a node.
    StateNode,
    /// Of cAdvisor about a container.
    Container,
    /// Of cAdvisor about a pod.
    ContainerPod,
    /// Of a node's exporter.
    NodeExporter,
    /// Of a node's kubelet.
    Kubelet,
    /// Of an API server.
    ApiServer,
    /// Of a CoreDNS server.
    CoreDns,
}

/// Label pairs in any order, to be refilled for every series.
#[derive(Default)]
pub struct Pairs {
    text: String,
    /// Name, and where its value stands in the text.
    pairs: Vec<(&'static str, usize, usize)>,
}

impl Pairs {
    /// Writes the labels of a series in order of their names.
    pub fn fill(
        &mut self,
        spec: &Spec,
        slot: (Kind, u64, u64),
        scale: &Scale,
        labels: &mut LabelSet,
    ) {
        let (kind, idx, generation) = slot;
        self.text.clear();
        self.pairs.clear();
        match kind {
            Kind::Pod => self.put_pod(spec, idx, generation, scale),
            Kind::Workload => self.put_workload(idx, scale),
            Kind::Node => self.put_node(spec, idx),
            Kind::ApiServer | Kind::CoreDns => self.put_server(kind, idx),
        }
        for (name, value) in &spec.extra {
            self.put(name, value);
        }
        self.pairs.sort_unstable_by_key(|(name, ..)| *name);
        labels.clear();
        labels.set_metric_name(spec.name);
        for (name, start, end) in &self.pairs {
            labels.push(name, &self.text[*start..*end]);
        }
    }

    fn put(&mut self, name: &'static str, value: &str) {
        self.put_with(name, |text| text.push_str(value));
    }

    fn put_with(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        let start = self.text.len();
        write(&mut self.text);
        self.pairs.push((name, start, self.text.len()));
    }

    fn put_state_metrics(&mut self) {
        self.put("endpoint", "http");
        self.put("instance", "10.0.0.9:8080");
        self.put("job", "kube-state-metrics");
        self.put("service", "kube-state-metrics");
    }

    fn put_pod(&mut self, spec: &Spec, idx: u64, generation: u64, scale: &Scale) {
        let pod = Pod::new(idx, generation, scale);
        self.put_with("namespace", |text| put_namespace(namespace_of(pod.workload, scale), text));
        self.put_with("pod", |text| pod.put_name(text));
        match spec.base {
            Base::Container | Base::ContainerPod => self.put_cadvisor(spec, &pod),
            _ => self.put_state_pod(spec, &pod),
        }
    }

    fn put_cadvisor(&mut self, spec: &Spec, pod: &Pod) {
        self.put("endpoint", "https-metrics");
        self.put("job", "kubelet");
        self.put("metrics_path", "/metrics/cadvisor");
        self.put("service", "kubelet");
        self.put_with("instance", |text| put_address(pod.node, 10250, text));
        self.put_with("node", |text| put_node_name(pod.node, text));
        self.put_with("id", |text| {
            text.push_str("/kubepods/burstable/pod");
            put_uid(pod.bits, text);
            if spec.base == Base::Container {
                text.push('/');
                put_hash(mix_pair(pod.bits, spec.container), text);
            }
        });
        if spec.base == Base::Container {
            self.put_with("container", |text| pod.put_container(spec.container, text));
            self.put_with("image", |text| pod.put_image(spec.container, text));
            self.put_with("name", |text| put_hash(mix_pair(pod.bits, spec.container), text));
        }
    }

    fn put_state_pod(&mut self, spec: &Spec, pod: &Pod) {
        self.put_state_metrics();
        self.put_with("uid", |text| put_uid(pod.bits, text));
        match spec.base {
            Base::StatePodInfo => {
                self.put_with("node", |text| put_node_name(pod.node, text));
                self.put_with("host_ip", |text| put_ip(pod.node, text));
                self.put_with("pod_ip", |text| put_pod_ip(pod.bits, text));
                self.put("created_by_kind", pod.owner.name());
                self.put_with("created_by_name", |text| pod.put_owner_name(text));
            }
            Base::StatePodOwner => {
                self.put("owner_is_controller", "true");
                self.put("owner_kind", pod.owner.name());
                self.put_with("owner_name", |text| pod.put_owner_name(text));
            }
            _ => {}
        }
        let is_about_container = matches!(
            spec.base,
            Base::StateContainer | Base::StateContainerInfo | Base::StateContainerResource
        );
        if is_about_container {
            self.put_with("container", |text| pod.put_container(spec.container, text));
        }
        if spec.base == Base::StateContainerResource {
            self.put_with("node", |text| put_node_name(pod.node, text));
        }
        if spec.base == Base::StateContainerInfo {
            self.put_with("image", |text| pod.put_image(spec.container, text));
            self.put_with("image_id", |text| {
                pod.put_image(spec.container, text);
                text.push_str("@sha256:");
                put_hash(mix_pair(pod.version_bits(), spec.container), text);
            });
            self.put_with("container_id", |text| {
                text.push_str("containerd://");
                put_hash(mix_pair(pod.bits, spec.container), text);
            });
        }
    }

    fn put_workload(&mut self, idx: u64, scale: &Scale) {
        self.put_state_metrics();
        self.put_with("namespace", |text| put_namespace(namespace_of(idx, scale), text));
        self.put_with("deployment", |text| put_workload_name(idx, text));
    }

    fn put_node(&mut self, spec: &Spec, idx: u64) {
        match spec.base {
            Base::StateNode => {
                self.put_state_metrics();
                self.put_with("node", |text| put_node_name(idx, text));
            }
            Base::Kubelet => {
                self.put("endpoint", "https-metrics");
                self.put("job", "kubelet");
                self.put_with("instance", |text| put_address(idx, 10250, text));
                self.put_with("node", |text| put_node_name(idx, text));
            }
            _ => {
                self.put("endpoint", "https");
                self.put("job", "node-exporter");
                self.put("namespace", "monitoring");
                self.put_with("instance", |text| put_address(idx, 9100, text));
                self.put_with("pod", |text| {
                    let _ = write!(text, "node-exporter-{:05x}", mix_pair(idx, 9) >> 44);
                });
            }
        }
    }

    fn put_server(&mut self, kind: Kind, idx: u64) {
        if kind == Kind::ApiServer {
            self.put("endpoint", "https");
            self.put("job", "apiserver");
            self.put("namespace", "default");
            self.put_with("instance", |text| put_address(60_000 + idx, 6443, text));
            return;
        }
        self.put("endpoint", "http-metrics");
        self.put("job", "coredns");
        self.put("namespace", "kube-system");
        self.put_with("instance", |text| put_address(61_000 + idx, 9153, text));
        self.put_with("pod", |text| {
            let _ = write!(text, "coredns-5dd5756b68-{:05x}", mix_pair(idx, 7) >> 44);
        });
    }
}

/// What the labels of a pod's series are made of.
struct Pod {
    idx: u64,
    workload: u64,
    owner: Owner,
    generation: u64,
    node: u64,
    /// Its own random bits.
    bits: u64,
}

impl Pod {
    fn new(idx: u64, generation: u64, scale: &Scale) -> Pod {
        let workload = workload_of(idx);
        Pod {
            idx,
            workload,
            owner: owner_of(workload, scale),
            generation,
            node: node_of(idx, generation, scale),
            bits: mix_pair(Kind::Pod.bits(idx, scale), generation + 1),
        }
    }

    /// Shared by all pods of a roll-out.
    fn version_bits(&self) -> u64 {
        mix_pair(mix_pair(self.workload, 5), self.generation)
    }

    fn put_name(&self, text: &mut String) {
        match self.owner {
            Owner::StatefulSet => {
                put_workload_name(self.workload, text);
                let _ = write!(text, "-{}", self.idx % REPLICAS);
            }
            _ => {
                self.put_owner_name(text);
                let _ = write!(text, "-{:05x}", self.bits >> 44);
            }
        }
    }

    fn put_owner_name(&self, text: &mut String) {
        put_workload_name(self.workload, text);
        match self.owner {
            Owner::ReplicaSet => {
                let _ = write!(text, "-{:09x}", self.version_bits() >> 28);
            }
            Owner::Job => {
                let _ = write!(text, "-{}", 29_000_000 + self.generation * 60);
            }
            Owner::StatefulSet | Owner::DaemonSet => {}
        }
    }

    fn put_container(&self, container: u64, text: &mut String) {
        match container {
            0 => put_workload_name(self.workload, text),
            _ => text.push_str("proxy"),
        }
    }

    fn put_image(&self, container: u64, text: &mut String) {
        match container {
            0 => {
                text.push_str("registry.example/team/");
                put_workload_name(self.workload, text);
                let _ = write!(text, ":1.{}.{}", self.generation, below(self.version_bits(), 10));
            }
            _ => text.push_str("registry.example/mesh/proxy:2.14.1"),
        }
    }
}

fn put_namespace(namespace: u64, text: &mut String) {
    let _ = write!(text, "team-{namespace:02}");
}

fn put_workload_name(workload: u64, text: &mut String) {
    const WORDS: [&str; 8] =
        ["checkout", "catalog", "search", "billing", "gateway", "ledger", "mailer", "reports"];
    let _ = write!(text, "{}-{workload}", WORDS[workload as usize % WORDS.len()]);
}

fn put_node_name(node: u64, text: &mut String) {
    let _ = write!(text, "node-{node:04}");
}

fn put_ip(node: u64, text: &mut String) {
    let _ = write!(text, "10.{}.{}.{}", 1 + (node >> 14 & 63), node >> 7 & 127, 1 + (node & 127));
}

fn put_address(node: u64, port: u16, text: &mut String) {
    put_ip(node, text);
    let _ = write!(text, ":{port}");
}

fn put_pod_ip(bits: u64, text: &mut String) {
    let _ = write!(text, "100.{}.{}.{}", bits & 63, bits >> 8 & 255, bits >> 16 & 255);
}

fn put_uid(bits: u64, text: &mut String) {
    let low = mix_pair(bits, 11);
    let (a, b, c) = (bits >> 32, bits >> 16 & 0xffff, bits & 0xffff);
    let _ = write!(text, "{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low << 16 >> 16);
}

/// 64 hexadecimal digits, as of a container's or an image's id.
fn put_hash(bits: u64, text: &mut String) {
    for part in 0..4 {
        let _ = write!(text, "{:016x}", mix_pair(bits, part));
    }
}
