//! Keeping only the observations on one side of a value (the operators `</` and `>/`).

use crate::buckets::{BucketRange, Scale};
use crate::native::{Bucket, Histogram};
use crate::schema::Side;

/// Which observations stay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// Those up to a value: operator `</`.
    Below(f64),
    /// Those from a value on: operator `>/`.
    Above(f64),
}

/// The observations of a bucket that stay.
struct Kept {
    count: f64,
    /// The value that each of them is thought to have.
    middle: f64,
}

/// Count and sum of what stays.
#[derive(Default)]
struct Total {
    count: f64,
    sum: f64,
    /// Whether any bucket lost observations.
    is_trimmed: bool,
    has_positive: bool,
    has_negative: bool,
}

impl Total {
    fn put(&mut self, kept: &Kept) {
        self.count += kept.count;
        self.sum += kept.middle * kept.count;
    }
}

impl Histogram {
    /// Takes the observations away that do not stay. A bucket that holds the value is cut; count
    /// and sum are then estimated anew from the buckets, and empty buckets dropped. If nothing has
    /// to go, nothing changes.
    pub fn trim(&mut self, keep: Keep) {
        let mut total = Total::default();
        let mut positive = std::mem::take(&mut self.positive);
        let mut negative = std::mem::take(&mut self.negative);
        total.has_positive = self.trim_side(&mut positive, Side::Positive, keep, &mut total);
        total.has_negative = self.trim_side(&mut negative, Side::Negative, keep, &mut total);
        self.positive = positive;
        self.negative = negative;
        if 0.0 < self.zero_count
            && let Some(zero) = self.zero_range()
        {
            let kept = trimmed_zero(zero, keep, &total);
            total.is_trimmed |= kept.count != self.zero_count;
            self.zero_count = kept.count;
            total.put(&kept);
        }
        if total.is_trimmed {
            (self.count, self.sum) = (total.count, total.sum);
            self.compact();
        }
    }

    /// Whether there were observations on this side.
    fn trim_side(&self, buckets: &mut [Bucket], side: Side, keep: Keep, total: &mut Total) -> bool {
        let filled = buckets.iter_mut().filter(|bucket| bucket.count != 0.0);
        let shape = match self.has_custom_bounds() {
            true => Shape::Custom,
            false => Shape::Exponential(side),
        };
        let mut has_any = false;
        for bucket in filled {
            has_any = true;
            let kept = trimmed(&self.range(side, bucket), keep, shape);
            if let Some(kept) = &kept {
                total.put(kept);
            }
            let count = kept.map_or(0.0, |kept| kept.count);
            total.is_trimmed |= count != bucket.count;
            bucket.count = count;
        }
        has_any
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Custom,
    Exponential(Side),
}

/// What stays of a bucket; nothing if it lies on the other side.
fn trimmed(bucket: &BucketRange, keep: Keep, shape: Shape) -> Option<Kept> {
    let BucketRange { lower, upper, count, .. } = *bucket;
    let (is_kept, is_cut) = match keep {
        Keep::Below(value) => (upper <= value, lower < value),
        Keep::Above(value) => (value <= lower, value < upper),
    };
    if is_kept {
        return Some(Kept { count, middle: middle(lower, upper, shape) });
    }
    if !is_cut {
        return None;
    }
    Some(match (lower.is_infinite(), upper.is_infinite()) {
        (true, _) => cut_without_lower(bucket, keep),
        (_, true) => cut_without_upper(bucket, keep),
        _ => cut(bucket, keep, shape),
    })
}

/// Cuts a bucket with finite bounds at a value inside.
fn cut(bucket: &BucketRange, keep: Keep, shape: Shape) -> Kept {
    let scale = match shape {
        Shape::Custom => Scale::Linear,
        Shape::Exponential(_) => Scale::Exponential,
    };
    match keep {
        Keep::Below(value) => Kept {
            count: bucket.count * bucket.part_below(value, scale),
            middle: middle(bucket.lower, value, shape),
        },
        Keep::Above(value) => Kept {
            count: bucket.count - bucket.count * bucket.part_below(value, scale),
            middle: middle(value, bucket.upper, shape),
        },
    }
}

/// Cuts the bucket from -inf. If it ends above zero, its observations are thought to be positive;
/// else how they are spread is not known, and they stay as a whole or not at all.
fn cut_without_lower(bucket: &BucketRange, keep: Keep) -> Kept {
    let BucketRange { upper, count, .. } = *bucket;
    let is_bounded = 0.0 < upper && upper.is_finite();
    match keep {
        Keep::Below(value) if 0.0 < value && is_bounded => {
            Kept { count: count * value / upper, middle: value / 2.0 }
        }
        Keep::Below(value) if upper <= 0.0 => Kept { count, middle: value },
        Keep::Above(value) if 0.0 <= value && is_bounded => {
            Kept { count: count * (1.0 - value / upper), middle: (value + upper) / 2.0 }
        }
        _ => Kept { count: 0.0, middle: 0.0 },
    }
}

/// Cuts the bucket to +inf: nothing is known to be below a value, all may be above.
fn cut_without_upper(bucket: &BucketRange, keep: Keep) -> Kept {
    match keep {
        Keep::Below(_) => Kept { count: 0.0, middle: 0.0 },
        Keep::Above(value) => Kept { count: bucket.count, middle: value },
    }
}

/// Cuts the zero bucket, which ends at zero on a side without observations.
fn trimmed_zero(zero: BucketRange, keep: Keep, total: &Total) -> Kept {
    let (mut lower, mut upper) = (zero.lower, zero.upper);
    if total.has_negative && !total.has_positive {
        upper = 0.0;
    }
    if total.has_positive && !total.has_negative {
        lower = 0.0;
    }
    let all = Kept { count: zero.count, middle: (lower + upper) / 2.0 };
    let nothing = Kept { count: 0.0, middle: 0.0 };
    let width = upper - lower;
    match keep {
        Keep::Below(value) if value <= lower => nothing,
        Keep::Below(value) if upper <= value => all,
        Keep::Below(value) => {
            Kept { count: zero.count * ((value - lower) / width), middle: (lower + value) / 2.0 }
        }
        Keep::Above(value) if value <= lower => all,
        Keep::Above(value) if upper <= value => nothing,
        Keep::Above(value) => {
            Kept { count: zero.count * ((upper - value) / width), middle: (value + upper) / 2.0 }
        }
    }
}

/// The value that observations between two bounds are thought to have.
fn middle(lower: f64, upper: f64, shape: Shape) -> f64 {
    match (lower.is_infinite(), upper.is_infinite()) {
        (true, true) => 0.0,
        (true, false) if 0.0 < upper => upper / 2.0,
        (true, false) => upper,
        (false, true) => lower,
        (false, false) => match shape {
            Shape::Custom => (lower + upper) / 2.0,
            Shape::Exponential(Side::Positive) => (lower * upper).abs().sqrt(),
            Shape::Exponential(Side::Negative) => -(lower * upper).abs().sqrt(),
        },
    }
}
