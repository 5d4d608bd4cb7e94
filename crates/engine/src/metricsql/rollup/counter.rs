//! Differences within a window: increases, rates, changes.

use super::window::{Window, seconds};

/// A series that begins with less than this many of its steps is taken to begin at zero.
const FIRST_STEPS_MAX: f64 = 10.0;

/// The last value less the one before the window.
pub(super) fn delta(window: &Window<'_>) -> f64 {
    let (Some(first), Some(last)) = (window.values.first(), window.values.last()) else {
        return window.previous.map_or(f64::NAN, |_| 0.0);
    };
    if let Some(before) = window.previous.map(|(_, value)| value).or(window.earlier) {
        return last - before;
    }
    // Nothing was there before. A small first value has grown from zero since; a large one grew
    // before anybody looked.
    let next = window.values.get(1).copied().or(window.later);
    let step = next.map_or(0.0, |next| next - first);
    if first.abs() < FIRST_STEPS_MAX * (step.abs() + 1.0) {
        *last
    } else if window.values.len() == 1 {
        // Also of an infinite value, whose distance from itself is no number.
        0.0
    } else {
        last - first
    }
}

/// The last value less the one before the window, which is zero if there was none.
pub(super) fn increase_pure(window: &Window<'_>) -> f64 {
    let Some(last) = window.values.last() else {
        return window.previous.map_or(f64::NAN, |_| 0.0);
    };
    last - window.previous.map(|(_, value)| value).or(window.earlier).unwrap_or(0.0)
}

/// The last value less the first.
pub(super) fn delta_inside(window: &Window<'_>) -> f64 {
    match window.values {
        [first, .., last] => last - first,
        _ => f64::NAN,
    }
}

/// The last value less the first, by the window's length.
pub(super) fn rate_inside(window: &Window<'_>) -> f64 {
    delta_inside(window) / window.seconds()
}

/// The last value less the one before it.
pub(super) fn last_delta(window: &Window<'_>) -> f64 {
    match (window.values, window.previous) {
        ([.., before, last], _) => last - before,
        ([last], Some((_, before))) => last - before,
        ([last], None) => *last,
        ([], Some(_)) => 0.0,
        ([], None) => f64::NAN,
    }
}

/// The slope from the sample before the window, else from the first one, to the last one.
pub(super) fn rate(window: &Window<'_>) -> f64 {
    let last = window.timestamps.last().zip(window.values.last());
    match (window.previous, last) {
        (Some(_), None) => 0.0,
        (Some(from), Some((at, value))) => slope(from, (*at, *value)),
        (None, Some((at, value))) if 1 < window.values.len() => {
            slope((window.timestamps[0], window.values[0]), (*at, *value))
        }
        // How long a single value took to grow, nobody knows.
        (None, _) => f64::NAN,
    }
}

/// The slope between the last two samples of different times.
pub(super) fn last_rate(window: &Window<'_>) -> f64 {
    let (times, values) = (window.timestamps, window.values);
    let (Some(at), Some(value)) = (times.last(), values.last()) else { return f64::NAN };
    let older = times.iter().rposition(|time| time < at);
    match older.map(|idx| (times[idx], values[idx])).or(window.previous) {
        Some(from) => slope(from, (*at, *value)),
        None if values.len() == 1 => f64::NAN,
        None => 0.0,
    }
}

fn slope(from: (i64, f64), to: (i64, f64)) -> f64 {
    (to.1 - from.1) / seconds(to.0 - from.0)
}

/// Values that differ by less than this part differ by rounding.
const ROUNDING: f64 = 1e-12;

/// How often `is_change(previous, value)` holds from one value to the next.
fn count(before: f64, values: &[f64], is_change: impl Fn(f64, f64) -> bool) -> f64 {
    let (mut previous, mut changes) = (before, 0.0);
    for value in values {
        if is_change(previous, *value) {
            if (value - previous).abs() < ROUNDING * value.abs() {
                continue;
            }
            changes += 1.0;
        }
        previous = *value;
    }
    changes
}

/// How often the value changed; to begin is a change.
pub(super) fn changes(window: &Window<'_>) -> f64 {
    let differs = |previous, value| previous != value;
    match (window.previous, window.earlier, window.values) {
        (Some((_, before)), _, values) => count(before, values, differs),
        (None, _, []) => f64::NAN,
        (None, Some(before), values) => count(before, values, differs),
        (None, None, [first, rest @ ..]) => 1.0 + count(*first, rest, differs),
    }
}

/// How often the value changed from sample to sample inside the window.
pub(super) fn changes_inside(window: &Window<'_>) -> f64 {
    match window.values {
        [] => f64::NAN,
        [first, rest @ ..] => count(*first, rest, |previous, value| previous != value),
    }
}

/// How often the value rose.
pub(super) fn rises(window: &Window<'_>) -> f64 {
    let Some((before, values)) = window.split_first() else { return f64::NAN };
    count(before, values, |previous, value| previous < value)
}

/// How often the value fell.
pub(super) fn falls(window: &Window<'_>) -> f64 {
    let Some((before, values)) = window.split_first() else { return f64::NAN };
    count(before, values, |previous, value| value < previous)
}

/// How far the value rose, all rises together.
pub(super) fn ascent(window: &Window<'_>) -> f64 {
    climb(window, 1.0)
}

/// How far the value fell, all falls together.
pub(super) fn descent(window: &Window<'_>) -> f64 {
    climb(window, -1.0)
}

fn climb(window: &Window<'_>, sign: f64) -> f64 {
    let Some((mut previous, values)) = window.split_first() else { return f64::NAN };
    let mut total = 0.0;
    for value in values {
        total += (sign * (value - previous)).max(0.0);
        previous = *value;
    }
    total
}
