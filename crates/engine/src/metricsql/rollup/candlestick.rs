//! Open, close, low and high of a window, for charts of prices.
//!
//! The window is one step later than others and closed before instead of behind: a sample at its
//! end belongs to the next candle, one at its start to this.

use super::window::Window;

/// The values of a candle: that of the sample at its start, if any, and those behind it.
fn candle<'a>(window: &'a Window<'_>) -> (Option<f64>, &'a [f64]) {
    let at_start = window.previous.filter(|(at, _)| window.start_ms <= *at);
    let inside = window.timestamps.iter().rposition(|at| *at < window.end_ms);
    (at_start.map(|(_, value)| value), &window.values[..inside.map_or(0, |idx| idx + 1)])
}

fn fold(window: &Window<'_>, choose: impl Fn(f64, f64) -> f64) -> f64 {
    let (start, values) = candle(window);
    start.into_iter().chain(values.iter().copied()).reduce(choose).unwrap_or(f64::NAN)
}

/// The first value.
pub(super) fn open(window: &Window<'_>) -> f64 {
    fold(window, |first, _| first)
}

/// The last value.
pub(super) fn close(window: &Window<'_>) -> f64 {
    fold(window, |_, last| last)
}

/// The smallest value.
pub(super) fn low(window: &Window<'_>) -> f64 {
    fold(window, f64::min)
}

/// The largest value.
pub(super) fn high(window: &Window<'_>) -> f64 {
    fold(window, f64::max)
}
