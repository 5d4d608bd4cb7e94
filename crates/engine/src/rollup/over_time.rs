//! Order statistics of a window: `min`, `max`, quantiles, the median's deviation.

use std::cmp::Ordering;

/// Values compared side by side; one chain of comparisons would wait for itself.
const LANES: usize = 8;

/// The smallest value; NaN only when there is nothing else.
pub(crate) fn min(values: &[f64]) -> f64 {
    best(values, f64::INFINITY, |value, best| value < best)
}

/// The largest value; NaN only when there is nothing else.
pub(crate) fn max(values: &[f64]) -> f64 {
    best(values, f64::NEG_INFINITY, |value, best| value > best)
}

/// The best value, NaN being better than none: `worst` is what anything is at least as good as.
#[inline(always)]
fn best(values: &[f64], worst: f64, is_better: impl Fn(f64, f64) -> bool) -> f64 {
    let mut lanes = [worst; LANES];
    let mut chunks = values.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = if is_better(*value, *lane) { *value } else { *lane };
        }
    }
    let mut found = worst;
    for value in lanes.iter().chain(chunks.remainder()) {
        found = if is_better(*value, found) { *value } else { found };
    }
    if found == worst && !values.contains(&worst) { f64::NAN } else { found }
}

/// Where the newest of the largest values is.
pub(super) fn last_max(values: &[f64]) -> usize {
    last_best(values, |value, best| value >= best)
}

/// Where the newest of the smallest values is.
pub(super) fn last_min(values: &[f64]) -> usize {
    last_best(values, |value, best| value <= best)
}

fn last_best(values: &[f64], is_better: impl Fn(f64, f64) -> bool) -> usize {
    let mut found = 0;
    for (at, value) in values.iter().enumerate() {
        if is_better(*value, values[found]) || values[found].is_nan() {
            found = at;
        }
    }
    found
}

/// The quantile of values in any order, interpolated between two of them; NaN sorts first.
/// `sorted` is memory to work in.
pub(crate) fn quantile(q: f64, values: &[f64], sorted: &mut Vec<f64>) -> f64 {
    if values.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if 1.0 < q {
        return f64::INFINITY;
    }
    sorted.clear();
    sorted.extend_from_slice(values);
    sorted.sort_unstable_by(nan_first);
    let rank = q * (sorted.len() - 1) as f64;
    let lower = rank.floor();
    let weight = rank - lower;
    let upper = (lower as usize + 1).min(sorted.len() - 1);
    sorted[lower as usize] * (1.0 - weight) + sorted[upper] * weight
}

/// Ascending, NaN before everything.
pub(crate) fn nan_first(a: &f64, b: &f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
    }
}

/// The median of the distances from the median.
pub(super) fn median_deviation(values: &[f64], sorted: &mut Vec<f64>) -> f64 {
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let median = quantile(0.5, values, sorted);
    let distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    quantile(0.5, &distances, sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_pass_over_nan() {
        let values = [f64::NAN, 3.0, 1.0, 3.0, f64::NAN];
        assert_eq!((min(&values), max(&values)), (1.0, 3.0));
        assert_eq!((last_min(&values), last_max(&values)), (2, 3));
        assert!(min(&[f64::NAN]).is_nan());
    }

    #[test]
    fn quantiles() {
        let mut sorted = Vec::new();
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(0.5, &values, &mut sorted), 2.5);
        assert_eq!(quantile(0.0, &values, &mut sorted), 1.0);
        assert_eq!(quantile(1.0, &values, &mut sorted), 4.0);
        assert_eq!(quantile(2.0, &values, &mut sorted), f64::INFINITY);
        assert_eq!(quantile(-1.0, &values, &mut sorted), f64::NEG_INFINITY);
        assert!(quantile(f64::NAN, &values, &mut sorted).is_nan());
        assert_eq!(median_deviation(&[1.0, 2.0, 9.0], &mut sorted), 1.0);
    }
}
