//! Numbers about many numbers, among which NaN is none.

/// The values that are no gaps, in ascending order.
pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// A quantile of ascending values, interpolated between two of them.
pub(super) fn quantile_sorted(q: f64, sorted: &[f64]) -> f64 {
    if sorted.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if 1.0 < q {
        return f64::INFINITY;
    }
    let last = sorted.len() - 1;
    let rank = q * last as f64;
    let lower = rank.floor();
    let weight = rank - lower;
    let upper = (lower as usize + 1).min(last);
    sorted[lower as usize] * (1.0 - weight) + sorted[upper] * weight
}

/// A quantile of values in any order, gaps left out.
pub(super) fn quantile(q: f64, values: &[f64]) -> f64 {
    quantile_sorted(q, &sorted(values))
}

/// The median of the distances from the median.
pub(super) fn median_deviation(values: &[f64]) -> f64 {
    let median = quantile(0.5, values);
    let distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    quantile(0.5, &distances)
}

/// The average; NaN of nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    let mut sum = 0.0;
    let mut count = 0.0;
    for value in values.iter().filter(|value| !value.is_nan()) {
        sum += value;
        count += 1.0;
    }
    sum / count
}

/// Average and variance, by Welford's method; NaN of nothing.
pub(super) fn mean_and_variance(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut mean, mut count, mut squares) = (0.0, 0.0, 0.0);
    for value in values.filter(|value| !value.is_nan()) {
        count += 1.0;
        let next = mean + (value - mean) / count;
        squares += (value - mean) * (value - next);
        mean = next;
    }
    if count == 0.0 { (f64::NAN, f64::NAN) } else { (mean, squares / count) }
}

/// The variance of a series' points; that of a single point is 0, even of a gap.
pub(super) fn variance(values: &[f64]) -> f64 {
    if values.len() == 1 {
        return 0.0;
    }
    mean_and_variance(values.iter().copied()).1
}

/// The straight line with the least squares: its value at 0 and its slope. `xs` are seconds.
pub(super) fn regression(xs: impl Iterator<Item = f64>, values: &[f64]) -> (f64, f64) {
    let Some(first) = values.first() else { return (f64::NAN, f64::NAN) };
    if values[1..].iter().all(|value| value == first) {
        return (*first, 0.0);
    }
    let (mut n, mut sum_x, mut sum_y, mut sum_xy, mut sum_xx) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in xs.zip(values).filter(|(_, y)| !y.is_nan()) {
        n += 1.0;
        sum_x += x;
        sum_y += y;
        sum_xy += x * y;
        sum_xx += x * x;
    }
    if n == 0.0 {
        return (f64::NAN, f64::NAN);
    }
    let spread = sum_xx - sum_x * sum_x / n;
    // Points that are all at about one moment have no slope.
    let slope = if 1e-6 <= spread.abs() { (sum_xy - sum_x * sum_y / n) / spread } else { 0.0 };
    (sum_y / n - slope * sum_x / n, slope)
}

/// The most frequent of ascending values, the smallest of several; NaN of nothing.
pub(super) fn mode_sorted(sorted: &[f64]) -> f64 {
    let mut mode = f64::NAN;
    let mut most = 0;
    for run in sorted.chunk_by(|a, b| a == b) {
        if most < run.len() {
            most = run.len();
            mode = run[0];
        }
    }
    mode
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_no_values() {
        let values = [f64::NAN, 4.0, 1.0, f64::NAN, 3.0, 2.0];
        assert_eq!(quantile(0.5, &values), 2.5);
        assert_eq!(mean(&values), 2.5);
        assert_eq!(variance(&values), 1.25);
        assert_eq!(median_deviation(&values), 1.0);
        assert!(quantile(0.5, &[]).is_nan());
        assert_eq!(quantile(1.5, &values), f64::INFINITY);
        assert_eq!(variance(&[f64::NAN]), 0.0);
    }

    #[test]
    fn modes() {
        assert_eq!(mode_sorted(&[1.0, 2.0, 2.0, 3.0, 3.0]), 2.0);
        assert_eq!(mode_sorted(&[5.0]), 5.0);
        assert!(mode_sorted(&[]).is_nan());
    }
}
