//! How much memory Quipu may use, and how much it does.
//!
//! What counts is memory of our own; pages of mapped files are the system's, which takes them back
//! as it likes.
//!
//! ```text
//! 0 ───────────────── 80 % ──────────────── 92 % ──── 100 % of memory-limit
//!        calm         │        tight        │   full
//!                     │ caches shrink, the  │ new series are refused,
//!                     │ head is flushed     │ queries get what is left
//! ```

use cli::quantity::{format_size, parse_size};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// From this share of the limit on caches shrink.
const TIGHT_PERCENT: u64 = 80;
/// From this share on no new series is taken.
const FULL_PERCENT: u64 = 92;
/// The least that a query may hold, however tight it is: what is short should be answered.
const QUERY_BYTES_MIN: u64 = 8 << 20;
/// Bytes of a page, as `/proc/self/statm` counts. Linux' on all machines that Quipu is built for.
const PAGE_SIZE: u64 = 4096;

/// How near the limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    /// There is room.
    Calm,
    /// Caches must go.
    Tight,
    /// Nothing may grow.
    Full,
}

/// The limit, and what was used when somebody last looked.
pub struct Memory {
    limit: u64,
    used: AtomicU64,
    /// Number of measurements.
    looks: AtomicU64,
}

impl Memory {
    /// A gauge with this limit in bytes.
    pub fn new(limit: u64) -> Memory {
        Memory { limit, used: AtomicU64::new(0), looks: AtomicU64::new(0) }
    }

    /// The limit, bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// What was used when somebody last looked, bytes.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Notes what is used; `ahead` is what the next growth of a table will need at once.
    pub fn note(&self, used: u64, ahead: u64) -> Pressure {
        self.used.store(used, Relaxed);
        self.looks.fetch_add(1, Relaxed);
        let percent = |share: u64| self.limit / 100 * share;
        match used {
            used if percent(FULL_PERCENT) <= used.saturating_add(ahead) => Pressure::Full,
            used if percent(TIGHT_PERCENT) <= used => Pressure::Tight,
            _ => Pressure::Calm,
        }
    }

    /// The number of the last look, and the bytes that were left then; none without a limit. Before
    /// the first look all are left.
    pub fn left(&self) -> Option<(u64, u64)> {
        let look = self.looks.load(Relaxed);
        let full = self.limit / 100 * FULL_PERCENT;
        (self.limit != u64::MAX).then(|| (look, full.saturating_sub(self.used())))
    }

    /// What each of so many queries may hold beside the others.
    pub fn share_of_query(&self, queries_max: usize) -> u64 {
        let left = self.limit.saturating_sub(self.used.load(Relaxed));
        (left / queries_max.max(1) as u64).max(QUERY_BYTES_MIN)
    }

    /// Why no new series is taken under [`Pressure::Full`].
    pub fn refusal(&self) -> String {
        let (used, limit) = (self.used.load(Relaxed), self.limit);
        format!(
            "new series refused: {} of memory are in use and the limit is {} (memory-limit); send \
             fewer series, or raise --memory-limit",
            format_size(used),
            format_size(limit)
        )
    }
}

/// Bytes from text such as `60%` (of what the machine or its cgroup has) or `4GiB`; 0 is no limit.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_limit(text: &str, available: u64) -> Result<u64, String> {
    let limit = match text.trim().strip_suffix('%') {
        None => parse_size(text)?,
        Some(percent) => match percent.trim().parse::<u64>() {
            // A small machine is no reason not to start.
            Ok(percent @ 1..=100) => (available / 100 * percent).max(LIMIT_MIN),
            _ => return Err(format!("{text:?} is no share; write it like 60%")),
        },
    };
    match limit {
        0 => Ok(u64::MAX),
        limit if limit < LIMIT_MIN => {
            let (limit, min) = (format_size(limit), format_size(LIMIT_MIN));
            Err(format!("{limit} are not enough, the least is {min}"))
        }
        limit => Ok(limit),
    }
}

/// With less than this not even the buffers of a few requests fit.
const LIMIT_MIN: u64 = 128 << 20;

/// Bytes of memory that the machine has, or the cgroup of this process if that has less.
pub fn available() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let machine = machine_bytes(&read("/proc/meminfo"));
    let cgroup = cgroup_files(&read("/proc/self/cgroup"));
    let cgroup = cgroup.iter().filter_map(|path| read(path).trim().parse::<u64>().ok()).min();
    machine.into_iter().chain(cgroup).min().unwrap_or(u64::MAX)
}

fn machine_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Files that may hold a limit, from the process' own cgroup up to the root: version 2, then 1.
fn cgroup_files(own: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            files.push(format!("{root}{path}/{file}"));
            let Some((parent, _)) = path.rsplit_once('/') else { break };
            path = parent;
        }
    }
    files
}

/// Bytes of memory of our own that are in RAM; `None` where the system does not tell.
pub fn used() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split_whitespace().skip(1).map(str::parse::<u64>);
    let (resident, of_files) = (pages.next()?.ok()?, pages.next()?.ok()?);
    Some(resident.saturating_sub(of_files) * PAGE_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_sizes_or_shares() {
        assert_eq!(parse_limit("60%", 1000 << 20), Ok((1000 << 20) / 100 * 60));
        assert_eq!(parse_limit("4GiB", 1), Ok(4 << 30));
        assert_eq!(parse_limit("0", 1), Ok(u64::MAX));
        assert_eq!(parse_limit("60%", 64 << 20), Ok(LIMIT_MIN), "small machines start, too");
        for bad in ["0%", "101%", "x%", "10MiB", "many"] {
            assert!(parse_limit(bad, 1 << 30).is_err(), "{bad}");
        }
    }

    #[test]
    fn pressure_rises_with_use_and_with_what_is_ahead() {
        let memory = Memory::new(1000);
        assert_eq!(memory.note(799, 100), Pressure::Calm);
        assert_eq!(memory.note(800, 0), Pressure::Tight);
        assert_eq!(memory.note(100, 820), Pressure::Full);
        assert_eq!(memory.note(920, 0), Pressure::Full);
        assert!(memory.refusal().contains("920 B of memory are in use and the limit is 1000 B"));
        assert_eq!(Memory::new(u64::MAX).note(1 << 40, 0), Pressure::Calm);
    }

    #[test]
    fn queries_share_what_is_left() {
        let memory = Memory::new(1 << 30);
        memory.note(512 << 20, 0);
        assert_eq!(memory.share_of_query(4), 128 << 20);
        memory.note(2 << 30, 0);
        assert_eq!(memory.share_of_query(4), QUERY_BYTES_MIN);
    }

    #[test]
    fn the_cgroups_above_count_too() {
        let files = cgroup_files("0::/a/b\n");
        assert_eq!(
            files,
            [
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        let files = cgroup_files("5:cpu,memory:/c\n1:name=systemd:/d\n");
        assert_eq!(files[0], "/sys/fs/cgroup/memory/c/memory.limit_in_bytes");
        assert_eq!(files.len(), 2);
        assert_eq!(machine_bytes("MemFree: 1 kB\nMemTotal:   2048 kB\n"), Some(2 << 20));
        assert!(used().is_none_or(|bytes| 0 < bytes));
    }
}
