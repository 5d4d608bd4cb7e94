//! One sample a series: every sample pays for a registration and has nothing to be packed with.

use super::{Point, Shape, ShapeScale, plausible_value};
use crate::random::mix_pair;
use crate::workload::LabelSet;

struct OneSample {
    scale: ShapeScale,
}

/// Makes the shape; `samples_each` has no meaning here.
pub fn build(scale: ShapeScale) -> Box<dyn Shape> {
    Box::new(OneSample { scale })
}

impl Shape for OneSample {
    fn series(&self) -> u64 {
        self.scale.series
    }

    fn samples(&self) -> u64 {
        self.scale.series
    }

    fn span_ns(&self) -> (i64, i64) {
        (self.point(0).timestamp_ns, self.point(self.samples() - 1).timestamp_ns)
    }

    /// Time moves on by an interval every thousand series, as jobs that come and go do.
    fn point(&self, n: u64) -> Point {
        Point {
            series: n,
            timestamp_ns: self.scale.start_ns + (n / 1000) as i64 * self.scale.interval_ns,
            value: plausible_value(self.scale.seed, n, 0),
        }
    }

    fn labels(&self, series: u64, labels: &mut LabelSet) {
        let bits = mix_pair(self.scale.seed, series);
        labels.set_metric_name("job_duration_seconds");
        labels.push_number("job", "batch-", bits % 100);
        labels.push_with("run", |text| text.push_str(&format!("{bits:016x}-{series}")));
        labels.push_number("zone", "zone-", bits >> 32 & 7);
    }
}
