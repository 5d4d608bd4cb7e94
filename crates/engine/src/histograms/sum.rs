//! Sums and means of histograms behind one face.

use histogram::{Histogram, HistogramMean, HistogramSum, Incompatible, Notes};

/// Histograms that are added up.
pub(crate) enum Accumulator {
    Total(HistogramSum),
    Mean(HistogramMean),
}

impl Accumulator {
    /// A sum of one histogram.
    pub fn total(first: &Histogram) -> Accumulator {
        Accumulator::Total(HistogramSum::of(first))
    }

    /// A mean of one histogram.
    pub fn mean(first: &Histogram) -> Accumulator {
        Accumulator::Mean(HistogramMean::of(first))
    }

    /// Adds one more. An error leaves it as it was.
    pub fn add(&mut self, histogram: &Histogram) -> Result<(), Incompatible> {
        match self {
            Accumulator::Total(sum) => sum.add(histogram),
            Accumulator::Mean(mean) => mean.add(histogram),
        }
    }

    /// The sum or mean, and what is to be known about what was added.
    pub fn finish(self) -> (Histogram, Notes) {
        match self {
            Accumulator::Total(sum) => sum.finish(),
            Accumulator::Mean(mean) => mean.finish(),
        }
    }
}
