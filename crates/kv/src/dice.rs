//! Random numbers for picks that need no secrecy: SplitMix64.

/// A generator.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// One that starts there: the same start gives the same numbers.
    pub fn new(start: u64) -> Dice {
        Dice(start)
    }

    /// The next number, of any 64 bits.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is above 0.
    pub fn below(&mut self, end: usize) -> usize {
        assert!(0 < end, "there is nothing to pick from");
        // The high half of the product: as even as 64 bits allow.
        let wide = u128::from(self.throw()) * end as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// `count` different numbers below `end`, in no order; `count` is not above `end`.
    pub fn distinct(&mut self, count: usize, end: usize) -> Vec<usize> {
        assert!(count <= end, "not so many are there");
        if end < count.saturating_mul(3) {
            // Most are picked: mix all, and take the first ones.
            let mut all: Vec<usize> = (0..end).collect();
            for at in 0..count {
                let other = at + self.below(end - at);
                all.swap(at, other);
            }
            all.truncate(count);
            return all;
        }
        let mut seen = std::collections::HashSet::with_capacity(count);
        let mut picked = Vec::with_capacity(count);
        while picked.len() < count {
            let at = self.below(end);
            if seen.insert(at) {
                picked.push(at);
            }
        }
        picked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_are_different_and_below_the_end() {
        let mut dice = Dice::new(7);
        for (count, end) in [(0, 0), (1, 1), (3, 100), (60, 100), (100, 100)] {
            let mut picked = dice.distinct(count, end);
            picked.sort_unstable();
            picked.dedup();
            assert_eq!(picked.len(), count);
            assert!(picked.iter().all(|at| *at < end));
        }
        let mut counts = [0; 10];
        (0..10_000).for_each(|_| counts[dice.below(10)] += 1);
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
