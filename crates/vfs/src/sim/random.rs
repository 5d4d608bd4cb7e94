//! SplitMix64: a tiny stream of numbers from a seed.

/// A seeded stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct SplitMix {
    state: u64,
}

impl SplitMix {
    pub(super) fn new(seed: u64) -> SplitMix {
        SplitMix { state: seed }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `max`, both included.
    pub(super) fn up_to(&mut self, max: usize) -> usize {
        (self.next() % (max as u64 + 1)) as usize
    }
}
