//! Histograms of which a query takes the count and the sum alone.
//!
//! Under `histogram_count`, `histogram_sum` and `histogram_avg` nobody looks at buckets, unless a
//! quantile, a trim or a subquery stands between or around. They are left out where samples are
//! read, and as resets can be told from buckets only, that is done there: the hints then say of each
//! histogram whether it came after a reset. All this is what Prometheus does, whose warnings of
//! conflicting resets depend on it.

use histogram::{Histogram, ResetHint};
use std::cell::Cell;

/// What is read of histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Everything.
    #[default]
    Whole,
    /// Count and sum.
    Totals,
    /// Everything, whatever else is asked for.
    Buckets,
}

/// Sets what is read until it is dropped.
pub(crate) struct ReadingScope<'c> {
    reading: &'c Cell<Reading>,
    before: Reading,
}

impl ReadingScope<'_> {
    /// Reads so from now on, unless the buckets are needed anyway.
    pub fn begin(reading: &Cell<Reading>, wanted: Reading) -> ReadingScope<'_> {
        let before = reading.get();
        if before != Reading::Buckets {
            reading.set(wanted);
        }
        ReadingScope { reading, before }
    }
}

impl Drop for ReadingScope<'_> {
    fn drop(&mut self) {
        self.reading.set(self.before);
    }
}

/// The histograms of one series without their buckets.
pub(crate) fn totals(histograms: &[Histogram]) -> Vec<Histogram> {
    let mut before: Option<&Histogram> = None;
    let total = |histogram| {
        let reset_hint = hint(before, histogram);
        before = Some(histogram);
        Histogram {
            schema: histogram.schema,
            reset_hint,
            count: histogram.count,
            sum: histogram.sum,
            ..Histogram::default()
        }
    };
    histograms.iter().map(total).collect()
}

fn hint(before: Option<&Histogram>, histogram: &Histogram) -> ResetHint {
    match (histogram.reset_hint, before) {
        (ResetHint::Unknown, Some(before)) if histogram.is_reset_after(before) => ResetHint::Reset,
        (ResetHint::Unknown, Some(_)) => ResetHint::NoReset,
        (hint, _) => hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use histogram::Bucket;

    #[test]
    fn what_is_needed_inside_or_outside_wins() {
        let reading = Cell::new(Reading::Whole);
        {
            let _outer = ReadingScope::begin(&reading, Reading::Totals);
            assert_eq!(reading.get(), Reading::Totals);
            let _inner = ReadingScope::begin(&reading, Reading::Buckets);
            let _innermost = ReadingScope::begin(&reading, Reading::Totals);
            assert_eq!(reading.get(), Reading::Buckets);
        }
        assert_eq!(reading.get(), Reading::Whole);
    }

    #[test]
    fn resets_are_told_before_the_buckets_go() {
        let histogram = |counts: [f64; 2]| Histogram {
            count: counts[0] + counts[1],
            positive: (0..).zip(counts).map(|(index, count)| Bucket { index, count }).collect(),
            ..Histogram::default()
        };
        let gauge = Histogram { reset_hint: ResetHint::Gauge, ..histogram([9.0, 0.0]) };
        let all = [histogram([1.0, 1.0]), histogram([1.0, 2.0]), histogram([0.0, 4.0]), gauge];
        let found = totals(&all);
        let hints: Vec<ResetHint> = found.iter().map(|one| one.reset_hint).collect();
        let expected = [ResetHint::Unknown, ResetHint::NoReset, ResetHint::Reset, ResetHint::Gauge];
        assert_eq!(hints, expected);
        assert!(found.iter().all(|one| one.positive.is_empty()));
        assert_eq!(found[2].count, 4.0);
    }
}
