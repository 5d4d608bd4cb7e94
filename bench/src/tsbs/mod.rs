//! TSBS, use case cpu-only: what the Time Series Benchmark Suite's generator, loader and query
//! runner do, without Go.
//!
//! ```text
//! cpu,hostname=host_0,region=..,..9 more tags usage_user=58i,..9 more fields 1451606400000000000
//! └────────── fleet.rs: once a host ────────┘ └── walk.rs: N(0,1) steps ───┘ └─ once a row ────┘
//! ```
//!
//! A host is 10 series. For each instant all hosts are sent, then the next instant follows.

pub mod fleet;
pub mod queries;
pub mod requests;
pub mod walk;

use crate::workload::{RequestFormat, Requests, Share, Workload};
use anyhow::{Result, ensure};
use fleet::Fleet;

/// The ten fields of a host, in the order of a line.
pub const FIELDS: [&str; 10] = [
    "usage_user",
    "usage_system",
    "usage_idle",
    "usage_nice",
    "usage_iowait",
    "usage_irq",
    "usage_softirq",
    "usage_steal",
    "usage_guest",
    "usage_guest_nice",
];

/// The measurement, first part of a metric's name: `cpu_usage_user`.
pub const MEASUREMENT: &str = "cpu";

/// What a data set is made of.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// How many hosts; ten times as many series.
    pub hosts: u32,
    /// Distance between two samples of a series.
    pub interval_ns: i64,
    /// The first instant.
    pub start_ns: i64,
    /// The end, exclusive.
    pub end_ns: i64,
    /// Chooses the tags and, with the start, the walks: the same seed a day later gives the same
    /// series with other values.
    pub seed: u64,
}

impl Scale {
    /// How many instants there are.
    pub fn rows(&self) -> u64 {
        let span = (self.end_ns - self.start_ns).max(0) as u64;
        span.div_ceil(self.interval_ns as u64)
    }

    /// The same hosts for as long again, right after the end.
    pub fn following(&self) -> Scale {
        let end_ns = self.timestamp_ns(self.rows());
        Scale { start_ns: end_ns, end_ns: end_ns + (self.end_ns - self.start_ns), ..*self }
    }

    /// The time of a row.
    pub fn timestamp_ns(&self, row: u64) -> i64 {
        self.start_ns + row as i64 * self.interval_ns
    }
}

/// The cpu-only data set.
pub struct CpuOnly {
    scale: Scale,
    fleet: Fleet,
}

impl CpuOnly {
    /// Chooses the hosts' tags.
    ///
    /// # Errors
    /// When the scale has no host or no instant.
    pub fn new(scale: Scale) -> Result<CpuOnly> {
        ensure!(scale.hosts > 0, "--scale must be at least 1 host");
        ensure!(scale.interval_ns > 0, "--interval must be longer than nothing");
        ensure!(scale.rows() > 0, "--end must be after --start");
        Ok(CpuOnly { scale, fleet: Fleet::new(scale.hosts, scale.seed) })
    }
}

impl Workload for CpuOnly {
    fn name(&self) -> String {
        "tsbs cpu-only".to_string()
    }

    fn series(&self) -> u64 {
        u64::from(self.scale.hosts) * FIELDS.len() as u64
    }

    fn samples(&self) -> u64 {
        self.series() * self.scale.rows()
    }

    fn span_ns(&self) -> (i64, i64) {
        (self.scale.start_ns, self.scale.timestamp_ns(self.scale.rows() - 1))
    }

    fn requests(&self, share: Share, format: RequestFormat) -> Box<dyn Requests + '_> {
        Box::new(requests::CpuRequests::new(&self.scale, &self.fleet, share, format))
    }
}
