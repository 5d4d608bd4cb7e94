//! Out of order: within every hour the samples of a series come in a scrambled order.
//!
//! The rows of an hour are sent in the order `(n * step + offset) % rows`, with a step that has no
//! divisor in common with the rows and an offset per series: each sample comes once, up to an
//! hour late.

use super::{Point, Shape, ShapeScale, plausible_value};
use crate::instant::HOUR_NS;
use crate::random::mix_pair;
use crate::workload::LabelSet;

struct OutOfOrder {
    scale: ShapeScale,
    rows_in_hour: u64,
}

/// Makes the shape.
pub fn build(scale: ShapeScale) -> Box<dyn Shape> {
    let rows_in_hour = (HOUR_NS / scale.interval_ns).max(1) as u64;
    Box::new(OutOfOrder { scale, rows_in_hour })
}

impl OutOfOrder {
    /// The row of a series that is sent in turn `turn`.
    fn row(&self, turn: u64, series: u64) -> u64 {
        let block_start = turn - turn % self.rows_in_hour;
        let rows = self.rows_in_hour.min(self.scale.samples_each - block_start);
        let step = coprime_step(rows);
        let offset = mix_pair(self.scale.seed, series) % rows;
        block_start + (turn % self.rows_in_hour * step + offset) % rows
    }
}

/// A number near two thirds of `rows` that shares no divisor with it.
fn coprime_step(rows: u64) -> u64 {
    (rows * 2 / 3 + 1..).find(|step| greatest_divisor(*step, rows) == 1).unwrap_or(1)
}

fn greatest_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

impl Shape for OutOfOrder {
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
        let (turn, series) = (n / self.scale.series, n % self.scale.series);
        let row = self.row(turn, series);
        Point {
            series,
            timestamp_ns: self.scale.start_ns + row as i64 * self.scale.interval_ns,
            value: plausible_value(self.scale.seed, series, row),
        }
    }

    fn labels(&self, series: u64, labels: &mut LabelSet) {
        labels.set_metric_name("sensor_value");
        labels.push_number("gateway", "gateway-", series / 50);
        labels.push_number("sensor", "sensor-", series);
        labels.push_number("site", "site-", series / 5000);
    }
}
