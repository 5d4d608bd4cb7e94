//! What this process has used, from `/proc`.

use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// CPU time of this thread, so that neighbours on the machine do not count.
#[derive(Clone, Copy)]
pub struct CpuTime(Duration);

impl CpuTime {
    /// What the thread has used so far.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn of_this_thread() -> Result<CpuTime> {
        let text = fs::read_to_string("/proc/thread-self/schedstat")
            .context("CPU time comes from /proc/thread-self/schedstat")?;
        let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
        Ok(CpuTime(Duration::from_nanos(nanoseconds.context("a malformed schedstat")?)))
    }

    /// What the thread has used since then.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn elapsed(self) -> Result<Duration> {
        Ok(CpuTime::of_this_thread()?.0.saturating_sub(self.0))
    }
}

/// Resident memory of this process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Memory {
    /// All of it.
    pub rss_bytes: u64,
    /// Of it, what the process has allocated.
    pub rss_anonymous_bytes: u64,
    /// Of it, what is mapped from files and can be dropped.
    pub rss_file_bytes: u64,
    /// The most that `rss_bytes` ever was.
    pub rss_peak_bytes: u64,
}

impl Memory {
    /// What it is now.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn now() -> Result<Memory> {
        let status = fs::read_to_string("/proc/self/status")?;
        Memory::parse(&status).context("a malformed /proc/self/status")
    }

    fn parse(status: &str) -> Option<Memory> {
        let kilobytes = |key| {
            let rest = status.lines().find_map(|line| line.strip_prefix(key))?;
            rest.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        Some(Memory {
            rss_bytes: kilobytes("VmRSS:")? * 1024,
            rss_anonymous_bytes: kilobytes("RssAnon:")? * 1024,
            rss_file_bytes: kilobytes("RssFile:")? * 1024,
            rss_peak_bytes: kilobytes("VmHWM:")? * 1024,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_by_its_names() {
        let text = "Name:\tx\nVmHWM:\t 9 kB\nVmRSS:\t 7 kB\nRssAnon:\t4 kB\nRssFile:\t3 kB\n";
        let memory = Memory::parse(text).unwrap();
        assert_eq!((memory.rss_bytes, memory.rss_peak_bytes), (7 << 10, 9 << 10));
        assert_eq!((memory.rss_anonymous_bytes, memory.rss_file_bytes), (4 << 10, 3 << 10));
        assert_eq!(Memory::parse("VmRSS: 1 kB"), None);
        assert!(0 < Memory::now().unwrap().rss_bytes);
    }
}
