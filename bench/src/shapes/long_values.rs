//! Long values: 5 labels of 200 bytes each, two of them shared by all series of a group.

use super::{Point, Shape, ShapeScale, plausible_value};
use crate::random::mix_pair;
use crate::workload::LabelSet;

const VALUE_SIZE: usize = 200;

struct LongValues {
    scale: ShapeScale,
}

/// Makes the shape.
pub fn build(scale: ShapeScale) -> Box<dyn Shape> {
    Box::new(LongValues { scale })
}

impl Shape for LongValues {
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

    fn labels(&self, series: u64, labels: &mut LabelSet) {
        labels.set_metric_name("query_seconds");
        let group = series / 100;
        for (name, key) in [
            ("arguments", series),
            ("path", series),
            ("plan", group),
            ("statement", group),
            ("trace", series),
        ] {
            labels.push_with(name, |text| put_long(mix_pair(self.scale.seed, key), name, text));
        }
        labels.push_number("worker", "", series);
    }
}

/// Appends hexadecimal digits that no dictionary shortens.
fn put_long(key: u64, name: &str, text: &mut String) {
    let end = text.len() + VALUE_SIZE;
    let mut bits = mix_pair(key, name.len() as u64);
    while text.len() < end {
        bits = mix_pair(bits, key);
        let digits: [u8; 16] =
            std::array::from_fn(|idx| b"0123456789abcdef"[(bits >> (4 * idx) & 15) as usize]);
        text.push_str(std::str::from_utf8(&digits).unwrap_or_default());
    }
    text.truncate(end);
}
