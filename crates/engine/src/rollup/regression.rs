//! Lines through windows: least squares and exponential smoothing.

use super::sum::Sum;
use crate::gap::ABSENT;
use crate::time::seconds;

/// A straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// Per second.
    pub slope: f64,
    /// The value at the time asked for.
    pub intercept: f64,
}

/// The line that fits the samples best by least squares; needs two samples.
pub(super) fn fit(times: &[i64], values: &[f64], intercept_time: i64) -> Option<Line> {
    if times.len() < 2 {
        return None;
    }
    let first = values[0];
    if values.iter().all(|value| *value == first) {
        // No rounding may tilt what is level.
        return Some(if first.is_infinite() {
            Line { slope: f64::NAN, intercept: f64::NAN }
        } else {
            Line { slope: 0.0, intercept: first }
        });
    }
    let [mut x, mut y, mut xy, mut xx] = [Sum::default(); 4];
    for (time, value) in times.iter().zip(values) {
        let at = seconds(time.saturating_sub(intercept_time));
        x.add(at);
        y.add(*value);
        xy.add(at * value);
        xx.add(at * at);
    }
    let [x, y, xy, xx] = [x, y, xy, xx].map(|sum| sum.sum + sum.compensation);
    let count = times.len() as f64;
    let covariance = xy - x * y / count;
    let variance = xx - x * x / count;
    let slope = covariance / variance;
    Some(Line { slope, intercept: y / count - slope * x / count })
}

/// Holt's linear method: the smoothed value at the window's end; needs two samples.
pub(super) fn double_exponential_smoothing(values: &[f64], smoothing: f64, trend: f64) -> f64 {
    let [first, second, ..] = values else { return ABSENT };
    let (mut before, mut level, mut slope) = (0.0, *first, second - first);
    for (idx, value) in values[1..].iter().enumerate() {
        if 0 < idx {
            slope = trend * (level - before) + (1.0 - trend) * slope;
        }
        let next = smoothing * value + (1.0 - smoothing) * (level + slope);
        (before, level) = (level, next);
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::to_ns;

    #[test]
    fn lines() {
        let times = [0, 1000, 2000].map(to_ns);
        let line = fit(&times, &[1.0, 3.0, 5.0], to_ns(2000)).unwrap();
        assert_eq!(line, Line { slope: 2.0, intercept: 5.0 });
        assert_eq!(fit(&times, &[7.0; 3], 0), Some(Line { slope: 0.0, intercept: 7.0 }));
        assert!(fit(&times, &[f64::INFINITY; 3], 0).unwrap().slope.is_nan());
        assert_eq!(fit(&times[..1], &[1.0], 0), None);
    }

    #[test]
    fn smoothing_follows_a_line() {
        assert_eq!(double_exponential_smoothing(&[1.0, 2.0, 3.0, 4.0], 0.25, 0.5), 4.0);
        assert!(crate::gap::is_absent(double_exponential_smoothing(&[1.0], 0.5, 0.5)));
    }
}
