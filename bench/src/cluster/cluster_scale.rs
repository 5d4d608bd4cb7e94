//! Size of a simulated cluster.

/// How much of everything.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Machines.
    pub nodes: u64,
    /// Pods at any one time.
    pub pods: u64,
    /// Distance between two samples of a series.
    pub interval_ns: i64,
    /// The first row.
    pub start_ns: i64,
    /// End of the rows, exclusive.
    pub end_ns: i64,
    /// Chooses names, lives and values.
    pub seed: u64,
}

impl Scale {
    /// Samples of a series that lives all the time.
    pub fn rows(&self) -> i64 {
        (self.end_ns - self.start_ns) / self.interval_ns
    }

    /// So many hours in rows, one at least.
    pub fn hours(&self, hours: u64) -> i64 {
        ((hours as i64 * crate::instant::HOUR_NS) / self.interval_ns).max(1)
    }
}
