//! What exists: nodes, workloads, pods and the servers of the control plane, and since which row.

use super::Scale;
use crate::random::mix_pair;
use rng::below;

/// Pods of a workload.
pub const REPLICAS: u64 = 8;
/// API servers of a cluster.
const API_SERVERS: u64 = 3;
/// One of so many nodes has outages.
const UNSTABLE_NODES: u64 = 20;

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An API server.
    ApiServer,
    /// A CoreDNS server.
    CoreDns,
    /// A machine.
    Node,
    /// A Deployment or another owner of pods.
    Workload,
    /// A place of pods, one after the other.
    Pod,
}

/// The owner of a workload's pods, which says how long they live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Pods are replaced, all within minutes, when a new version rolls out.
    ReplicaSet,
    /// Rarely replaced, under the same names.
    StatefulSet,
    /// Lives as long as nodes do.
    DaemonSet,
    /// Runs and ends, and runs again some time later.
    Job,
}

impl Owner {
    /// As kube-state-metrics names it.
    pub fn name(self) -> &'static str {
        match self {
            Owner::ReplicaSet => "ReplicaSet",
            Owner::StatefulSet => "StatefulSet",
            Owner::DaemonSet => "DaemonSet",
            Owner::Job => "Job",
        }
    }
}

/// Which inhabitant of a slot is there, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Counts the inhabitants.
    pub generation: u64,
    /// Its first row, perhaps before the data; of a node, the first after its last outage.
    pub born_row: i64,
}

impl Kind {
    /// All kinds, in the order of sending.
    pub const ALL: [Kind; 5] =
        [Kind::ApiServer, Kind::CoreDns, Kind::Node, Kind::Workload, Kind::Pod];

    /// How many slots there are.
    pub fn count(self, scale: &Scale) -> u64 {
        match self {
            Kind::ApiServer => API_SERVERS,
            Kind::CoreDns => 2 + scale.nodes / 50,
            Kind::Node => scale.nodes,
            Kind::Workload => scale.pods.div_ceil(REPLICAS),
            Kind::Pod => scale.pods,
        }
    }

    /// The slot's own random bits.
    pub fn bits(self, idx: u64, scale: &Scale) -> u64 {
        mix_pair(mix_pair(scale.seed, self as u64), idx)
    }

    /// Who is there in a row; `None` while nobody is.
    pub fn life(self, idx: u64, row: i64, scale: &Scale) -> Option<Life> {
        match self {
            Kind::Pod => pod_life(idx, row, scale),
            Kind::Node => node_life(self.bits(idx, scale), row, scale),
            // Up since some hour of the last weeks, and restarted now and then.
            Kind::ApiServer | Kind::CoreDns => {
                let bits = self.bits(idx, scale);
                let period = scale.hours(50 + below(bits, 100));
                let shift = below(mix_pair(bits, 1), period as u64) as i64;
                Some(Life { generation: 0, born_row: row - (row + shift) % period })
            }
            Kind::Workload => Some(Life { generation: 0, born_row: -scale.hours(1000) }),
        }
    }
}

/// Nodes restart after an outage of a quarter of an hour, if they have any.
fn node_life(bits: u64, row: i64, scale: &Scale) -> Option<Life> {
    if !bits.is_multiple_of(UNSTABLE_NODES) {
        return Some(Life { generation: 0, born_row: -scale.hours(1 + below(bits, 500)) });
    }
    let period = scale.hours(20 + below(bits, 20));
    let down = (scale.hours(1) / 4).max(2);
    let position = (row + below(mix_pair(bits, 1), period as u64) as i64) % period;
    (position >= down).then(|| Life { generation: 0, born_row: row - (position - down) })
}

/// The workload that a pod's slot belongs to.
pub fn workload_of(pod: u64) -> u64 {
    pod / REPLICAS
}

/// Who owns a workload's pods.
pub fn owner_of(workload: u64, scale: &Scale) -> Owner {
    match below(mix_pair(Kind::Workload.bits(workload, scale), 1), 100) {
        0..65 => Owner::ReplicaSet,
        65..82 => Owner::StatefulSet,
        82..94 => Owner::DaemonSet,
        _ => Owner::Job,
    }
}

/// The namespace of a workload.
pub fn namespace_of(workload: u64, scale: &Scale) -> u64 {
    workload % (3 + scale.pods / 250)
}

/// Containers of each of a workload's pods.
pub fn containers_of(workload: u64, scale: &Scale) -> u64 {
    1 + Kind::Workload.bits(workload, scale) % 2
}

/// The node of a pod.
pub fn node_of(pod: u64, generation: u64, scale: &Scale) -> u64 {
    match owner_of(workload_of(pod), scale) {
        Owner::DaemonSet => pod % scale.nodes,
        _ => below(mix_pair(Kind::Pod.bits(pod, scale), generation), scale.nodes),
    }
}

fn pod_life(idx: u64, row: i64, scale: &Scale) -> Option<Life> {
    let workload = workload_of(idx);
    let bits = Kind::Workload.bits(workload, scale);
    let owner = owner_of(workload, scale);
    let (hours_min, hours_more) = match owner {
        Owner::ReplicaSet => (12, 84),
        Owner::StatefulSet => (60, 200),
        Owner::DaemonSet => (150, 300),
        Owner::Job => (2, 4),
    };
    let period = scale.hours(hours_min + below(mix_pair(bits, 2), hours_more));
    let phase = below(mix_pair(bits, 3), period as u64) as i64;
    // The pods of a roll-out follow each other.
    let stagger = (idx % REPLICAS) as i64;
    let shifted = row + phase + period - stagger;
    let (generation, position) = (shifted / period, shifted % period);
    let is_over = owner == Owner::Job && position > period / 2;
    (!is_over).then(|| Life { generation: generation as u64, born_row: row - position })
}
