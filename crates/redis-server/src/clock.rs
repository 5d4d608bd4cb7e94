//! The time of commands: read once when a connection gets the keys, then advanced by the monotonic
//! clock that times each command anyway.

use std::time::Instant;

const NANOS_PER_MILLI: i64 = 1_000_000;

/// The wall clock at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall_ns: i64,
    at: Instant,
}

impl Clock {
    /// The wall clock, which has that time now.
    pub fn new(wall_ns: i64) -> Clock {
        Clock { wall_ns, at: Instant::now() }
    }

    /// The time at which it was read, in milliseconds since the epoch.
    pub fn start_ms(&self) -> i64 {
        self.wall_ns / NANOS_PER_MILLI
    }

    /// The time at a moment that is not before this one, in milliseconds since the epoch.
    #[inline]
    pub fn ms_at(&self, moment: Instant) -> i64 {
        let passed = moment.saturating_duration_since(self.at).as_nanos();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        self.wall_ns.saturating_add(passed) / NANOS_PER_MILLI
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn time_passes_with_the_monotonic_clock() {
        let clock = Clock::new(5_900_000);
        assert_eq!(clock.ms_at(clock.at), 5);
        assert_eq!(clock.ms_at(clock.at + Duration::from_micros(100)), 6);
        assert_eq!(clock.ms_at(clock.at + Duration::from_secs(2)), 2005);
    }
}
