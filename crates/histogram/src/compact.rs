//! Leaving out what says nothing, and telling whether two histograms are the same.

use crate::native::{Bucket, Histogram, ResetHint};
use model::is_stale_marker;

impl Histogram {
    /// Drops the buckets without observations.
    pub fn compact(&mut self) {
        self.positive.retain(|bucket| bucket.count != 0.0);
        self.negative.retain(|bucket| bucket.count != 0.0);
    }

    /// Whether all numbers are the same, bit by bit, and the same buckets are stored, empty ones
    /// too. What is known about resets does not count.
    pub fn same_data(&self, other: &Histogram) -> bool {
        self.schema == other.schema
            && same(self.count, other.count)
            && same(self.sum, other.sum)
            && (!self.has_custom_bounds() || self.custom_bounds == other.custom_bounds)
            && self.zero_threshold == other.zero_threshold
            && same(self.zero_count, other.zero_count)
            && same_buckets(self.negative.iter(), other.negative.iter(), same)
            && same_buckets(self.positive.iter(), other.positive.iter(), same)
    }

    /// Whether a test that expects `self` may take `other` for it: numbers of observations and the
    /// sum may differ by a millionth, empty buckets do not count, and a reset hint counts if the
    /// expectation gives one.
    pub fn is_nearly(&self, other: &Histogram, hint: Option<ResetHint>) -> bool {
        let filled = |bucket: &&Bucket| bucket.count != 0.0;
        self.schema == other.schema
            && nearly(self.count, other.count)
            && nearly(self.sum, other.sum)
            && (!self.has_custom_bounds() || self.custom_bounds == other.custom_bounds)
            && self.zero_threshold == other.zero_threshold
            && nearly(self.zero_count, other.zero_count)
            && same_buckets(
                self.negative.iter().filter(filled),
                other.negative.iter().filter(filled),
                nearly,
            )
            && same_buckets(
                self.positive.iter().filter(filled),
                other.positive.iter().filter(filled),
                nearly,
            )
            && hint.is_none_or(|hint| hint == other.reset_hint)
    }
}

/// Whether the numbers have the same bits. Those that are not a number are all alike (which bits
/// an operation gives them depends on the machine), only a stale marker is not like the others.
fn same(a: f64, b: f64) -> bool {
    let is_alike = a.is_nan() && b.is_nan() && is_stale_marker(a) == is_stale_marker(b);
    a.to_bits() == b.to_bits() || is_alike
}

fn same_buckets<'a>(
    mut left: impl Iterator<Item = &'a Bucket>,
    mut right: impl Iterator<Item = &'a Bucket>,
    same: fn(f64, f64) -> bool,
) -> bool {
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a.index == b.index && same(a.count, b.count) => {}
            _ => return false,
        }
    }
}

/// How far numbers of tests may be apart, as a part of the sum of their sizes.
const TOLERANCE: f64 = 0.000001;

/// Whether the numbers are the same for a test. A stale marker is only equal to a stale marker.
pub fn nearly(a: f64, b: f64) -> bool {
    if is_stale_marker(a) || is_stale_marker(b) {
        return is_stale_marker(a) && is_stale_marker(b);
    }
    if a == b || (a.is_nan() && b.is_nan()) {
        return true;
    }
    let size = a.abs() + b.abs();
    let distance = (a - b).abs();
    if a == 0.0 || b == 0.0 || size < f64::MIN_POSITIVE {
        return distance < TOLERANCE * f64::MIN_POSITIVE;
    }
    distance / size.min(f64::MAX) < TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::buckets;

    fn histogram(counts: &[(i32, f64)]) -> Histogram {
        Histogram { positive: buckets(counts), ..Histogram::default() }
    }

    #[test]
    fn compacting_drops_empty_buckets() {
        let mut found = histogram(&[(-3, 0.0), (1, 2.0), (2, -0.0), (3, f64::NAN)]);
        found.negative = found.positive.clone();
        found.compact();
        assert!(found.same_data(&Histogram {
            negative: buckets(&[(1, 2.0), (3, f64::NAN)]),
            ..histogram(&[(1, 2.0), (3, f64::NAN)])
        }));
    }

    #[test]
    fn equal_by_bits() {
        let base = Histogram { sum: f64::NAN, ..histogram(&[(1, 2.0), (5, 1.0)]) };
        assert!(base.same_data(&Histogram { sum: -f64::NAN, ..base.clone() }));
        assert!(base.same_data(&Histogram { reset_hint: ResetHint::Gauge, ..base.clone() }));
        for other in [
            Histogram { schema: 1, ..base.clone() },
            Histogram { count: -0.0, ..base.clone() },
            Histogram { sum: model::stale_marker(), ..base.clone() },
            Histogram { zero_threshold: 0.1, ..base.clone() },
            Histogram { zero_count: 1.0, ..base.clone() },
            Histogram { negative: base.positive.clone(), ..base.clone() },
            Histogram { sum: f64::NAN, ..histogram(&[(1, 2.0), (5, 1.0), (6, 0.0)]) },
            Histogram { sum: f64::NAN, ..histogram(&[(1, 2.0), (6, 1.0)]) },
            Histogram { sum: f64::NAN, ..histogram(&[(1, 2.0)]) },
        ] {
            assert!(!base.same_data(&other), "{other:?}");
        }
    }

    #[test]
    fn nearly_equal_for_tests() {
        let base = Histogram { count: 3.0, sum: 10.0, ..histogram(&[(1, 2.0), (5, 1.0)]) };
        let close = Histogram {
            count: 3.0000001,
            sum: 10.000001,
            reset_hint: ResetHint::Reset,
            ..histogram(&[(0, 0.0), (1, 2.0), (5, 1.0000001)])
        };
        assert!(base.is_nearly(&close, None));
        assert!(base.is_nearly(&close, Some(ResetHint::Reset)));
        assert!(!base.is_nearly(&close, Some(ResetHint::Unknown)));
        assert!(!base.is_nearly(&Histogram { sum: 10.0001, ..close.clone() }, None));
        assert!(!base.is_nearly(&Histogram { sum: f64::NAN, ..close }, None));
        let numbers = [0.0, 1.0, f64::NAN, model::stale_marker(), f64::INFINITY, -1.0, 1e-300];
        for (i, &a) in numbers.iter().enumerate() {
            for (j, &b) in numbers.iter().enumerate() {
                assert_eq!(nearly(a, b), i == j, "{a} {b}");
            }
        }
    }
}
