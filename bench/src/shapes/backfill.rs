//! Backfill: five years of history, one series after the other, as an import from elsewhere sends.
//!
//! The given interval and start only say when the history ends; its samples are spread evenly
//! over the five years before it, so each request touches every month.

use super::{Point, Shape, ShapeScale, plausible_value};
use crate::instant::DAY_NS;
use crate::workload::LabelSet;

const SPAN_NS: i64 = 5 * 365 * DAY_NS;

struct Backfill {
    scale: ShapeScale,
}

/// Makes the shape.
pub fn build(scale: ShapeScale) -> Box<dyn Shape> {
    Box::new(Backfill { scale })
}

impl Shape for Backfill {
    fn series(&self) -> u64 {
        self.scale.series
    }

    fn samples(&self) -> u64 {
        self.scale.series * self.scale.samples_each
    }

    fn series_of(&self, samples: u64) -> u64 {
        samples.div_ceil(self.scale.samples_each).min(self.scale.series)
    }

    fn span_ns(&self) -> (i64, i64) {
        (self.point(0).timestamp_ns, self.point(self.samples() - 1).timestamp_ns)
    }

    fn point(&self, n: u64) -> Point {
        let (series, row) = (n / self.scale.samples_each, n % self.scale.samples_each);
        // Whole milliseconds, which is what remote write can carry.
        let step_ns = SPAN_NS / self.scale.samples_each as i64 / 1_000_000 * 1_000_000;
        Point {
            series,
            timestamp_ns: self.scale.start_ns - SPAN_NS + row as i64 * step_ns,
            value: plausible_value(self.scale.seed, series, row),
        }
    }

    fn labels(&self, series: u64, labels: &mut LabelSet) {
        labels.set_metric_name("meter_reading");
        labels.push_number("meter", "meter-", series);
        labels.push_number("region", "region-", series % 20);
    }
}
