//! Lines through a window, and the area below it.

use super::window::{Window, seconds};

/// The slope of the line that fits best, per second.
pub(super) fn slope(window: &Window<'_>) -> f64 {
    fit(window).map_or(f64::NAN, |(_, slope)| slope)
}

/// Where the line that fits best will be, as many seconds behind the window as the argument says.
pub(super) fn prediction(window: &Window<'_>) -> f64 {
    fit(window).map_or(f64::NAN, |(level, slope)| level + slope * window.numbers[0])
}

/// Times that are spread less than this have no slope.
const SPREAD_MIN: f64 = 1e-6;

/// The line that fits best by least squares: its value at the window's end and its slope.
fn fit(window: &Window<'_>) -> Option<(f64, f64)> {
    let first = *window.values.first()?;
    if window.values.iter().all(|value| *value == first) {
        return Some((first, 0.0));
    }
    let (mut x, mut y, mut xy, mut xx) = (0.0, 0.0, 0.0, 0.0);
    for (at, value) in window.timestamps.iter().zip(window.values) {
        let time = seconds(at - window.end_ms);
        x += time;
        y += value;
        xy += time * value;
        xx += time * time;
    }
    let count = window.values.len() as f64;
    let spread = xx - x * x / count;
    let slope = if SPREAD_MIN <= spread.abs() { (xy - x * y / count) / spread } else { 0.0 };
    Some((y / count - slope * x / count, slope))
}

/// Holt's linear method: the smoothed value at the window's end.
pub(super) fn smoothing(window: &Window<'_>) -> f64 {
    let [level_factor, slope_factor] = window.numbers;
    // A factor that is missing does not matter to a single value.
    let is_usable = |factor: f64| factor.is_nan() || (0.0..=1.0).contains(&factor);
    if window.values.is_empty() || !is_usable(level_factor) || !is_usable(slope_factor) {
        return f64::NAN;
    }
    let Some((mut level, values)) = window.split_first() else { return f64::NAN };
    let Some(second) = values.first() else { return level };
    let mut slope = second - level;
    for value in values {
        let next = level_factor * value + (1.0 - level_factor) * (level + slope);
        slope = slope_factor * (next - level) + (1.0 - slope_factor) * slope;
        level = next;
    }
    level
}

/// The area below the values, each lasting until the next, in seconds. The last one lasts until
/// the window's end unless the series ends with it.
pub(super) fn area(window: &Window<'_>) -> f64 {
    let Some((mut level, values)) = window.split_first() else { return f64::NAN };
    let times = &window.timestamps[window.timestamps.len() - values.len()..];
    let mut from = match window.previous {
        Some(_) => window.start_ms,
        None => window.timestamps[0],
    };
    let mut area = 0.0;
    for (at, value) in times.iter().zip(values) {
        area += level * seconds(at - from);
        (from, level) = (*at, *value);
    }
    if window.later.is_some() {
        area += level * seconds(window.end_ms - from);
    }
    area
}
