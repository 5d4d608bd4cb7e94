//! A call that goes on from series to series gives what a new one gives for each: windows that are
//! kept for series with the same timestamps are the windows that these would get.

use super::*;
use model::sample::stale_marker;

/// A linear congruential generator; the seed is its first state.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

const NAMES: [&str; 12] = [
    "avg_over_time",
    "max_over_time",
    "count_over_time",
    "sum_over_time",
    "default_rollup",
    "rate",
    "increase",
    "deriv",
    "lag",
    "median_over_time",
    "stale_samples_over_time",
    "timestamp",
];

/// Lists of timestamps, of which some follow each other more than once, with values: some are
/// gaps.
fn series(random: &mut Random) -> Vec<(Vec<i64>, Vec<f64>)> {
    let mut times: Vec<i64> = Vec::new();
    (0..40)
        .map(|_| {
            if random.below(3) == 0 {
                let (mut at, gap) = (random.below(100_000) as i64, 1 + random.below(30_000));
                times = (0..random.below(60))
                    .map(|_| {
                        at += 1 + random.below(gap) as i64;
                        to_ns(at) + random.below(1_000_000) as i64
                    })
                    .collect();
            }
            let has_gaps = random.below(4) == 0;
            let value = |random: &mut Random| match random.below(if has_gaps { 6 } else { 4 }) {
                4 => f64::NAN,
                5 => stale_marker(),
                _ => random.below(1000) as f64 / 7.0,
            };
            let values = times.iter().map(|_| value(random)).collect();
            (times.clone(), values)
        })
        .collect()
}

fn bits(row: &[f64]) -> Vec<u64> {
    row.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn what_is_kept_from_series_to_series_changes_nothing() {
    let mut random = Random(7);
    let (labels, check) = (Labels::from_pairs(&[("a", "b")]), || Ok(()));
    for round in 0..60 {
        let step_ms = 1 + random.below(60_000) as i64;
        let grid = Grid { start_ms: random.below(400_000) as i64, step_ms, len: 1 + round % 30 };
        let window_ms = (random.below(3) != 0).then(|| 1 + random.below(200_000) as i64);
        let lookback_ms = (random.below(4) == 0).then(|| 1 + random.below(100_000) as i64);
        let end_ms = grid.at_ms(grid.len - 1);
        let windows = Windows { grid, end_ms, window_ms, lookback_ms, is_subquery: false };
        let name = NAMES[round % NAMES.len()];
        let new_call =
            || RollupCall::new(&CallContext::new(name, grid), Vec::new(), windows).expect("a call");
        let (mut running, mut filling) = (new_call(), new_call());
        assert!(running.makes_one_row());
        for (times, values) in series(&mut random) {
            let (mut expected, mut rows) = (Vec::new(), Vec::new());
            new_call().run(&labels, &times, &values, &check, &mut expected).expect("a row");
            running.run(&labels, &times, &values, &check, &mut rows).expect("a row");
            let mut row = vec![0.0; grid.len];
            filling.fill_row(&times, &values, &check, &mut row).expect("a row");
            assert_eq!((expected.len(), rows.len()), (1, 1));
            assert_eq!(bits(&rows[0].values), bits(&expected[0].values), "{name}, {windows:?}");
            assert_eq!(bits(&row), bits(&expected[0].values), "{name}, {windows:?}");
        }
    }
}

#[test]
fn calls_of_several_rows_say_so() {
    let grid = Grid { start_ms: 0, step_ms: 1000, len: 2 };
    let windows =
        Windows { grid, end_ms: 1000, window_ms: None, lookback_ms: None, is_subquery: false };
    for name in ["rollup", "rollup_candlestick", "histogram_over_time"] {
        let call = RollupCall::new(&CallContext::new(name, grid), Vec::new(), windows);
        assert!(!call.expect("a call").makes_one_row(), "{name}");
    }
}
