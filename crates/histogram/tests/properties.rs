//! Laws that sums of histograms keep, for random ones.

use histogram::schema::lower_bound;
use histogram::{Bucket, CUSTOM_SCHEMA, Histogram, HistogramMean, HistogramSum};

/// A small generator of our own: the same cases each time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        // xorshift64: each state leads to another one, none to zero.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn buckets(&mut self, from: i32, gap_max: u64) -> Vec<Bucket> {
        let mut index = from;
        let mut buckets = Vec::new();
        for _ in 0..self.below(12) {
            index += 1 + self.below(gap_max) as i32;
            buckets.push(Bucket { index, count: self.below(50) as f64 });
        }
        buckets
    }

    /// Whole counts, so that sums are exact and laws hold to the bit.
    fn exponential(&mut self) -> Histogram {
        let thresholds = [0.0, 0.001, 0.5, 0.7, 1.0, 2.0, 3.0];
        let (positive, negative) = (self.buckets(-8, 4), self.buckets(-8, 4));
        let mut histogram = Histogram {
            schema: self.below(13) as i8 - 4,
            zero_threshold: thresholds[self.below(7) as usize],
            zero_count: self.below(20) as f64,
            sum: self.below(1000) as f64,
            positive,
            negative,
            ..Histogram::default()
        };
        // No bucket lies within the zero bucket, as with whoever counts observations.
        let (schema, zero) = (histogram.schema, histogram.zero_threshold);
        histogram.positive.retain(|bucket| zero <= lower_bound(schema, bucket.index));
        histogram.negative.retain(|bucket| zero <= lower_bound(schema, bucket.index));
        histogram.count = total(&histogram);
        histogram
    }

    fn custom(&mut self) -> Histogram {
        let bounds: Vec<f64> =
            (0..8).filter(|_| self.below(2) == 0).map(|bound| f64::from(bound) / 2.0).collect();
        let count = bounds.len() as i32;
        let mut histogram = Histogram {
            schema: CUSTOM_SCHEMA,
            custom_bounds: bounds,
            positive: self.buckets(-1, 2).into_iter().filter(|b| b.index <= count).collect(),
            ..Histogram::default()
        };
        histogram.count = total(&histogram);
        histogram
    }
}

fn total(histogram: &Histogram) -> f64 {
    let buckets = histogram.positive.iter().chain(&histogram.negative);
    histogram.zero_count + buckets.map(|bucket| bucket.count).sum::<f64>()
}

fn sum(left: &Histogram, right: &Histogram) -> Histogram {
    let mut sum = left.clone();
    sum.add(right).unwrap();
    sum.compact();
    sum
}

#[test]
fn additions() {
    let mut random = Random(0x5eed);
    for case in 0..3000 {
        let [mut left, mut right] = match case % 3 {
            0 => [random.custom(), random.custom()],
            _ => [random.exponential(), random.exponential()],
        };
        // A zero bucket that ends within a bucket of a coarser schema is not exact.
        if left.schema != right.schema {
            (left.zero_threshold, right.zero_threshold) = (1e-45, 1e-40);
        }
        left.validate_whole().unwrap();
        let both = sum(&left, &right);
        assert!(both.same_data(&sum(&right, &left)), "{left:?} {right:?}");
        assert_eq!(total(&both), left.count + right.count, "{left:?} {right:?}");
        both.validate_whole().unwrap();
        let mut back = both.clone();
        back.sub(&right).unwrap();
        assert_eq!(total(&back), left.count);
        assert!(!both.is_reset_after(&left) || left.schema == CUSTOM_SCHEMA, "{left:?} {right:?}");
        let mut compensated = HistogramSum::of(&left);
        compensated.add(&right).unwrap();
        let mut compensated = compensated.finish().0;
        compensated.compact();
        assert!(compensated.same_data(&both), "{left:?} {right:?}");
    }
}

#[test]
fn resolutions() {
    let mut random = Random(77);
    for _ in 0..2000 {
        let (mut left, mut right) = (random.exponential(), random.exponential());
        // Zero buckets of one width that no bucket overlaps with stay as they are.
        for histogram in [&mut left, &mut right] {
            histogram.zero_threshold = 1e-40;
        }
        let schema = left.schema.min(right.schema) - random.below(3) as i8;
        let schema = schema.max(-4);
        let late = sum(&left, &right).reduced_to(schema);
        let early = sum(&left.reduced_to(schema), &right.reduced_to(schema));
        assert!(late.same_data(&early), "{left:?} {right:?}");
    }
}

#[test]
fn means() {
    let mut random = Random(5);
    for _ in 0..500 {
        let histogram = random.exponential();
        let mut mean = HistogramMean::of(&histogram);
        for _ in 0..random.below(5) {
            mean.add(&histogram).unwrap();
        }
        assert!(mean.finish().0.same_data(&histogram), "{histogram:?}");
    }
}

#[test]
fn quantiles_and_fractions_are_inverse() {
    let mut random = Random(11);
    for case in 0..2000 {
        let histogram = if case % 4 == 0 { random.custom() } else { random.exponential() };
        let q = 0.01 + random.below(99) as f64 / 100.0;
        let value = histogram.quantile(q).value;
        if histogram.count == 0.0 {
            assert!(value.is_nan());
            continue;
        }
        // Where no bucket can be divided (an infinite one, or one whose end is a gap's) it is not.
        let steps = histogram.ascending().any(|b| {
            b.lower.is_infinite() || b.upper.is_infinite() || b.lower == value || b.upper == value
        });
        let part = histogram.fraction(f64::NEG_INFINITY, value).value;
        assert!(steps || (part - q).abs() < 1e-9, "{q} {value} {part} {histogram:?}");
    }
}
