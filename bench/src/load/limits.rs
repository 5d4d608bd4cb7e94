//! Bounds of a run: a server that exceeds one is stopped, and that is the result.

use crate::observe::Observed;
use crate::workload::Workload;
use indicatif::HumanCount;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What a run may take; `None` is no bound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// From the first request to the last.
    pub time: Option<Duration>,
    /// Resident memory of the server.
    pub memory_bytes: Option<u64>,
    /// Space that its directory takes.
    pub disk_bytes: Option<u64>,
}

impl Limits {
    /// Why a run must stop now, if it must. The disk is only looked at when `with_disk` says so.
    pub fn exceeded(
        &self,
        elapsed: Duration,
        observed: &Observed,
        with_disk: WithDisk,
    ) -> Option<String> {
        if self.time.is_some_and(|time| elapsed > time) {
            return Some("stopped at the time limit".to_string());
        }
        match observed.process() {
            Err(_) => return Some("the server's process is gone".to_string()),
            Ok(Some(used)) if self.memory_bytes.is_some_and(|max| used.rss_bytes > max) => {
                return Some(format!(
                    "stopped at {} MiB of memory",
                    HumanCount(used.rss_bytes >> 20)
                ));
            }
            Ok(_) => {}
        }
        let disk_bytes_max = self.disk_bytes.filter(|_| with_disk == WithDisk::Yes)?;
        let used = observed.disk()?.allocated_bytes;
        (used > disk_bytes_max)
            .then(|| format!("stopped at {} MiB on disk", HumanCount(used >> 20)))
    }
}

/// A load that ended early, in full: why, when, and how far it had come.
pub fn describe_end(reason: &str, seconds: f64, samples: u64, workload: &dyn Workload) -> String {
    format!(
        "{reason} after {:.1} min: {} of {} series, {} of {} samples",
        seconds / 60.0,
        in_millions(workload.series_of(samples)),
        in_millions(workload.series()),
        in_millions(samples),
        in_millions(workload.samples())
    )
}

/// `310 M`, `12.4 M`; below a hundred thousand in full.
fn in_millions(count: u64) -> String {
    let millions = count as f64 / 1e6;
    match count {
        0..100_000 => HumanCount(count).to_string(),
        100_000..100_000_000 => format!("{millions:.1} M"),
        _ => format!("{} M", HumanCount(millions.round() as u64)),
    }
}

/// Whether to walk the directory, which costs more than a look at `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithDisk {
    /// Walk it.
    Yes,
    /// Not this time.
    No,
}

/// Tells all workers to end early, with the first reason given.
#[derive(Default)]
pub struct Stop {
    is_set: AtomicBool,
    /// The first reason; guarded for the moment of setting or reading it.
    reason: Mutex<Option<String>>,
}

impl Stop {
    /// Ends the run for that reason, unless it has ended for another.
    pub fn set(&self, reason: String) {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.is_set.store(true, Ordering::Release);
    }

    /// Whether the run has ended early.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Why it has.
    pub fn reason(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_gives_its_reason() {
        let here = Observed {
            pid: Some(std::process::id()),
            data_dir: Some("src".into()),
            ..Observed::default()
        };
        let exceeded = |limits: Limits, seconds| {
            limits.exceeded(Duration::from_secs(seconds), &here, WithDisk::Yes)
        };
        assert_eq!(exceeded(Limits::default(), 1 << 40), None);
        let time = Limits { time: Some(Duration::from_secs(5)), ..Limits::default() };
        assert_eq!(exceeded(time, 5), None);
        assert_eq!(exceeded(time, 6).unwrap(), "stopped at the time limit");
        let memory = Limits { memory_bytes: Some(1 << 20), ..Limits::default() };
        assert!(exceeded(memory, 0).unwrap().ends_with("MiB of memory"));
        let disk = Limits { disk_bytes: Some(100), ..Limits::default() };
        assert!(exceeded(disk, 0).unwrap().ends_with("MiB on disk"));
        let gone = Observed { pid: Some(u32::MAX), ..Observed::default() };
        assert!(time.exceeded(Duration::ZERO, &gone, WithDisk::No).unwrap().contains("gone"));
    }

    #[test]
    fn an_early_end_says_how_far_it_had_come() {
        let scale = crate::shapes::ShapeScale {
            series: 40_000_000,
            samples_each: 72,
            interval_ns: 1_000_000_000,
            start_ns: 0,
            seed: 1,
        };
        let workload = crate::shapes::ShapeWorkload::new("backfill", scale).unwrap();
        let reason = "stopped at 20,480 MiB of memory";
        let expected = "stopped at 20,480 MiB of memory after 31.2 min: \
             4.3 M of 40.0 M series, 310 M of 2,880 M samples";
        assert_eq!(describe_end(reason, 31.2 * 60.0, 310_000_000, &workload), expected);
    }

    #[test]
    fn counts_are_short() {
        assert_eq!(in_millions(99_999), "99,999");
        assert_eq!(in_millions(12_440_000), "12.4 M");
        assert_eq!(in_millions(2_880_000_000), "2,880 M");
    }

    #[test]
    fn the_first_reason_stays() {
        let stop = Stop::default();
        assert!(!stop.is_set());
        stop.set("one".into());
        stop.set("two".into());
        assert!(stop.is_set());
        assert_eq!(stop.reason().as_deref(), Some("one"));
    }
}
