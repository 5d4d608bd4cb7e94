//! How a window's values are spread: variance, quantiles, outliers.

use super::interval::{lag, scrape_interval};
use super::over_time::{average, last, max, min};
use super::window::Window;

/// The population variance, found in one walk.
pub(super) fn variance(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| {
        if values.len() == 1 {
            return 0.0;
        }
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for value in values {
            count += 1.0;
            let next = mean + (value - mean) / count;
            squares += (value - mean) * (value - next);
            mean = next;
        }
        squares / count
    })
}

/// The population standard deviation.
pub(super) fn deviation(window: &Window<'_>) -> f64 {
    variance(window).sqrt()
}

/// By how many standard deviations the last value is off the mean; a gap once the next sample is
/// overdue.
pub(super) fn standard_score(window: &Window<'_>) -> f64 {
    let (interval, lag) = (scrape_interval(window), lag(window));
    if interval.is_nan() || lag.is_nan() || interval < lag {
        return f64::NAN;
    }
    let distance = last(window) - average(window);
    if distance == 0.0 { 0.0 } else { distance / deviation(window) }
}

/// The lower of Hoeffding's bounds of the mean.
pub(super) fn hoeffding_lower(window: &Window<'_>) -> f64 {
    average(window) - hoeffding_distance(window)
}

/// The upper of Hoeffding's bounds of the mean.
pub(super) fn hoeffding_upper(window: &Window<'_>) -> f64 {
    average(window) + hoeffding_distance(window)
}

/// How far the mean may be from what was measured, with the probability that is the argument.
fn hoeffding_distance(window: &Window<'_>) -> f64 {
    let range = max(window) - min(window);
    let probability = window.numbers[0];
    if window.values.len() < 2 || range <= 0.0 || probability <= 0.0 {
        return 0.0;
    }
    if 1.0 <= probability {
        return f64::INFINITY;
    }
    let count = window.values.len() as f64;
    range * ((1.0 / (1.0 - probability)).ln() / (2.0 * count)).sqrt()
}

/// The median; `sorted` is memory to work in, as for all functions below.
pub(super) fn median(window: &Window<'_>, sorted: &mut Vec<f64>) -> f64 {
    quantile(0.5, window.values, sorted)
}

/// The quantile that is the argument.
pub(super) fn quantile_asked(window: &Window<'_>, sorted: &mut Vec<f64>) -> f64 {
    quantile(window.numbers[0], window.values, sorted)
}

/// The median of the distances from the median.
pub(super) fn median_distance(window: &Window<'_>, sorted: &mut Vec<f64>) -> f64 {
    let median = quantile(0.5, window.values, sorted);
    let distances: Vec<f64> = window.values.iter().map(|value| (value - median).abs()).collect();
    quantile(0.5, &distances, sorted)
}

/// The quantile of what is a number: differences of infinities are none.
fn quantile(phi: f64, values: &[f64], sorted: &mut Vec<f64>) -> f64 {
    if !values.iter().any(|value| value.is_nan()) {
        return crate::rollup::quantile(phi, values, sorted);
    }
    let numbers: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    crate::rollup::quantile(phi, &numbers, sorted)
}

/// An outlier is further than this many ranges between quartiles from the nearer quartile.
const OUTLIER_RANGES: f64 = 1.5;

/// The last value if it is an outlier.
pub(super) fn outlier(window: &Window<'_>, sorted: &mut Vec<f64>) -> f64 {
    let &[_, .., last] = window.values else { return f64::NAN };
    let low = quantile(0.25, window.values, sorted);
    let high = quantile(0.75, window.values, sorted);
    let distance = OUTLIER_RANGES * (high - low);
    if high + distance < last || last < low - distance { last } else { f64::NAN }
}

/// Which different values there are, how many.
pub(super) fn distinct(window: &Window<'_>, sorted: &mut Vec<f64>) -> f64 {
    sort(window.values, sorted);
    sorted.dedup();
    window.unless_empty(|_| sorted.len() as f64)
}

/// The most frequent value, of equals the smallest. The value before the window counts once,
/// ahead of all others, and together with the smallest if they are equal.
pub(super) fn mode(window: &Window<'_>, sorted: &mut Vec<f64>) -> f64 {
    sort(window.values, sorted);
    let before = window.previous.map_or(f64::NAN, |(_, value)| value);
    let (mut best, mut best_count) = (before, 0);
    let mut keep = |value: f64, count: usize| {
        if best_count < count || best.is_nan() {
            (best, best_count) = (value, count);
        }
    };
    let (mut value, mut count) = (before, 1);
    for next in sorted.iter() {
        if *next == value {
            count += 1;
            continue;
        }
        keep(value, count);
        (value, count) = (*next, 1);
    }
    keep(value, count);
    best
}

fn sort(values: &[f64], sorted: &mut Vec<f64>) {
    sorted.clear();
    sorted.extend_from_slice(values);
    sorted.sort_unstable_by(f64::total_cmp);
}
