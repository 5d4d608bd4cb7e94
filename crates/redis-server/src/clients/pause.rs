//! Clients that wait for a while, because somebody said so.

/// Which commands wait, until when.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pause {
    /// Until when, in milliseconds since the epoch.
    pub until_ms: i64,
    /// Whether only those wait that may change something.
    pub is_of_writes: bool,
}

impl Pause {
    /// Whether it lasts.
    pub fn is_on(&self, now_ms: i64) -> bool {
        now_ms < self.until_ms
    }

    /// Waits longer, or for more.
    pub fn extend(&mut self, until_ms: i64, is_of_writes: bool, now_ms: i64) {
        let was_on = self.is_on(now_ms);
        self.is_of_writes = is_of_writes && (!was_on || self.is_of_writes);
        self.until_ms = if was_on { self.until_ms.max(until_ms) } else { until_ms };
    }
}
