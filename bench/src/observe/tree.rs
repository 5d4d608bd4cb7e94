//! A server of several processes, as PostgreSQL is: the one that was started and its descendants.
//!
//! ```text
//! CPU     of each live process: utime + stime, and cutime + cstime: the children it saw the end of
//! I/O     the sum over live processes; the kernel adds a child's to its parent when it ends
//! memory  the sum of Pss: a page that n processes map counts 1/n in each, so shared ones count once
//! ```
//!
//! Pss makes the kernel walk the page tables, so it is looked at once a second at most, and the
//! peak is the largest that was seen.

use super::process::{ProcessUse, TICKS_PER_SECOND, number_after};
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Memory that was seen so recently is not looked at again.
const MEMORY_INTERVAL: Duration = Duration::from_secs(1);

/// What was seen of a tree's memory.
#[derive(Debug, Default)]
pub struct TreeMemory {
    /// The last look; guarded while one is made.
    seen: Mutex<Option<Seen>>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    pss_bytes: u64,
    pss_file_bytes: u64,
    peak_bytes: u64,
}

/// Reads all figures of `root` and its descendants. Those that end meanwhile are left out.
///
/// # Errors
/// When `root` is gone.
pub fn read(root: u32, memory: &TreeMemory) -> Result<ProcessUse> {
    let stats = stats();
    let root_stat = stats.get(&root).context("the process is gone")?;
    anyhow::ensure!(root_stat.state != 'Z', "the process has ended");
    let pids = with_descendants(root, &stats);
    let ticks: u64 = pids.iter().filter_map(|pid| stats.get(pid)).map(|stat| stat.ticks).sum();
    let (mut read_bytes, mut write_bytes) = (0, 0);
    for pid in &pids {
        let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        read_bytes += number_after(&io, "read_bytes:");
        write_bytes += number_after(&io, "write_bytes:");
    }
    let seen = memory.look(&pids);
    Ok(ProcessUse {
        cpu_seconds: ticks as f64 / TICKS_PER_SECOND,
        rss_bytes: seen.pss_bytes,
        rss_peak_bytes: seen.peak_bytes,
        rss_file_bytes: seen.pss_file_bytes,
        read_bytes,
        write_bytes,
    })
}

impl TreeMemory {
    fn look(&self, pids: &[u32]) -> Seen {
        let mut guard = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = guard.filter(|seen| seen.at.elapsed() < MEMORY_INTERVAL) {
            return seen;
        }
        let (mut pss_bytes, mut pss_file_bytes) = (0, 0);
        for pid in pids {
            let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
            let rollup = rollup.unwrap_or_default();
            pss_bytes += number_after(&rollup, "Pss:") * 1024;
            pss_file_bytes += number_after(&rollup, "Pss_File:") * 1024;
        }
        let peak_bytes = guard.map_or(0, |seen| seen.peak_bytes).max(pss_bytes);
        let seen = Seen { at: Instant::now(), pss_bytes, pss_file_bytes, peak_bytes };
        *guard = Some(seen);
        seen
    }
}

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, PartialEq)]
struct Stat {
    state: char,
    parent: u32,
    /// Its own time and that of its ended children.
    ticks: u64,
}

/// All processes of the machine, by pid.
fn stats() -> HashMap<u32, Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parse_stat(&stat)?))
        })
        .collect()
}

/// State, parent, and four times. The command's name, in parentheses, may hold anything: fields
/// count from its end.
fn parse_stat(stat: &str) -> Option<Stat> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let times = fields.skip(9).take(4).map(|field| field.parse::<u64>().ok());
    let times = times.collect::<Option<Vec<_>>>().filter(|times| times.len() == 4)?;
    Some(Stat { state, parent, ticks: times.iter().sum() })
}

fn with_descendants(root: u32, stats: &HashMap<u32, Stat>) -> Vec<u32> {
    let mut found = vec![root];
    let mut looked_at = 0;
    while let Some(&parent) = found.get(looked_at) {
        let children = stats.iter().filter(|(pid, stat)| stat.parent == parent && **pid != parent);
        found.extend(children.map(|(pid, _)| *pid));
        looked_at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn times_of_ended_children_count() {
        let stat = "12 (a ) (b 1 2) S 7 12 12 0 -1 4194560 9 8 7 6 150 50 3 4 20 0 1 0 99";
        assert_eq!(parse_stat(stat), Some(Stat { state: 'S', parent: 7, ticks: 207 }));
        assert_eq!(parse_stat("12 (a) S 7 12 12 0 -1 4194560 9 8 7 6 150 50"), None);
        assert_eq!(parse_stat("12"), None);
    }

    #[test]
    fn descendants_are_those_below() {
        let stat = |parent| Stat { state: 'S', parent, ticks: 0 };
        let stats =
            HashMap::from([(1, stat(0)), (5, stat(1)), (6, stat(5)), (7, stat(6)), (8, stat(1))]);
        let mut found = with_descendants(5, &stats);
        found.sort();
        assert_eq!(found, [5, 6, 7]);
    }

    #[test]
    fn a_child_counts_for_its_parent() {
        // The shell answers only when its child runs, and both end with their input.
        let mut shell = Command::new("sh")
            .args(["-c", "(echo ready; cat) | cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        shell.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        assert!(with_descendants(shell.id(), &stats()).len() >= 3);
        let memory = TreeMemory::default();
        let used = read(shell.id(), &memory).unwrap();
        assert!(used.rss_bytes > 0 && used.rss_peak_bytes >= used.rss_bytes, "{used:?}");
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(read(shell.id(), &memory).is_err());
    }
}
