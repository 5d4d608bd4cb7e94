//! Custom bounds that differ: both histograms go over to the bounds that they share.

use crate::kahan;
use crate::merge::Operation;
use crate::zero::Term;

/// The bounds that both lists have; both ascend.
pub(crate) fn shared_bounds(left: &[f64], right: &[f64]) -> Vec<f64> {
    let mut right = right.iter().peekable();
    let mut shared = Vec::new();
    for bound in left {
        while right.next_if(|other| *other < bound).is_some() {}
        if right.next_if(|other| *other == bound).is_some() {
            shared.push(*bound);
        }
    }
    shared
}

/// The index among `to` of the bucket that holds all of bucket `index` of `from`.
pub(crate) fn remapped(index: i32, from: &[f64], to: &[f64]) -> usize {
    let bound = usize::try_from(index).ok().and_then(|index| from.get(index));
    bound.map_or(to.len(), |bound| to.partition_point(|other| other < bound))
}

/// Adds up buckets of any custom bounds under bounds that all of them have.
pub(crate) struct Remap<'b> {
    bounds: &'b [f64],
    sums: Vec<(f64, f64)>,
}

impl Remap<'_> {
    pub(crate) fn to(bounds: &[f64]) -> Remap<'_> {
        Remap { bounds, sums: vec![(0.0, 0.0); bounds.len() + 1] }
    }

    /// Puts buckets that have the bounds `from` into theirs.
    pub(crate) fn put(
        &mut self,
        buckets: impl Iterator<Item = Term>,
        from: &[f64],
        operation: Operation,
    ) {
        for bucket in buckets {
            let at = &mut self.sums[remapped(bucket.index, from, self.bounds)];
            *at = kahan::add(operation.signed(bucket.count), at.0, at.1);
            if bucket.lost != 0.0 {
                *at = kahan::add(operation.signed(bucket.lost), at.0, at.1);
            }
        }
    }

    /// The buckets that are not empty.
    pub(crate) fn finish(self) -> impl Iterator<Item = Term> {
        let all = self.sums.into_iter().enumerate();
        all.filter(|(_, sum)| *sum != (0.0, 0.0)).map(|(index, (count, lost))| Term {
            index: index as i32,
            count,
            lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_both_have() {
        let check = |left: &[f64], right: &[f64], shared: &[f64]| {
            assert_eq!(shared_bounds(left, right), shared);
            assert_eq!(shared_bounds(right, left), shared);
        };
        check(&[], &[1.0], &[]);
        check(&[1.0, 2.0, 5.0], &[1.0, 3.0, 4.0, 5.0, 6.0], &[1.0, 5.0]);
        check(&[f64::NEG_INFINITY, 0.0], &[f64::NEG_INFINITY, -0.0], &[f64::NEG_INFINITY, 0.0]);
    }

    #[test]
    fn buckets_move_to_the_next_shared_bound() {
        let from = [1.0, 2.0, 3.0, 4.0];
        let to = [2.0, 4.0];
        let found: Vec<usize> = (0..6).map(|index| remapped(index, &from, &to)).collect();
        assert_eq!(found, [0, 0, 1, 1, 2, 2]);
        assert_eq!(remapped(0, &from, &[]), 0);
        let mut remap = Remap::to(&to);
        let term = |index, count| Term { index, count, lost: 0.0 };
        remap.put([term(0, 1.0), term(1, 2.0), term(4, 3.0)].into_iter(), &from, Operation::Add);
        remap.put([term(1, 3.0)].into_iter(), &to, Operation::Subtract);
        let found: Vec<Term> = remap.finish().collect();
        assert_eq!(found, [term(0, 3.0), term(1, -3.0), term(2, 3.0)]);
    }
}
