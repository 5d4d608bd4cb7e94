//! What the door counts: commands by command, errors by their code, bytes, and how fast it goes.

pub mod latency;
pub mod metrics;
pub mod slow;

use crate::registry::registry;
use kv::keyspace::KvStats;
use std::collections::BTreeMap;

/// Codes of errors that are counted one by one; further ones only in all.
const ERROR_CODES_MAX: usize = 128;
/// Bounds of the buckets of times, in microseconds: each twice the one before it.
pub const BUCKETS: usize = 30;
/// The rates are those of so many milliseconds.
const RATE_SPAN_MS: i64 = 1000;

/// What is counted of a command.
#[derive(Clone, Debug, Default)]
pub struct CommandStats {
    /// How often it ran.
    pub calls: u64,
    /// How long in all, in microseconds.
    pub micros: u64,
    /// How often it was not let run.
    pub rejected: u64,
    /// How often it ran and answered an error.
    pub failed: u64,
    /// How often it took up to so long.
    pub buckets: [u64; BUCKETS],
    /// How often `buckets` was filled.
    pub tracked: u64,
}

/// Numbers at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    at_ms: i64,
    commands: u64,
    received: u64,
    sent: u64,
}

/// Commands and kilobytes in a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Commands.
    pub commands: u64,
    /// Kilobytes that came.
    pub received_kb: f64,
    /// Kilobytes that went.
    pub sent_kb: f64,
}

/// Everything that is counted.
pub struct Stats {
    /// By the number of the command.
    pub commands: Vec<CommandStats>,
    /// Errors by their code.
    pub errors: BTreeMap<String, u64>,
    /// Errors.
    pub error_count: u64,
    /// Commands executed.
    pub command_count: u64,
    /// Connections.
    pub connection_count: u64,
    /// Connections for which there was no room.
    pub rejected_count: u64,
    /// Bytes that clients sent.
    pub received: u64,
    /// Bytes that were sent to them.
    pub sent: u64,
    /// Reads and writes of sockets.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Refusals by the rules of users: commands, keys, channels, logins.
    pub refused: [u64; 4],
    /// What the keys had counted when the counters were last set back.
    pub keys_before: KvStats,
    /// The most memory that was seen in use.
    pub memory_peak: u64,
    last: Reading,
    before: Reading,
}

impl Default for Stats {
    fn default() -> Stats {
        Stats {
            commands: vec![CommandStats::default(); registry().all().len()],
            errors: BTreeMap::new(),
            error_count: 0,
            command_count: 0,
            connection_count: 0,
            rejected_count: 0,
            received: 0,
            sent: 0,
            reads: 0,
            writes: 0,
            refused: [0; 4],
            keys_before: KvStats::default(),
            memory_peak: 0,
            last: Reading::default(),
            before: Reading::default(),
        }
    }
}

impl Stats {
    /// Counts a command that ran.
    pub fn ran(&mut self, number: usize, micros: u64, tracks: bool) {
        let Some(stats) = self.commands.get_mut(number) else { return };
        stats.calls += 1;
        stats.micros += micros;
        if tracks {
            stats.buckets[bucket_of(micros)] += 1;
            stats.tracked += 1;
        }
    }

    /// Counts an answered error, whose text is given.
    pub fn error(&mut self, text: &[u8]) {
        self.error_count += 1;
        let code = text.split(|byte| *byte == b' ' || *byte == b'\r').next().unwrap_or_default();
        let code = String::from_utf8_lossy(code);
        if let Some(count) = self.errors.get_mut(&*code) {
            *count += 1;
        } else if self.errors.len() < ERROR_CODES_MAX {
            self.errors.insert(code.into_owned(), 1);
        }
    }

    /// Sets the counters back.
    pub fn reset(&mut self, keys: KvStats) {
        let peak = self.memory_peak;
        *self = Stats { keys_before: keys, memory_peak: peak, ..Stats::default() };
    }

    /// Takes a reading, if the last one is old.
    pub fn read(&mut self, now_ms: i64) {
        if RATE_SPAN_MS <= now_ms - self.last.at_ms {
            self.before = self.last;
            let (commands, received, sent) = (self.command_count, self.received, self.sent);
            self.last = Reading { at_ms: now_ms, commands, received, sent };
        }
    }

    /// How fast it goes.
    pub fn rates(&self, now_ms: i64) -> Rates {
        let span_s = (now_ms - self.before.at_ms).max(1) as f64 / 1000.0;
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / span_s;
        Rates {
            commands: rate(self.command_count, self.before.commands) as u64,
            received_kb: rate(self.received, self.before.received) / 1024.0,
            sent_kb: rate(self.sent, self.before.sent) / 1024.0,
        }
    }
}

fn bucket_of(micros: u64) -> usize {
    // The first one is up to 1, the second up to 2, then 4, 8, ...
    let bits = 64 - micros.max(1).saturating_sub(1).leading_zeros() as usize;
    bits.min(BUCKETS - 1)
}

/// Buckets of [`CommandStats::histogram`]: each fourth power of two, up to 16.8 s.
const HISTOGRAM_STEP: usize = 2;
const HISTOGRAM_END: usize = 25;

/// The upper bound of a bucket as it is shown, in microseconds: a power of two of 1,024 nanoseconds.
pub fn bound_of(bucket: usize) -> u64 {
    (1u64 << bucket) * 1024 / 1000
}

impl CommandStats {
    /// Commands by time, as upper bounds in seconds and commands in each bucket, not cumulative.
    pub fn histogram(&self) -> impl Iterator<Item = (f64, u64)> {
        (0..HISTOGRAM_END).step_by(HISTOGRAM_STEP).map(|bucket| {
            let first = bucket.saturating_sub(HISTOGRAM_STEP - 1);
            let count = self.buckets[first..=bucket].iter().sum();
            ((1u64 << bucket) as f64 / 1e6, count)
        })
    }

    /// A share of the times is up to that, in microseconds.
    pub fn percentile(&self, share: f64) -> f64 {
        let wanted = (self.tracked as f64 * share / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if wanted <= seen {
                return (1u64 << bucket) as f64 * 1.003;
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_buckets() {
        for (micros, bucket) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 40, 29)] {
            assert_eq!(bucket_of(micros), bucket, "{micros}");
        }
    }

    #[test]
    fn the_histogram_has_every_bucket_once() {
        let mut stats = Stats::default();
        for micros in [0, 1, 2, 4, 5, 16, 17, 1 << 24, (1 << 24) + 1] {
            stats.ran(0, micros, true);
        }
        let buckets: Vec<(f64, u64)> = stats.commands[0].histogram().collect();
        assert_eq!(buckets[..3], [(1e-6, 2), (4e-6, 2), (16e-6, 2)]);
        assert_eq!(buckets[3], (64e-6, 1));
        assert_eq!(buckets.last(), Some(&(16.777_216, 1)));
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 8, "one is above all");
    }

    #[test]
    fn errors_are_counted_by_code() {
        let mut stats = Stats::default();
        stats.error(b"WRONGTYPE Operation\r\n");
        stats.error(b"ERR x\r\n");
        stats.error(b"ERR\r\n");
        assert_eq!(stats.errors.get("ERR"), Some(&2));
        assert_eq!((stats.errors.len(), stats.error_count), (2, 3));
    }
}
