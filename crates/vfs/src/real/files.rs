//! How many files and sockets a process may have open.

use std::io;

/// Has the system allow as many open files as whoever set its hard limit lets this process have.
///
/// What a login or systemd allows at first, 1,024 on most, is as low as it is for programs that use
/// `select`; databases and their peers raise it by themselves.
#[allow(unsafe_code)]
pub(super) fn raise_open_files() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is room for one `rlimit`, which the call fills.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur == limit.rlim_max {
        return Ok(());
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is a valid `rlimit`, which the call reads.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_may_have_all_that_it_could() {
        super::raise_open_files().expect("the hard limit is allowed");
        let limits = std::fs::read_to_string("/proc/self/limits").expect("there is one");
        let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[3], words[4]);
    }
}
