//! Functions that give a series several rows, told apart by a label whose values the samples or
//! the arguments decide.

use super::vmrange::Bucket;
use super::window::Cut;
use crate::rollup::quantile;
use model::go_number::format_shortest;
use std::collections::HashMap;

/// What the rows of a series are.
#[derive(Clone, Debug)]
pub(super) enum Labelled {
    /// A row for each quantile.
    Quantiles {
        /// The label that tells them apart.
        label: String,
        /// From 0 to 1.
        quantiles: Vec<f64>,
    },
    /// A row for each value, of how often it is there.
    Values {
        /// The label that tells them apart.
        label: String,
    },
    /// A row for each bucket, of how many values it holds.
    Histogram,
}

/// The rows of one series by what their label says.
struct Rows {
    steps: usize,
    /// The label's value and the row's, in order of arrival.
    rows: Vec<(String, Vec<f64>)>,
    /// Where the row of a key is.
    known: HashMap<u64, usize>,
}

impl Rows {
    fn row(&mut self, key: u64, text: impl FnOnce() -> String) -> &mut [f64] {
        let idx = *self.known.entry(key).or_insert_with(|| {
            self.rows.push((text(), vec![f64::NAN; self.steps]));
            self.rows.len() - 1
        });
        &mut self.rows[idx].1
    }

    fn count(&mut self, step: usize, key: u64, text: impl FnOnce() -> String) {
        let count = &mut self.row(key, text)[step];
        *count = if count.is_nan() { 1.0 } else { *count + 1.0 };
    }
}

impl Labelled {
    /// The label that tells the rows apart.
    pub fn label(&self) -> &str {
        match self {
            Labelled::Quantiles { label, .. } | Labelled::Values { label } => label,
            Labelled::Histogram => "vmrange",
        }
    }

    /// The rows of one series; a row that no step has a value for is left out.
    pub fn rows(&self, cut: &Cut<'_>) -> Vec<(String, Vec<f64>)> {
        let steps = cut.bounds.len();
        let mut rows = Rows { steps, rows: Vec::new(), known: HashMap::new() };
        let mut sorted = Vec::new();
        for (step, (low, high)) in cut.bounds.iter().enumerate() {
            let values = &cut.values[*low as usize..*high as usize];
            if values.is_empty() {
                continue;
            }
            match self {
                Labelled::Quantiles { quantiles, .. } => {
                    for phi in quantiles {
                        let value = quantile(*phi, values, &mut sorted);
                        rows.row(phi.to_bits(), || format_shortest(*phi))[step] = value;
                    }
                }
                Labelled::Values { .. } => {
                    for value in values {
                        rows.count(step, value.to_bits(), || format_shortest(*value));
                    }
                }
                Labelled::Histogram => {
                    for bucket in values.iter().filter_map(|value| Bucket::of(*value)) {
                        rows.count(step, bucket.key(), || bucket.name());
                    }
                }
            }
        }
        rows.rows
    }
}
