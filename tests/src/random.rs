//! Seeded random numbers: `SEED=... cargo test -p e2e` replays.

/// SplitMix64.
pub struct Random(u64);

impl Random {
    /// With the seed of the environment, else the given one; printed, so that a failure can be replayed.
    pub fn seeded(default: u64) -> Random {
        let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
        println!("SEED={seed}");
        Random(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }
}
