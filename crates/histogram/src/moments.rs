//! Average and variance of the observations.

use crate::buckets::BucketRange;
use crate::kahan;
use crate::native::Histogram;

impl Histogram {
    /// The sum by the count.
    pub fn average(&self) -> f64 {
        self.sum / self.count
    }

    /// The variance, each observation taken as the middle of its bucket: the arithmetic mean of
    /// custom bounds, zero, or the geometric mean.
    pub fn variance(&self) -> f64 {
        let average = self.average();
        let (mut total, mut lost) = (0.0, 0.0);
        for bucket in self.ascending().filter(|bucket| bucket.count != 0.0) {
            let distance = self.middle(&bucket) - average;
            (total, lost) = kahan::add(bucket.count * distance * distance, total, lost);
        }
        (total + lost) / self.count
    }

    /// The square root of [`Histogram::variance`].
    pub fn standard_deviation(&self) -> f64 {
        self.variance().sqrt()
    }

    fn middle(&self, bucket: &BucketRange) -> f64 {
        let BucketRange { lower, upper, .. } = *bucket;
        if self.has_custom_bounds() {
            (upper + lower) / 2.0
        } else if lower <= 0.0 && 0.0 <= upper {
            0.0
        } else {
            (upper * lower).sqrt().copysign(upper)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::notation::parse_notation;

    #[test]
    fn moments() {
        let check = |text: &str, average: f64, middles: &[f64]| {
            let histogram = parse_notation(text).unwrap().0.histogram;
            assert_eq!(histogram.average(), average);
            let squares = middles.iter().map(|middle| (middle - average) * (middle - average));
            let variance = squares.sum::<f64>() / middles.len() as f64;
            assert!((histogram.variance() - variance).abs() < 1e-12, "{text}");
            assert!((histogram.standard_deviation() - variance.sqrt()).abs() < 1e-12);
        };
        let (small, large) = (2.0_f64.sqrt(), 8.0_f64.sqrt());
        check("{{count:2 sum:3 offset:1 buckets:[1 1]}}", 1.5, &[small, large]);
        check(
            "{{count:4 sum:2 z_bucket:2 z_bucket_w:0.1 n_offset:1 n_buckets:[1 1]}}",
            0.5,
            &[0.0, 0.0, -small, -large],
        );
        check(
            "{{schema:-53 count:2 sum:8 custom_values:[1 5] offset:1 buckets:[2]}}",
            4.0,
            &[3.0; 2],
        );
        let empty = parse_notation("{{}}").unwrap().0.histogram;
        assert!(empty.average().is_nan() && empty.variance().is_nan());
    }
}
