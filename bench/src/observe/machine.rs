//! What a benchmark ran on.

use std::fs;

/// The machine, for reports.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in all.
    pub memory_bytes: u64,
    /// The kernel's version.
    pub kernel: String,
}

/// Looks at the machine.
pub fn describe() -> Machine {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let processor = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, name)| name.trim());
    let memory_kib: u64 = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_ascii_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0);
    Machine {
        processor: processor.to_string(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: memory_kib * 1024,
        kernel: kernel.trim().split('-').next().unwrap_or_default().to_string(),
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let memory_gib = self.memory_bytes as f64 / f64::from(1 << 30);
        let (cores, processor, kernel) = (self.cores, &self.processor, &self.kernel);
        write!(f, "{cores} cores of {processor}, {memory_gib:.0} GiB, Linux {kernel}")
    }
}
