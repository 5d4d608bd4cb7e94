//! Logs: one line per event on standard error, and not too many about the same thing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tracing::Level;
use tracing_subscriber::fmt;

/// Starts logging at the level that the flag's word names; a second call changes nothing.
pub fn start(level: &str) {
    let level: Level = level.parse().unwrap_or(Level::INFO);
    let subscriber = fmt::Subscriber::builder()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .finish();
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Milliseconds between two lines about the same thing.
const LINE_PAUSE_MS: u64 = 60_000;

/// Says when it is time for another line about one thing, so that a flood of events is no flood of
/// lines.
#[derive(Debug, Default)]
pub struct Pace {
    /// When the last line was; 0 for never.
    told_at_ms: AtomicU64,
}

impl Pace {
    /// Nothing has been told.
    pub const fn new() -> Pace {
        Pace { told_at_ms: AtomicU64::new(0) }
    }

    /// Whether a line is due; to one of those who ask at the same time.
    pub fn is_due(&self, now_ms: u64) -> bool {
        let before = self.told_at_ms.load(Relaxed);
        let is_due = before == 0 || LINE_PAUSE_MS <= now_ms.saturating_sub(before);
        is_due && self.told_at_ms.compare_exchange(before, now_ms, Relaxed, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_lies_between_lines() {
        let pace = Pace::new();
        let due = [5, 6, 60_004, 60_005, 60_006, 200_000].map(|now_ms| pace.is_due(now_ms));
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
