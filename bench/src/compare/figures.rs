//! Numbers that know what they are: a name, a unit, and which way is better.

use crate::load::report::LoadReport;
use serde::{Deserialize, Serialize};

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Better {
    /// Rates.
    Higher,
    /// Costs.
    Lower,
    /// Neither: for information.
    Neither,
}

/// One compared number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is, with its unit.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Which way is better.
    pub better: Better,
}

impl Figure {
    /// A number with its name.
    pub fn new(name: &str, value: f64, better: Better) -> Figure {
        Figure { name: name.to_string(), value, better }
    }
}

/// The figures of a load that are to be reported; `prefix` tells several loads of a run apart, and
/// `samples_stored` counts what the server holds in the end, of this load and those before it.
pub fn of_load(prefix: &str, report: &LoadReport, samples_stored: u64) -> Vec<Figure> {
    use Better::{Higher, Lower, Neither};
    let mut figures = Vec::new();
    let mut add = |name: &str, value: f64, better| {
        figures.push(Figure::new(&format!("{prefix}{name}"), value, better));
    };
    let samples = report.loader.samples.max(1) as f64;
    add("samples/s at the client", report.samples_per_second, Higher);
    if let Some(server) = &report.server {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        add("server CPU, us/sample", server.cpu_us_per_sample, Lower);
        add("server CPU until merged, us/sample", server.cpu_us_per_sample_settled, Lower);
        add("peak RSS, MiB", mib(server.rss_peak_bytes), Lower);
        add("RSS after the load, MiB", mib(server.rss_loaded_bytes), Lower);
        add("RSS after a rest, MiB", mib(server.rss_idle_bytes), Lower);
        add("read, MiB", mib(server.read_bytes), Lower);
        add("written, MiB", mib(server.write_bytes), Lower);
    }
    for (when, disk) in [("flushed", report.disk_flushed), ("merged", report.disk_merged)] {
        if let Some(disk) = disk {
            let bytes = disk.apparent_bytes as f64;
            add(&format!("disk {when}, B/sample"), bytes / samples_stored.max(1) as f64, Lower);
            add(&format!("disk {when}, B/series"), bytes / report.series as f64, Lower);
        }
    }
    add("loader CPU, us/sample", report.loader.cpu_seconds * 1e6 / samples, Neither);
    add("repeated requests", report.loader.retries as f64, Neither);
    figures
}
