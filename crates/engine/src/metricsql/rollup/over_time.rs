//! One number out of a window's values: sums, extremes, counts, and when they were.

use super::window::{Window, seconds};
use crate::rollup::{max as largest, min as smallest};
use model::sample::is_stale_marker;

/// The first value.
pub(super) fn first(window: &Window<'_>) -> f64 {
    window.values.first().copied().unwrap_or(f64::NAN)
}

/// The last value; a stale marker, where there are any, is a gap.
pub(super) fn last(window: &Window<'_>) -> f64 {
    window.values.last().copied().unwrap_or(f64::NAN)
}

/// The smallest value.
pub(super) fn min(window: &Window<'_>) -> f64 {
    // What begins with NaN has no order.
    if first(window).is_nan() { f64::NAN } else { smallest(window.values) }
}

/// The largest value.
pub(super) fn max(window: &Window<'_>) -> f64 {
    // What begins with NaN has no order.
    if first(window).is_nan() { f64::NAN } else { largest(window.values) }
}

/// The largest value less the smallest.
pub(super) fn range(window: &Window<'_>) -> f64 {
    max(window) - min(window)
}

/// Plain addition, oldest first: numbers to compare with have its rounding.
fn total(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |sum, value| sum + value)
}

/// The sum.
pub(super) fn sum(window: &Window<'_>) -> f64 {
    window.unless_empty(total)
}

/// The sum of squares.
pub(super) fn sum_of_squares(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| values.iter().fold(0.0, |sum, value| sum + value * value))
}

/// The mean.
pub(super) fn average(window: &Window<'_>) -> f64 {
    sum(window) / window.values.len() as f64
}

/// The mean of the logarithms, as a value.
pub(super) fn geometric_mean(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| {
        let product = values.iter().fold(1.0, |product, value| product * value);
        f64::powf(product, 1.0 / values.len() as f64)
    })
}

/// The sum by the window's length.
pub(super) fn rate_of_sum(window: &Window<'_>) -> f64 {
    sum(window) / window.seconds()
}

/// How many samples there are.
pub(super) fn samples(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| values.len() as f64)
}

/// How many stale markers there are.
pub(super) fn stale_samples(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| count(values, is_stale_marker))
}

/// 1 if there is a sample.
pub(super) fn present(window: &Window<'_>) -> f64 {
    window.unless_empty(|_| 1.0)
}

/// 1 if there is no sample.
pub(super) fn absent(window: &Window<'_>) -> f64 {
    if window.values.is_empty() { 1.0 } else { f64::NAN }
}

fn count(values: &[f64], is_counted: impl Fn(f64) -> bool) -> f64 {
    values.iter().filter(|value| is_counted(**value)).count() as f64
}

fn sum_of(values: &[f64], is_added: impl Fn(f64) -> bool) -> f64 {
    values.iter().filter(|value| is_added(**value)).fold(0.0, |sum, value| sum + value)
}

/// How many values equal the number.
pub(super) fn count_equal(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| count(values, |value| value == window.numbers[0]))
}

/// How many values do not equal the number.
pub(super) fn count_not_equal(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| count(values, |value| value != window.numbers[0]))
}

/// How many values are above the number.
pub(super) fn count_above(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| count(values, |value| window.numbers[0] < value))
}

/// How many values are not above the number.
pub(super) fn count_up_to(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| count(values, |value| value <= window.numbers[0]))
}

/// Which part of the values equals the number.
pub(super) fn share_equal(window: &Window<'_>) -> f64 {
    count_equal(window) / window.values.len() as f64
}

/// Which part of the values is above the number.
pub(super) fn share_above(window: &Window<'_>) -> f64 {
    count_above(window) / window.values.len() as f64
}

/// Which part of the values is not above the number.
pub(super) fn share_up_to(window: &Window<'_>) -> f64 {
    count_up_to(window) / window.values.len() as f64
}

/// The sum of the values that equal the number.
pub(super) fn sum_equal(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| sum_of(values, |value| value == window.numbers[0]))
}

/// The sum of the values above the number.
pub(super) fn sum_above(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| sum_of(values, |value| window.numbers[0] < value))
}

/// The sum of the values not above the number.
pub(super) fn sum_up_to(window: &Window<'_>) -> f64 {
    window.unless_empty(|values| sum_of(values, |value| value <= window.numbers[0]))
}

/// When the first sample was, in seconds.
pub(super) fn time_of_first(window: &Window<'_>) -> f64 {
    window.timestamps.first().map_or(f64::NAN, |at| seconds(*at))
}

/// When the last sample was, in seconds.
pub(super) fn time_of_last(window: &Window<'_>) -> f64 {
    window.timestamps.last().map_or(f64::NAN, |at| seconds(*at))
}

/// When the newest of the smallest values was, in seconds.
pub(super) fn time_of_min(window: &Window<'_>) -> f64 {
    time_of_best(window, |value, best| value <= best)
}

/// When the newest of the largest values was, in seconds.
pub(super) fn time_of_max(window: &Window<'_>) -> f64 {
    time_of_best(window, |value, best| best <= value)
}

fn time_of_best(window: &Window<'_>, is_better: impl Fn(f64, f64) -> bool) -> f64 {
    let mut best = 0;
    for (idx, value) in window.values.iter().enumerate() {
        if is_better(*value, window.values[best]) {
            best = idx;
        }
    }
    window.timestamps.get(best).map_or(f64::NAN, |at| seconds(*at))
}

/// When the value last became what it is, in seconds.
pub(super) fn time_of_last_change(window: &Window<'_>) -> f64 {
    let Some(last) = window.values.last() else { return f64::NAN };
    if let Some(idx) = window.values.iter().rposition(|value| value != last) {
        return seconds(window.timestamps[idx + 1]);
    }
    match window.previous {
        Some((_, before)) if before == *last => f64::NAN,
        _ => time_of_first(window),
    }
}
