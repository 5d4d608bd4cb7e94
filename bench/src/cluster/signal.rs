//! How values go: a pure function of a series' key and the row, cheap enough for every sample.
//!
//! Counters follow a day's rhythm and start anew with their object; gauges wander between knots;
//! a histogram's buckets share two counters, of fast and of slow answers, so that they grow
//! together and its quantiles move.

use super::Scale;
use super::objects::{Kind, Life, Owner, REPLICAS, owner_of, workload_of};
use crate::instant::SECOND_NS;
use crate::random::{mix_pair, unit};
use rng::below;
use std::f64::consts::TAU;

/// Rows between two knots of a gauge.
const KNOT_ROWS: i64 = 20;
const DAY_SECONDS: f64 = 86_400.0;
/// One of so many pods has containers that are restarted.
const UNSTABLE_PODS: u64 = 10;

/// What kind of values a series has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nature {
    /// Always the same.
    Constant(f64),
    /// The Unix time of the object's start.
    Born,
    /// Grows by so much a second on average, in multiples of the quantum.
    Counter { per_second: f64, quantum: f64 },
    /// Wanders around a level by so large a share of it, in multiples of the quantum.
    Gauge { level: f64, swing: f64, quantum: f64 },
    /// Free space: shrinks from most of the size to little, and is freed again.
    Draining { size: f64 },
    /// A histogram's answers that took `upper` seconds at most; without end, all of them.
    Bucket { histogram: u64, upper: f64, per_second: f64 },
    /// Seconds that a histogram's answers took together.
    Sum { histogram: u64, per_second: f64 },
    /// Whether a pod is in that phase: pending, running, succeeded, failed, unknown.
    Phase(u64),
    /// Whether a pod is ready; with `false` whether it is not.
    Ready(bool),
    /// How often a pod's container was restarted.
    Restarts,
    /// Whether the object can be scraped.
    Up,
    /// Replicas that are there: all, or one less.
    Replicas,
}

/// Seconds that a typical fast and a typical slow answer take.
const TYPICAL_SECONDS: [f64; 2] = [0.02, 0.6];
/// Shares of the two among all answers.
const SHARES: [f64; 2] = [0.93, 0.07];

/// A series' values.
pub struct Signal<'a> {
    scale: &'a Scale,
    slot: (Kind, u64),
    nature: Nature,
    key: u64,
    counters: [Counter; 2],
    /// What part of each counter's answers a bucket holds.
    parts: [f64; 2],
}

impl<'a> Signal<'a> {
    /// The values of series `spec_idx` of an object's inhabitant.
    pub fn new(
        nature: Nature,
        spec_idx: usize,
        slot: (Kind, u64, u64),
        scale: &'a Scale,
    ) -> Signal<'a> {
        let (kind, idx, generation) = slot;
        let object = mix_pair(kind.bits(idx, scale), generation);
        let key = match nature {
            Nature::Bucket { histogram, .. } | Nature::Sum { histogram, .. } => {
                mix_pair(object, (1 << 32) + histogram)
            }
            _ => mix_pair(object, spec_idx as u64),
        };
        let busy = (4.6 * (unit(mix_pair(key, 1)) - 0.5)).exp();
        let (rate, quantum) = match nature {
            Nature::Counter { per_second, quantum } => (per_second * busy, quantum),
            Nature::Bucket { per_second, .. } | Nature::Sum { per_second, .. } => {
                (per_second * busy, 1.0)
            }
            _ => (0.0, 1.0),
        };
        let slowness = 0.5 + unit(mix_pair(key, 2));
        let part = |typical: f64| match nature {
            Nature::Bucket { upper, .. } => 1.0 - (-(upper / (typical * slowness)).powf(0.8)).exp(),
            Nature::Sum { .. } => typical * slowness,
            _ => 1.0,
        };
        let is_split = matches!(nature, Nature::Bucket { .. } | Nature::Sum { .. });
        let shares = if is_split { SHARES } else { [1.0, 0.0] };
        let counter = |n: usize| Counter {
            key: mix_pair(key, 10 + n as u64),
            per_second: rate * shares[n],
            quantum,
        };
        Signal {
            scale,
            slot: (kind, idx),
            nature,
            key,
            counters: [counter(0), counter(1)],
            parts: TYPICAL_SECONDS.map(part),
        }
    }

    /// The value in a row of which `life` is; `None` while the object is away.
    pub fn at(&self, row: i64, life: Option<Life>) -> f64 {
        let born_row = life.map_or(row, |life| life.born_row);
        let reset_row = self.last_restart(row, born_row).1;
        match self.nature {
            Nature::Constant(value) => value,
            Nature::Born => self.seconds(born_row).floor(),
            Nature::Counter { .. } => self.counters[0].at(row, reset_row, self.scale),
            Nature::Gauge { level, swing, quantum } => self.wander(row, level, swing, quantum),
            Nature::Draining { size } => self.drain(row, size),
            Nature::Bucket { .. } => {
                let counts = [0, 1].map(|n| {
                    (self.counters[n].at(row, reset_row, self.scale) * self.parts[n]).floor()
                });
                counts[0] + counts[1]
            }
            Nature::Sum { .. } => {
                let sums =
                    [0, 1].map(|n| self.counters[n].at(row, reset_row, self.scale) * self.parts[n]);
                round_down(sums[0] + sums[1], 1e-6)
            }
            Nature::Phase(phase) => f64::from(self.phase(row, born_row) == phase),
            Nature::Ready(wanted) => f64::from(self.is_ready(row, born_row) == wanted),
            Nature::Restarts => self.last_restart(row, born_row).0 as f64,
            Nature::Up => f64::from(life.is_some()),
            Nature::Replicas => {
                REPLICAS as f64 - f64::from(mix_pair(self.key, row as u64 / 12).is_multiple_of(25))
            }
        }
    }

    /// How often the object's processes were restarted since it was born, and in which row at last.
    fn last_restart(&self, row: i64, born_row: i64) -> (i64, i64) {
        let (kind, idx) = self.slot;
        let bits = mix_pair(kind.bits(idx, self.scale), 77);
        if kind != Kind::Pod || !bits.is_multiple_of(UNSTABLE_PODS) {
            return (0, born_row);
        }
        let period = self.scale.hours(3 + below(bits, 15));
        let count = (row - born_row) / period;
        (count, born_row + count * period)
    }

    fn seconds(&self, row: i64) -> f64 {
        (self.scale.start_ns + row * self.scale.interval_ns) as f64 / SECOND_NS as f64
    }

    fn wander(&self, row: i64, level: f64, swing: f64, quantum: f64) -> f64 {
        let knot = |n: i64| unit(mix_pair(self.key, n as u64)) - 0.5;
        let (before, within) = (row.div_euclid(KNOT_ROWS), row.rem_euclid(KNOT_ROWS));
        let share = within as f64 / KNOT_ROWS as f64;
        let slow = knot(before) * (1.0 - share) + knot(before + 1) * share;
        let fast = unit(mix_pair(self.key, !(row as u64))) - 0.5;
        let own = 0.3 + 1.4 * unit(self.key);
        round_down(level * own * (1.0 + swing * (1.8 * slow + 0.2 * fast)), quantum)
    }

    fn drain(&self, row: i64, size: f64) -> f64 {
        let period = self.scale.hours(10 + below(self.key, 80));
        let position = (row + below(mix_pair(self.key, 1), period as u64) as i64) % period;
        let noise = 0.01 * unit(mix_pair(self.key, row as u64));
        round_down(size * (0.9 - 0.85 * position as f64 / period as f64 + noise), 4096.0)
    }

    fn phase(&self, row: i64, born_row: i64) -> u64 {
        let (kind, idx) = self.slot;
        let bits = mix_pair(kind.bits(idx, self.scale), born_row as u64);
        let age = row - born_row;
        let is_job = owner_of(workload_of(idx), self.scale) == Owner::Job;
        match bits % 400 {
            0 => 0,
            1 => 3,
            _ if age < 1 => 0,
            _ if is_job && age > self.scale.hours(1) / 2 => 2,
            _ => 1,
        }
    }

    fn is_ready(&self, row: i64, born_row: i64) -> bool {
        let (kind, idx) = self.slot;
        let bits = kind.bits(idx, self.scale);
        let is_flapping = mix_pair(bits, row as u64 / 6).is_multiple_of(150);
        self.phase(row, born_row) == 1 && row - born_row >= 2 && !is_flapping
    }
}

/// A count that grows with the hour of the day.
struct Counter {
    key: u64,
    per_second: f64,
    quantum: f64,
}

impl Counter {
    /// The count in a row when it began at 0 in `reset_row`.
    fn at(&self, row: i64, reset_row: i64, scale: &Scale) -> f64 {
        if self.per_second == 0.0 {
            return 0.0;
        }
        let interval_seconds = scale.interval_ns as f64 / SECOND_NS as f64;
        // The rate is (1 + sin / 2) of the average, so never below half of it.
        let busy_seconds = |row: i64| {
            let seconds = row as f64 * interval_seconds;
            let angle = TAU * (seconds / DAY_SECONDS + unit(self.key));
            seconds - 0.5 * DAY_SECONDS / TAU * angle.cos()
        };
        // Less than half an interval's growth, so that the count never falls.
        let noise = 0.4 * interval_seconds * unit(mix_pair(self.key, row as u64));
        let seconds = (busy_seconds(row) - busy_seconds(reset_row)).max(0.0) + noise;
        round_down(seconds * self.per_second, self.quantum)
    }
}

/// The largest multiple of `quantum` below; of fractions by division, so that it has few digits.
fn round_down(value: f64, quantum: f64) -> f64 {
    if quantum >= 1.0 {
        return (value / quantum).floor() * quantum;
    }
    let inverse = (1.0 / quantum).round();
    (value * inverse).floor() / inverse
}
