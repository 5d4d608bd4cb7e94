//! Sums that remember what rounding took from them (Kahan, as improved by Neumaier).

/// Adds `increase` to `sum`; `lost` is what earlier additions lost. Gives the new pair.
pub(crate) fn add(increase: f64, sum: f64, lost: f64) -> (f64, f64) {
    let total = sum + increase;
    if total.is_infinite() {
        return (total, 0.0);
    }
    let rest = match increase.abs() <= sum.abs() {
        true => (sum - total) + increase,
        false => (increase - total) + sum,
    };
    (total, lost + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rounding_takes_is_kept() {
        let mut pair = (0.0, 0.0);
        for value in [1.0, 1e100, 1.0, -1e100] {
            pair = add(value, pair.0, pair.1);
        }
        assert_eq!(pair, (0.0, 2.0));
        assert_eq!(add(f64::MAX, f64::MAX, 3.0), (f64::INFINITY, 0.0));
        assert!(add(f64::NAN, 1.0, 0.0).0.is_nan());
    }
}
