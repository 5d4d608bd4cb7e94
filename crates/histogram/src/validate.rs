//! What a histogram from outside has to keep to.

use crate::native::{Bucket, Histogram};
use crate::schema::{CUSTOM_SCHEMA, SCHEMA_MAX, SCHEMA_MIN, is_exponential};

/// Buckets that one histogram may have, positive and negative together.
pub const BUCKETS_MAX: usize = 1 << 16;
/// Custom bounds that one histogram may have.
pub const CUSTOM_BOUNDS_MAX: usize = 1 << 16;

/// What is wrong with a histogram, for whoever sent it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// Neither exponential nor custom.
    #[error(
        "schema {0} is not known: send {SCHEMA_MIN} to {SCHEMA_MAX} for exponential buckets, \
         {CUSTOM_SCHEMA} for custom bounds"
    )]
    Schema(i8),
    /// Too long a list.
    #[error("{count} {what} are more than {max}: send a coarser histogram")]
    TooMany {
        /// Buckets or bounds.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// Less than nothing.
    #[error("{what} is {value}: counts are not negative")]
    Negative {
        /// Which count.
        what: &'static str,
        /// The count.
        value: f64,
    },
    /// Where the zero bucket ends.
    #[error("zero threshold is {0}: it is a finite number that is not negative")]
    ZeroThreshold(f64),
    /// Buckets ascend by index.
    #[error("bucket {index} of the {side} side follows bucket {before}: indexes have to rise")]
    Order {
        /// Which side.
        side: &'static str,
        /// The index before.
        before: i32,
        /// The index that is not larger.
        index: i32,
    },
    /// Bounds ascend.
    #[error("custom bound {bound} follows {before}: bounds have to rise")]
    BoundOrder {
        /// The bound before.
        before: f64,
        /// The bound that is not larger.
        bound: f64,
    },
    /// The last bucket ends at infinity by itself.
    #[error("custom bound {0}: bounds are numbers below +Inf, which is implied")]
    Bound(f64),
    /// A bucket between no bounds.
    #[error("bucket {index} needs more than the {bounds} custom bounds that there are")]
    NoBound {
        /// The bucket.
        index: i32,
        /// How many bounds there are.
        bounds: usize,
    },
    /// What only one of the kinds has.
    #[error("{kind} histograms have no {what}")]
    Unexpected {
        /// Exponential or custom.
        kind: &'static str,
        /// What they have not.
        what: &'static str,
    },
    /// Every observation is in one bucket.
    #[error("count is {count}, but the buckets have {buckets} observations")]
    CountDiffers {
        /// What was said.
        count: f64,
        /// What was found.
        buckets: f64,
    },
}

impl Histogram {
    /// Whether the histogram makes sense by itself. Whether its counts add up is not looked at:
    /// counts of float64 may be rounded.
    pub fn validate(&self) -> Result<(), Invalid> {
        check_size("buckets", self.positive.len() + self.negative.len(), BUCKETS_MAX)?;
        check_size("custom bounds", self.custom_bounds.len(), CUSTOM_BOUNDS_MAX)?;
        if self.has_custom_bounds() {
            self.validate_custom()?;
        } else if is_exponential(self.schema) {
            self.validate_exponential()?;
        } else {
            return Err(Invalid::Schema(self.schema));
        }
        check_count("count", self.count)?;
        check_buckets("negative", &self.negative)?;
        check_buckets("positive", &self.positive)
    }

    /// As [`Histogram::validate`], for one that was sent with whole numbers: the count is that of
    /// all buckets, or, with observations that are not a number, at least that.
    pub fn validate_whole(&self) -> Result<(), Invalid> {
        self.validate()?;
        let buckets = self.negative.iter().chain(&self.positive).map(|bucket| bucket.count);
        let buckets = self.zero_count + buckets.sum::<f64>();
        let differs = match self.sum.is_nan() {
            true => self.count < buckets,
            false => self.count != buckets,
        };
        match differs {
            true => Err(Invalid::CountDiffers { count: self.count, buckets }),
            false => Ok(()),
        }
    }

    fn validate_exponential(&self) -> Result<(), Invalid> {
        if !self.custom_bounds.is_empty() {
            return Err(Invalid::Unexpected { kind: "exponential", what: "custom bounds" });
        }
        if !(self.zero_threshold.is_finite() && 0.0 <= self.zero_threshold) {
            return Err(Invalid::ZeroThreshold(self.zero_threshold));
        }
        check_count("the zero bucket's count", self.zero_count)
    }

    fn validate_custom(&self) -> Result<(), Invalid> {
        for (is_there, what) in [
            (self.zero_count != 0.0, "zero bucket"),
            (self.zero_threshold != 0.0, "zero threshold"),
            (!self.negative.is_empty(), "negative buckets"),
        ] {
            if is_there {
                return Err(Invalid::Unexpected { kind: "custom", what });
            }
        }
        for bound in &self.custom_bounds {
            if bound.is_nan() || *bound == f64::INFINITY {
                return Err(Invalid::Bound(*bound));
            }
        }
        for pair in self.custom_bounds.windows(2) {
            if let [before, bound] = *pair
                && bound <= before
            {
                return Err(Invalid::BoundOrder { before, bound });
            }
        }
        let bounds = self.custom_bounds.len();
        let has_bound = |index: i32| usize::try_from(index).is_ok_and(|index| index <= bounds);
        match self.positive.iter().find(|bucket| !has_bound(bucket.index)) {
            Some(bucket) => Err(Invalid::NoBound { index: bucket.index, bounds }),
            None => Ok(()),
        }
    }
}

fn check_size(what: &'static str, count: usize, max: usize) -> Result<(), Invalid> {
    match count <= max {
        true => Ok(()),
        false => Err(Invalid::TooMany { what, count, max }),
    }
}

fn check_count(what: &'static str, value: f64) -> Result<(), Invalid> {
    match value < 0.0 {
        true => Err(Invalid::Negative { what, value }),
        false => Ok(()),
    }
}

fn check_buckets(side: &'static str, buckets: &[Bucket]) -> Result<(), Invalid> {
    for pair in buckets.windows(2) {
        if let [before, bucket] = pair
            && bucket.index <= before.index
        {
            return Err(Invalid::Order { side, before: before.index, index: bucket.index });
        }
    }
    buckets.iter().try_for_each(|bucket| check_count("a bucket's count", bucket.count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::parse_notation;

    fn parse(text: &str) -> Histogram {
        parse_notation(text).unwrap().0.histogram
    }

    #[test]
    fn what_is_right() {
        for text in [
            "{{}}",
            "{{count:3 sum:NaN z_bucket:1 z_bucket_w:0.1 buckets:[0 NaN] n_buckets:[1]}}",
            "{{schema:-53 custom_values:[-Inf 5] offset:2 buckets:[3]}}",
            "{{schema:-53 buckets:[3]}}",
        ] {
            assert_eq!(parse(text).validate(), Ok(()), "{text}");
        }
        for text in
            ["{{}}", "{{count:3 z_bucket:1 buckets:[1] n_buckets:[1]}}", "{{sum:NaN count:9}}"]
        {
            assert_eq!(parse(text).validate_whole(), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_wrong() {
        let check = |text: &str, expected: &str| {
            assert_eq!(parse(text).validate().unwrap_err().to_string(), expected, "{text}");
        };
        check(
            "{{schema:9}}",
            "schema 9 is not known: send -4 to 8 for exponential buckets, -53 for custom bounds",
        );
        check(
            "{{schema:-5}}",
            "schema -5 is not known: send -4 to 8 for exponential buckets, -53 for custom bounds",
        );
        check("{{count:-1}}", "count is -1: counts are not negative");
        check("{{z_bucket:-1}}", "the zero bucket's count is -1: counts are not negative");
        check("{{buckets:[1 -2]}}", "a bucket's count is -2: counts are not negative");
        check("{{n_buckets:[-Inf]}}", "a bucket's count is -inf: counts are not negative");
        check(
            "{{z_bucket_w:-1}}",
            "zero threshold is -1: it is a finite number that is not negative",
        );
        check(
            "{{z_bucket_w:NaN}}",
            "zero threshold is NaN: it is a finite number that is not negative",
        );
        check("{{custom_values:[1]}}", "exponential histograms have no custom bounds");
        check("{{schema:-53 z_bucket:1}}", "custom histograms have no zero bucket");
        check("{{schema:-53 z_bucket_w:1}}", "custom histograms have no zero threshold");
        check("{{schema:-53 n_buckets:[1]}}", "custom histograms have no negative buckets");
        check(
            "{{schema:-53 custom_values:[1 1]}}",
            "custom bound 1 follows 1: bounds have to rise",
        );
        check(
            "{{schema:-53 custom_values:[1 NaN 3]}}",
            "custom bound NaN: bounds are numbers below +Inf, which is implied",
        );
        check(
            "{{schema:-53 custom_values:[1 Inf]}}",
            "custom bound inf: bounds are numbers below +Inf, which is implied",
        );
        check(
            "{{schema:-53 custom_values:[1] buckets:[1 2 3]}}",
            "bucket 2 needs more than the 1 custom bounds that there are",
        );
        check(
            "{{schema:-53 offset:-1 buckets:[1]}}",
            "bucket -1 needs more than the 0 custom bounds that there are",
        );
        let mut unsorted = parse("{{buckets:[1 2]}}");
        unsorted.positive.swap(0, 1);
        let order = "bucket 0 of the positive side follows bucket 1: indexes have to rise";
        assert_eq!(unsorted.validate().unwrap_err().to_string(), order);
        let count = "count is 1, but the buckets have 2 observations";
        assert_eq!(
            parse("{{count:1 z_bucket:2}}").validate_whole().unwrap_err().to_string(),
            count
        );
        let nan = parse("{{count:1 sum:NaN buckets:[1 1]}}");
        assert_eq!(nan.validate_whole().unwrap_err().to_string(), count);
    }

    #[test]
    fn limits() {
        let bucket = |index| Bucket { index, count: 1.0 };
        let mut histogram = Histogram {
            positive: (0..BUCKETS_MAX as i32).map(bucket).collect(),
            ..Histogram::default()
        };
        assert_eq!(histogram.validate(), Ok(()));
        histogram.negative.push(bucket(1));
        let text = "65537 buckets are more than 65536: send a coarser histogram";
        assert_eq!(histogram.validate().unwrap_err().to_string(), text);
    }
}
