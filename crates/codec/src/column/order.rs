//! Differences within a slot: a slot's first values, and the residues that are left to pack.
//!
//! ```text
//! order 0   values as they are
//! order 1   one first value a slot, then differences
//! order 2   one first value and one first difference a slot, then differences of differences
//! ```
//!
//! Everything wraps, so that no integer is out of reach.

/// How often neighbours are subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Levels: values that jump about a mean, or flags.
    Zero,
    /// Gauges that drift.
    One,
    /// Counters of a steady rate, and timestamps.
    Two,
}

impl Order {
    /// All orders, lowest first.
    pub const ALL: [Order; 3] = [Order::Zero, Order::One, Order::Two];

    /// The number in the stream's header.
    pub fn number(self) -> u8 {
        match self {
            Order::Zero => 0,
            Order::One => 1,
            Order::Two => 2,
        }
    }

    /// The order of a number from a stream's header.
    pub fn from_number(number: u8) -> Option<Order> {
        Order::ALL.get(usize::from(number)).copied()
    }

    /// How many first values (then first differences) and residues slots of these lens have.
    pub fn counts(self, lens: impl Iterator<Item = usize>) -> Counts {
        let mut counts = Counts::default();
        for len in lens {
            match self {
                Order::Zero => counts.residues += len,
                Order::One => {
                    counts.firsts += len.min(1);
                    counts.residues += len.saturating_sub(1);
                }
                Order::Two => {
                    counts.firsts += len.min(1);
                    counts.seconds += len.saturating_sub(1).min(1);
                    counts.residues += len.saturating_sub(2);
                }
            }
        }
        counts
    }
}

/// How long each part of a page is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// First values.
    pub firsts: usize,
    /// First differences.
    pub seconds: usize,
    /// What is left.
    pub residues: usize,
}

/// A group of slots taken apart. Buffers are reused from page to page.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// The first value of each slot that has one; none in order 0.
    pub firsts: Vec<i64>,
    /// The first difference of each slot that has one; only in order 2.
    pub seconds: Vec<i64>,
    /// The rest, slot after slot.
    pub residues: Vec<i64>,
}

impl Parts {
    /// Appends the parts of `ints`, which are slots of `lens`, to what is there.
    pub fn split(&mut self, ints: &[i64], lens: impl Iterator<Item = usize>, order: Order) {
        match order {
            Order::Zero => self.residues.extend_from_slice(ints),
            Order::One => self.split_once(ints, lens),
            Order::Two => self.split_twice(ints, lens),
        }
    }

    fn split_once(&mut self, mut ints: &[i64], lens: impl Iterator<Item = usize>) {
        let start = self.residues.len();
        self.residues.resize(start + ints.len(), 0);
        let mut residues = &mut self.residues[start..];
        for len in lens.filter(|&len| 0 < len) {
            let (slot, rest) = ints.split_at(len);
            let (deltas, spare) = residues.split_at_mut(len - 1);
            (ints, residues) = (rest, spare);
            self.firsts.push(slot[0]);
            for (delta, pair) in deltas.iter_mut().zip(slot.windows(2)) {
                *delta = pair[1].wrapping_sub(pair[0]);
            }
        }
        let spare = residues.len();
        self.residues.truncate(self.residues.len() - spare);
    }

    fn split_twice(&mut self, mut ints: &[i64], lens: impl Iterator<Item = usize>) {
        for len in lens.filter(|&len| 0 < len) {
            let (slot, rest) = ints.split_at(len);
            ints = rest;
            self.firsts.push(slot[0]);
            if let [first, second, ..] = slot {
                self.seconds.push(second.wrapping_sub(*first));
            }
            let bend = |three: &[i64]| {
                let before = three[1].wrapping_sub(three[0]);
                three[2].wrapping_sub(three[1]).wrapping_sub(before)
            };
            self.residues.extend(slot.windows(3).map(bend));
        }
    }
}

/// Appends the integers of some of a page's slots, of `lens`, to `out`.
/// `firsts`, `seconds` and `residues` start at the first of those slots and may go on beyond.
pub fn join(
    parts: (&[i64], &[i64], &[i64]),
    lens: impl Iterator<Item = usize>,
    order: Order,
    out: &mut Vec<i64>,
) {
    match order {
        Order::Zero => out.extend_from_slice(&parts.2[..lens.sum()]),
        Order::One => join_once(parts.0, parts.2, lens, out),
        Order::Two => join_twice(parts, lens, out),
    }
}

fn join_once(
    firsts: &[i64],
    mut residues: &[i64],
    lens: impl Iterator<Item = usize>,
    out: &mut Vec<i64>,
) {
    // Every first and every residue makes one integer.
    out.reserve(firsts.len() + residues.len());
    let mut firsts = firsts.iter();
    for len in lens.filter(|&len| 0 < len) {
        let (deltas, rest) = residues.split_at(len - 1);
        residues = rest;
        let mut value = firsts.next().copied().unwrap_or(0);
        out.push(value);
        out.extend(deltas.iter().map(|&delta| {
            value = value.wrapping_add(delta);
            value
        }));
    }
}

fn join_twice(
    (firsts, seconds, mut residues): (&[i64], &[i64], &[i64]),
    lens: impl Iterator<Item = usize>,
    out: &mut Vec<i64>,
) {
    let (mut firsts, mut seconds) = (firsts.iter(), seconds.iter());
    for len in lens.filter(|&len| 0 < len) {
        let mut value = firsts.next().copied().unwrap_or(0);
        out.push(value);
        if len == 1 {
            continue;
        }
        let mut delta = seconds.next().copied().unwrap_or(0);
        value = value.wrapping_add(delta);
        out.push(value);
        let (bends, rest) = residues.split_at(len - 2);
        residues = rest;
        out.extend(bends.iter().map(|&bend| {
            delta = delta.wrapping_add(bend);
            value = value.wrapping_add(delta);
            value
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_split_joins() {
        let lens = [0usize, 1, 2, 3, 0, 7, 1];
        let ints: Vec<i64> = (0..14).map(|i| (i64::MAX - 3).wrapping_mul(i * i * 77)).collect();
        for order in Order::ALL {
            let mut parts = Parts::default();
            parts.split(&ints, lens.iter().copied(), order);
            let counts = order.counts(lens.iter().copied());
            assert_eq!(counts.firsts, parts.firsts.len());
            assert_eq!(counts.seconds, parts.seconds.len());
            assert_eq!(counts.residues, parts.residues.len());
            let mut back = Vec::new();
            let slices = (&parts.firsts[..], &parts.seconds[..], &parts.residues[..]);
            join(slices, lens.iter().copied(), order, &mut back);
            assert_eq!(back, ints);
        }
    }
}
