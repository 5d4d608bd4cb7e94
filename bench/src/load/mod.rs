//! Loads a workload into a server, watches the server meanwhile, and reports.
//!
//! ```text
//! worker 0: Requests ─► Packer ─► Sender ─────┐
//! worker 1: Requests ─► Packer ─► Sender ─────┼─► server    Tally: what was acknowledged
//! watch:    every 100 ms Tally, /proc, disk ──┘            Stop: a limit was reached
//! then settle: idle, flush, wait for quiet, and measure memory and disk
//! ```

pub mod limits;
pub mod report;
mod sender;
pub mod settle;
mod watch;
mod worker;

use crate::observe::Observed;
use crate::observe::process::{self, ProcessUse};
use crate::workload::{RequestFormat, Share, Workload};
use anyhow::{Result, bail};
use limits::{Limits, Stop};
use report::{LoadReport, Loader, ServerUse};
use settle::{Settle, Settled};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The server: `127.0.0.1:8428`.
    pub authority: String,
    /// Where to post.
    pub path: String,
    /// What requests look like.
    pub format: RequestFormat,
    /// Threads, each with a connection.
    pub workers: u64,
    /// A request that fails for so long ends the load.
    pub give_up_after: Duration,
    /// Distance of the rows of the timeline.
    pub row_interval: Duration,
    /// What to do with the server after the last request, before disk and memory are measured.
    pub settle: Settle,
    /// When to stop before the end.
    pub limits: Limits,
}

/// What all workers have done so far.
#[derive(Default)]
struct Tally {
    /// Samples that the server acknowledged.
    samples: AtomicU64,
    /// Bytes of acknowledged bodies.
    sent_bytes: AtomicU64,
    /// Requests that had to be sent again.
    retries: AtomicU64,
    /// Workers that are done.
    finished: AtomicU64,
    /// When the last of them was, in nanoseconds since the first request.
    ended_ns: AtomicU64,
}

/// Loads all of `workload`, or until a limit; a server that dies is a result, not an error.
///
/// # Errors
/// When the server cannot be watched at the start.
pub fn run(
    workload: &dyn Workload,
    options: &LoadOptions,
    observed: &Observed,
) -> Result<LoadReport> {
    if let Some(reason) = workload.unsupported(options.format.protocol) {
        bail!("{reason}");
    }
    let (tally, stop) = (Tally::default(), Stop::default());
    let server_before = observed.process()?;
    let loader_before = process::read(std::process::id())?;
    let start = Instant::now();
    let timeline = std::thread::scope(|scope| {
        for idx in 0..options.workers {
            let share = Share { idx, count: options.workers };
            let (tally, stop) = (&tally, &stop);
            scope.spawn(move || {
                worker::run(workload, share, options, tally, stop);
                tally.ended_ns.fetch_max(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
                tally.finished.fetch_add(1, Ordering::Release);
            });
        }
        watch::run(workload, options, observed, &tally, &stop)
    });
    let seconds = tally.ended_ns.load(Ordering::Relaxed) as f64 / 1e9;
    let loaded = observed.process().unwrap_or_default();
    let loader_after = process::read(std::process::id())?;
    let loader = Loader {
        seconds,
        samples: tally.samples.load(Ordering::Relaxed),
        sent_bytes: tally.sent_bytes.load(Ordering::Relaxed),
        retries: tally.retries.load(Ordering::Relaxed),
        cpu_seconds: loader_after.cpu_seconds - loader_before.cpu_seconds,
    };
    let mut settled = Settled::default();
    let stopped = match stop.reason() {
        Some(reason) => {
            Some(limits::describe_end(&reason, loader.seconds, loader.samples, workload))
        }
        None => match settle::run(&options.settle, &options.authority, observed) {
            Ok(after) => {
                settled = after;
                None
            }
            Err(error) => Some(format!("while settling: {error:#}")),
        },
    };
    let server = combine(server_before, loaded, &settled, loader.samples);
    Ok(LoadReport {
        workload: workload.name(),
        protocol: options.format.protocol.name().to_string(),
        workers: options.workers,
        series: workload.series(),
        samples_planned: workload.samples(),
        samples_per_second: loader.samples as f64 / loader.seconds.max(1e-9),
        loader,
        server,
        disk_flushed: settled.disk_flushed.or_else(|| observed.disk()),
        disk_merged: settled.disk_merged,
        timeline,
        stopped,
    })
}

/// What the server used: differences to its state before the load.
fn combine(
    before: Option<ProcessUse>,
    loaded: Option<ProcessUse>,
    settled: &Settled,
    samples: u64,
) -> Option<ServerUse> {
    let (before, loaded) = (before?, loaded?);
    let idle = settled.idle.unwrap_or(loaded);
    let end = settled.end.unwrap_or(idle);
    let samples = samples.max(1) as f64;
    let cpu_seconds = loaded.cpu_seconds - before.cpu_seconds;
    let cpu_seconds_settled = end.cpu_seconds - before.cpu_seconds;
    Some(ServerUse {
        cpu_seconds,
        cpu_us_per_sample: cpu_seconds / samples * 1e6,
        cpu_seconds_settled,
        cpu_us_per_sample_settled: cpu_seconds_settled / samples * 1e6,
        rss_peak_bytes: end.rss_peak_bytes,
        rss_loaded_bytes: loaded.rss_bytes,
        rss_idle_bytes: idle.rss_bytes,
        rss_idle_file_bytes: idle.rss_file_bytes,
        // Of several processes, one that has just ended may be missing from a look.
        read_bytes: end.read_bytes.saturating_sub(before.read_bytes),
        write_bytes: end.write_bytes.saturating_sub(before.write_bytes),
    })
}
