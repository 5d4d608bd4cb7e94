//! Events that took long, as `LATENCY` shows them: of each kind the last ones, one a second.

use std::collections::{BTreeMap, VecDeque};

/// Times that are kept of a kind of events.
const TIMES_MAX: usize = 160;

/// Events of a kind.
#[derive(Debug, Default)]
pub struct Spikes {
    /// When, in seconds since the epoch, and how long, in milliseconds; the oldest one first.
    pub times: VecDeque<(i64, u64)>,
    /// The longest one.
    pub longest_ms: u64,
}

/// Events by kind.
#[derive(Debug, Default)]
pub struct Latency {
    /// By name.
    pub events: BTreeMap<&'static str, Spikes>,
}

impl Latency {
    /// Keeps an event.
    pub fn note(&mut self, name: &'static str, at_s: i64, ms: u64) {
        let spikes = self.events.entry(name).or_default();
        spikes.longest_ms = spikes.longest_ms.max(ms);
        match spikes.times.back_mut() {
            Some((last_s, last_ms)) if *last_s == at_s => *last_ms = (*last_ms).max(ms),
            _ => spikes.times.push_back((at_s, ms)),
        }
        if TIMES_MAX < spikes.times.len() {
            spikes.times.pop_front();
        }
    }
}
