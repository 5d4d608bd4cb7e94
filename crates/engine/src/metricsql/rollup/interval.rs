//! The times of a window's samples: how far they are from each other and from the window's end.

use super::window::{Window, seconds};

/// From the sample before the window, else from the first one, to the last one, in seconds; and
/// how many intervals that is.
fn span(window: &Window<'_>) -> Option<(f64, usize)> {
    let last = window.timestamps.last()?;
    let count = window.timestamps.len();
    match window.previous {
        Some((from, _)) => Some((seconds(last - from), count)),
        None if count < 2 => None,
        None => Some((seconds(last - window.timestamps[0]), count - 1)),
    }
}

/// How long the series has been there.
pub(super) fn lifetime(window: &Window<'_>) -> f64 {
    span(window).map_or(f64::NAN, |(length, _)| length)
}

/// The mean interval between samples.
pub(super) fn scrape_interval(window: &Window<'_>) -> f64 {
    span(window).map_or(f64::NAN, |(length, intervals)| length / intervals as f64)
}

/// How old the last sample is.
pub(super) fn lag(window: &Window<'_>) -> f64 {
    let last = window.timestamps.last().copied().or(window.previous.map(|(at, _)| at));
    last.map_or(f64::NAN, |at| seconds(window.end_ms - at))
}

/// How long the series was there, without the gaps longer than the argument.
pub(super) fn duration(window: &Window<'_>) -> f64 {
    let gap_max_ms = (window.numbers[0] * 1000.0) as i64;
    let gaps = window.timestamps.windows(2).map(|pair| pair[1] - pair[0]);
    window.unless_empty(|_| seconds(gaps.filter(|gap| *gap <= gap_max_ms).sum()))
}
