//! The buckets of a histogram with the values they stand for, in the order of those values.
//!
//! ```text
//! negative, last to first   |   zero bucket   |   positive, first to last
//!   [-4 .. -2) [-2 .. -1)     [-0.001..0.001]       (1 .. 2] (2 .. 4]
//! ```

use crate::native::{Bucket, Histogram};
use crate::schema::{Side, custom_bound, lower_bound, upper_bound};

/// One bucket and its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketRange {
    /// The smallest value.
    pub lower: f64,
    /// The largest value.
    pub upper: f64,
    /// Whether `lower` itself is counted here.
    pub has_lower: bool,
    /// Whether `upper` itself is counted here.
    pub has_upper: bool,
    /// Observations in this bucket alone.
    pub count: f64,
}

impl BucketRange {
    /// The part of the bucket's width up to `value`, which is inside of its finite bounds.
    pub(crate) fn part_below(&self, value: f64, scale: Scale) -> f64 {
        if scale == Scale::Linear {
            return (value - self.lower) / (self.upper - self.lower);
        }
        let lower = log2(self.lower.abs());
        let upper = log2(self.upper.abs());
        let at = log2(value.abs());
        match 0.0 < value {
            true => (at - lower) / (upper - lower),
            false => 1.0 - ((at - upper) / (lower - upper)),
        }
    }
}

/// How values are thought to be spread within a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Evenly: custom bounds, and the zero bucket.
    Linear,
    /// Evenly over finer buckets.
    Exponential,
}

/// The logarithm to base 2, from that of the fraction and the exponent: exact for powers of two,
/// and rounded as Go rounds it.
pub(crate) fn log2(value: f64) -> f64 {
    if !(value.is_finite() && 0.0 < value) {
        return value.log2();
    }
    let (fraction, exponent) = split(value);
    if fraction == 0.5 {
        return f64::from(exponent - 1);
    }
    fraction.ln() * std::f64::consts::LOG2_E + f64::from(exponent)
}

/// A positive number as a fraction in 0.5 .. 1 and a power of two.
fn split(value: f64) -> (f64, i32) {
    let (value, shift) = match value < f64::MIN_POSITIVE {
        true => (value * 2.0_f64.powi(52), 52),
        false => (value, 0),
    };
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | (1022 << 52)), exponent - shift)
}

impl Histogram {
    /// Where the bucket's values lie; of a negative bucket they are below zero.
    pub fn range(&self, side: Side, bucket: &Bucket) -> BucketRange {
        let count = bucket.count;
        if self.has_custom_bounds() {
            let index = i64::from(bucket.index);
            return BucketRange {
                lower: custom_bound(&self.custom_bounds, index - 1),
                upper: custom_bound(&self.custom_bounds, index),
                has_lower: index == 0,
                has_upper: true,
                count,
            };
        }
        let near = lower_bound(self.schema, bucket.index);
        let far = upper_bound(self.schema, bucket.index);
        let (lower, upper) = match side {
            Side::Positive => (near, far),
            Side::Negative => (-far, -near),
        };
        BucketRange { lower, upper, has_lower: lower < 0.0, has_upper: 0.0 < upper, count }
    }

    /// The zero bucket; none with custom bounds.
    pub fn zero_range(&self) -> Option<BucketRange> {
        (!self.has_custom_bounds()).then_some(BucketRange {
            lower: -self.zero_threshold,
            upper: self.zero_threshold,
            has_lower: true,
            has_upper: true,
            count: self.zero_count,
        })
    }

    /// All buckets by rising values (from the other end by `rev`): what is stored, empty buckets
    /// too, and the zero bucket if it has observations. A bucket that overlaps with the zero
    /// bucket begins where that ends.
    pub fn ascending(&self) -> impl DoubleEndedIterator<Item = BucketRange> + '_ {
        let negative = self.negative.iter().rev().map(|b| (Side::Negative, b));
        let negative = negative.filter(|_| !self.has_custom_bounds());
        let positive = self.positive.iter().map(|b| (Side::Positive, b));
        let zero = self.zero_range().filter(|zero| 0.0 < zero.count);
        let clamped = |(side, bucket): (Side, &Bucket)| self.clamped(self.range(side, bucket));
        negative.map(clamped).chain(zero).chain(positive.map(clamped))
    }

    fn clamped(&self, mut range: BucketRange) -> BucketRange {
        let zero = self.zero_threshold;
        if range.upper < 0.0 && -zero < range.upper {
            range.upper = -zero;
        } else if 0.0 < range.lower && range.lower < zero {
            range.lower = zero;
        }
        range
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::CUSTOM_SCHEMA;

    fn bucket(index: i32, count: f64) -> Bucket {
        Bucket { index, count }
    }

    #[track_caller]
    fn check(histogram: &Histogram, expected: &[(f64, f64, f64)]) {
        let found: Vec<_> = histogram.ascending().map(|b| (b.lower, b.upper, b.count)).collect();
        assert_eq!(found, expected);
        let mut reversed: Vec<_> =
            histogram.ascending().rev().map(|b| (b.lower, b.upper, b.count)).collect();
        reversed.reverse();
        assert_eq!(reversed, expected);
    }

    #[test]
    fn all_buckets_in_order() {
        let mut histogram = Histogram {
            zero_threshold: 0.75,
            zero_count: 3.0,
            positive: vec![bucket(0, 1.0), bucket(2, 0.0), bucket(3, 2.0)],
            negative: vec![bucket(0, 5.0), bucket(1, 6.0)],
            ..Histogram::default()
        };
        let outer = [(-2.0, -1.0, 6.0), (-1.0, -0.75, 5.0)];
        let inner = [(0.75, 1.0, 1.0), (2.0, 4.0, 0.0), (4.0, 8.0, 2.0)];
        check(&histogram, &[&outer[..], &[(-0.75, 0.75, 3.0)], &inner].concat());
        histogram.zero_count = 0.0;
        check(&histogram, &[&outer[..], &inner].concat());
    }

    #[test]
    fn sides_that_are_counted() {
        let histogram = Histogram::default();
        let flags = |range: BucketRange| (range.has_lower, range.has_upper);
        assert_eq!(flags(histogram.range(Side::Positive, &bucket(1, 1.0))), (false, true));
        assert_eq!(flags(histogram.range(Side::Negative, &bucket(1, 1.0))), (true, false));
        assert_eq!(flags(histogram.zero_range().unwrap()), (true, true));
        let custom = Histogram {
            schema: CUSTOM_SCHEMA,
            custom_bounds: vec![-1.0, 5.0],
            positive: vec![bucket(0, 1.0), bucket(1, 2.0), bucket(2, 3.0)],
            ..Histogram::default()
        };
        assert_eq!(flags(custom.range(Side::Positive, &bucket(0, 1.0))), (true, true));
        assert_eq!(flags(custom.range(Side::Positive, &bucket(1, 1.0))), (false, true));
        let infinite = f64::INFINITY;
        check(&custom, &[(-infinite, -1.0, 1.0), (-1.0, 5.0, 2.0), (5.0, infinite, 3.0)]);
        assert_eq!(custom.zero_range(), None);
    }

    #[test]
    fn logarithms() {
        for (value, log) in [(1.0, 0.0), (0.25, -2.0), (f64::MIN_POSITIVE / 4.0, -1024.0)] {
            assert_eq!(log2(value), log);
        }
        assert_eq!(log2(3.0), 1.5849625007211563);
        assert_eq!(log2(0.0), f64::NEG_INFINITY);
        assert_eq!(log2(f64::INFINITY), f64::INFINITY);
        assert!(log2(-1.0).is_nan());
    }
}
