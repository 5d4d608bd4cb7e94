//! Two ascending lists of buckets become one.

use crate::native::Bucket;
use crate::resolution::Resolution;

/// Adds (or subtracts) observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
}

impl Operation {
    /// The number with `count` added or taken away.
    pub(crate) fn apply(self, number: f64, count: f64) -> f64 {
        match self {
            Operation::Add => number + count,
            Operation::Subtract => number - count,
        }
    }

    /// The number as it is added.
    pub(crate) fn signed(self, count: f64) -> f64 {
        match self {
            Operation::Add => count,
            Operation::Subtract => -count,
        }
    }
}

/// Puts the counts of `from` into `into`: into the bucket of the same index, else as a new bucket.
pub(crate) fn merge(into: &mut Vec<Bucket>, from: &[Bucket], operation: Operation) {
    if covers(into, from) {
        add_to_present(into, from, operation);
        return;
    }
    let own = std::mem::take(into);
    into.reserve(own.len() + from.len());
    let mut own = own.into_iter().peekable();
    for bucket in from {
        while let Some(before) = own.next_if(|own| own.index < bucket.index) {
            into.push(before);
        }
        let index = bucket.index;
        let count = match own.next_if(|own| own.index == index) {
            Some(own) => operation.apply(own.count, bucket.count),
            None => operation.signed(bucket.count),
        };
        into.push(Bucket { index, count });
    }
    into.extend(own);
}

/// Whether each bucket of `from` is in `into`, as is usual: nothing has to move then.
fn covers(into: &[Bucket], from: &[Bucket]) -> bool {
    let mut own = into.iter();
    from.len() <= into.len() && from.iter().all(|b| own.any(|own| own.index == b.index))
}

fn add_to_present(into: &mut [Bucket], from: &[Bucket], operation: Operation) {
    let mut own = into.iter_mut();
    for bucket in from {
        if let Some(own) = own.find(|own| own.index == bucket.index) {
            own.count = operation.apply(own.count, bucket.count);
        }
    }
}

/// The buckets with the indexes of a coarser schema.
pub(crate) fn coarsened(buckets: &[Bucket], resolution: Resolution) -> Vec<Bucket> {
    let mut coarse: Vec<Bucket> = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        let index = resolution.index(bucket.index);
        match coarse.last_mut() {
            Some(last) if last.index == index => last.count += bucket.count,
            _ => coarse.push(Bucket { index, count: bucket.count }),
        }
    }
    coarse
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::buckets;

    #[track_caller]
    fn check(into: &[(i32, f64)], from: &[(i32, f64)], expected: &[(i32, f64)]) {
        let mut merged = buckets(into);
        merge(&mut merged, &buckets(from), Operation::Add);
        assert_eq!(merged, buckets(expected));
        merge(&mut merged, &buckets(from), Operation::Subtract);
        let expected: Vec<_> = expected
            .iter()
            .map(|&(index, _)| (index, into.iter().find(|b| b.0 == index).map_or(0.0, |b| b.1)))
            .collect();
        assert_eq!(merged, buckets(&expected));
    }

    #[test]
    fn merging() {
        check(&[], &[], &[]);
        check(&[(1, 1.0)], &[], &[(1, 1.0)]);
        check(&[], &[(1, 1.0)], &[(1, 1.0)]);
        check(&[(1, 1.0), (2, 2.0), (9, 3.0)], &[(9, 4.0)], &[(1, 1.0), (2, 2.0), (9, 7.0)]);
        check(&[(5, 1.0)], &[(4, 2.0), (6, 3.0)], &[(4, 2.0), (5, 1.0), (6, 3.0)]);
        check(&[(5, 1.0), (7, 1.0)], &[(5, 2.0), (6, 3.0)], &[(5, 3.0), (6, 3.0), (7, 1.0)]);
    }
}
