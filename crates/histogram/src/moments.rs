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
