//! SplitMix64: random numbers from a seed, always the same. Used by tests, the fuzzer, the simulated
//! disk, generators of benchmark data, commands on keys that pick at random, and `math.random` of
//! scripts.
//!
//! A test that draws prints its seed, and `SEED=n` in the environment replays it. Nothing here may
//! keep a secret: whoever sees one number knows all that follow.

use std::collections::HashSet;

/// Distance between two counters of SplitMix64: the 64 bits of the golden ratio.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator. Its counter is the seed until a number is drawn.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// With the seed of the environment, else the given one; printed, so that a failure can be replayed.
    ///
    /// # Panics
    /// When `SEED` is no number.
    pub fn seeded(default: u64) -> Random {
        let seed = seed().unwrap_or(default);
        println!("SEED={seed}");
        Random(seed)
    }

    /// The next 64 bits.
    // Numbers without end are no iterator, which would have to wrap each in an Option.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number below `bound`.
    ///
    /// # Panics
    /// When `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number below `bound`, by multiplication. It differs from the number that [`Random::below`]
    /// draws; recorded data depends on both.
    #[inline]
    pub fn scaled(&mut self, bound: u64) -> u64 {
        below(self.next(), bound)
    }

    /// An index into a list of that length: [`Random::below`] in another type.
    ///
    /// # Panics
    /// When the list is empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of the given.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    /// `count` different numbers below `end`, in no order.
    ///
    /// # Panics
    /// When `count` is above `end`.
    pub fn distinct(&mut self, count: usize, end: usize) -> Vec<usize> {
        assert!(count <= end, "cannot pick {count} different numbers below {end}");
        if end < count.saturating_mul(3) {
            // A partial shuffle of all numbers, when most of them are picked.
            let mut all: Vec<usize> = (0..end).collect();
            for at in 0..count {
                let other = at + self.index(end - at);
                all.swap(at, other);
            }
            all.truncate(count);
            return all;
        }
        let mut seen = HashSet::with_capacity(count);
        let mut picked = Vec::with_capacity(count);
        while picked.len() < count {
            let at = self.index(end);
            if seen.insert(at) {
                picked.push(at);
            }
        }
        picked
    }
}

/// Maps 64 random bits to `0..bound`, by multiplication instead of division.
#[inline]
pub fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

/// Scrambles 64 bits: close inputs give unrelated outputs, but 0 stays 0. What SplitMix64 makes of its
/// counter, and for those who draw by where a thing stands, not in an order.
#[inline]
pub fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The seed of the environment, `SEED`.
///
/// # Panics
/// When it is no number: a run with another seed would replay nothing.
pub fn seed() -> Option<u64> {
    let text = std::env::var("SEED").ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("SEED is a number, not {text:?}")))
}

/// The seeds of a test that runs once for each: that of the environment alone, else the given ones.
///
/// # Panics
/// When `SEED` is no number.
pub fn seeds(default: impl IntoIterator<Item = u64>) -> Vec<u64> {
    seed().map_or_else(|| default.into_iter().collect(), |seed| vec![seed])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other numbers would be other cases in every test that draws. These five are those that every
    /// implementation of SplitMix64 gives for this seed.
    #[test]
    fn the_numbers_of_a_seed_stay_the_same() {
        let mut random = Random(1_234_567);
        let numbers = [(); 5].map(|()| random.next());
        let known = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(numbers, known);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut random = Random(1);
        let mut seen = [0; 7];
        for _ in 0..1000 {
            seen[random.below(7) as usize] += 1;
            seen[random.index(7)] += 1;
            seen[*random.pick(&[0, 1, 2, 3, 4, 5, 6])] += 1;
        }
        assert!(seen.iter().all(|count| (300..600).contains(count)), "{seen:?}");
    }
    #[test]
    fn distinct_numbers_are_different_and_below_their_end() {
        let mut random = Random(7);
        for (count, end) in [(0, 0), (1, 1), (3, 100), (60, 100), (100, 100)] {
            let mut picked = random.distinct(count, end);
            picked.sort_unstable();
            picked.dedup();
            assert_eq!(picked.len(), count);
            assert!(picked.iter().all(|at| *at < end));
        }
    }

    #[test]
    fn scaled_numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut random = Random(7);
        let mut counts = [0; 10];
        (0..10_000).for_each(|_| counts[random.scaled(10) as usize] += 1);
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
