//! Churn: pods in a cluster of which a tenth is replaced every hour.
//!
//! A slot is a place where a pod runs. Slot s gets a new pod, that is a new series, in every hour
//! h with `(h + s) % 10 == 0`; a series is `generation * slots + slot`.

use super::{Point, Shape, ShapeScale, plausible_value};
use crate::instant::HOUR_NS;
use crate::random::mix_pair;
use crate::workload::LabelSet;
use rng::below;

/// A slot's pod lives that many hours.
const LIFE_HOURS: u64 = 10;

struct Churn {
    scale: ShapeScale,
}

/// Makes the shape.
pub fn build(scale: ShapeScale) -> Box<dyn Shape> {
    Box::new(Churn { scale })
}

impl Churn {
    fn hour(&self, row: u64) -> u64 {
        row * self.scale.interval_ns as u64 / HOUR_NS as u64
    }

    /// The slots, and a new series for each time that one of the ten groups is replaced.
    fn series_until(&self, row: u64) -> u64 {
        let last_hour = self.hour(row);
        let slots_in_group = |group: u64| {
            self.scale.series / LIFE_HOURS + u64::from(group < self.scale.series % LIFE_HOURS)
        };
        let pods = |group| Churn::generation(group, last_hour) + 1;
        (0..LIFE_HOURS).map(|group| slots_in_group(group) * pods(group)).sum()
    }

    fn generation(slot: u64, hour: u64) -> u64 {
        (hour + slot % LIFE_HOURS) / LIFE_HOURS
    }
}

impl Shape for Churn {
    fn series(&self) -> u64 {
        self.series_until(self.scale.samples_each - 1)
    }

    fn series_of(&self, samples: u64) -> u64 {
        // A row's new series are counted with its first sample, but in the first row one by one.
        let row = samples.saturating_sub(1) / self.scale.series;
        if row == 0 { samples.min(self.scale.series) } else { self.series_until(row) }
    }

    fn samples(&self) -> u64 {
        self.scale.series * self.scale.samples_each
    }

    fn span_ns(&self) -> (i64, i64) {
        self.scale.rows_span_ns()
    }

    fn point(&self, n: u64) -> Point {
        let (row, slot) = (n / self.scale.series, n % self.scale.series);
        let series = Churn::generation(slot, self.hour(row)) * self.scale.series + slot;
        Point {
            series,
            timestamp_ns: self.scale.start_ns + row as i64 * self.scale.interval_ns,
            value: plausible_value(self.scale.seed, series, row),
        }
    }

    fn labels(&self, series: u64, labels: &mut LabelSet) {
        const METRICS: [&str; 5] = [
            "container_cpu_usage_seconds_total",
            "container_memory_working_set_bytes",
            "container_network_receive_bytes_total",
            "container_network_transmit_bytes_total",
            "container_fs_writes_bytes_total",
        ];
        // Five metrics belong to one pod, and a hundred pods to a deployment.
        let (pod, metric) = (series / 5, series % 5);
        let deployment = pod % self.scale.series.div_ceil(500);
        let bits = mix_pair(self.scale.seed, pod);
        labels.set_metric_name(METRICS[metric as usize]);
        labels.push("cluster", "production-eu-1");
        labels.push_number("container", "app-", deployment);
        labels.push("endpoint", "https-metrics");
        let image = |text: &mut String| {
            let version = mix_pair(bits, 1) % 30;
            text.push_str(&format!("registry.example/app-{deployment}:1.{version}"));
        };
        labels.push_with("image", image);
        labels.push_with("instance", |text| {
            text.push_str(&format!("10.0.{}.{}:10250", bits >> 8 & 255, bits & 255));
        });
        labels.push("job", "kubelet");
        labels.push_number("namespace", "team-", deployment % 40);
        labels.push_number("node", "node-", below(bits, 500));
        labels.push_with("pod", |text| {
            let hash = mix_pair(bits, 2) as u32;
            text.push_str(&format!("app-{deployment}-{hash:08x}-{pod:05x}"));
        });
    }
}
