//! The value: buckets, count, sum, zero bucket.
//!
//! Source: Prometheus' native histogram specification,
//! <https://prometheus.io/docs/specs/native_histograms/>.

use crate::schema::CUSTOM_SCHEMA;
use model::is_stale_marker;

/// How many observations fell into one bucket; which values those are, [`crate::schema`] tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// The bucket's index in its schema; of custom bounds, the index of its upper bound.
    pub index: i32,
    /// Observations in this bucket alone.
    pub count: f64,
}

/// What is known about a reset of the counters between the sample before and this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResetHint {
    /// Nothing: whoever needs to know compares the two.
    #[default]
    Unknown,
    /// This is the first sample after a reset.
    Reset,
    /// There was none.
    NoReset,
    /// It does not count, it is a gauge.
    Gauge,
}

/// A distribution of observations. Counts are float64: whole numbers up to 2^53 are exact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// -4 to 8: buckets grow by 2^(2^-schema); [`CUSTOM_SCHEMA`]: the bounds are
    /// [`Histogram::custom_bounds`].
    pub schema: i8,
    /// Whether the counters were reset.
    pub reset_hint: ResetHint,
    /// Values whose size is at most this are counted as zero.
    pub zero_threshold: f64,
    /// Observations of zero.
    pub zero_count: f64,
    /// All observations, those that are not a number too.
    pub count: f64,
    /// The sum of all observations. A stale marker when the series has ended.
    pub sum: f64,
    /// Buckets of positive values, and of all values with custom bounds; ascending by index,
    /// each index once.
    pub positive: Vec<Bucket>,
    /// Buckets of negative values, ascending by index, that is from zero downwards.
    pub negative: Vec<Bucket>,
    /// Upper bounds of the buckets, ascending, without infinity; only with [`CUSTOM_SCHEMA`].
    pub custom_bounds: Vec<f64>,
}

impl Histogram {
    /// The sample that says that a series of histograms has ended.
    pub fn stale() -> Histogram {
        Histogram { sum: model::stale_marker(), ..Histogram::default() }
    }

    /// Whether the series has ended here.
    pub fn is_stale(&self) -> bool {
        is_stale_marker(self.sum)
    }

    /// Whether the bounds are given one by one.
    pub fn has_custom_bounds(&self) -> bool {
        self.schema == CUSTOM_SCHEMA
    }

    /// Whether it does not count.
    pub fn is_gauge(&self) -> bool {
        self.reset_hint == ResetHint::Gauge
    }
}
