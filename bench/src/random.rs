//! Seeded randomness: hashes of positions, a stream of numbers, and a table of the normal law.
//!
//! Workloads draw by hashing *where* a value stands (seed, host, row), not from a stream, so the
//! same seed gives the same data whatever the number of workers and whoever sends which share.

/// The golden ratio's 64 bits: distance between the streams of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scrambles 64 bits; equal inputs give equal outputs, close inputs unrelated ones (SplitMix64).
#[inline]
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Scrambles two numbers into one.
#[inline]
pub fn mix_pair(first: u64, second: u64) -> u64 {
    mix(mix(first) ^ second.wrapping_mul(GOLDEN))
}

/// A number in `0..bound` from random bits, by multiplication instead of division.
#[inline]
pub fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

/// A number in `0.0..1.0` from random bits.
#[inline]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// A stream of random numbers, for what has no position: query parameters, kill moments.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of that seed.
    pub fn new(seed: u64) -> Random {
        Random { state: mix(seed) }
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// The next number in `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        below(self.next(), bound)
    }
}

/// Bits of one draw from [`NormalTable`].
pub const NORMAL_BITS: u32 = 12;
const NORMAL_STEPS: usize = 1 << NORMAL_BITS;

/// The normal law N(0,1) cut into 4,096 equally likely steps: 16 KiB, so it stays in the
/// first-level cache, and a draw is a load.
pub struct NormalTable {
    steps: Box<[f32; NORMAL_STEPS]>,
}

impl NormalTable {
    /// Integrates the density from -6 to 6 and notes where each quantile's middle is passed.
    pub fn new() -> NormalTable {
        const WIDTH: f64 = 1e-4;
        let mut steps = Box::new([0f32; NORMAL_STEPS]);
        let scale = WIDTH / std::f64::consts::TAU.sqrt();
        let (mut mass, mut idx) = (0.0, 0);
        for position in 0..120_000 {
            let x = -6.0 + (f64::from(position) + 0.5) * WIDTH;
            mass += (-x * x / 2.0).exp() * scale;
            while idx < NORMAL_STEPS && mass >= (idx as f64 + 0.5) / NORMAL_STEPS as f64 {
                steps[idx] = x as f32;
                idx += 1;
            }
        }
        assert!(idx == NORMAL_STEPS, "{idx} of {NORMAL_STEPS} quantiles found");
        NormalTable { steps }
    }

    /// The step that the low [`NORMAL_BITS`] of `bits` name.
    #[inline]
    pub fn step(&self, bits: u64) -> f32 {
        self.steps[bits as usize & (NORMAL_STEPS - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_table_has_mean_0_and_deviation_1() {
        let table = NormalTable::new();
        let count = NORMAL_STEPS as f64;
        let mean = table.steps.iter().map(|s| f64::from(*s)).sum::<f64>() / count;
        let variance = table.steps.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / count;
        assert!(mean.abs() < 0.001, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.01, "variance {variance}");
        assert!(table.steps.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn draws_cover_their_bounds() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[random.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
        assert!(unit(u64::MAX) < 1.0 && unit(0) == 0.0);
    }
}
