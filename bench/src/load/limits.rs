//! Bounds of a run: a server that exceeds one is stopped, and that is the result.

use crate::observe::Observed;
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
            return Some(format!("stopped at the time limit of {} s", elapsed.as_secs()));
        }
        match observed.process() {
            Err(_) => return Some("the server's process is gone".to_string()),
            Ok(Some(used)) if self.memory_bytes.is_some_and(|max| used.rss_bytes > max) => {
                return Some(format!("stopped at {} MiB of memory", used.rss_bytes >> 20));
            }
            Ok(_) => {}
        }
        let disk_bytes_max = self.disk_bytes.filter(|_| with_disk == WithDisk::Yes)?;
        let used = observed.disk()?.allocated_bytes;
        (used > disk_bytes_max).then(|| format!("stopped at {} MiB on disk", used >> 20))
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
        assert_eq!(exceeded(time, 6).unwrap(), "stopped at the time limit of 6 s");
        let memory = Limits { memory_bytes: Some(1 << 20), ..Limits::default() };
        assert!(exceeded(memory, 0).unwrap().ends_with("MiB of memory"));
        let disk = Limits { disk_bytes: Some(100), ..Limits::default() };
        assert!(exceeded(disk, 0).unwrap().ends_with("MiB on disk"));
        let gone = Observed { pid: Some(u32::MAX), ..Observed::default() };
        assert!(time.exceeded(Duration::ZERO, &gone, WithDisk::No).unwrap().contains("gone"));
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
