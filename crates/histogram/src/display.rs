//! Histograms as people and clients read them: `{count:4, sum:5, [-2,-1):1, (1,2]:3}`.

use crate::buckets::BucketRange;
use crate::native::Histogram;
use crate::schema::Side;
use model::go_number::format_shortest;
use std::fmt::{self, Display, Formatter};

impl Display for BucketRange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (open, close) =
            (if self.has_lower { '[' } else { '(' }, if self.has_upper { ']' } else { ')' });
        let (lower, upper) = (format_shortest(self.lower), format_shortest(self.upper));
        write!(f, "{open}{lower},{upper}{close}:{}", format_shortest(self.count))
    }
}

/// Buckets with observations by rising values, as their schema bounds them.
impl Display for Histogram {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{count:{}, sum:{}", format_shortest(self.count), format_shortest(self.sum))?;
        for bucket in self.negative.iter().rev().filter(|bucket| bucket.count != 0.0) {
            write!(f, ", {}", self.range(Side::Negative, bucket))?;
        }
        if let Some(zero) = self.zero_range().filter(|zero| zero.count != 0.0) {
            write!(f, ", {zero}")?;
        }
        for bucket in self.positive.iter().filter(|bucket| bucket.count != 0.0) {
            write!(f, ", {}", self.range(Side::Positive, bucket))?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use crate::notation::parse_notation;

    #[test]
    fn displayed() {
        let check = |text: &str, expected: &str| {
            assert_eq!(parse_notation(text).unwrap().0.histogram.to_string(), expected);
        };
        check("{{}}", "{count:0, sum:0}");
        check(
            "{{count:9 sum:1e6 z_bucket:2 z_bucket_w:0.75 buckets:[1 0 2.5] n_buckets:[3 4]}}",
            "{count:9, sum:1e+06, [-2,-1):4, [-1,-0.5):3, [-0.75,0.75]:2, (0.5,1]:1, (2,4]:2.5}",
        );
        check(
            "{{schema:-53 sum:NaN custom_values:[-5 10] buckets:[1 2 3]}}",
            "{count:0, sum:NaN, [-Inf,-5]:1, (-5,10]:2, (10,+Inf]:3}",
        );
    }
}
