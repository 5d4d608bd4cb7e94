//! The values: each field is a random walk with N(0,1) steps clamped to 0..=100, truncated.
//!
//! The steps of a host at a row come from a hash of (seed, host, row), not from a stream, so a
//! walk is the same whichever worker owns the host.

use super::FIELDS;
use crate::random::{NORMAL_BITS, NormalTable, mix, mix_pair, unit};

/// A line's ten integers, each 0..=100.
pub type Values = [u8; FIELDS.len()];

/// The walks of a range of hosts.
pub struct Walks {
    seed: u64,
    host_start: u32,
    /// Where each field of each host stands.
    states: Vec<[f32; FIELDS.len()]>,
    normal: NormalTable,
}

impl Walks {
    /// All walks at their uniformly drawn starts.
    pub fn new(hosts: std::ops::Range<u32>, seed: u64) -> Walks {
        let start = |host: u32, field: usize| {
            (unit(mix_pair(seed ^ 0x57a7 << 48, u64::from(host) << 8 | field as u64)) * 100.0)
                as f32
        };
        let seed = mix(seed);
        let host_start = hosts.start;
        let states = hosts.map(|host| std::array::from_fn(|field| start(host, field))).collect();
        Walks { seed, host_start, states, normal: NormalTable::default() }
    }

    /// The host's values at `row`; moves the walk on, so each row must be asked for once, in order.
    #[inline]
    pub fn next(&mut self, host: u32, row: u64) -> Values {
        let state = &mut self.states[(host - self.host_start) as usize];
        let values = std::array::from_fn(|field| state[field] as u8);
        // Two hashes give ten draws of 12 bits.
        let bits = mix_pair(self.seed ^ row, u64::from(host));
        let more_bits = mix(bits);
        for (field, position) in state.iter_mut().enumerate() {
            let bits = if field < 5 { bits } else { more_bits };
            let step = self.normal.step(bits >> (field as u32 % 5 * NORMAL_BITS));
            *position = (*position + step).clamp(0.0, 100.0);
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_stay_in_bounds_and_move_by_normal_steps() {
        let mut walks = Walks::new(10..20, 3);
        let mut previous: Option<Values> = None;
        let (mut squares, mut count, mut at_bound) = (0.0, 0.0, 0);
        for row in 0..20_000 {
            let values = walks.next(13, row);
            assert!(values.iter().all(|value| *value <= 100), "{values:?}");
            if let Some(previous) = previous {
                for (value, before) in values.iter().zip(previous) {
                    if (10..90).contains(value) {
                        squares += (f64::from(*value) - f64::from(before)).powi(2);
                        count += 1.0;
                    }
                    at_bound += u32::from(*value == 0 || *value == 100);
                }
            }
            previous = Some(values);
        }
        // Truncating two positions adds a variance of about 1/6 to that of the step.
        let variance = squares / count;
        assert!((1.1..1.25).contains(&variance), "variance {variance}");
        assert!(at_bound > 0, "never reached a bound");
    }

    #[test]
    fn a_walk_depends_on_seed_and_host_only() {
        let (mut all, mut half) = (Walks::new(0..10, 1), Walks::new(5..10, 1));
        let mut other_seed = Walks::new(0..10, 2);
        let mut differences = 0;
        for row in 0..100 {
            let values = all.next(7, row);
            assert_eq!(values, half.next(7, row));
            differences += u32::from(values != other_seed.next(7, row));
            all.next(6, row);
        }
        assert!(differences > 90);
    }
}
