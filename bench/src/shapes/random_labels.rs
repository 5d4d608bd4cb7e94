//! Random label sets: 10 labels a series, names from 1,000, values from 100,000.
//!
//! No two series share a list of tag names, so nothing can be stored by columns of tags.

use super::{Point, Shape, ShapeScale, plausible_value};
use crate::random::mix_pair;
use crate::workload::LabelSet;
use rng::below;

const LABELS: u64 = 10;
const NAMES: u64 = 1000;
const VALUES: u64 = 100_000;

struct RandomLabels {
    scale: ShapeScale,
    names: Vec<String>,
}

/// Makes the shape.
pub fn build(scale: ShapeScale) -> Box<dyn Shape> {
    let names = (0..NAMES).map(|name| format!("label_{name:03}")).collect();
    Box::new(RandomLabels { scale, names })
}

impl Shape for RandomLabels {
    fn series(&self) -> u64 {
        self.scale.series
    }

    fn samples(&self) -> u64 {
        self.scale.series * self.scale.samples_each
    }

    fn span_ns(&self) -> (i64, i64) {
        self.scale.rows_span_ns()
    }

    fn point(&self, n: u64) -> Point {
        let (row, series) = (n / self.scale.series, n % self.scale.series);
        Point {
            series,
            timestamp_ns: self.scale.start_ns + row as i64 * self.scale.interval_ns,
            value: plausible_value(self.scale.seed, series, row),
        }
    }

    /// The names are cut into ten equal runs and one is drawn from each: so they are different
    /// and sorted. One value carries the series' number, so that no two label sets are equal.
    fn labels(&self, series: u64, labels: &mut LabelSet) {
        labels.set_metric_name("random_value");
        for label in 0..LABELS {
            let bits = mix_pair(self.scale.seed ^ label << 56, series);
            let name = label * (NAMES / LABELS) + below(bits, NAMES / LABELS);
            let value = below(mix_pair(bits, label), VALUES);
            labels.push_with(&self.names[name as usize], |text| {
                text.push_str("value_");
                text.push_str(itoa::Buffer::new().format(value));
                if label == 0 {
                    text.push('_');
                    text.push_str(itoa::Buffer::new().format(series));
                }
            });
        }
    }
}
