//! Watches a load: progress on the terminal, rows of the timeline, limits.

use super::limits::{Stop, WithDisk};
use super::report::TimelineRow;
use super::{LoadOptions, Tally};
use crate::observe::Observed;
use crate::workload::Workload;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often the workers are looked at.
const TICK: Duration = Duration::from_millis(100);
/// How many ticks lie between two looks at the disk.
const DISK_TICKS: u64 = 20;

/// Looks until all workers are done; returns the timeline.
pub(super) fn run(
    workload: &dyn Workload,
    options: &LoadOptions,
    observed: &Observed,
    tally: &Tally,
    stop: &Stop,
) -> Vec<TimelineRow> {
    let bar = progress_bar(workload);
    let start = Instant::now();
    let mut timeline: Vec<TimelineRow> = Vec::new();
    for tick in 0.. {
        let samples = tally.samples.load(Ordering::Relaxed);
        let is_over = tally.finished.load(Ordering::Acquire) == options.workers;
        let elapsed = start.elapsed();
        if is_over || elapsed >= options.row_interval * (timeline.len() as u32 + 1) {
            let row = timeline_row(elapsed, samples, timeline.last(), observed);
            bar.set_message(format!("{}/s", HumanCount(row.samples_per_second as u64)));
            timeline.push(row);
        }
        bar.set_position(samples);
        if is_over {
            break;
        }
        let with_disk = if tick % DISK_TICKS == 0 { WithDisk::Yes } else { WithDisk::No };
        if let Some(reason) = options.limits.exceeded(elapsed, observed, with_disk) {
            stop.set(reason);
        }
        std::thread::sleep(TICK);
    }
    bar.finish_and_clear();
    timeline
}

fn progress_bar(workload: &dyn Workload) -> ProgressBar {
    let bar = ProgressBar::new(workload.samples());
    let style = ProgressStyle::with_template(
        "{prefix} {wide_bar} {human_pos}/{human_len} samples, {msg}, {elapsed}, {eta} left",
    );
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(workload.name());
    bar
}

fn timeline_row(
    elapsed: Duration,
    samples: u64,
    previous: Option<&TimelineRow>,
    observed: &Observed,
) -> TimelineRow {
    let (seconds_before, samples_before) =
        previous.map_or((0.0, 0), |row| (row.seconds, row.samples));
    let seconds = elapsed.as_secs_f64();
    let used = observed.process().ok().flatten().unwrap_or_default();
    TimelineRow {
        seconds,
        samples,
        samples_per_second: (samples - samples_before) as f64
            / (seconds - seconds_before).max(1e-9),
        rss_bytes: used.rss_bytes,
        cpu_seconds: used.cpu_seconds,
        write_bytes: used.write_bytes,
    }
}
