//! The spread of a figure over repeated runs, and how numbers and ratios are written.

use super::Run;
use super::figures::Better;

/// Smallest, median and largest value of a figure.
pub(super) struct Spread {
    smallest: f64,
    pub(super) median: f64,
    largest: f64,
    count: usize,
}

impl Spread {
    /// The median, with the others in brackets when there are several runs.
    pub(super) fn text(&self) -> String {
        let median = number(self.median);
        if self.count < 2 {
            return median;
        }
        format!("{median} ({}..{})", number(self.smallest), number(self.largest))
    }
}

/// The values of one contender's figure; `None` when no run has it.
pub(super) fn spread(contender: &str, figure: &str, runs: &[Run]) -> Option<Spread> {
    let of_contender = runs.iter().filter(|run| run.contender == contender);
    let mut values = of_contender
        .flat_map(|run| run.outcome.figures.iter())
        .filter(|other| other.name == figure)
        .map(|other| other.value)
        .collect::<Vec<_>>();
    values.sort_by(f64::total_cmp);
    Some(Spread {
        smallest: *values.first()?,
        median: (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0,
        largest: *values.last()?,
        count: values.len(),
    })
}

/// How many times better the first is.
pub(super) fn ratio(ours: f64, theirs: f64, better: Better) -> String {
    let ratio = match better {
        Better::Higher => ours / theirs,
        Better::Lower => theirs / ours,
        Better::Neither => return String::new(),
    };
    if ratio.is_finite() { format!("{ratio:.2} x") } else { String::new() }
}

/// Large numbers whole, small ones with three significant digits.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => grouped(value),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        0.0 => "0".to_string(),
        _ => format!("{value:.3}"),
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (idx, digit) in digits.chars().enumerate() {
        let left = digits.len() - idx;
        if idx > 0 && left.is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(123.4), "123");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.1234), "0.123");
        assert_eq!(number(0.0), "0");
    }

    #[test]
    fn ratios_say_how_much_better_the_first_is() {
        assert_eq!(ratio(10.0, 5.0, Better::Higher), "2.00 x");
        assert_eq!(ratio(10.0, 5.0, Better::Lower), "0.50 x");
        assert_eq!(ratio(1.0, 0.0, Better::Higher), "");
        assert_eq!(ratio(1.0, 2.0, Better::Neither), "");
    }
}
