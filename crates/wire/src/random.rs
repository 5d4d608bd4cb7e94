//! A small seeded generator for tests (splitmix64); `SEED=…` in the environment replays a run.

/// The generator's state.
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// Seeded by `SEED`, or always the same.
    pub fn new() -> Random {
        let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
        Random { state: seed.unwrap_or(0x5eed) }
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// One of the given.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}
