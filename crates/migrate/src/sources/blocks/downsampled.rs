//! Samples of what Thanos has downsampled: of several aggregates the one that a plain question would get.
//!
//! A counter goes on over resets, within a chunk and from one to the next; anything else is its average.
//! Which of both a series is only its name can say.

use wire::prometheus_block::chunks::Aggregates;
use wire::remote_write::encode::MillisSample;

/// What the names of counters end with.
const COUNTERS: [&str; 4] = ["_total", "_count", "_sum", "_bucket"];

/// The samples of one series, chunk after chunk.
pub struct Downsampled {
    is_counter: bool,
    last: Option<Last>,
}

/// Where a counter is.
#[derive(Clone, Copy)]
struct Last {
    millis: i64,
    /// As it was in its chunk.
    value: f64,
    /// With all that came before resets.
    total: f64,
}

impl Downsampled {
    /// Of a metric.
    pub fn of(metric: &str) -> Downsampled {
        let is_counter = COUNTERS.iter().any(|end| metric.ends_with(end));
        Downsampled { is_counter, last: None }
    }

    /// The samples of the next chunk.
    pub fn next(&mut self, aggregates: Aggregates) -> Vec<MillisSample> {
        let Aggregates { averages, counter, .. } = aggregates;
        if !self.is_counter || counter.is_empty() {
            return averages;
        }
        let counter = counter.into_iter().filter(|one| !model::is_stale_marker(one.value));
        counter.filter_map(|one| self.step(one)).collect()
    }

    fn step(&mut self, MillisSample { millis, value }: MillisSample) -> Option<MillisSample> {
        let total = match &mut self.last {
            None => value,
            // Of the end of a chunk: what the next one is compared with.
            Some(last) if millis == last.millis => {
                last.value = value;
                return None;
            }
            Some(last) if millis < last.millis => return None,
            Some(last) if value < last.value => last.total + value,
            Some(last) => last.total + (value - last.value),
        };
        self.last = Some(Last { millis, value, total });
        Some(MillisSample { millis, value: total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(all: &[(i64, f64)]) -> Vec<MillisSample> {
        all.iter().map(|(millis, value)| MillisSample { millis: *millis, value: *value }).collect()
    }

    #[test]
    fn counters_go_on_and_others_are_averages() {
        let chunk = |averages: &[(i64, f64)], counter: &[(i64, f64)]| Aggregates {
            averages: samples(averages),
            counter: samples(counter),
            is_of_histograms: false,
        };
        // 100, then from 0 to 50: 150, and it was 50 at the end. Then on from 60, and a reset to 5.
        let first = chunk(&[(10, 1.0)], &[(1, 100.0), (10, 150.0), (10, 50.0)]);
        let second = chunk(&[(20, 2.0)], &[(11, 60.0), (20, 70.0), (20, 70.0)]);
        let third = chunk(&[(30, 3.0)], &[(21, 5.0), (30, 9.0), (30, 9.0)]);
        let mut counter = Downsampled::of("x_total");
        assert_eq!(counter.next(first.clone()), samples(&[(1, 100.0), (10, 150.0)]));
        assert_eq!(counter.next(second), samples(&[(11, 160.0), (20, 170.0)]));
        assert_eq!(counter.next(third), samples(&[(21, 175.0), (30, 179.0)]));
        assert_eq!(Downsampled::of("x").next(first), samples(&[(10, 1.0)]));
    }
}
