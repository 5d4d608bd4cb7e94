//! What both servers are filled with: a few dozen series of every kind that rollups care about.

use crate::payload::remote_write::put_labels_series;
use crate::random::{Random, unit};
use crate::workload::LabelSet;

/// First sample: a round moment, so that windows and steps fall on samples and between them.
pub const START_MS: i64 = 1_767_225_600_000;
/// The data ends so much later.
pub const SPAN_MS: i64 = 2 * 3_600_000;
/// Between samples of a regular series.
const INTERVAL_MS: i64 = 15_000;
/// What a counter's samples are like when it starts anew.
const RESET_PERCENT: u64 = 2;

/// How a series' values go.
#[derive(Clone, Copy)]
enum Kind {
    /// Up and down, in quarters.
    Gauge,
    /// Up in whole numbers, sometimes from nothing.
    Counter,
    /// Few different values, often the same.
    State,
}

/// One series.
struct Series {
    labels: LabelSet,
    kind: Kind,
    /// Percent of samples that are missing, in runs.
    gap_percent: u64,
    /// Times are off by up to so many hundredths of a second.
    jitter_cs: u64,
}

/// The plain bytes of a remote-write request with all samples of a seed, `shift_ms` later.
pub fn request(seed: u64, shift_ms: i64) -> Vec<u8> {
    let start_ms = START_MS + shift_ms;
    let mut random = Random::new(seed);
    let (mut out, mut scratch) = (Vec::new(), Vec::new());
    for series in all_series() {
        let mut value = 10.0 + random.below(40) as f64;
        let mut is_gap = false;
        for step in 0..SPAN_MS / INTERVAL_MS {
            value = next_value(series.kind, value, &mut random);
            if random.below(100) < series.gap_percent {
                is_gap = !is_gap;
            }
            let jitter = 10 * random.below(series.jitter_cs + 1) as i64;
            if !is_gap {
                let timestamp = start_ms + step * INTERVAL_MS + jitter;
                put_labels_series(&series.labels, value, timestamp, &mut scratch, &mut out);
            }
        }
    }
    put_histogram(start_ms, &mut random, &mut scratch, &mut out);
    out
}

fn next_value(kind: Kind, value: f64, random: &mut Random) -> f64 {
    match kind {
        Kind::Gauge => value + (random.below(17) as f64 - 8.0) / 4.0,
        Kind::Counter if random.below(100) < RESET_PERCENT => random.below(5) as f64,
        Kind::Counter => value + random.below(6) as f64,
        Kind::State if random.below(5) == 0 => random.below(4) as f64,
        Kind::State => value,
    }
}

fn all_series() -> Vec<Series> {
    let mut all = Vec::new();
    let mut add = |name: &str, kind, gap_percent, jitter_cs, tags: &[(&str, &str)]| {
        let mut labels = LabelSet::default();
        labels.set_metric_name(name);
        tags.iter().for_each(|(name, value)| labels.push(name, value));
        all.push(Series { labels, kind, gap_percent, jitter_cs });
    };
    for job in ["api", "db"] {
        for instance in ["1", "2", "3"] {
            let tags = [("instance", instance), ("job", job)];
            add("gauge", Kind::Gauge, 0, 0, &tags);
            add("requests_total", Kind::Counter, 0, 0, &tags);
            add("jittered", Kind::Gauge, 0, 400, &tags);
            add("gappy", Kind::Gauge, 8, 200, &tags);
        }
        add("state", Kind::State, 0, 0, &[("job", job)]);
        add(
            "info",
            Kind::State,
            0,
            0,
            &[("job", job), ("version", if job == "db" { "7" } else { "12" })],
        );
    }
    add("lonely", Kind::Gauge, 3, 0, &[]);
    all
}

/// A histogram whose buckets grow together.
fn put_histogram(start_ms: i64, random: &mut Random, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    const BOUNDS: [&str; 5] = ["0.1", "0.5", "1", "5", "+Inf"];
    for job in ["api", "db"] {
        let mut counts = [0u64; BOUNDS.len()];
        for step in 0..SPAN_MS / INTERVAL_MS {
            let observed = random.below(6);
            for _ in 0..observed {
                let first = (unit(random.next()) * BOUNDS.len() as f64) as usize;
                counts[first..].iter_mut().for_each(|count| *count += 1);
            }
            for (bound, count) in BOUNDS.iter().zip(counts) {
                let mut labels = LabelSet::default();
                labels.set_metric_name("latency_bucket");
                labels.push("job", job);
                labels.push("le", bound);
                let timestamp = start_ms + step * INTERVAL_MS;
                put_labels_series(&labels, count as f64, timestamp, scratch, out);
            }
        }
    }
}
