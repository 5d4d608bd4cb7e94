//! What the operating system knows about this process: CPU, memory, open files.
//!
//! Read from `/proc/self`; where that does not exist the values are left out.

use crate::metrics_page::Page;

/// Ticks per second in `/proc/self/stat`: fixed at 100 in Linux' interface to user space.
const TICKS_PER_SECOND: f64 = 100.0;

/// Figures of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessFigures {
    /// User and system time used, seconds.
    pub cpu_seconds: f64,
    /// Memory in RAM, bytes.
    pub resident_bytes: f64,
    /// Most memory in RAM so far, bytes.
    pub resident_peak_bytes: f64,
    /// Address space, bytes.
    pub virtual_bytes: f64,
    /// Threads.
    pub threads: f64,
    /// Open files and sockets.
    pub open_files: f64,
    /// How many files and sockets may be open.
    pub open_files_max: f64,
}

/// Reads the figures.
pub fn figures() -> ProcessFigures {
    let mut figures = ProcessFigures::default();
    if let Ok(stat) = std::fs::read_to_string("/proc/self/stat") {
        figures.cpu_seconds = cpu_seconds(&stat).unwrap_or(0.0);
    }
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let kilobytes = |name| status_number(&status, name).unwrap_or(0.0) * 1024.0;
        figures.resident_bytes = kilobytes("VmRSS:");
        figures.resident_peak_bytes = kilobytes("VmHWM:");
        figures.virtual_bytes = kilobytes("VmSize:");
        figures.threads = status_number(&status, "Threads:").unwrap_or(0.0);
    }
    if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
        figures.open_files = entries.count() as f64;
    }
    figures.open_files_max = open_files_max().unwrap_or(0) as f64;
    figures
}

/// How many files and sockets this process may have open.
pub fn open_files_max() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

/// User and system ticks are the 14th and 15th field; the second one, a name, may hold spaces.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

fn status_number(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Writes the figures under the names that Prometheus' client libraries use.
#[rustfmt::skip] // one metric, one line
pub fn write(page: &mut Page, started_unix_seconds: f64) {
    let figures = figures();
    let families: [(&str, &str, &str, f64); 8] = [
        ("process_cpu_seconds_total", "counter", "User and system CPU time used.", figures.cpu_seconds),
        ("process_resident_memory_bytes", "gauge", "Memory in RAM.", figures.resident_bytes),
        ("process_resident_memory_peak_bytes", "gauge", "Most memory in RAM so far.", figures.resident_peak_bytes),
        ("process_virtual_memory_bytes", "gauge", "Address space.", figures.virtual_bytes),
        ("process_threads", "gauge", "Threads.", figures.threads),
        ("process_open_fds", "gauge", "Open files and sockets.", figures.open_files),
        ("process_max_fds", "gauge", "Files and sockets that may be open.", figures.open_files_max),
        ("process_start_time_seconds", "gauge", "Start, seconds since 1970.", started_unix_seconds),
    ];
    for (name, kind, help, value) in families {
        page.family(name, kind, help);
        page.sample("", &[], value);
    }
    if let Some(load) = load_average() {
        page.family("quipu_system_load1", "gauge", "Load average of the machine over one minute.");
        page.sample("", &[], load);
    }
}

/// Load average of the machine over one minute.
fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_behind_an_odd_name() {
        let stat = "1 (a b) c) S 1 1 1 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 1 0 1 1 1";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds("1 (a"), None);
        assert_eq!(status_number("VmRSS:\t  12 kB\nThreads:\t3\n", "Threads:"), Some(3.0));
    }
}
