//! What a load gives: one structure, printed for people, as JSON, and its timeline as CSV.

use crate::observe::disk::DiskUse;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// The result of a load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadReport {
    /// What was sent.
    pub workload: String,
    /// How.
    pub protocol: String,
    /// By how many threads.
    pub workers: u64,
    /// Series of the whole workload.
    pub series: u64,
    /// Samples of the whole workload.
    pub samples_planned: u64,
    /// Samples a second, seen by the loader.
    pub samples_per_second: f64,
    /// The loader's side.
    pub loader: Loader,
    /// The server's side, when its process was known.
    pub server: Option<ServerUse>,
    /// Its directory after the flush, when known.
    pub disk_flushed: Option<DiskUse>,
    /// Its directory after the merge, when one was asked for.
    pub disk_merged: Option<DiskUse>,
    /// Rows over time.
    pub timeline: Vec<TimelineRow>,
    /// Why the load ended early, if it did.
    pub stopped: Option<String>,
}

/// What the loader did.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Loader {
    /// From the first request to the last acknowledgement.
    pub seconds: f64,
    /// Acknowledged samples.
    pub samples: u64,
    /// Bytes of acknowledged bodies.
    pub sent_bytes: u64,
    /// Requests sent again.
    pub retries: u64,
    /// CPU time of the loader, which shares the machine with the server.
    pub cpu_seconds: f64,
}

/// What the server used.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ServerUse {
    /// CPU time during the load.
    pub cpu_seconds: f64,
    /// The same per sample, which is CPU-seconds per million samples.
    pub cpu_us_per_sample: f64,
    /// CPU time until flush and merges were over: work put off is still work.
    pub cpu_seconds_settled: f64,
    /// The same per sample.
    pub cpu_us_per_sample_settled: f64,
    /// Largest resident memory.
    pub rss_peak_bytes: u64,
    /// Resident memory when the last sample was acknowledged.
    pub rss_loaded_bytes: u64,
    /// Resident memory after a rest.
    pub rss_idle_bytes: u64,
    /// Of this, what is mapped from files.
    pub rss_idle_file_bytes: u64,
    /// Bytes read from the disk.
    pub read_bytes: u64,
    /// Bytes written to the disk.
    pub write_bytes: u64,
}

/// The state of a load at one moment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TimelineRow {
    /// Since the first request.
    pub seconds: f64,
    /// Acknowledged so far.
    pub samples: u64,
    /// Since the row before.
    pub samples_per_second: f64,
    /// Resident memory of the server.
    pub rss_bytes: u64,
    /// CPU time of the server since its start.
    pub cpu_seconds: f64,
    /// Bytes the server has written since its start.
    pub write_bytes: u64,
}

impl LoadReport {
    /// The timeline as CSV with a header.
    pub fn timeline_csv(&self) -> String {
        let mut csv =
            String::from("seconds,samples,samples_per_second,rss_bytes,cpu_seconds,write_bytes\n");
        for row in &self.timeline {
            csv.push_str(&format!(
                "{:.1},{},{:.0},{},{:.2},{}\n",
                row.seconds,
                row.samples,
                row.samples_per_second,
                row.rss_bytes,
                row.cpu_seconds,
                row.write_bytes
            ));
        }
        csv
    }
}

impl Display for LoadReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let loader = &self.loader;
        writeln!(f, "{}, {}, {} workers", self.workload, self.protocol, self.workers)?;
        if let Some(reason) = &self.stopped {
            writeln!(f, "  STOPPED      {reason}")?;
        }
        writeln!(f, "  series       {}", self.series)?;
        writeln!(f, "  samples      {} of {}", loader.samples, self.samples_planned)?;
        writeln!(f, "  time         {:.1} s", loader.seconds)?;
        writeln!(f, "  rate         {:.0} samples/s", self.samples_per_second)?;
        writeln!(f, "  sent         {} MiB, {} retries", mib(loader.sent_bytes), loader.retries)?;
        writeln!(f, "  loader CPU   {:.1} s", loader.cpu_seconds)?;
        if let Some(server) = &self.server {
            write_server(f, server)?;
        }
        self.write_disk(f)?;
        writeln!(f, "  timeline     seconds  samples/s  RSS MiB  CPU s")?;
        for row in &self.timeline {
            let (seconds, rate) = (row.seconds, row.samples_per_second);
            let (rss, cpu) = (mib(row.rss_bytes), row.cpu_seconds);
            writeln!(f, "             {seconds:9.1}  {rate:9.0}  {rss:7}  {cpu:5.1}")?;
        }
        Ok(())
    }
}

impl LoadReport {
    fn write_disk(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (title, disk) in [("flushed", self.disk_flushed), ("merged", self.disk_merged)] {
            let Some(disk) = disk else { continue };
            writeln!(
                f,
                "  disk {title:7} {} KiB in {} files ({} KiB allocated), {:.3} B/sample, {:.0} B/series",
                disk.apparent_bytes >> 10,
                disk.files,
                disk.allocated_bytes >> 10,
                disk.apparent_bytes as f64 / self.loader.samples.max(1) as f64,
                disk.apparent_bytes as f64 / self.series as f64
            )?;
        }
        Ok(())
    }
}

fn write_server(f: &mut Formatter<'_>, server: &ServerUse) -> fmt::Result {
    writeln!(
        f,
        "  server CPU   {:.2} s, {:.3} s/M samples; settled {:.2} s, {:.3} s/M samples",
        server.cpu_seconds,
        server.cpu_us_per_sample,
        server.cpu_seconds_settled,
        server.cpu_us_per_sample_settled
    )?;
    writeln!(
        f,
        "  server RSS   peak {} MiB, after the load {} MiB, after a rest {} MiB ({} MiB of files)",
        mib(server.rss_peak_bytes),
        mib(server.rss_loaded_bytes),
        mib(server.rss_idle_bytes),
        mib(server.rss_idle_file_bytes)
    )?;
    let (read, written) = (mib(server.read_bytes), mib(server.write_bytes));
    writeln!(f, "  server I/O   {read} MiB read, {written} MiB written")
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}
