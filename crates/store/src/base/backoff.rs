//! When work that failed is tried again: later each time, so that a disk without room, or with rot,
//! is not written to each second.

use crate::base::locks::lock;
use std::sync::Mutex;
use std::time::Duration;

/// The first wait.
const FIRST: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST: Duration = Duration::from_secs(600);

/// When to try again; by a clock that never jumps.
#[derive(Debug, Default)]
pub struct Backoff {
    /// Until when, and how long that is; `None` after success.
    wait: Mutex<Option<(Duration, Duration)>>,
}

impl Backoff {
    /// Whether it is too early to try again.
    pub fn is_waiting(&self, elapsed: Duration) -> bool {
        lock(&self.wait).is_some_and(|(until, _)| elapsed < until)
    }

    /// Doubles the wait after a failure.
    pub fn note_failure(&self, elapsed: Duration) {
        let mut wait = lock(&self.wait);
        let length = wait.map_or(FIRST, |(_, length)| (2 * length).min(LONGEST));
        *wait = Some((elapsed + length, length));
    }

    /// Ends the waiting after success.
    pub fn note_success(&self) {
        *lock(&self.wait) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_doubles_the_wait() {
        let backoff = Backoff::default();
        let mut now = Duration::from_secs(5);
        assert!(!backoff.is_waiting(now));
        for length in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600] {
            backoff.note_failure(now);
            now += Duration::from_secs(length) - Duration::from_nanos(1);
            assert!(backoff.is_waiting(now), "{length}");
            now += Duration::from_nanos(1);
            assert!(!backoff.is_waiting(now), "{length}");
        }
        backoff.note_success();
        backoff.note_failure(now);
        assert!(!backoff.is_waiting(now + FIRST));
    }
}
