//! Seeded randomness: hashes of positions, streams of numbers, and a table of the normal law.
//!
//! Workloads draw by hashing *where* a value stands (seed, host, row), not from a stream, so the
//! same seed gives the same data whatever the number of workers and whoever sends which share.

use rng::{GOLDEN, Random};

/// Scrambles 64 bits: equal inputs give equal outputs, close inputs unrelated ones. Unlike
/// [`rng::mix`] it does not map 0 to 0.
#[inline]
pub fn mix(value: u64) -> u64 {
    rng::mix(value.wrapping_add(GOLDEN))
}

/// Scrambles two numbers into one.
#[inline]
pub fn mix_pair(first: u64, second: u64) -> u64 {
    mix(mix(first) ^ second.wrapping_mul(GOLDEN))
}

/// A number in `0.0..1.0` from random bits.
#[inline]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// A stream of numbers for query parameters, which have no position. The seed is scrambled first,
/// so that streams of neighbouring seeds do not overlap.
pub fn stream(seed: u64) -> Random {
    Random(mix(seed).wrapping_add(GOLDEN))
}

/// Bits of one draw from [`NormalTable`].
pub const NORMAL_BITS: u32 = 12;
const NORMAL_STEPS: usize = 1 << NORMAL_BITS;

/// The normal law N(0,1) cut into 4,096 equally likely steps: 16 KiB, so it stays in the
/// first-level cache, and a draw is a load.
pub struct NormalTable {
    steps: Box<[f32; NORMAL_STEPS]>,
}

impl Default for NormalTable {
    /// Integrates the density from -6 to 6 and notes where each quantile's middle is passed.
    fn default() -> NormalTable {
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
}

impl NormalTable {
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
        let table = NormalTable::default();
        let count = NORMAL_STEPS as f64;
        let mean = table.steps.iter().map(|s| f64::from(*s)).sum::<f64>() / count;
        let variance = table.steps.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / count;
        assert!(mean.abs() < 0.001, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.01, "variance {variance}");
        assert!(table.steps.windows(2).all(|pair| pair[0] < pair[1]));
    }

    /// Other numbers would be other queries for the seeds of recorded runs.
    #[test]
    fn numbers_of_a_stream_stay_the_same() {
        let mut random = stream(1);
        let numbers = [(); 3].map(|()| random.next());
        assert_eq!(
            numbers,
            [17_405_687_883_870_564_846, 834_844_254_806_117_752, 14_341_179_868_655_528_873]
        );
        assert!(unit(u64::MAX) < 1.0 && unit(0) == 0.0);
    }
}
