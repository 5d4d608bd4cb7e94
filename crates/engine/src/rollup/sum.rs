//! Compensated sums: Kahan's, with Neumaier's improvement, as Prometheus adds.

/// A running sum and the part of it that did not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub sum: f64,
    pub compensation: f64,
}

impl Sum {
    /// Adds one value.
    #[inline(always)]
    pub fn add(&mut self, value: f64) {
        let total = self.sum + value;
        let small = if value.abs() <= self.sum.abs() {
            (self.sum - total) + value
        } else {
            (value - total) + self.sum
        };
        self.compensation = if total.is_infinite() { 0.0 } else { self.compensation + small };
        self.sum = total;
    }

    /// The sum.
    pub fn total(&self) -> f64 {
        if self.sum.is_infinite() { self.sum } else { self.sum + self.compensation }
    }
}

/// A running mean: a sum while it fits, then the mean itself, step by step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Mean {
    /// The sum, or the mean once `is_incremental`.
    pub running: Sum,
    pub count: f64,
    pub is_incremental: bool,
}

impl Mean {
    /// A mean of one value.
    #[inline(always)]
    pub fn first(value: f64) -> Mean {
        Mean { running: Sum { sum: value, compensation: 0.0 }, count: 1.0, is_incremental: false }
    }

    /// Adds one value.
    #[inline(always)]
    pub fn add(&mut self, value: f64) {
        self.count += 1.0;
        if !self.is_incremental {
            let mut next = self.running;
            next.add(value);
            if !next.sum.is_infinite() {
                self.running = next;
                return;
            }
            self.begin_incremental();
        }
        let share = (self.count - 1.0) / self.count;
        self.running.sum *= share;
        self.running.compensation *= share;
        self.running.add(value / self.count);
    }

    /// The sum would overflow: from now on keep the mean.
    #[cold]
    fn begin_incremental(&mut self) {
        self.is_incremental = true;
        self.running.sum /= self.count - 1.0;
        self.running.compensation /= self.count - 1.0;
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        let Sum { sum, compensation } = self.running;
        if self.is_incremental {
            sum + compensation
        } else {
            sum / self.count + compensation / self.count
        }
    }
}

/// Adds a window without branches. The rounding error of each addition is found by Knuth's
/// method, which gives the same error as the comparison of magnitudes in [`Sum::add`], bit for
/// bit, as both errors are exact. Where that is not so, near infinity, the result is not finite
/// and `None` is returned.
#[inline(always)]
fn add_finite(first: f64, values: &[f64]) -> Option<Sum> {
    let mut sum = first;
    let mut compensation = 0.0;
    for value in values {
        let total = sum + value;
        let added = total - sum;
        compensation += (sum - (total - added)) + (value - added);
        sum = total;
    }
    (sum.is_finite() && compensation.is_finite()).then_some(Sum { sum, compensation })
}

/// The sum of a window.
pub(crate) fn total(values: &[f64]) -> f64 {
    if let Some(sum) = add_finite(0.0, values) {
        return sum.total();
    }
    let mut sum = Sum::default();
    for value in values {
        sum.add(*value);
    }
    sum.total()
}

/// The mean of a window.
pub(crate) fn average(values: &[f64]) -> f64 {
    let Some(sum) = add_finite(values[0], &values[1..]) else {
        // A sum that overflows on its way is made the careful way.
        let mut mean = Mean::first(values[0]);
        for value in &values[1..] {
            mean.add(*value);
        }
        return mean.mean();
    };
    let count = values.len() as f64;
    sum.sum / count + sum.compensation / count
}

/// The population variance of a window.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let mut count = 0.0;
    let (mut mean, mut squares) = (Sum::default(), Sum::default());
    for value in values {
        count += 1.0;
        let delta = value - (mean.sum + mean.compensation);
        mean.add(delta / count);
        squares.add(delta * (value - (mean.sum + mean.compensation)));
    }
    (squares.sum + squares.compensation) / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_not_lost() {
        assert_eq!(total(&[1e100, 1.0, -1e100]), 1.0);
        assert_eq!(average(&[1e100, 3.0, -1e100]), 1.0);
        assert_eq!(total(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(total(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert!(total(&[1.0, f64::NAN]).is_nan());
        assert!(average(&[f64::NAN, 1.0]).is_nan());
    }

    /// The quick way and the careful way agree bit for bit.
    #[test]
    fn both_ways_give_the_same_bits() {
        let mut state = 1u64;
        for round in 0..2_000 {
            let values: Vec<f64> = (0..1 + round % 40)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
                    let exponent = (state >> 40) as i32 % 60 - 30;
                    (state >> 12) as f64 * 2f64.powi(exponent) * (1.0 - (state >> 63) as f64 * 2.0)
                })
                .collect();
            let mut careful = Sum::default();
            values.iter().for_each(|value| careful.add(*value));
            assert_eq!(add_finite(0.0, &values), Some(careful));
            let mut mean = Mean::first(values[0]);
            values[1..].iter().for_each(|value| mean.add(*value));
            assert_eq!(average(&values).to_bits(), mean.mean().to_bits());
        }
    }

    #[test]
    fn means_do_not_overflow() {
        assert_eq!(average(&[f64::MAX, f64::MAX]), f64::MAX);
        assert!(average(&[f64::MAX, f64::MAX, -f64::MAX, -f64::MAX]).abs() < f64::MAX * 1e-15);
        assert_eq!(average(&[f64::INFINITY, 1.0]), f64::INFINITY);
    }

    #[test]
    fn variances() {
        assert_eq!(variance(&[1.0, 3.0]), 1.0);
        assert_eq!(variance(&[7.0]), 0.0);
    }
}
