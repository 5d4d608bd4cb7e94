//! Whose start timestamps a selection of them has.

use crate::partition::histograms::names::plain_labels;
use model::Labels;

/// The labels of the series that start timestamps of these labels belong to.
pub fn series_of_starts(labels: &Labels) -> Labels {
    plain_labels(&mut labels.to_builder())
}
