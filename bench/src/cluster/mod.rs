//! A Kubernetes cluster as its monitoring sees it: kube-state-metrics, cAdvisor, node exporters,
//! the API server and CoreDNS, scraped every minute or so.
//!
//! ```text
//! Scale ─► objects (what exists in a row, since when) ─┐
//!          catalog (which series an object has) ───────┼─► requests: blocks of rows, in time order
//!          signal  (how values go)             ────────┘
//! ```
//!
//! An object is a slot: the place of a pod, say, where one pod follows another when its workload
//! rolls out. All is a function of (seed, slot, row), so nothing is kept between requests. A series
//! that ends gets a staleness marker in the row after its last sample, as a scraper would send it.

mod catalog;
mod cluster_scale;
pub mod dashboards;
mod labels;
mod objects;
mod requests;
mod signal;

use crate::payload::Protocol;
use crate::workload::{RequestFormat, Requests, Share, Workload};
use anyhow::{Result, ensure};
use catalog::Catalog;
pub use cluster_scale::Scale;
use objects::Kind;

/// The data set.
pub struct Cluster {
    scale: Scale,
    catalog: Catalog,
    series: u64,
    samples: u64,
}

impl Cluster {
    /// Lays out the objects and counts what they will give.
    ///
    /// # Errors
    /// When the scale is empty.
    pub fn new(scale: Scale) -> Result<Cluster> {
        ensure!(scale.nodes > 0 && scale.pods > 0, "--nodes and --pods must be at least 1");
        ensure!(scale.interval_ns >= 1_000_000_000, "--interval must be at least a second");
        ensure!(scale.rows() > 0, "the span must be longer than the interval");
        let catalog = Catalog::new(&scale);
        let mut cluster = Cluster { scale, catalog, series: 0, samples: 0 };
        for kind in Kind::ALL {
            for idx in 0..kind.count(&scale) {
                cluster.count(kind, idx);
            }
        }
        Ok(cluster)
    }

    /// Adds an object's series, and its samples with the markers of those that end.
    fn count(&mut self, kind: Kind, idx: u64) {
        let specs = self.catalog.specs(kind, idx, &self.scale);
        let always = specs.iter().filter(|spec| spec.outlives_outages()).count() as u64;
        let others = specs.len() as u64 - always;
        let (mut lives, mut alive_rows, mut ends) = (0, 0, 0);
        let mut seen = None;
        let mut before = None;
        for row in 0..self.scale.rows() {
            let now = kind.life(idx, row, &self.scale).map(|life| life.generation);
            if now.is_some() {
                alive_rows += 1;
                // A node that comes back has the series that it had.
                lives += u64::from(now != seen);
                seen = now;
            }
            ends += u64::from(before.is_some() && before != now);
            before = now;
        }
        self.series += others * lives + always;
        self.samples += others * (alive_rows + ends) + always * self.scale.rows() as u64;
    }
}

impl Workload for Cluster {
    fn name(&self) -> String {
        format!("cluster of {} nodes and {} pods", self.scale.nodes, self.scale.pods)
    }

    fn series(&self) -> u64 {
        self.series
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    fn unsupported(&self, protocol: Protocol) -> Option<String> {
        let missing = "a cluster's staleness markers are sent by remote write 1.0 only";
        (protocol != Protocol::RemoteWrite).then(|| missing.to_string())
    }

    fn span_ns(&self) -> (i64, i64) {
        // A target is scraped at an instant of its own within the interval.
        (self.scale.start_ns, self.scale.end_ns)
    }

    fn requests(&self, share: Share, format: RequestFormat) -> Box<dyn Requests + '_> {
        Box::new(requests::ClusterRequests::new(&self.scale, &self.catalog, share, format))
    }
}

#[cfg(test)]
mod tests;
