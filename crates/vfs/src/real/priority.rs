//! How eagerly a thread takes a core.

/// How far a thread that gives way stands back, on the scale from 0 to 19 of `nice`: it gets a tenth
/// of a core that others want as well, so that nobody waits for ever for what it holds.
const NICENESS: i32 = 10;

/// Has the calling thread give way to others where both want a core, as far as the system lets it.
/// For work that has time while clients wait for theirs.
#[allow(unsafe_code)]
pub fn give_way() {
    // On Linux what is said of process 0 is true of the calling thread alone.
    #[cfg(target_os = "linux")]
    // SAFETY: a system call on three numbers, which touches no memory of this process.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;

    /// The niceness of a thread, by field 19 of its `stat`.
    fn niceness(path: &str) -> i32 {
        let stat = fs::read_to_string(path).expect("Linux has it");
        let behind_name = stat.rsplit(") ").next().expect("a name in brackets");
        behind_name.split(' ').nth(16).and_then(|text| text.parse().ok()).expect("a number")
    }

    #[test]
    fn one_thread_alone_gives_way() {
        let before = niceness("/proc/thread-self/stat");
        let after = std::thread::spawn(|| {
            give_way();
            niceness("/proc/thread-self/stat")
        });
        assert_eq!(after.join().expect("no panic"), NICENESS.max(before));
        assert_eq!(niceness("/proc/thread-self/stat"), before);
    }
}
