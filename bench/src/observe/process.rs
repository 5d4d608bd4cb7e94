//! One process in `/proc`: times, memory, bytes read and written.

use anyhow::{Context, Result};
use std::fs;

/// `/proc/PID/stat` counts in hundredths of a second on every Linux we build for (`USER_HZ`).
pub(super) const TICKS_PER_SECOND: f64 = 100.0;

/// What a process has used since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ProcessUse {
    /// CPU time in user mode and in the kernel, all threads.
    pub cpu_seconds: f64,
    /// Resident memory now.
    pub rss_bytes: u64,
    /// Largest resident memory ever.
    pub rss_peak_bytes: u64,
    /// Of the resident memory, what is mapped from files and can be dropped.
    pub rss_file_bytes: u64,
    /// Bytes that came from the disk.
    pub read_bytes: u64,
    /// Bytes that were written towards the disk.
    pub write_bytes: u64,
}

/// Reads all figures of `pid`.
///
/// # Errors
/// When the process is gone.
pub fn read(pid: u32) -> Result<ProcessUse> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    // Not readable for processes of other users: then zero.
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    Ok(ProcessUse {
        cpu_seconds: parse_cpu_ticks(&stat).context("malformed stat")? as f64 / TICKS_PER_SECOND,
        rss_bytes: number_after(&status, "VmRSS:") * 1024,
        rss_peak_bytes: number_after(&status, "VmHWM:") * 1024,
        rss_file_bytes: number_after(&status, "RssFile:") * 1024,
        read_bytes: number_after(&io, "read_bytes:"),
        write_bytes: number_after(&io, "write_bytes:"),
    })
}

/// Lets the largest resident memory of `pid` count from now on.
///
/// # Errors
/// When the process is gone or not ours.
pub fn forget_peak(pid: u32) -> Result<()> {
    let path = format!("/proc/{pid}/clear_refs");
    fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
}

/// utime + stime. The command's name, in parentheses, may hold anything: fields count from its end.
fn parse_cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// The first number of the line that starts with `key`; 0 when there is none.
pub(super) fn number_after(text: &str, key: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(key))
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_any_name() {
        let stat = "12 (a ) (b 1 2) S 1 12 12 0 -1 4194560 9 8 7 6 150 50 3 4 20 0 1 0 99";
        assert_eq!(parse_cpu_ticks(stat), Some(200));
        assert_eq!(parse_cpu_ticks("12"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let used = read(std::process::id()).unwrap();
        assert!(used.rss_bytes > 100_000 && used.rss_peak_bytes >= used.rss_bytes, "{used:?}");
        assert!(read(u32::MAX).is_err());
    }

    #[test]
    fn a_peak_is_forgotten() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "echo ready; read line"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        forget_peak(child.id()).unwrap();
        let used = read(child.id()).unwrap();
        assert!(used.rss_peak_bytes > 0, "{used:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(forget_peak(u32::MAX).is_err());
    }
}
