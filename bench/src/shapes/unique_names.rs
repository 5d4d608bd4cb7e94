//! Unique names: each series has a metric name, a label name and a label value of its own, and one
//! label that all share. One sample each; the interval is the distance between two of them.
//!
//! The data set of the index queries: nothing about a series tells anything about another.

use super::{Point, Shape, ShapeScale};
use crate::workload::LabelSet;

/// The label that all series share; a second set, to be deleted, has another value.
pub const SHARED_LABEL: &str = "zz_shared";

/// Value of the shared label of series that stay.
pub const SHARED_VALUE: &str = "live";

/// The series `first_series..first_series + scale.series`.
pub struct UniqueNames {
    /// How many series, from when on, how far apart.
    pub scale: ShapeScale,
    /// Number of the first, so that several sets have nothing in common.
    pub first_series: u64,
    /// Value of the label that all of them share.
    pub shared_value: &'static str,
}

/// Makes the shape.
pub fn build(scale: ShapeScale) -> Box<dyn Shape> {
    Box::new(UniqueNames { scale, first_series: 0, shared_value: SHARED_VALUE })
}

impl Shape for UniqueNames {
    fn series(&self) -> u64 {
        self.scale.series
    }

    fn samples(&self) -> u64 {
        self.scale.series
    }

    fn span_ns(&self) -> (i64, i64) {
        (self.point(0).timestamp_ns, self.point(self.samples() - 1).timestamp_ns)
    }

    fn point(&self, n: u64) -> Point {
        // Whole milliseconds, which is what remote write can carry.
        let offset_ms = i128::from(n) * i128::from(self.scale.interval_ns) / 1_000_000;
        Point {
            series: self.first_series + n,
            timestamp_ns: self.scale.start_ns + offset_ms as i64 * 1_000_000,
            value: n as f64,
        }
    }

    fn labels(&self, series: u64, labels: &mut LabelSet) {
        labels.set_metric_name(&format!("metric_name_{series}"));
        labels.push_number(&format!("label_name_{series}"), "label_value_", series);
        labels.push(SHARED_LABEL, self.shared_value);
    }
}
